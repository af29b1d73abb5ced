"""The Claude Agent SDK with Claude Code's own prompt; it starts the Claude Code that it brings along."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def run(question):
    options = ClaudeAgentOptions(
        system_prompt={"type": "preset", "preset": "claude_code"},
        allowed_tools=["Read", "Bash(echo:*)"],
        max_turns=6,
    )
    async for message in query(prompt=question, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(run(sys.argv[1]))
