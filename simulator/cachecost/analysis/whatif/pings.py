"""Keep-alives in the pauses of each conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.analysis.whatif.option import PINGS, Option
from cachecost.analysis.whatif.pauses import RecordedPauses, pings_worth
from cachecost.analysis.whatif.steps import NO_CALL, ReplayStep, conversations, has_breakpoints, in_order
from cachecost.conversations.calls import Call, PlannedCall, derive_call
from cachecost.providers.prices import Prices
from cachecost.strategies.changes.keepalive import KeepAlive

INTERVALS = (120.0, 240.0, 295.0)
FEW = (1, 3)
ASSUMED = "A client cannot know which call is the last, so keep-alives also follow it; each requests no output"


def ping_options(
    calls: Sequence[Call], found: RecordedPauses, prices: Prices | None, short_s: float
) -> Iterator[Option]:
    """Several intervals, each for as many pings as the prices are worth, and the longest for a few alone."""
    for every_s in INTERVALS:
        yield ping_option(calls, found, prices, short_s, f"{every_s:g}s")
    for most in FEW:
        yield ping_option(calls, found, prices, short_s, f"{max(INTERVALS):g}s:{most}")


def ping_option(
    calls: Sequence[Call], found: RecordedPauses, prices: Prices | None, short_s: float, value: str
) -> Option:
    """Pings as `value` says: "295s", or "295s:3" for at most three in a pause. Raises ValueError."""
    interval, _, most = value.partition(":")
    every_s = float(interval.removesuffix("s"))
    worth = (pings_worth(prices) if prices else None) or 0
    times = int(most) if most else worth
    habit = KeepAlive(every_s=every_s, times=times)
    is_marked = any(has_breakpoints(call.request) and not call.is_batch for call in calls)
    bridged = (times * every_s + short_s) / 60
    return Option(
        f"keep-alive={value}",
        "keep-alive",
        f"a keep-alive {every_s:g} s after each call and keep-alive, at most {times}: bridges up to {bridged:.0f} min",
        lambda steps: add_pings(steps, habit),
        PINGS,
        ASSUMED,
        found.missing_reason(short_s),
        "" if is_marked else "no call has a breakpoint, so there is nothing to keep alive",
    )


def add_pings(steps: Sequence[ReplayStep], habit: KeepAlive) -> list[ReplayStep]:
    """The steps, and pings in the pauses of each conversation."""
    made = list(steps)
    for conversation in conversations(steps):
        made += _pings(conversation, habit)
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
