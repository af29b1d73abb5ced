"""What a client can do about pauses without knowing them: longer TTLs, or keep-alives after every call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from planted.logs import Log, Sending, copied, in_order

HOUR = {"type": "ephemeral", "ttl": "1h"}
TTL_S = 300.0
MARGIN_S = 10.0
"""A keep-alive is sent so many seconds before the entry expires."""
FOREVER = float("inf")
MOST = 12
"""Keep-alives after one call."""


def policies(log: Log) -> Iterator[Log]:
    """The log under each policy, and as it is."""
    yield log
    yield hourly(log, ("tools", "system", "messages"))
    yield hourly(log, ("tools", "system"))
    starts = [sending.start for sending in in_order(log)]
    longest = max((later - start for start, later in pairwise(starts)), default=0.0)
    yield from (kept_alive(log, most) for most in range(1, MOST + 1) if (most - 1) * (TTL_S - MARGIN_S) < longest)


def hourly(log: Log, layers: tuple[str, ...]) -> Log:
    """Every breakpoint of these layers with a TTL of 1h."""
    log = copied(log)
    for sending in log:
        for layer in layers:
            _lengthen(sending.body.get(layer))
    return log


def _lengthen(value: Any) -> None:
    if isinstance(value, dict):
        if "cache_control" in value:
            value["cache_control"] = dict(HOUR)
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            _lengthen(inner)


def kept_alive(log: Log, most: int) -> Log:
    """Up to `most` keep-alives after every call, also the last, until its conversation goes on."""
    return in_order([*log, *(ping for sending, end in _spans(log) for ping in _pings(sending, end, most))])


def bridged(log: Log) -> Log:
    """The keep-alives that a client would send that knows every pause: none after the last call."""
    spans = [(sending, end) for sending, end in _spans(log) if end < FOREVER]
    return in_order([*log, *(ping for sending, end in spans for ping in _pings(sending, end, MOST))])


def _spans(log: Log) -> Iterator[tuple[Sending, float]]:
    """Each call, and when its conversation goes on."""
    log = in_order(log)
    for number, sending in enumerate(log):
        yield sending, next((later.start for later in log[number + 1 :] if later.first == sending.first), FOREVER)


def _pings(sending: Sending, end: float, most: int) -> Iterator[Sending]:
    for ping in range(1, most + 1):
        start = sending.start + ping * (TTL_S - MARGIN_S)
        if start < end:
            yield replace(sending, body={**sending.body, "max_tokens": 0}, start=start)
