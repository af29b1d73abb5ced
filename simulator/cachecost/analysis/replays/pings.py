"""Keep-alives in the pauses of each conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cachecost.analysis.replays.steps import NO_CALL, ReplayStep, conversations, in_order
from cachecost.conversations.calls import Call, PlannedCall, derive_call
from cachecost.strategies.changes.keepalive import KeepAlive


def add_pings(steps: Sequence[ReplayStep], habit: KeepAlive, refused: Collection[int] = ()) -> list[ReplayStep]:
    """The steps, and pings in the pauses of each conversation. The `refused` calls cached nothing to keep alive."""
    made = list(steps)
    for conversation in conversations(steps):
        made += _pings([step for step in conversation if step.number not in refused], habit)
    return in_order(made)


def _pings(conversation: Sequence[ReplayStep], habit: KeepAlive) -> Iterator[ReplayStep]:
    timed = [step.call for step in conversation if not step.call.has_failed and not step.call.why_unknown]
    last: Call | None = None
    calls = iter(timed)
    for planned in habit.plan_calls(iter(map(_as_planned, timed))):
        if planned.purpose == "ping":
            assert last is not None
            ping = derive_call(last, planned.request, planned.start, planned.output_tokens, "ping")
            yield ReplayStep(NO_CALL, ping, ping)
        else:
            last = next(calls)


def _as_planned(call: Call) -> PlannedCall:
    return PlannedCall(call.request, call.start, host=call.host, workspace=call.workspace, is_batch=call.is_batch)
