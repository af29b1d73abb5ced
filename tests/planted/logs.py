"""Healthy logs of plain Messages API bodies: loops, chats, parallel tools, sub-agents and one-shots."""

from __future__ import annotations

import json
import marshal
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cachecost.base.structs import replace

Body = dict[str, Any]
KEEPS = "claude-opus-4-8"
"""Keeps the thinking of earlier turns; its minimum is 1,024 tokens."""
STRIPS = "claude-sonnet-4-5"
"""Drops the thinking of earlier turns; its minimum is 1,024 tokens."""
BEGIN = datetime(2026, 11, 2, 8, tzinfo=UTC)
EPHEMERAL = {"type": "ephemeral"}


@dataclass
class Sending:
    """A body, when it is sent (seconds after BEGIN), and what a log knows beside it."""

    body: Body
    start: float
    first_token_s: float = 0.5
    workspace: str = ""
    status: int = 200
    cached_as: str = ""
    """The model under which the naive replay caches the call; its prices stay those of the body's model."""

    @property
    def first(self) -> str:
        """The first message, by which calls belong to a conversation."""
        return json.dumps(bare(self.body["messages"][0]))


Log = list[Sending]


def copied(log: Log) -> Log:
    """A deep copy, faster than `deepcopy` for bodies."""
    return [replace(sending, body=marshal.loads(marshal.dumps(sending.body))) for sending in log]


def bare(value: Any) -> Any:
    """The same without any breakpoint."""
    if isinstance(value, dict):
        return {key: bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [bare(inner) for inner in value] if isinstance(value, list) else value


def write_log(path: Path, log: Log) -> Path:
    """A request log without bills, in the order of time."""
    lines = [json.dumps(_line(sending), ensure_ascii=False) for sending in in_order(log)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def in_order(log: Log) -> Log:
    return sorted(log, key=lambda sending: sending.start)


def _line(sending: Sending) -> Body:
    stamp = (BEGIN + timedelta(seconds=sending.start)).isoformat()
    line = {"timestamp": stamp, "request": sending.body, "first_token_s": sending.first_token_s}
    line |= {"workspace": sending.workspace} if sending.workspace else {}
    return line | ({"status": sending.status} if sending.status != 200 else {})


def words(name: str, count: int) -> str:
    return " ".join(f"{name}-{number}" for number in range(count))


def text(name: str, count: int) -> Body:
    return {"type": "text", "text": words(name, count)}


def padded(size: int) -> Body:
    """A text block of so many bytes."""
    block = {"type": "text", "text": ""}
    missing = size - len(json.dumps(block, separators=(",", ":")))
    return {**block, "text": (words("rule", 300))[:missing]}


def place(block: Body) -> Body:
    """The same block with a breakpoint."""
    return {**block, "cache_control": EPHEMERAL}


def unplace(body: Body, layer: str = "messages") -> None:
    """Take the breakpoints out of a layer."""
    body[layer] = bare(body[layer])


def place_last(body: Body) -> None:
    """Move the breakpoint of the messages to the last block."""
    unplace(body)
    body["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL


def append_block(body: Body, at: int, block: Body) -> None:
    """Add a block to the end of message `at`; a breakpoint on the last block stays on the last block.

    To a tool result of a model that drops thinking it is added as text: another block would be a human message.
    """
    content = body["messages"][at]["content"]
    if content[-1]["type"] == "tool_result" and body["model"] == STRIPS:
        content[-1]["content"] += json.dumps(block)
        return
    moved = content[-1].pop("cache_control", None)
    content.append(dict(block) | ({"cache_control": moved} if moved else {}))


def tools(prefix: str = "tool", count: int = 4) -> list[Body]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "line": {"type": "integer"}}}
    listed = [
        {"name": f"{prefix}_{n}", "description": words(f"{prefix} {n}", 80), "input_schema": deepcopy(schema)}
        for n in range(count)
    ]
    return [*listed[:-1], place(listed[-1])]


def system(name: str = "rule") -> list[Body]:
    return [text(name, 250), place(text(f"{name} folder", 20))]


def _sent(model: str, messages: list[Body], start: float, **fields: Any) -> Sending:
    body = {"model": model, "max_tokens": 100, **fields, "messages": messages}
    sending = Sending(deepcopy(body), start)
    place_last(sending.body)
    return sending


def user(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def exchange(topic: str, number: int, parallel: int = 1, lines: int = 60, thinking: int = 0) -> list[Body]:
    """An answer with tool calls, and the results."""
    ids = [f"{topic}{number}x{n}" for n in range(parallel)]
    uses = [
        {"type": "tool_use", "id": one, "name": "tool_1", "input": {"path": f"{topic}/{one}", "line": number}}
        for one in ids
    ]
    results = [{"type": "tool_result", "tool_use_id": one, "content": words(f"line {one}", lines)} for one in ids]
    thought = {"type": "thinking", "thinking": words(f"hm {topic} {number}", thinking), "signature": f"s{number}"}
    return [assistant(*[thought] * bool(thinking), text(f"I look {topic} {number}", 10), *uses), user(*results)]


def loop(
    calls: int = 10,
    model: str = KEEPS,
    topic: str = "one",
    begin: float = 0.0,
    every: float = 20.0,
    parallel: int = 1,
    thinking: int = 0,
    lines: int = 60,
    **fields: Any,
) -> Log:
    """A tool loop: calls `every` seconds, breakpoints after tools, system prompt and the last message."""
    shared: Body = {"tools": tools(), "system": system(), **fields}
    messages = [user(text(f"note {topic}", 30), text(f"question {topic}", 60))]
    log = []
    for number in range(calls):
        log.append(_sent(model, messages, begin + every * number, **shared))
        messages = messages + exchange(topic, number, parallel, lines, thinking)
    return log


def chat(turns: int = 10, model: str = KEEPS, topic: str = "one", begin: float = 0.0, every: float = 60.0) -> Log:
    """A person and an assistant, without tools."""
    messages: list[Body] = []
    log = []
    for number in range(turns):
        messages = [*messages, user(text(f"note {topic} {number}", 5), text(f"question {topic} {number}", 60))]
        log.append(_sent(model, messages, begin + every * number, system=system()))
        messages = [*messages, assistant(text(f"answer {topic} {number}", 150))]
    return log


def agents(calls: int = 6) -> Log:
    """A main loop, and two sub-agents of one kind with tools and a system prompt of their own, one after the other."""
    own: Body = {"tools": tools("sub", 3), "system": system("helper")}
    subs = [loop(calls - 2, topic=f"sub {n}", begin=23.0 + 41 * n, every=10.0, **own) for n in range(2)]
    return in_order([*loop(calls, every=30.0), *subs[0], *subs[1]])


def one_shots(calls: int = 6, every: float = 20.0, model: str = KEEPS) -> Log:
    """Questions of one call each under one system prompt, whose end has the only breakpoint."""
    log = []
    for number in range(calls):
        sending = _sent(model, [user(text(f"question {number}", 200))], every * number, system=system())
        unplace(sending.body)
        log.append(sending)
    return log


def fan_out(calls: int = 5, first_token_s: float = 2.0) -> Log:
    """One-shots that each start after the first token of the call before."""
    log = one_shots(calls, every=first_token_s + 1)
    for sending in log:
        sending.first_token_s = first_token_s
    return log


def fan_out_with_tools(calls: int = 6) -> Log:
    """One-shots with the same tools, whose end has a breakpoint, too."""
    log = one_shots(calls)
    for sending in log:
        sending.body["tools"] = tools()
    return log


def long_turn() -> Log:
    """A document and a question, thirteen tool calls, and a second question, on a model that then drops thinking.

    The last call has a breakpoint on the first message, too: it is too far back to be found.
    """
    log = loop(14, model=STRIPS, thinking=15)
    for sending in log:
        sending.body["messages"][0]["content"].insert(0, text("a long document", 600))
    last = log[-1].body["messages"][-1]
    last["content"].append(text("and now", 20))
    place_last(log[-1].body)
    log[-1].body["messages"][0]["content"][-1]["cache_control"] = EPHEMERAL
    return log


def loop_with_one_breakpoint() -> Log:
    log = loop()
    for sending in log:
        unplace(sending.body, "tools")
        unplace(sending.body, "system")
    return log
