"""The calls of a run, in an order that is the same for the same calls.

Calls that overlap in time arrive in another order each time: as sub-agents, or as requests of one program that does
not wait. Of calls that overlap, directly or through others, the shorter conversation comes first, and of equally long
ones the one with the smaller digest of its body. A call that continues another is longer, so it stays behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import RecordedCall
from cachecost.live.log import CallLog, moment

STEP_S = 2.0
"""Seconds from one call to the next."""


@dataclass(slots=True)
class _Exchange:
    """A request from its first byte to the last of its answer, on a clock that counts events."""

    begin: int
    end: int = 0


@dataclass(frozen=True, slots=True)
class ArrivedCall:
    """A recorded call, when it began and ended, and the digest of its body."""

    exchange: _Exchange
    digest: bytes


_current: ContextVar[_Exchange | None] = ContextVar("exchange", default=None)


class WatchedApp:
    """The simulated API; notes when requests begin and end, and those for which it has no endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._events = count(1)
        self.unknown: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(next(self._events))
        _current.set(exchange)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                exchange.end = next(self._events)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            exchange.end = exchange.end or next(self._events)
            self._note_unknown(scope)

    def _note_unknown(self, scope: MutableMapping[str, Any]) -> None:
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


def stable_order(calls: Sequence[RecordedCall], arrived: Sequence[ArrivedCall]) -> list[int]:
    """The places of the calls in an order that does not depend on how parallel calls arrived."""
    keys = [(call.request.thread.length, came.digest) for call, came in zip(calls, arrived, strict=True)]
    return [place for group in _overlapping(arrived) for place in sorted(group, key=lambda place: keys[place])]


def _overlapping(arrived: Sequence[ArrivedCall]) -> Iterator[list[int]]:
    """The places of calls that overlap, directly or through others."""
    group: list[int] = []
    end = 0
    for place in sorted(range(len(arrived)), key=lambda place: arrived[place].exchange.begin):
        exchange = arrived[place].exchange
        if group and exchange.begin > end:
            yield group
            group = []
        group.append(place)
        end = max(end, exchange.end)
    if group:
        yield group


def in_order(calls: Sequence[RecordedCall], order: Sequence[int], start: float) -> list[RecordedCall]:
    """The calls in this order, with the times of a clock that begins at `start` and steps from call to call."""
    names: dict[str, str] = {}
    return [_plain(calls[place], start + STEP_S * number, names) for number, place in enumerate(order)]


def _plain(call: RecordedCall, start: float, names: dict[str, str]) -> RecordedCall:
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
