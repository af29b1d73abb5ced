"""What a client can do about pauses without knowing them: longer TTLs, or keep-alives after every call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from cachecost.base.structs import replace
from planted.logs import Log, Sending, copied, in_order

LAYERS = ("tools", "system", "messages")
HOUR = {"type": "ephemeral", "ttl": "1h"}
TTL_S, HOUR_S = 300.0, 3600.0
MARGIN_S = 10.0
"""A keep-alive is sent so many seconds before the entry expires."""
FOREVER = float("inf")
MOST = 12
"""Keep-alives after one call."""


def policies(log: Log) -> Iterator[Log]:
    """The log under each policy, and as it is."""
    yield log
    yield hourly(log, LAYERS)
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
    return in_order([*log, *(ping for sending, end in _spans(log) for ping in _pings(sending, end, most, TTL_S))])


def bridges(log: Log) -> Iterator[Log]:
    """The log as it is, and with the keep-alives of a client that knows every pause: none after the last call."""
    yield log
    yield _bridged(log, TTL_S)
    yield _bridged(hourly(log, LAYERS), HOUR_S)


def _bridged(log: Log, ttl_s: float) -> Log:
    spans = [(sending, end) for sending, end in _spans(log) if end < FOREVER]
    return in_order([*log, *(ping for sending, end in spans for ping in _pings(sending, end, MOST, ttl_s))])


def bridged_by_the_hour(log: Log) -> Log:
    """TTLs of 1h, and keep-alives of tools and system prompt from each call to the next, whatever is asked in them."""
    log = in_order(hourly(log, LAYERS))
    short = [{"role": "user", "content": [{"type": "text", "text": "-"}]}]
    pings = (ping for one, other in pairwise(log) for ping in _pings(one, other.start, MOST, HOUR_S))
    return in_order([*log, *(replace(ping, body={**ping.body, "messages": short}) for ping in pings)])


def _spans(log: Log) -> Iterator[tuple[Sending, float]]:
    """Each call, and when its conversation goes on."""
    log = in_order(log)
    for number, sending in enumerate(log):
        yield sending, next((later.start for later in log[number + 1 :] if later.first == sending.first), FOREVER)


def _pings(sending: Sending, end: float, most: int, ttl_s: float) -> Iterator[Sending]:
    for ping in range(1, most + 1):
        start = sending.start + ping * (ttl_s - MARGIN_S)
        if start < end:
            yield replace(sending, body={**sending.body, "max_tokens": 0}, start=start)
