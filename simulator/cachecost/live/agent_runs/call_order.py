"""The calls of a run, in an order that is the same for the same calls, and the ids of their answers by that order.

Calls that overlap in time arrive in another order each time: those of sub-agents, or of a program that does not wait.
Of conversations that run at the same time, the shorter call comes first, and of equally long ones the one with the
smaller digest of its body. A call that continues another is longer, so it stays behind it.

The API derives an id from what was asked, so that a change of one message would change the ids in all that follow. In a
recording that is compared with another, only what was changed is to differ.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.clock import moment
from cachecost.live.request_log import CallLog
from cachecost.prompts.blocks import Thread

STEP_S = 2.0
"""Seconds from one call to the next."""
MOMENT_S = 0.02
"""How long an answer waits for requests that are sent at the same time."""


@dataclass(slots=True)
class Exchange:
    """A request from its first byte to the last of its answer, on a clock that counts events."""

    begin: int
    end: int = 0


@dataclass(frozen=True, slots=True)
class ArrivedCall:
    """A recorded call, when it began and ended, and the digest of its body."""

    exchange: Exchange
    digest: bytes


_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class WatchedApp:
    """The simulated API; notes when requests begin and end, and those for which it has no endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._events = count(1)
        self.unknown: list[str] = []
        self._latest = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(next(self._events))
        _current.set(exchange)
        loop = asyncio.get_running_loop()
        self._latest = loop.time()
        while (left := self._latest + MOMENT_S - loop.time()) > 0:  # so that calls made at once overlap in every run
            await asyncio.sleep(left)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                exchange.end = next(self._events)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            exchange.end = exchange.end or next(self._events)
            if scope["type"] == "http" and "endpoint" not in scope:
                self.unknown.append(f"{scope['method']} {scope['path']}")


class WatchedLog(CallLog):
    """A request log that knows the request of each of its lines."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.arrived: list[ArrivedCall] = []

    def append(self, fields: Mapping[str, Any], request: bytes) -> int:
        exchange = _current.get()
        assert exchange is not None
        self.arrived.append(ArrivedCall(exchange, blake2b(request, digest_size=16).digest()))
        return super().append(fields, request)


def stable_calls(log: WatchedLog, start: float) -> list[Call]:
    """The calls of a log in an order that does not depend on how parallel calls arrived, with ids of answers by that
    order, and with the times of a clock that begins at `start` and steps from call to call.

    They are without what only this run has: digests of keys (the first workspace is "", the next "2"), bills that
    nobody sent, and places in its log.
    """
    order = stable_order(list(read_calls(log.path, "request-log")), log.arrived)
    lines = with_stable_ids(log.path.read_bytes().rstrip().split(b"\n"), order)
    named = log.path.with_suffix(".named.jsonl")
    named.write_bytes(b"\n".join(lines) + b"\n")
    calls = list(read_calls(named, "request-log"))
    names: dict[str, str] = {}
    ordered = []
    for number, place in enumerate(order):
        call, at = calls[place], start + STEP_S * number
        name = names.setdefault(call.workspace, str(len(names) + 1) if names else "")
        only_here = {"billed": None, "iterations": (), "file": "", "line": 0, "output_tokens": None}
        timed = replace(call, start=at, timestamp=moment(at), day=day_of(at), workspace=name, **only_here)
        ordered.append(timed)
    return ordered


def stable_order(calls: Sequence[Call], arrived: Sequence[ArrivedCall]) -> list[int]:
    """The places of the calls in an order that does not depend on how parallel calls arrived. Conversations that run
    at the same time share the places that their calls have.
    """
    order = list(range(len(calls)))
    keys = [(call.request.thread.length, came.digest) for call, came in zip(calls, arrived, strict=True)]
    for group in _parallel_groups(calls, arrived):
        for place, number in zip(group, sorted(group, key=lambda number: keys[number]), strict=True):
            order[place] = number
    return order


def _parallel_groups(calls: Sequence[Call], arrived: Sequence[ArrivedCall]) -> list[list[int]]:
    """The calls of conversations of which a call overlaps one of another, directly or through others."""
    latest_of: dict[Thread, int] = {}
    conversations: list[int] = []
    for call in calls:  # a call is of the conversation of the latest call whose messages it begins with
        thread = call.request.thread
        known = next((latest_of[node] for node in thread.back() if node in latest_of), len(conversations))
        conversations.append(known)
        latest_of[thread] = known
    parent = {number: number for number in conversations}

    def leader(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    latest = 0
    for place in range(1, len(arrived)):  # in the order of arrival, so this connects all that overlap
        if arrived[place].exchange.begin < arrived[latest].exchange.end:
            parent[leader(conversations[latest])] = leader(conversations[place])
        if arrived[place].exchange.end > arrived[latest].exchange.end:
            latest = place
    groups: dict[int, list[int]] = {}
    for place, number in enumerate(conversations):
        groups.setdefault(leader(number), []).append(place)
    return list(groups.values())


ID_KEYS = ("id", "call_id", "tool_use_id")
SHORTEST = 12
TOKEN = re.compile(rb"[A-Za-z0-9_-]{%d,}" % SHORTEST)


def with_stable_ids(lines: Sequence[bytes], order: Sequence[int]) -> list[bytes]:
    """The lines of a request log with each id of an answer, wherever it is sent back, replaced by one of the same
    length: its prefix and its number among those with this prefix, counted in this `order` of the lines.
    """
    names: dict[bytes, bytes] = {}
    numbers: Counter[bytes] = Counter()
    for place in order:
        for found in _ids_in(json.loads(lines[place]).get("response")):
            if found not in names:
                prefix, mark, rest = found.rpartition(b"_")
                numbers[prefix] += 1
                names[found] = prefix + mark + b"%0*d" % (len(rest), numbers[prefix])
    return [TOKEN.sub(lambda match: names.get(match[0], match[0]), line) for line in lines]


def _ids_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ID_KEYS and isinstance(inner, str) and TOKEN.fullmatch(inner.encode()):
                yield inner.encode()
            else:
                yield from _ids_in(inner)
