"""What a client can do about pauses without knowing them: longer TTLs, or keep-alives after every call."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from planted.logs import Log, Sending, in_order

HOUR = {"type": "ephemeral", "ttl": "1h"}
MARGIN_S = 10.0
"""A keep-alive is sent so many seconds before the entry expires."""
MOST = 12
"""Keep-alives after one call."""


def policies(log: Log) -> Iterator[Log]:
    """The log under each policy, and as it is."""
    yield log
    yield hourly(log, ("tools", "system", "messages"))
    yield hourly(log, ("tools", "system"))
    yield from (kept_alive(log, most) for most in range(1, MOST + 1))


def hourly(log: Log, layers: tuple[str, ...]) -> Log:
    """Every breakpoint of these layers with a TTL of 1h."""
    log = deepcopy(log)
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


def kept_alive(log: Log, most: int, ttl_s: float = 300.0) -> Log:
    """Up to `most` keep-alives after every call, also the last, until its conversation goes on."""
    log = in_order(log)
    pings: Log = []
    for number, sending in enumerate(log):
        following = (later.start for later in log[number + 1 :] if later.first == sending.first)
        end = next(following, float("inf"))
        for ping in range(1, most + 1):
            start = sending.start + ping * (ttl_s - MARGIN_S)
            if start < end:
                pings.append(Sending({**sending.body, "max_tokens": 0}, start, workspace=sending.workspace))
    return in_order([*log, *pings])
