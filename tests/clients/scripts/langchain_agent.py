"""A LangChain agent; with the word `middleware` it caches through AnthropicPromptCachingMiddleware."""

import sys

import session
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

agent = create_agent(
    ChatAnthropic(model=session.MODEL, max_tokens=1000),
    tools=[session.get_weather, session.add],
    system_prompt=session.SYSTEM,
    middleware=[AnthropicPromptCachingMiddleware()] if "middleware" in sys.argv else [],
)
state = agent.invoke({"messages": [{"role": "user", "content": session.QUESTION}]})
print(state["messages"][-1].text)
