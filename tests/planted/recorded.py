"""Content-free recordings as plain bodies, in which a block is its digest and its size, and back to a recording."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cachecost.base.structs import replace
from conversations.session_stores import write_lines
from planted.logs import BEGIN, Body, Log, Sending, in_order

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
Line = dict[str, Any]
LONGEST_S = 120.0
"""Pauses of a recording are shortened to this, and no call starts before the first token, so that it is healthy."""


class Sizes:
    """A block is as long as the recording says, and nothing is hidden."""

    def block(self, role: str, block: Body, brought: list[Body]) -> int:
        size: int = block["size"]
        return size

    def hidden(self, body: Body) -> Any:
        return SimpleNamespace(tools=0, system=0, messages=0, turn=0, tail=0, parallel=0, after_results=0)


def block_of(kind: str, digest: str, size: int) -> Body:
    """A text has its digest for a text: the API refuses breakpoints on empty ones."""
    return {"type": kind, "digest": digest, "size": size} | ({"text": digest} if kind == "text" else {})


def is_recorded(log: Log) -> bool:
    return "size" in log[0].body["messages"][0]["content"][0]


def recorded(name: str, calls: int) -> Log:
    """The first calls of the first conversation of a recorded session, without their bills."""
    blocks: dict[int, Body] = {}
    heads: dict[int, Line] = {}
    messages: dict[int, list[Body]] = {0: []}
    log: Log = []
    for text in (RECORDINGS / "sessions" / name).read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "block" in line:
            blocks[line["block"]] = block_of(line["kind"], line["digest"], line["size"])
        elif "call" in line:
            before, count = line.get("after", (0, 0))
            own = [
                {"role": role, "content": [blocks[number] for number in numbers]} for role, numbers in line["messages"]
            ]
            messages[line["call"]] = messages[before][:count] + own
            sending = _sending(line, heads[line["head"]], blocks, messages[line["call"]])
            log += [sending] if not log or sending.first == log[0].first else []
        elif "head" in line:
            heads[line["head"]] = line
    return _without_pauses(log[:calls])


def _sending(line: Line, head: Line, blocks: dict[int, Body], messages: list[Body]) -> Sending:
    body: Body = {**head.get("params", {}), "model": head["model"], "messages": messages}
    for layer in ("tools", "system"):
        body |= {layer: [blocks[number] for number in head[layer]]} if head.get(layer) else {}
    body = json.loads(json.dumps(body))
    for layer, *at, ttl in line["breakpoints"]:
        block = body[layer][at[0]] if len(at) == 1 else body[layer][at[0]]["content"][at[1]]
        block["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    start = (datetime.fromisoformat(line["timestamp"]) - BEGIN).total_seconds()
    return Sending(body, start, line.get("first_token_s", 0.0))


def _without_pauses(log: Log) -> Log:
    healthy: Log = []
    for before, sending in zip([log[0], *log], log, strict=False):
        pause = max(min(sending.start - before.start, LONGEST_S), before.first_token_s + 0.1)
        healthy.append(replace(sending, start=healthy[-1].start + pause if healthy else sending.start))
    return healthy


def write_recording(path: Path, log: Log) -> Path:
    """A content-free recording of calls."""
    table: dict[str, int] = {}
    lines: list[Line] = [
        {"format": 1, "kind": "calls", "content": "digest", "name": "planted", "source": "", "licence": ""}
    ]
    for number, sending in enumerate(in_order(log), 1):
        body = sending.body
        head = {"head": number, "model": body["model"], "params": _params(body)}
        head |= {layer: _numbers(body.get(layer, ()), "system", table, lines) for layer in ("tools", "system")}
        messages = [[one["role"], _numbers(one["content"], one["role"], table, lines)] for one in body["messages"]]
        lines += [head, _call(number, sending, messages)]
    return write_lines(path, lines)


def _params(body: Body) -> Body:
    return {key: value for key, value in body.items() if key not in ("model", "messages", "tools", "system")}


def _numbers(blocks: list[Body], role: str, table: dict[str, int], lines: list[Line]) -> list[int]:
    numbers = []
    for block in blocks:
        row = {"kind": block["type"], "role": role, "digest": block["digest"], "size": block["size"]}
        key = json.dumps(row)
        if key not in table:
            table[key] = len(table) + 1
            lines.append({"block": table[key], **row})
        numbers.append(table[key])
    return numbers


def _call(number: int, sending: Sending, messages: list[Any]) -> Line:
    body = sending.body
    places: list[Any] = [
        [layer, at, block["cache_control"].get("ttl", "5m")]
        for layer in ("tools", "system")
        for at, block in enumerate(body.get(layer, ()))
        if "cache_control" in block
    ]
    for at, message in enumerate(body["messages"]):
        for inner, block in enumerate(message["content"]):
            if "cache_control" in block:
                places.append(["messages", at, inner, block["cache_control"].get("ttl", "5m")])
    stamp = (BEGIN + timedelta(seconds=sending.start)).isoformat()
    call: Line = {"call": number, "head": number, "timestamp": stamp, "first_token_s": sending.first_token_s}
    call |= {"workspace": sending.workspace} if sending.workspace else {}
    return {**call, "messages": messages, "breakpoints": places}
