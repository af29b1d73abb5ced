"""Keep-alives in the pauses of each conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cachecost.analysis.replays.pings import add_pings
from cachecost.analysis.replays.steps import has_breakpoints
from cachecost.analysis.whatif.option import PINGS, Option
from cachecost.analysis.whatif.pauses import RecordedPauses, pings_worth
from cachecost.conversations.calls import Call
from cachecost.providers.prices import Prices
from cachecost.strategies.changes.keepalive import KeepAlive

INTERVALS = (120.0, 240.0, 295.0)
FEW = (1, 3)
ASSUMED = "A client cannot know which call is the last, so keep-alives also follow it; each requests no output"


def ping_options(
    calls: Sequence[Call], found: RecordedPauses, prices: Prices | None, short_s: float, refused: Collection[int]
) -> Iterator[Option]:
    """Several intervals, each for as many pings as the prices are worth, and the longest for a few alone."""
    for value in (*(f"{every_s:g}s" for every_s in INTERVALS), *(f"{max(INTERVALS):g}s:{most}" for most in FEW)):
        yield ping_option(calls, found, prices, short_s, refused, value)


def ping_option(
    calls: Sequence[Call],
    found: RecordedPauses,
    prices: Prices | None,
    short_s: float,
    refused: Collection[int],
    value: str,
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
        f"a keep-alive every {every_s:g} s of a pause, at most {times}: bridges up to {bridged:.0f} min",
        lambda steps: add_pings(steps, habit, refused),
        PINGS,
        ASSUMED,
        found.missing_reason(short_s),
        "" if is_marked else "no call has a breakpoint, so there is nothing to keep alive",
    )
