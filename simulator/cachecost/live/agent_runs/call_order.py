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
        await self._wait_for_others()

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

    async def _wait_for_others(self) -> None:
        """Wait until no request has come for a moment: calls that are made at once then overlap in every run."""
        loop = asyncio.get_running_loop()
        self._latest = loop.time()
        while (left := self._latest + MOMENT_S - loop.time()) > 0:
            await asyncio.sleep(left)


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
    conversations = _conversations(calls)
    parent = {number: number for number in conversations}

    def leader(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for one, other in _overlaps(arrived):
        parent[leader(conversations[one])] = leader(conversations[other])
    groups: dict[int, list[int]] = {}
    for place, number in enumerate(conversations):
        groups.setdefault(leader(number), []).append(place)
    return list(groups.values())


def _conversations(calls: Sequence[Call]) -> list[int]:
    """For each call the number of its conversation: that of the latest call whose messages it begins with."""
    latest: dict[Thread, int] = {}
    numbers: list[int] = []
    for call in calls:
        thread = call.request.thread
        known = next((latest[node] for node in thread.back() if node in latest), len(numbers))
        numbers.append(known)
        latest[thread] = known
    return numbers


def _overlaps(arrived: Sequence[ArrivedCall]) -> Iterator[tuple[int, int]]:
    """Pairs of calls that overlap, enough to connect all that do. Calls are in the order in which they arrived."""
    latest = 0
    for place in range(1, len(arrived)):
        if arrived[place].exchange.begin < arrived[latest].exchange.end:
            yield latest, place
        if arrived[place].exchange.end > arrived[latest].exchange.end:
            latest = place


def in_order(calls: Sequence[Call], order: Sequence[int], start: float) -> list[Call]:
    """The calls in this order, with the times of a clock that begins at `start` and steps from call to call."""
    names: dict[str, str] = {}
    return [_plain(calls[place], start + STEP_S * number, names) for number, place in enumerate(order)]


def _plain(call: Call, start: float, names: dict[str, str]) -> Call:
    """The call without what only this run has: its time, the digest of its key, and a bill that nobody sent.

    `names` are the workspaces so far: the first is "", the next "2".
    """
    name = names.setdefault(call.workspace, str(len(names) + 1) if names else "")
    return replace(
        call,
        start=start,
        timestamp=moment(start),
        day=day_of(start),
        workspace=name,
        billed=None,
        iterations=(),
        file="",
        line=0,
        output_tokens=None,
    )


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
    """The ids in an answer, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ID_KEYS and isinstance(inner, str) and TOKEN.fullmatch(inner.encode()):
                yield inner.encode()
            else:
                yield from _ids_in(inner)
