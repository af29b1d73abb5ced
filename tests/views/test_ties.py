"""A tie is called a tie: in the verdict, in titles, in the table of variants; and columns name what they compare to."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from fake_results import comparison, ledger, result, row

from cachecost.analysis.comparison.answer import verdict_of
from cachecost.analysis.comparison.sentences import dollars_title, who_is_cheapest
from cachecost.analysis.comparison.strategy_line import error_of_difference
from cachecost.analysis.comparison.summary import summarise
from cachecost.ledger.results import Comparison, Cost, Ledger
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import Usage
from cachecost.views.run.json_output import run_object
from cachecost.views.run.markdown import report_markdown
from cachecost.views.run.terminal import run_text


def of(shares: dict[str, float], first: str | None = None, variant: str = "") -> Comparison:
    return comparison([ledger(name, share) for name, share in shares.items()], variant, first)


@pytest.mark.parametrize(
    ("shares", "first", "words"),
    [
        ({"one": 0.5, "two": 0.5}, "two", "Both strategies cost the same: $3.16."),
        ({"one": 0.5, "two": 0.5, "three": 0.5}, None, "All 3 strategies cost the same: $3.16."),
        ({"one": 0.5, "two": 0.5, "three": 0.9}, None, "“one” and “two” tie as the cheapest: $3.16 each."),
        ({"one": 0.5, "two": 0.5, "three": 0.9}, "two", "“one” and “two” tie as the cheapest: $3.16 each."),
        (
            {"one": 0.9, "two": 0.5, "three": 0.5},
            None,
            "Over the whole conversation “two” costs $3.16 instead of $4.31: 27% less. “three” costs the same.",
        ),
        ({"one": 0.5, "two": 0.9}, None, "“one” is the cheapest: $3.16."),
    ],
)
def test_the_verdict_calls_a_tie_a_tie(shares: dict[str, float], first: str | None, words: str) -> None:
    made = of(shares, first)
    for one in made.ledgers:
        one.rows[:] = [replace(row, inquiry=None) for row in one.rows]
    told = verdict_of([made])
    assert told.endswith(words)


def test_less_than_rounding_is_told() -> None:
    one, two = ledger("one", 0.5, asks=0), ledger("two", 0.5, asks=0)
    two.rows[0] = replace(two.rows[0], cost=replace(two.rows[0].cost, output=two.rows[0].cost.output + Decimal("1e-6")))
    told = verdict_of([comparison([one, two])])
    assert told == "“one” is the cheapest: $1.75. “two” costs more by less than rounding."


def variants(main: dict[str, float], *others: dict[str, float]) -> list[Comparison]:
    return [of(main), *(of(shares, variant=f"reading {number}") for number, shares in enumerate(others, 1))]


def test_a_tie_in_a_variant_is_told() -> None:
    found = variants({"one": 0.5, "two": 0.9}, {"one": 0.5, "two": 0.5})
    assert verdict_of(found).endswith("With reading 1, “one” and “two” tie as the cheapest: $3.16.")
    stays = variants({"one": 0.5, "two": 0.5, "three": 0.9}, {"one": 0.3, "two": 0.3, "three": 0.9})
    assert verdict_of(stays).endswith("They stay tied in the other variant.")
    many = variants({"one": 0.5, "two": 0.9}, *[{"one": 0.5, "two": 0.5}] * 5)
    told = "“one” and “two” tie as the cheapest with reading 1 ($3.16), reading 2 ($3.16), reading 3 ($3.16)"
    assert told in verdict_of(many)


def test_titles_and_json_name_all_of_a_tie() -> None:
    made = of({"one": 0.5, "two": 0.5, "three": 0.9})
    assert dollars_title(summarise(made)) == "Cheapest: “one” and “two”, $3.16"
    assert who_is_cheapest(["a", "b", "c", "d", "e"]) == "5 strategies tie as the cheapest"
    assert run_object(result(made))["tied"] == ["one", "two"]
    assert run_object(result(of({"one": 0.5, "two": 0.9})))["tied"] == []


@pytest.mark.parametrize(("first", "head"), [("one", "vs first"), ("two", "vs two")])
def test_the_column_names_what_it_compares_with(first: str, head: str) -> None:
    shown = result(
        of({"one": 0.9, "two": 0.5}, first),
        comparison([ledger("one", 0.9), ledger("two", 0.6)], "another day", first),
    )
    text = run_text(shown, width=140)
    assert text.count(head) == 2
    assert ("vs first" in text) is (head == "vs first")
    page = report_markdown(shown)
    assert f"| {head} |" in page
    assert ("vs first" in page) is (head == "vs first")


def by_layer(name: str, tools: str, messages: str, output: str = "0", margin: float = 0.1) -> Ledger:
    """A strategy of one call with these dollars; its output was recorded, so no count is in it."""
    cost = Cost(read=Decimal(tools) + Decimal(messages), output=Decimal(output))
    layers = {Layer.TOOLS: Decimal(tools), Layer.SYSTEM: Decimal(0), Layer.MESSAGES: Decimal(messages)}
    made = row(name, 1, Usage(), cost=cost, cost_by_layer=layers)
    return Ledger(name, [made], error_margin=margin)


@pytest.mark.parametrize(
    ("first", "second", "margin", "tied"),
    [
        # the same text at another price: an error of its count scales the lead and can never turn it
        (("1", "4"), ("1", "5"), "0.1", False),
        # two layers whose counts may err apart: ±(2.00 + 3.00) × 10% against a lead of 1.00, of 0.50, of 0.49
        (("3", "4"), ("1", "7"), "0.5", False),
        (("3", "4"), ("1", "6.5"), "0.45", False),
        (("3", "4"), ("1.2", "6.17"), "0.397", True),
        # recorded output has no error: a lead of 0.05 out of input that differs by 0.50
        (("0", "4", "1"), ("0", "4.5", "0.55"), "0.05", True),
        (("0", "4", "1"), ("0", "4.5", "0.56"), "0.05", False),
    ],
)
def test_a_lead_within_the_error_margin_of_its_pair_is_a_tie(
    first: tuple[str, ...], second: tuple[str, ...], margin: str, tied: bool
) -> None:
    made = comparison([by_layer("one", *first), by_layer("two", *second), by_layer("none", "90", "900")])
    summary = summarise(made)
    one, two, _ = summary.lines
    assert error_of_difference(one, two) == error_of_difference(two, one) == Decimal(margin)
    assert (summary.winners == ("one", "two")) is tied
    assert run_object(result(made))["best"] == "one"
    assert run_object(result(made))["tied_with"] == (["two"] if tied else [])


def test_a_tie_within_the_margin_is_told_in_verdict_title_and_variants() -> None:
    near = [by_layer("one", "3", "4"), by_layer("two", "1.2", "6.17"), by_layer("none", "20", "20")]
    told = "“one” ($7.00) and “two” ($7.37) are within the error margin: a lead of $0.37 against ±$0.40."
    assert verdict_of([comparison(near)]) == told
    against_two = comparison(near, first="two")
    assert verdict_of([against_two]) == (f"Nothing is cheaper than “two” by more than the error margin: $7.37. {told}")
    assert dollars_title(summarise(comparison(near))) == "Cheapest within the error margin: “one” and “two”, $7.00"
    far = comparison([by_layer("one", "3", "4"), by_layer("two", "3", "9"), near[2]])
    variant = comparison(near, "another day", "one")
    assert verdict_of([far, variant]) == (
        "“one” is the cheapest: $7.00. With another day, “one” and “two” are the cheapest, "
        "within the error margin of each other: $7.00."
    )
    page = report_markdown(result(comparison(near)))
    assert "| **one** |" in page and "| **two** |" in page and "| none |" in page
    assert "the cheapest strategies are bold: their differences are within the error margin." in page
