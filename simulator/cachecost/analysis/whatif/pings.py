"""Pings in the pauses of each conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.analysis.whatif.option import PINGS, Option
from cachecost.analysis.whatif.pauses import Pauses, pings_worth
from cachecost.analysis.whatif.steps import NO_CALL, Step, has_marks, in_order, talks
from cachecost.providers.prices import Prices
from cachecost.replay.simulation import Call, added_call
from cachecost.strategies.changes.keepalive import KeepAlive
from cachecost.strategies.plan import PlannedCall

INTERVALS = (120.0, 240.0, 295.0)
FEW = (1, 3)
ASSUMED = "Nobody knows that a call is the last one, so pings go on after it; each asks for no output"


def ping_options(calls: Sequence[Call], found: Pauses, prices: Prices | None, short_s: float) -> Iterator[Option]:
    """Several intervals, each for as many pings as the prices are worth, and the longest for a few alone."""
    for every_s in INTERVALS:
        yield ping_option(calls, found, prices, short_s, f"{every_s:g}s")
    for most in FEW:
        yield ping_option(calls, found, prices, short_s, f"{max(INTERVALS):g}s:{most}")


def ping_option(calls: Sequence[Call], found: Pauses, prices: Prices | None, short_s: float, value: str) -> Option:
    """Pings as `value` says: "295s", or "295s:3" for at most three in a pause. Raises ValueError."""
    interval, _, most = value.partition(":")
    every_s = float(interval.removesuffix("s"))
    worth = (pings_worth(prices) if prices else None) or 0
    times = int(most) if most else worth
    habit = KeepAlive(every_s=every_s, times=times)
    is_marked = any(has_marks(call.request) and not call.is_batch for call in calls)
    bridged = (times * every_s + short_s) / 60
    return Option(
        f"keep-alive={value}",
        "keep-alive",
        f"a ping {every_s:g} s after a call and after each ping, at most {times}: bridges up to {bridged:.0f} min",
        lambda steps: pinged(steps, habit),
        PINGS,
        ASSUMED,
        _why_not(calls, found, short_s),
        "" if is_marked else "no call is marked, so there is nothing to keep alive",
    )


def _why_not(calls: Sequence[Call], found: Pauses, short_s: float) -> str:
    if not found.are_known:
        return "no call has a time, so nothing is known of its pauses"
    if not found.between(short_s):
        return f"no pause is as long as {short_s:g} s (the longest is {found.longest:,.0f} s)"
    return ""


def pinged(steps: Sequence[Step], habit: KeepAlive) -> list[Step]:
    """The steps, and pings in the pauses of each conversation."""
    made = list(steps)
    for talk in talks(steps):
        made += _pings(talk, habit)
    return in_order(made)


def _pings(talk: Sequence[Step], habit: KeepAlive) -> Iterator[Step]:
    timed = [step.call for step in talk if not step.call.failed and not step.call.why_unknown]
    last: Call | None = None
    calls = iter(timed)
    for planned in habit.planned(iter(map(_as_planned, timed))):
        if planned.purpose == "ping":
            assert last is not None
            ping = added_call(last, planned.request, planned.start, planned.output_tokens, "ping")
            yield Step(NO_CALL, ping, ping)
        else:
            last = next(calls)


def _as_planned(call: Call) -> PlannedCall:
    return PlannedCall(
        call.start, call.request, host=call.host, workspace=call.workspace, is_batch=call.is_batch, purpose="main"
    )
