"""Holds the losses of a bill that nothing explains: alternatives are compared with the same losses in both arms.

Where a bill read less than the simulation says could be read, the call is made to read no more than it did, and what
comes after that is gone from the cache. Everything else of the replay stays a prediction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from cachecost.analysis.bill.requests import is_less_than_expected
from cachecost.analysis.replays.incremental import TrackedReplay
from cachecost.analysis.replays.replays import Replays
from cachecost.analysis.replays.steps import as_sent
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import Workload

_replace: Any = msgspec.structs.replace


def hold_losses(traffic: Workload) -> tuple[Workload, dict[int, int]]:
    """The workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    Raises CannotEvaluate.
    """
    found = find_held_losses(traffic)
    return found.workload, found.expected


class HeldLosses(NamedTuple):
    """As of `hold_losses`, and the replay of the workload that shows what should have been read; None: no bill does."""

    workload: Workload
    expected: dict[int, int]
    replay: TrackedReplay | None = None


def find_held_losses(traffic: Workload) -> HeldLosses:
    """As `hold_losses`. Raises CannotEvaluate."""
    if not any(_billed_read(call) is not None for call in traffic.calls):
        return HeldLosses(traffic, {})
    replay = Replays(traffic).tracked(as_sent(traffic.calls))
    made = list(replay.run())
    calls: list[Call] = [_held(call, one) for call, one in zip(traffic.calls, made, strict=True)]
    lost = {
        number: made[number - 1].row.usage.read for number, call in enumerate(calls, 1) if call.most_read is not None
    }
    return HeldLosses(replace(traffic, calls=calls) if lost else traffic, lost, replay)


def _held(call: Call, expected: SimulatedCall) -> Call:
    """The call, limited to what it read if that is less than expected. Of several passes the bill is the sum."""
    read = _billed_read(call) if len(expected.passes) == 1 else None
    if read is None or not is_less_than_expected(read, expected.row.usage.read):
        return call
    held: Call = _replace(call, most_read=read)
    return held


def _billed_read(call: Call) -> int | None:
    """What a call was billed as read; None where the bill is not that of one prompt."""
    if not isinstance(call, RecordedCall) or call.billed is None or call.has_failed or len(call.iterations) > 1:
        return None
    return call.billed.read
