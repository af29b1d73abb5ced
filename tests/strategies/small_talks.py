"""Small conversations for strategy tests, and a notation for breakpoints: `tools.1`, `system.0`, `3.1`, `auto`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results
from cachecost.prompts.blocks import Block, Part, given_block
from cachecost.prompts.request import Breakpoint, Request, block_of, text_block

MODEL = "claude-opus-4-6"


def user(text: str) -> Block:
    return text_block("user", text)


def said(text: str) -> Block:
    return text_block("assistant", text)


def thought(text: str) -> Block:
    return block_of("assistant", {"type": "thinking", "thinking": text, "signature": "s"})


def used(call: str) -> Block:
    return block_of("assistant", {"type": "tool_use", "id": call, "name": "look", "input": {}})


def result(call: str, text: str = "found") -> Block:
    return block_of("user", {"type": "tool_result", "tool_use_id": call, "content": text})


def head() -> tuple[Part, Part]:
    tools = Part(tuple(given_block("tool", "", f"tool {n}", 100) for n in range(2)))
    system = Part(tuple(given_block("text", "system", f"system {n}", 200) for n in range(2)))
    return tools, system


def conversation(*events: Event, params: Mapping[str, Any] | None = None, model: str | None = MODEL) -> Conversation:
    tools, system = head()
    return Conversation("small", events, model, tools, system, params=params or {})


SIX_CALLS = (
    Human(0, (user("one"),)),
    Reply(1, (thought("hm"), used("a"), used("b"))),
    Results(2, (result("a"), result("b"))),
    Reply(3, (said("on"), used("c"))),
    Results(4, (result("c"),)),
    Reply(5, (said("done"),)),
    Human(6, (user("two"),)),
    Reply(7, (thought("well"), used("d"))),
    Results(8, (result("d"), user("keep it short"))),
    Reply(9, (said("so"), said("it is"))),
    Human(10, (user("three"),)),
    Reply(11, (said("bye"),)),
)
"""Messages 1, 3, 5, 7, 9, 11 are the user's; 3, 5, 9 hold tool results; 9 holds text besides: a human one."""


def question(
    number: int, at: float, batch: int = 0, tool_use: str = "", answer_type: str = "boolean", answer: str = "true"
) -> Inquiry:
    return Inquiry(at, user(f"Shall I, question {number}?"), said(answer), answer_type, tool_use, batch)


def asked(
    *inquiries: Inquiry, params: Mapping[str, Any] | None = None, calls: tuple[str, ...] = ("a",)
) -> Conversation:
    """One turn in which the tools of the first reply ask."""
    return conversation(
        Human(0, (user("change it"),)),
        Reply(1, (said("yes"), *map(used, calls)), first_token_s=0.5),
        *inquiries,
        Results(100, tuple(map(result, calls))),
        Reply(101, (said("changed"),)),
        params=params,
    )


def spelled(request: Request) -> str:
    """The breakpoints of a request, in order."""
    words = [_spelled(breakpoint) for breakpoint in request.breakpoints]
    return " ".join([*words, "auto"] if request.automatic else words)


def _spelled(breakpoint: Breakpoint) -> str:
    place = str(breakpoint.node.length) if breakpoint.node else str(breakpoint.layer)
    return f"{place}.{breakpoint.index}" + ("" if breakpoint.ttl == "5m" else f"@{breakpoint.ttl}")


def fingerprint(call: Call) -> tuple[object, ...]:
    """Everything about a call that could differ, by value."""
    request = call.request
    return (
        call.start,
        call.first_token_s,
        call.purpose,
        call.turn,
        call.inquiry,
        call.output_tokens,
        tuple(block.digest for block in call.output),
        request.model,
        repr(sorted(request.params.items())),
        request.tools.digest,
        request.system.digest,
        tuple(message.digest for message in request.thread.messages()),
        spelled(request),
    )
