"""Faults of time: pauses longer than the TTL, TTLs longer than the pauses, calls that start together."""

from __future__ import annotations

from planted.fault import Change, Fault, sendings
from planted.logs import Sending
from planted.policies import LAYERS, hourly

MINUTE = 60.0


def paused(minutes: float, *calls: int) -> Change:
    """Every one of these calls comes so many minutes later, with all after it."""

    def wait(sending: Sending, call: int) -> None:
        sending.start += minutes * MINUTE * sum(call >= first for first in calls)

    return sendings(range(1, 1000), wait)


def pause(name: str, base: str, minutes: float, *calls: int, block: str = "tools.0") -> Fault:
    return Fault(name, ("CC301",), base, calls, block, paused(minutes, *calls), by_policy=True)


def together(calls: range, start: float) -> Change:
    """These calls start within a second."""

    def move(sending: Sending, call: int) -> None:
        sending.start = start + 0.1 * (call - calls.start)

    return sendings(calls, move)


def by_the_hour(layers: tuple[str, ...]) -> Change:
    """These layers are written for an hour."""
    return lambda log: hourly(log, layers)


EVERY = tuple(range(1, 11))
FAULTS = [
    pause("7 minutes", "loop", 7, 6),
    pause("7 minutes, again and again", "loop", 7, 3, 5, 7, 9),
    pause("20 minutes", "loop", 20, 8),
    pause("20 minutes, again and again", "loop", 20, 4, 6, 8, 10),
    pause("50 minutes, again and again", "loop", 50, 4, 6, 8, 10),
    pause("7 minutes, chat", "chat", 7, 6, block="system.0"),
    pause("20 minutes, chat", "chat", 20, 4, 7, 10, block="system.0"),
    pause("12 minutes, thinking dropped", "loop on sonnet", 12, 3, 6, 9),
    pause("7 minutes, parallel tools", "parallel tools", 7, 4, 8),
    Fault("1h not needed", ("CC302",), "loop", EVERY, "tools.0", by_the_hour(LAYERS)),
    Fault("1h not needed, chat", ("CC302",), "chat", EVERY, "system.0", by_the_hour(LAYERS)),
    Fault("1h not needed before messages", ("CC302",), "loop", (1,), "tools.0", by_the_hour(LAYERS[:2])),
    Fault("cold fan-out", ("CC305",), "fan-out", (2, 3, 4, 5), "system.0", together(range(1, 6), 0.0)),
    Fault("two sub-agents at once", ("CC305",), "sub-agents", (3,), "tools.0", lambda log: twins(log)),
]


def twins(log: list[Sending]) -> list[Sending]:
    """The second sub-agent starts 0.2 seconds after the first."""
    calls = sendings((), lambda sending, call: None)(log)
    subs = sorted({sending.first for sending in calls if "helper" in str(sending.body["system"])})
    starts = {first: min(one.start for one in calls if one.first == first) for first in subs}
    early, late = sorted(starts, key=lambda first: starts[first])
    for sending in calls:
        if sending.first == late:
            sending.start += starts[early] + 0.2 - starts[late]
    return sorted(calls, key=lambda sending: sending.start)
