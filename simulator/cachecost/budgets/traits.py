"""Figures for the limits that are not dollars: breakpoints, lookback, unread writes, stable layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.caches.breakpoints import Outcome
from cachecost.conversations.calls import Call
from cachecost.ledger.unread import UnreadTracker
from cachecost.prompts.blocks import Layer, Thread
from cachecost.prompts.lookback import lookback_steps
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.providers.rules import ModelRules
from cachecost.simulation.engine import SimulatedCall

OUT_OF_REACH = -1
"""Positions left where an entry was alive and the lookback ended before it."""


@dataclass(frozen=True, slots=True)
class CallFigure:
    """A figure, and the first call that has it."""

    value: int
    call: int


def most_breakpoints(replayed: ReplayedStrategy) -> CallFigure:
    """The most breakpoints that a call sends, the automatic one and those of refused calls included.

    To a host that caches by itself none are sent.
    """
    sent = zip(replayed.calls, replayed.simulated, strict=True)
    counts = (CallFigure(_breakpoints(call, one.rules), number) for number, (call, one) in enumerate(sent, 1))
    return max(counts, key=lambda at: (at.value, -at.call))


def _breakpoints(call: Call, rules: ModelRules | None) -> int:
    return 0 if rules and rules.is_automatic else len(sent_breakpoints(call.request).breakpoints)


def without_lookback(replayed: ReplayedStrategy) -> ModelRules | None:
    """The rules of the first call whose cache has no breakpoints that look back; None: all have."""
    return next((one.rules for one in replayed.simulated if one.rules and not one.rules.uses_breakpoints), None)


def least_margin(replayed: ReplayedStrategy) -> CallFigure | None:
    """The fewest lookback positions that any call had left when it found what it read; None where nothing was read.

    A call that reads at its breakpoint itself has one position less than the window (rule 9).
    """
    found = [CallFigure(left, one.row.call) for one in replayed.simulated if (left := _margin(one)) is not None]
    return min(found, key=lambda at: (at.value, at.call), default=None)


def _margin(one: SimulatedCall) -> int | None:
    if one.row.cause == "lookback_exceeded":
        return OUT_OF_REACH
    if one.rules is None:
        return None
    left = (_positions_left(passed.outcome, one.rules) for passed in one.passes)
    return min((number for number in left if number is not None), default=None)


def _positions_left(outcome: Outcome, rules: ModelRules) -> int | None:
    """Positions behind the hit that the nearest breakpoint could still have looked at."""
    hit = outcome.hit
    breakpoint = next(
        (breakpoint.prefix for breakpoint in outcome.breakpoints if hit and breakpoint.prefix.depth >= hit.depth), None
    )
    if hit is None or breakpoint is None:
        return None
    steps = lookback_steps(breakpoint, hit, rules)
    return rules.lookback_positions - 1 - steps


@dataclass(frozen=True, slots=True)
class UnreadWriteTotals:
    """What was written and never read: tokens, dollars above sending them unmarked, the calls that did it."""

    tokens: int
    extra: Decimal
    calls: tuple[int, ...]


def find_unread_writes(replayed: ReplayedStrategy) -> UnreadWriteTotals:
    """Writes that no later call read.

    The last call of a conversation cannot know that nothing follows, so it is let off; conversations of a single call
    are only if there is one of them (as `explain` does).
    """
    unread = UnreadTracker()
    for one in replayed.simulated:
        for passed in one.passes:
            assert one.prices is not None
            unread.add(one.row.call, passed.outcome, one.prices, passed.sizes)
    let_off = set(_last_calls(replayed))
    calls = tuple(call for call, _ in unread if call not in let_off)
    wasted = unread.of_all(calls)
    return UnreadWriteTotals(wasted.tokens, wasted.extra, calls)


def _last_calls(replayed: ReplayedStrategy) -> Iterator[int]:
    last: dict[tuple[str, Thread], int] = {}
    for number in range(1, len(replayed.calls) + 1):
        last[replayed.conversation(number)] = number
    sizes = Counter(map(replayed.conversation, range(1, len(replayed.calls) + 1)))
    lone = [key for key, size in sizes.items() if size == 1]
    yield from (number for key, number in last.items() if sizes[key] > 1 or len(lone) == 1)


@dataclass(frozen=True, slots=True)
class UnstableLayer:
    """A layer that changed within a conversation: at which calls."""

    layer: Layer
    calls: tuple[int, ...]


def find_unstable_layer(replayed: ReplayedStrategy, layer: Layer) -> UnstableLayer | None:
    """Where `layer` is not what it was in the call before of its conversation and model; None: nowhere.

    Messages are stable while they only grow.
    """
    before: dict[object, int] = {}
    calls = []
    for one in replayed.simulated:
        number = one.row.call
        key = (replayed.conversation(number), one.rules.model if one.rules else replayed.request(number).model)
        if key in before and _differs(replayed, layer, before[key], number):
            calls.append(number)
        before[key] = number
    return UnstableLayer(layer, tuple(calls)) if calls else None


def _differs(replayed: ReplayedStrategy, layer: Layer, earlier: int, later: int) -> bool:
    was, now = replayed.request(earlier), replayed.request(later)
    if layer is Layer.TOOLS:
        return was.tools.digest != now.tools.digest or _cache_key(replayed, earlier, 0) != _cache_key(
            replayed, later, 0
        )
    if layer is Layer.SYSTEM:
        return was.system.digest != now.system.digest or _cache_key(replayed, earlier, 1) != _cache_key(
            replayed, later, 1
        )
    return was.thread.common(now.thread) is not was.thread or _cache_key(replayed, earlier, 2) != _cache_key(
        replayed, later, 2
    )


def _cache_key(replayed: ReplayedStrategy, call: int, layer: int) -> str:
    """The parameters that the layer depends on (rule 2); "" for a call that was refused."""
    passes = replayed.simulated[call - 1].passes
    return passes[0].prompt.cache_keys[layer] if passes else ""
