"""The value at which an answer changes is the one that trying every value finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.analysis.comparison.assumptions import (
    Claim,
    ComparisonAt,
    Names,
    Number,
    find_break_even,
    steps_between,
)
from cachecost.analysis.comparison.run import run
from cachecost.ledger.results import Assumption, Comparison, Ledger
from cachecost.ledger.rows import CallRow, Cost
from cachecost.providers.usage import Usage
from cachecost.scenario import from_mapping
from cachecost.scenario.loading import scenario_at

CHEAPEST = Claim("")


def costing(strategy: str, dollars: Decimal) -> Ledger:
    made = CallRow(1, 0.0, None, strategy, "m", Usage(), Cost(read=dollars), "hit", {}, {})
    return Ledger(strategy, [made])


def lines_of(lines: Mapping[str, tuple[int, int]], simulated: list[str] | None = None) -> ComparisonAt:
    """Strategies whose dollars are (at 0, per unit) lines; `simulated` lists each one that is asked for."""

    def at(value: Number, names: Names | None) -> Comparison:
        wanted = [name for name in lines if names is None or name in names or name == "a"]
        if simulated is not None:
            simulated.extend(wanted)
        ledgers = [costing(name, Decimal(lines[name][0]) + lines[name][1] * Decimal(value)) for name in wanted]
        return Comparison("", "h", "m", date(2026, 3, 7), {}, ledgers, "a")

    return at


def first_change(at: ComparisonAt, values: Sequence[Number]) -> tuple[Number, Number] | None:
    """By trying every value."""
    best = [at(value, None).best.strategy for value in values]
    number = next((number for number, name in enumerate(best) if name != best[0]), None)
    return None if number is None else (values[number - 1], values[number])


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 9)), min_size=2, max_size=5),
    st.sampled_from([(0, 60, 1), (60, 0, 1), (7, 93, 10), (Decimal("0.05"), Decimal("0.5"), Decimal("0.02"))]),
)
def test_it_is_the_value_that_a_grid_finds(lines: list[tuple[int, int]], span: tuple[Number, Number, Number]) -> None:
    at, values = lines_of(dict(zip("abcde", lines, strict=False))), steps_between(*span)
    found, expected = find_break_even(at, CHEAPEST, values), first_change(at, values)
    assert (None if found is None else (found.holds_to, found.changes_at)) == expected


def test_a_third_strategy_that_wins_in_between_is_found() -> None:
    at = lines_of({"a": (0, 10), "b": (200, 1), "c": (390, 0), "d": (100, 4)})
    found = find_break_even(at, CHEAPEST, range(201))
    assert found is not None
    assert (found.claim, found.holds_to) == ("“a” is the cheapest", 16)
    assert (found.instead, found.changes_at) == ("“d” is the cheapest", 17)


def test_only_the_strategies_that_decide_are_simulated_between_the_ends() -> None:
    simulated: list[str] = []
    find_break_even(
        lines_of({"a": (0, 2), "b": (100, 0), **{str(n): (900, 9) for n in range(8)}}, simulated), CHEAPEST, range(101)
    )
    between = [name for name in simulated if name in "ab"]
    assert len(simulated) - len(between) == 4 * 8, "the ends, and both sides of what was found"


@pytest.mark.parametrize(
    ("span", "values"),
    [
        ((0, 5, 2), [0, 2, 4, 5]),
        ((5, 0, 2), [5, 4, 2, 0]),
        ((3, 9, 3), [3, 6, 9]),
        ((Decimal("0.05"), Decimal("0.5"), Decimal("0.2")), [Decimal(x) for x in ("0.05", "0.2", "0.4", "0.5")]),
    ],
)
def test_steps_are_both_ends_and_the_multiples_between(
    span: tuple[Number, Number, Number], values: list[Number]
) -> None:
    assert list(steps_between(*span)) == values


def test_whether_a_strategy_costs_more_than_another_has_a_break_even_of_its_own() -> None:
    at = lines_of({"a": (50, 0), "b": (0, 2), "c": (1, 0)})
    found = find_break_even(at, Claim("b", "a"), range(41))
    assert found is not None
    assert (found.claim, found.holds_to) == ("“b” costs less than “a”", 24)
    assert (found.instead, found.changes_at) == ("“b” costs no less than “a”", 25)


SCENARIO = {
    "format": 1,
    "name": "pauses",
    "as_of": "2026-11-21",
    "model": "claude-sonnet-4-5",
    "tokens": "bytes",
    "conversation": {
        "synthetic": {"seed": 5, "turns": 4, "calls": 2, "tools": 1, "pauses": {"loop": 8, "turn": 60}},
        "head": {"tools": {"tokens": 9_000}},
    },
    "strategies": [
        {"name": "5m", "breakpoints": ["last_tool", "last_message"]},
        {"name": "1h", "breakpoints": ["last_tool", "last_message"], "ttl": "1h"},
        {"name": "none", "breakpoints": []},
    ],
}
PAUSE = "conversation.synthetic.pauses.turn"


def assumed(**assumption: object) -> Assumption:
    scenario = from_mapping({**SCENARIO, "assumptions": [{"name": "pause", **assumption}]}, Path())
    return next(one for one in run(scenario, Path()).assumptions if one.name == "pause")


def test_the_pause_at_which_an_hour_pays_is_that_of_a_grid() -> None:
    plain = from_mapping(SCENARIO, Path())
    best = {
        pause: run(scenario_at(plain, [PAUSE], pause, Path()), Path()).main.best.strategy
        for pause in range(240, 400, 20)
    }
    last, first = max(p for p in best if best[p] == "5m"), min(p for p in best if best[p] == "1h")
    found = assumed(set=PAUSE, range=[60, 3_000], step=20, why="a guess")
    (one,) = found.break_evens
    assert (one.holds_to, one.changes_at) == (last, first)
    assert (found.value, found.changes) == (60, True)
    words = f"“5m” is the cheapest up to {last}; from {first} on, “1h” is the cheapest. From 60 to 3,000: “5m” costs $"
    assert found.effect.startswith(words), found.effect


def test_an_answer_that_stays_says_what_it_costs_at_both_ends() -> None:
    found = assumed(set="conversation.head.tools.tokens", range=[4_000, 20_000])
    assert (found.value, found.changes, found.break_evens) == (9_000, False, ())
    assert found.effect.startswith("“5m” stays the cheapest from 4,000 to 20,000: “5m” costs $")
    assert [value.value for value in found.tried] == [4_000, 20_000]


def test_other_values_than_numbers_are_tried_as_they_stand() -> None:
    found = assumed(set="strategies.1h.ttl", values=["5m"])
    assert (found.value, found.changes) == ("1h", False)
    assert found.effect.startswith("With ttl 5m, “5m” stays the cheapest: $")


def test_what_has_no_value_is_listed_and_not_tried() -> None:
    assert assumed(why="nobody asked").changes is None
