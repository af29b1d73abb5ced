"""Holds the losses of a bill that nothing explains: alternatives are compared with the same losses in both arms.

Where a bill read less than the simulation says could be read, the call is made to read no more than it did, and what
comes after that is gone from the cache. Everything else of the replay stays a prediction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from cachecost.analysis.bill.requests import is_less_than_expected
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import Workload

_replace: Any = msgspec.structs.replace


def hold_losses(traffic: Workload) -> tuple[Workload, dict[int, int]]:
    """The workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    Raises CannotEvaluate.
    """
    if not any(_billed_read(call) is not None for call in traffic.calls):
        return traffic, {}
    simulation = traffic.simulation()
    made = [simulation.simulate(call) for call in traffic.calls]
    calls: list[Call] = [_held(call, one) for call, one in zip(traffic.calls, made, strict=True)]
    lost = {
        number: made[number - 1].row.usage.read for number, call in enumerate(calls, 1) if call.most_read is not None
    }
    return (replace(traffic, calls=calls), lost) if lost else (traffic, {})


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
