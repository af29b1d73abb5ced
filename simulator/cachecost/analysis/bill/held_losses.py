"""Holds the losses of a bill that nothing explains: alternatives are compared with the same losses in both arms.

Where a bill read less than the simulation says could be read, the call is made to read no more than it did, and what
comes after that is gone from the cache. Everything else of the replay stays a prediction. Where content changed, too,
the call stays as it is: its own fault is told beside what nothing explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from cachecost.analysis.bill.requests import is_less_than_expected
from cachecost.analysis.explain.codes import codes
from cachecost.analysis.replays.incremental import TrackedReplay
from cachecost.analysis.replays.priced import PricedSimulation
from cachecost.analysis.replays.replays import Replays
from cachecost.analysis.replays.steps import as_sent
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import Workload

_replace: Any = msgspec.structs.replace


class HeldLosses(NamedTuple):
    """A workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    `replay` is that of the workload as it was; None: no bill shows a loss, or it was not tracked.
    """

    workload: Workload
    expected: dict[int, int]
    replay: TrackedReplay | None = None


def hold_losses(traffic: Workload) -> tuple[Workload, dict[int, int]]:
    """The workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    Raises CannotEvaluate.
    """
    if not _has_bills(traffic):
        return traffic, {}
    priced = traffic.simulation(hosts=UnexplainedHosts(), kind=PricedSimulation)
    if not any(_is_short(call, priced.simulate(call)) for call in traffic.calls):
        return traffic, {}
    held, expected, _ = _hold(traffic, map(traffic.simulation().simulate, traffic.calls))
    return held, expected


def find_held_losses(traffic: Workload) -> HeldLosses:
    """As `hold_losses`, with a replay that others can be derived from. Raises CannotEvaluate."""
    if not _has_bills(traffic):
        return HeldLosses(traffic, {})
    replay = Replays(traffic).tracked_replay(as_sent(traffic.calls))
    return _hold(traffic, replay.run())._replace(replay=replay)


def _has_bills(traffic: Workload) -> bool:
    return any(_billed_read(call) is not None for call in traffic.calls)


def _hold(traffic: Workload, made: Iterable[SimulatedCall]) -> HeldLosses:
    """`made` are the calls as simulated."""
    calls, expected = list[Call](), dict[int, int]()
    for number, (call, one) in enumerate(zip(traffic.calls, made, strict=True), 1):
        calls.append(call)
        if _is_short(call, one):
            expected[number] = one.row.usage.read
            if not any(codes()[loss.cause].fixed_in == "prompt" for loss in one.losses):
                calls[-1] = _replace(call, most_read=_billed_read(call))
    return HeldLosses(replace(traffic, calls=calls) if expected else traffic, expected)


def _is_short(call: Call, expected: SimulatedCall) -> bool:
    """Whether a call read less than expected. Of several passes the bill is the sum."""
    read = _billed_read(call) if len(expected.passes) == 1 else None
    return read is not None and is_less_than_expected(read, expected.row.usage.read, expected.read_margin)


def _billed_read(call: Call) -> int | None:
    """What a call was billed as read; None where the bill is not that of one prompt."""
    if not isinstance(call, RecordedCall) or call.billed is None or call.has_failed or len(call.iterations) > 1:
        return None
    return call.billed.read
