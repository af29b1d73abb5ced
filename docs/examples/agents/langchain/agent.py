"""The desk of a town library, on LangChain. Reads questions from stdin, a line each, and answers them.

The middleware places the breakpoints: on the last tool, on the system prompt, and on the last message.
"""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

from tools import TOOLS

MODEL = "claude-sonnet-5-5"


def system_prompt() -> str:
    return Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")


def main() -> None:
    agent = create_agent(
        ChatAnthropic(model=MODEL, max_tokens=1000),
        tools=TOOLS,
        system_prompt=system_prompt(),
        middleware=[AnthropicPromptCachingMiddleware()],
    )
    messages = []
    for question in sys.stdin:
        messages.append({"role": "user", "content": question.strip()})
        messages = agent.invoke({"messages": messages})["messages"]
        print(messages[-1].text)


if __name__ == "__main__":
    main()
