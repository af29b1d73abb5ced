"""The desk of a town library, on Anthropic's Python SDK. Reads questions from stdin, a line each, and answers them."""

import sys
from pathlib import Path

from anthropic import Anthropic

from tools import TOOLS, run_tool

MODEL = "claude-sonnet-5-5"
BREAKPOINT = {"type": "ephemeral"}


def system_prompt() -> list[dict]:
    text = Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")
    return [{"type": "text", "text": text, "cache_control": BREAKPOINT}]


def tools() -> list[dict]:
    return [*TOOLS[:-1], {**TOOLS[-1], "cache_control": BREAKPOINT}]


def with_breakpoint(messages: list[dict]) -> list[dict]:
    """The messages with a breakpoint on the last block: the next call reads all of them from the cache."""
    *earlier, last = messages
    *blocks, block = last["content"]
    return [*earlier, {**last, "content": [*blocks, {**block, "cache_control": BREAKPOINT}]}]


def ask(client: Anthropic, messages: list[dict]) -> str:
    """Answer the last message; the calls of tools and the answer are added to `messages`."""
    while True:
        reply = client.messages.create(
            model=MODEL,
            max_tokens=1000,
            system=system_prompt(),
            tools=tools(),
            messages=with_breakpoint(messages),
        )
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": run_tool(call.name, call.input)}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


def main() -> None:
    client = Anthropic()
    messages = []
    for question in sys.stdin:
        messages.append({"role": "user", "content": [{"type": "text", "text": question.strip()}]})
        print(ask(client, messages))


if __name__ == "__main__":
    main()
