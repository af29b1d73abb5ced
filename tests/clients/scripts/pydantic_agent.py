"""A Pydantic AI agent in one of its three modes: `none`, `places` (tools, instructions and messages), `automatic`."""

import sys

import session
from pydantic_ai import Agent

MODES = {
    "none": {},
    "places": {
        "anthropic_cache_tool_definitions": "1h",
        "anthropic_cache_instructions": True,
        "anthropic_cache_messages": True,
    },
    "automatic": {"anthropic_cache": True},
}

agent = Agent(
    f"anthropic:{session.MODEL}",
    instructions=session.SYSTEM,
    tools=[session.get_weather, session.add],
    model_settings={"max_tokens": 1000, **MODES[sys.argv[1]]},
)
print(agent.run_sync(session.QUESTION).output)
