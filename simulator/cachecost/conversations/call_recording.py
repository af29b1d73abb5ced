"""cachecost's recording of calls: a request log without repetition, with content or content-free. JSON Lines.

Line 1 is the header: {"format": 1, "kind": "calls", "content": "keep"|"digest", "name", "source", "licence"}. Then
come blocks (see block_table.py), heads and calls, each before the first line that uses it:

    {"head": 1, "model": …, "params": {…}, "tools": [block numbers], "system": [block numbers],
     "tool_places": [0, 2], "system_places": [1, 0]}
    {"call": 7, "head": 1, "timestamp": as logged, "seen_on": day, "first_token_s": seconds, "host", "workspace",
     "session", "project", "agent", "start_s": seconds, "status", "service": "batch",
     "after": [6, 12], "messages": [["assistant", [block numbers]], …],
     "breakpoints": [["tools", 3, "5m"], ["messages", 0, 4, "1h"]], "automatic": "5m", "fault": …,
     "message_thread": {"id", "breakpoints", "idle_s"},
     "usage": {"input_tokens", "cache_read_input_tokens", "ephemeral_5m_input_tokens",
               "ephemeral_1h_input_tokens", "output_tokens"},
     "iterations": [{"type", "model", …usage…}], "response": [block numbers]}

A call has the first 12 messages of call 6, then `messages`: each message is written once. A breakpoint
is layer, message (as the API counts them, from 0), block and TTL; places are the indices that the blocks of `tools`
and `system` had in the request as sent, if they differ (deferred tools, server tools). `start_s` is when a call without
a timestamp began, since an unknown moment, if that is not 2 s after the call before it; `fault` is what the API refuses
in the body. Missing fields are absent, in a usage 0. Body fields that do not shape the prompt are not kept.

Content-free means: keyed digests, sizes, token counts, times, the API's own words. Name, source, licence, models and
hosts are written as given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from cachecost.base.atomic_files import write_lines
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.json_object import parse_json
from cachecost.conversations.model import BlockWriter, encode_record
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.blocks import ENCODE, Part, Thread, is_simple
from cachecost.prompts.request import Request
from cachecost.providers.usage import Usage

FORMAT = 1
KIND = "calls"
TOKENS = {
    "input_tokens": "input_tokens",
    "cache_read_input_tokens": "read",
    "ephemeral_5m_input_tokens": "write_5m",
    "ephemeral_1h_input_tokens": "write_1h",
    "output_tokens": "output_tokens",
}
"""What a usage holds, by its name on the wire: fields of `Usage`."""
WITHOUT_FRACTION = frozenset({"messages", "breakpoints", "after", "usage", "response"})
"""Fields of a call whose values are numbers of blocks and messages, tokens and words of ours."""


@dataclass(frozen=True, slots=True)
class Title:
    """What the header of a recording says."""

    name: str
    source: str = ""
    licence: str = ""


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a recording of calls; None if they do not."""
    first = parse_json(head.split(b"\n", 1)[0])
    is_ours = isinstance(first, dict) and "format" in first and first.get("kind") == KIND
    return f"its first line says format and kind {KIND}" if is_ours else None


def write(
    title: Title,
    calls: Iterable[Call],
    target: str | Path | BinaryIO,
    blocks: BlockWriter | None = None,
    overwrite: bool = True,
    mode: int | None = None,
) -> None:
    """As recording.write, call by call. Raises the same, and what iterating over `calls` raises. Calls need blocks with
    content; for `blocks` that write none, with content or counts."""
    write_lines(map(_encode, records(title, calls, blocks or BlockWriter())), target, overwrite, mode)


def _encode(record: dict[str, Any]) -> bytes:
    """As `encode_record`; a block that is JSON already, and what of a call is certain to have no fraction, are not
    walked."""
    content = record.get("content")
    if type(content) is msgspec.Raw:
        return b'{"block":%d,"role":%b,"content":%b}\n' % (record["block"], ENCODE(record["role"]), content)
    if "call" in record and is_simple([value for name, value in record.items() if name not in WITHOUT_FRACTION]):
        with suppress(ValueError):  # half of a surrogate pair
            return ENCODE(record) + b"\n"
    return encode_record(record)


def records(title: Title, calls: Iterable[Call], table: BlockWriter) -> Iterator[dict[str, Any]]:
    """The lines of a recording as objects, in order."""
    yield {
        "format": FORMAT,
        "kind": KIND,
        "content": "digest" if table.free else "keep",
        "name": title.name,
        "source": title.source,
        "licence": title.licence,
    }
    writer = _CallWriter(table)
    for call in calls:
        yield from writer.lines(call)


class _CallWriter:
    def __init__(self, table: BlockWriter) -> None:
        self.table = table
        self.free = table.free
        self._calls = 0
        self._starts = StartTimes()
        self._heads: dict[str, int] = {}
        self._head_of: dict[tuple[str, Part, Part, str], int] = {}
        self._parts: dict[Part, list[int]] = {}
        self._params: dict[str, dict[str, Any]] = {}
        self._written_in: dict[Thread, int] = {}

    def lines(self, call: Call) -> Iterator[dict[str, Any]]:
        """The line of a call, after those of the blocks and the head that are new with it."""
        self._calls += 1
        head, lines = self._head(call.request)
        yield from lines
        new: list[Thread] = []
        node = call.request.thread
        while node not in self._written_in and node.parent is not None:
            new.append(node)
            node = node.parent
        after = [self._written_in[node], node.length] if node.message is not None else None
        self._written_in |= dict.fromkeys(new, self._calls)
        messages: list[list[Any]] = []
        for node in reversed(new):
            assert node.message is not None
            numbers, lines = self.table.add(node.message.blocks)
            yield from lines
            messages.append([node.message.role, numbers])
        response, lines = self.table.add(call.response)
        yield from lines
        yield self._call_fields(call, head, after, messages, response)

    def _head(self, request: Request) -> tuple[int, list[dict[str, Any]]]:
        """The number of the model, parameters, tools and system prompt of a request, and the lines that are new."""
        parts = (request.model, request.tools, request.system, json.dumps(request.params) if request.params else "{}")
        if parts in self._head_of:
            return self._head_of[parts], []
        tools, tool_lines = self._part(request.tools)
        system, system_lines = self._part(request.system)
        if parts[3] not in self._params:
            self._params[parts[3]] = self.table.params(request.params)
        head = {
            "model": request.model,
            "params": self._params[parts[3]],
            "tools": tools,
            "system": system,
            "tool_places": request.tools.places,
            "system_places": request.system.places,
        }
        known = len(self._heads)
        number = self._head_of[parts] = self._heads.setdefault(json.dumps(head), known + 1)
        line = {"head": number, **{name: value for name, value in head.items() if value}}
        return number, [*tool_lines, *system_lines, *([line] if number > known else [])]

    def _part(self, part: Part) -> tuple[list[int], list[dict[str, Any]]]:
        if part in self._parts:
            return self._parts[part], []
        numbers, lines = self.table.add(part.blocks)
        self._parts[part] = numbers
        return numbers, lines

    def _call_fields(
        self, call: Call, head: int, after: list[int] | None, messages: list[list[Any]], response: list[int]
    ) -> dict[str, Any]:
        """The line of a call: what is None or an empty list is left out."""
        word, request, free = self.free.word if self.free else str, call.request, self.free
        usage, thread = call.returned_usage, None
        if sent := request.message_thread:
            numbers = {"breakpoints": sent.breakpoints, "idle_s": sent.idle_s}
            thread = {"id": word(sent.id), **{name: number for name, number in numbers.items() if number}}
        fields = {
            "call": self._calls,
            "head": head,
            "timestamp": call.timestamp,
            "start_s": self._starts.next_if_unusual(call.start, call.timestamp),
            "seen_on": call.day.isoformat() if call.day and call.timestamp is None else None,
            "first_token_s": call.first_token_s or None,
            "host": call.host,
            "workspace": word(call.workspace) or None,
            "session": word(call.session) or None,
            "project": word(call.project) or None,
            "agent": word(call.agent) or None,
            "status": call.status,
            "service": "batch" if call.is_batch else None,
            "after": after,
            "messages": messages or None,
            "breakpoints": [
                [str(one.layer), *([one.node.length - 1] if one.node else []), one.index, one.ttl]
                for one in request.breakpoints
            ]
            or None,
            "automatic": request.automatic,
            "fault": free.fault(request.fault) if free and request.fault else request.fault,
            "message_thread": thread,
            "usage": None if usage is None else _tokens(usage),
            "iterations": [
                {
                    "type": free.params(one.kind) if free else one.kind,
                    **({"model": one.model} if one.model else {}),
                    **_tokens(one.usage),
                }
                for one in call.iterations
            ]
            or None,
            "response": response or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _tokens(usage: Usage) -> dict[str, Any]:
    counts: dict[str, Any] = {name: tokens for name, field in TOKENS.items() if (tokens := getattr(usage, field))}
    if usage.tool_uses:
        counts["tool_uses"] = [[tool, uses] for tool, uses in usage.tool_uses]
    if usage.charged_usd is not None:
        counts["charged_usd"] = f"{usage.charged_usd:f}"
    return counts


class ThreadJoiner:
    """Gives calls of several files one root, so that equal prefixes are shared; equal parts are one object."""

    def __init__(self) -> None:
        self._parts: dict[Part, Part] = {}
        self._threads: dict[Thread, Thread] = {}
        self._root = Thread()

    def call(self, call: Call) -> Call:
        """The call with its thread and the places of its breakpoints in the common tree."""
        request = call.request
        joined = replace(
            request,
            thread=self._thread(request.thread),
            tools=self._parts.setdefault(request.tools, request.tools),
            system=self._parts.setdefault(request.system, request.system),
            breakpoints=tuple(
                replace(breakpoint, node=breakpoint.node and self._thread(breakpoint.node))
                for breakpoint in request.breakpoints
            ),
        )
        return replace(call, request=joined)

    def _thread(self, thread: Thread) -> Thread:
        """The node of the common tree; costs work only for messages that are new."""
        return thread.fold(self._threads, self._root, Thread.then)
