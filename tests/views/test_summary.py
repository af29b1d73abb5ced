"""What a table may compare, and what it may not."""

from __future__ import annotations

from decimal import Decimal

import pytest
from fake_results import comparison, ledger, partly_refused, refused, row, wholly_refused

from cachecost.analysis.comparison.summary import Summary, find_ranks, same_order, shared_notes, summarise, variant_rows
from cachecost.base.structs import replace
from cachecost.ledger.results import Ledger
from cachecost.providers.usage import Usage


def of(*ledgers: Ledger, first: str | None = None) -> Summary:
    return summarise(comparison(ledgers, first=first))


def test_a_strategy_with_refused_calls_is_neither_compared_nor_best() -> None:
    summary = of(ledger("a", 0.9), partly_refused(ledger("b", 0.1), "no", every=2), ledger("c", 0.5))
    a, b, c = summary.lines
    assert summary.best is c
    assert b.total is not None
    assert b.total < c.total  # type: ignore[operator]
    assert (a.vs_first, b.vs_first) == (None, None)
    assert c.vs_first == c.total / a.total - 1  # type: ignore[operator]
    assert b.refused == 30
    assert list(find_ranks(summary)) == ["c", "a"]


def test_nothing_compares_with_a_first_that_had_refused_calls() -> None:
    summary = of(partly_refused(ledger("a"), "no", every=7), ledger("b"))
    assert [line.vs_first for line in summary.lines] == [None, None]


def test_a_wholly_refused_strategy_has_no_cost() -> None:
    summary = of(wholly_refused("a", "no"))
    assert summary.lines[0].total is None
    assert summary.best is None


def test_a_refused_question_leaves_the_cost_of_a_question_unknown() -> None:
    asked = of(ledger("a"), partly_refused(ledger("b"), "no", every=60))
    assert asked.lines[0].question == Decimal(asked.lines[0].question_cost.total) / 12
    assert asked.lines[1].question is None
    assert (asked.lines[1].questions, asked.lines[1].question_calls) == (12, 12)


def test_reasons_are_counted_apart_by_kind() -> None:
    rows = [row("a", 1, Usage(), error="no", error_type="not_evaluated"), row("a", 2, Usage(), error="no")]
    refusals = of(Ledger("a", [*rows, rows[0]])).lines[0].refusals
    assert [(each.word, each.calls) for each in refusals] == [("not evaluated", 2), ("refused", 1)]


def test_the_error_is_that_of_counted_tokens_not_of_recorded_output() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    rows = [row("a", 1, usage), row("a", 2, usage, output_is_recorded=False)]
    assert of(Ledger("a", rows, error_margin=0.1)).lines[0].error == Decimal("3.5")


def test_first_is_the_one_the_scenario_names_and_need_not_exist() -> None:
    assert of(ledger("a"), ledger("b"), first="b").first.name == "b"  # type: ignore[union-attr]
    absent = of(ledger("a"), ledger("b"), first="c")
    assert absent.first is None
    assert [line.vs_first for line in absent.lines] == [None, None]


def test_an_hour_has_a_column_only_where_it_is_used() -> None:
    assert "write_1h" not in of(ledger("a")).classes
    assert of(ledger("a"), ledger("b", hour=True)).classes == ["read", "write_5m", "write_1h", "input", "output"]


def test_order_is_judged_on_what_both_could_run() -> None:
    cheap, middle, dear = ledger("cheap", 0.1), ledger("middle", 0.4), ledger("dear", 0.9)
    assert same_order(of(cheap, middle, dear), of(dear, cheap))
    assert not same_order(of(cheap, middle, dear), of(replace(dear, strategy="cheap"), replace(cheap, strategy="dear")))


def test_order_stays_where_strategies_come_to_cost_the_same_or_no_longer_do() -> None:
    cheap, dear = ledger("a", 0.1), ledger("b", 0.9)
    apart, level, turned = of(cheap, dear), of(dear, replace(dear, strategy="a")), _turned(cheap, dear)
    assert same_order(apart, level)
    assert same_order(level, apart)
    assert same_order(level, turned)
    assert not same_order(apart, turned)


def test_order_is_lost_across_a_level_of_equals() -> None:
    low, middle, high = ledger("x", 0.1), ledger("x", 0.4), ledger("x", 0.9)
    one = of(replace(low, strategy="a"), replace(middle, strategy="b"), replace(middle, strategy="c"))
    other = of(replace(middle, strategy="a"), replace(high, strategy="b"), replace(low, strategy="c"))
    assert not same_order(one, other)
    assert not same_order(other, one)


def _turned(cheap: Ledger, dear: Ledger) -> Summary:
    return of(replace(dear, strategy="a"), replace(cheap, strategy="b"))


@pytest.mark.parametrize(
    ("shares", "order"),
    [((0.1, 0.9), "same"), ((0.2, 0.3), "same"), ((0.5, 0.5), "ties"), ((0.9, 0.1), "differs")],
)
def test_variants_say_whether_the_order_stays(shares: tuple[float, float], order: str) -> None:
    main, variant = of(ledger("a", 0.1), ledger("b", 0.9)), of(ledger("a", shares[0]), ledger("b", shares[1]))
    assert [row.order for row in variant_rows([main, variant])] == ["", order]


def test_a_variant_ties_where_another_is_named_cheapest_at_the_same_cost() -> None:
    main, variant = of(ledger("b", 0.9), ledger("a", 0.1)), of(ledger("b", 0.5), ledger("a", 0.5))
    found = variant_rows([main, variant])[1]
    assert (found.best, found.order) == ("b = a", "ties")


def test_equals_keep_the_order_of_the_scenario() -> None:
    summary = of(ledger("b"), ledger("a"))
    assert list(find_ranks(summary)) == ["b", "a"]
    assert summary.best is summary.lines[0]


def test_notes_are_told_once() -> None:
    lines = of(
        replace(ledger("a"), notes=["x", "x", "y"]),
        replace(ledger("b"), notes=["y"]),
        replace(ledger("c"), notes=["x"]),
    ).lines
    assert shared_notes(lines) == [("x", ["a", "c"]), ("y", ["a", "b"])]


def test_refusals_that_differ_in_a_number_are_told_once() -> None:
    """Not so names and paths, and what could not be evaluated."""
    texts = [f"prompt is too long: {tokens} tokens > 1000000 maximum" for tokens in (1016563, 1016999)]
    others = ["messages.3.content: bad", "messages.4.content: bad", "no model 'claude-8'", "no model 'claude-9'"]
    rows = [refused("a", number, text) for number, text in enumerate((*texts, *others), 1)]
    (line,) = of(Ledger("a", rows)).lines
    assert [(one.reason, one.calls) for one in line.refusals] == [(texts[0], 2), *((text, 1) for text in others)]
