"""The exact optimum against a brute force that tries every legal set of breakpoints, on 500 random small cases."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import pytest

from cachecost.analysis.optimum.exact import PlanSlot, exact
from cachecost.analysis.optimum.lower_bound import LowerBound
from cachecost.analysis.optimum.optimum import optimum_of
from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator, PlanStep
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

MODEL = "claude-sonnet-4-5"
MINIMUM = 1024
PRICES = {"read": Decimal("0.3"), "5m": Decimal("3.75"), "1h": Decimal(6), "input": Decimal(3)}
LIFE = {"5m": 300, "1h": 3600}
GAPS = (0, 1, 3, 200, 299, 300, 301, 900, 3599, 3600, 5000)
INFINITE = Decimal("Infinity")


@dataclass(frozen=True)
class Plain:
    """A call: the names of its blocks, when it starts, how long until its first token, whether it need not be made."""

    blocks: tuple[str, ...]
    start: float
    first_token: float = 0.0
    is_optional: bool = False


SIZES = dict(zip("abcdefghij", (1024, 700, 400, 1500, 1023, 60, 2000, 324, 1, 5000), strict=True))


def terms() -> ReplaySetup:
    return ReplaySetup(RuleBook(), PriceBook(), tokens="bytes")


def call_of(plain: Plain, root: Thread) -> Call:
    thread = root
    for number, name in enumerate(plain.blocks):
        role = "assistant" if number % 2 else "user"
        thread = thread.then(Message.of(role, (given_block("text", role, name, SIZES[name]),)))
    return Call(Request(MODEL, thread), plain.start, first_token_s=plain.first_token, output_tokens=0)


# --- the brute force: as plain as the rulebook reads ---

Entries = dict[tuple[str, ...], tuple[str, float, float, float]]
"""Prefix to (ttl, started, touched, readable)."""


def is_live(entry: tuple[str, float, float, float], now: float) -> bool:
    ttl, started, touched, readable = entry
    return now >= readable and now > started and now - touched < LIFE[ttl]


def length(blocks: tuple[str, ...]) -> int:
    return sum(SIZES[name] for name in blocks)


def made(plain: Plain, breakpoints: tuple[tuple[int, str], ...], entries: Entries) -> tuple[Decimal, Entries]:
    """Cost of one call in USD per 10**6 tokens x tokens, and what is cached after it. Few blocks: no lookback limit."""
    blocks, now, after = plain.blocks, plain.start, dict(entries)
    last = max((number for number, _ in breakpoints), default=0)
    live = [n for n in range(1, last + 1) if blocks[:n] in entries and is_live(entries[blocks[:n]], now)]
    hit = max(live, default=0)
    held = entries[blocks[:hit]] if hit else None
    if held:
        after[blocks[:hit]] = (held[0], held[1], now, held[3])
    for number, ttl in breakpoints:
        key = blocks[:number]
        if number > hit:
            after[key] = (ttl, now, now, now + plain.first_token)
        elif held and key in entries and is_live(entries[key], now):
            after[key] = (entries[key][0], entries[key][1], now, entries[key][3])
        elif held:
            shorter = "1h" if ttl == held[0] == "1h" else "5m"
            after[key] = (shorter, now, now, now + plain.first_token)
    a = length(blocks[:hit])
    b = max([a, *(length(blocks[:number]) for number, ttl in breakpoints if number > hit and ttl == "1h")])
    c = max([a, *(length(blocks[:number]) for number, _ in breakpoints if number > hit)])
    total = length(blocks)
    return a * PRICES["read"] + (b - a) * PRICES["1h"] + (c - b) * PRICES["5m"] + (total - c) * PRICES["input"], after


def legal(plain: Plain) -> Iterator[tuple[tuple[int, str], ...]]:
    fitting = [n for n in range(1, len(plain.blocks) + 1) if length(plain.blocks[:n]) >= MINIMUM]
    for count in range(min(4, len(fitting)) + 1):
        for chosen in combinations(fitting, count):
            for hours in range(count + 1):
                yield tuple((number, "1h" if n < hours else "5m") for n, number in enumerate(chosen))


def brute(calls: tuple[Plain, ...], entries: Entries | None = None) -> Decimal:
    """The least cost over every legal choice."""
    if not calls:
        return Decimal(0)
    first, rest = calls[0], calls[1:]
    costs = [brute(rest, entries or {})] if first.is_optional else []
    for breakpoints in legal(first):
        cost, after = made(first, breakpoints, entries or {})
        costs.append(cost + brute(rest, after))
    return min(costs)


# --- random cases ---


def case(seed: int) -> tuple[Plain, ...]:
    """Two to four calls that share beginnings, at times around the edges of both TTLs; some with a ping."""
    rng = random.Random(seed)
    many = rng.choice((2, 2, 3, 3, 4))
    longest = 4 if many == 2 else 3
    calls: list[Plain] = []
    now = 1_790_000_000.0
    for _ in range(many):
        before = rng.choice(calls).blocks if calls and rng.random() < 0.9 else ()
        keep = before[: rng.randint(0, len(before))] if rng.random() < 0.5 else before
        grown = keep + tuple(rng.choice("abcdefghij") for _ in range(rng.randint(0 if keep else 1, 2)))
        calls.append(Plain(grown[:longest], now, rng.choice((0.0, 0.0, 2.0))))
        now += rng.choice(GAPS)
    if seed % 5 == 0:
        ping = Plain(calls[0].blocks, calls[0].start + rng.choice((250, 299, 600, 3500)), 0.0, True)
        calls = sorted([*calls, ping], key=lambda one: (one.start, one.is_optional))
    return tuple(calls)


def searched(calls: tuple[Plain, ...]) -> tuple[PlanEvaluator, list[PlanSlot]]:
    root = Thread()
    bench = PlanEvaluator.of([call_of(one, root) for one in calls if not one.is_optional], terms())
    sent = iter(bench.sent)
    slots = []
    for one in calls:
        found = bench.render_call(call_of(one, root), True) if one.is_optional else next(sent)
        slots.append(PlanSlot(PlanStep(found, ()), one.is_optional))  # type: ignore[arg-type]
    return bench, slots


A_TRIFLE = Decimal("0.000000001")
"""USD. A plan that costs so much more than the best one is known: all that cannot be better is dropped."""


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=pytest.mark.slow if first >= 100 else ()) for first in range(0, 500, 50)]
)
def test_the_search_finds_what_trying_everything_finds(first: int) -> None:
    for seed in range(first, first + 50):
        calls = case(seed)
        bench, slots = searched(calls)
        found = exact(bench, slots, INFINITE)
        least = brute(calls).scaleb(-6)
        assert (found.usd, found.is_finished) == (least, True), f"seed {seed}: {calls}"
        assert found.steps is not None and bench.cost(found.steps) == least
        assert exact(bench, slots, least + A_TRIFLE).usd == least, f"seed {seed}: it drops the best plan: {calls}"
        lower_bound = LowerBound(bench)
        assert lower_bound.with_pings_usd <= least, f"seed {seed}: the lower bound is no bound: {calls}"
        if not any(one.is_optional for one in calls):
            assert lower_bound.usd <= least, f"seed {seed}: the lower bound is no bound: {calls}"
        assert lower_bound.with_pings_usd <= lower_bound.usd


@pytest.mark.parametrize("seed", [seed for seed in range(1, 45) if seed % 5])
def test_the_whole_finder_is_optimal_on_small_cases(seed: int) -> None:
    calls, root = case(seed), Thread()
    found = optimum_of([call_of(one, root) for one in calls], terms(), pings=False)
    assert found.usd == brute(calls).scaleb(-6)
    assert found.is_optimal == (not found.depends_on)
    assert found.usd <= found.best_preset.usd


def test_a_search_that_is_cut_off_says_so_and_proves_nothing() -> None:
    start = 1_790_000_000.0
    bench, slots = searched((Plain(("a", "b"), start), Plain(("a", "b", "c"), start + 60)))
    assert not exact(bench, slots, INFINITE, most_tries=3).is_finished
    assert exact(bench, slots, INFINITE).is_finished


def test_a_plan_that_is_known_to_be_best_is_confirmed() -> None:
    bench, slots = searched(case(3))
    best = exact(bench, slots, INFINITE).usd
    again = exact(bench, slots, best)
    assert (again.steps, again.usd, again.is_finished) == (None, best, True)


def test_the_floor_of_nothing_is_nothing() -> None:
    lower_bound = LowerBound(PlanEvaluator.of([], terms()))
    assert (lower_bound.usd, lower_bound.with_pings_usd, lower_bound.calls) == (0, 0, 0)
