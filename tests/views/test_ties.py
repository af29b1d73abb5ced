"""A tie is called a tie: in the verdict, in titles, in the table of variants; and columns name what they compare to."""

from __future__ import annotations

from decimal import Decimal

import pytest
from fake_results import comparison, ledger, result, row

from cachecost.analysis.comparison.summary import dollars_title, error_of_difference, summarise, who_is_cheapest
from cachecost.analysis.comparison.verdict import verdict_of
from cachecost.base.structs import replace
from cachecost.ledger.results import Comparison, Ledger
from cachecost.ledger.rows import Cost
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import Usage
from cachecost.views.run.report import report_markdown, run_object, run_text


def of(shares: dict[str, float], first: str | None = None, variant: str = "") -> Comparison:
    return comparison([ledger(name, share) for name, share in shares.items()], variant, first)


@pytest.mark.parametrize(
    ("shares", "first", "words"),
    [
        ({"one": 0.5, "two": 0.5}, "two", "Both strategies cost the same: $3.16."),
        ({"one": 0.5, "two": 0.5, "three": 0.5}, None, "All three strategies cost the same: $3.16."),
        ({"one": 0.5, "two": 0.5, "three": 0.9}, None, "“one” is the cheapest: $3.16. “two” costs the same."),
        ({"one": 0.5, "two": 0.5, "three": 0.9}, "two", "Nothing costs less than “two”: $3.16. “one” costs the same."),
        (
            {"one": 0.9, "two": 0.5, "three": 0.5},
            None,
            "“two” costs $3.16 instead of $4.31 with “one”. “three” costs the same.",
        ),
        ({"one": 0.5, "two": 0.9}, None, "“one” is the cheapest: $3.16."),
    ],
)
def test_the_verdict_calls_a_tie_a_tie(shares: dict[str, float], first: str | None, words: str) -> None:
    made = of(shares, first)
    for one in made.ledgers:
        one.rows[:] = [replace(row, inquiry=None) for row in one.rows]
    verdict = verdict_of([made])
    assert verdict.endswith(words)


def test_less_than_rounding_is_told() -> None:
    one, two = ledger("one", 0.5, asks=0), ledger("two", 0.5, asks=0)
    two.rows[0] = replace(two.rows[0], cost=replace(two.rows[0].cost, output=two.rows[0].cost.output + Decimal("1e-6")))
    verdict = verdict_of([comparison([one, two])])
    assert verdict == "Both strategies cost the same within the error: $1.75."


def variants(main: dict[str, float], *others: dict[str, float]) -> list[Comparison]:
    return [of(main), *(of(shares, variant=f"reading {number}") for number, shares in enumerate(others, 1))]


def test_a_tie_in_a_variant_is_told() -> None:
    found = variants({"one": 0.5, "two": 0.9}, {"one": 0.5, "two": 0.5})
    assert verdict_of(found).endswith("It stays the cheapest in every variant.")
    assert verdict_of(found[::-1]) == "Both strategies cost the same: $3.16. The variant has other winners."
    stays = variants({"one": 0.5, "two": 0.5, "three": 0.9}, {"one": 0.3, "two": 0.3, "three": 0.9})
    assert verdict_of(stays).endswith("They stay the cheapest in every variant.")


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
        # the same text at another price: half of an error of its count is taken to be in one of both alone
        (("1", "4"), ("1", "5"), "0.25", False),
        (("1", "4"), ("1", "4.2"), "0.25", True),
        # two layers whose counts may err apart: ±(2.00 + 3.00) × 10% against a lead of 1.00, of 0.50, of 0.49
        (("3", "4"), ("1", "7"), "0.5", False),
        (("3", "4"), ("1", "6.5"), "0.45", False),
        (("3", "4"), ("1.2", "6.17"), "0.397", True),
        # recorded output has no error: a lead of 0.20 out of input that differs by 0.50
        (("0", "4", "1"), ("0", "4.5", "0.7"), "0.2", True),
        (("0", "4", "1"), ("0", "4.5", "0.71"), "0.2", False),
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
    assert verdict_of([comparison(near)]) == "“one” is the cheapest: $7.00. “two” costs the same within the error."
    against_two = comparison(near, first="two")
    assert verdict_of([against_two]) == "Nothing costs less than “two”: $7.37. “one” costs the same within the error."
    assert dollars_title(summarise(comparison(near))) == "Cheapest within the error margin: “one” and “two”, $7.00"
    far = comparison([by_layer("one", "3", "4"), by_layer("two", "3", "9"), near[2]])
    variant = comparison(near, "another day", "one")
    assert verdict_of([far, variant]) == "“one” is the cheapest: $7.00. It stays the cheapest in every variant."
    page = report_markdown(result(comparison(near)))
    assert "| **one** |" in page and "| **two** |" in page and "| none |" in page
    assert "the cheapest strategies are bold: their differences are within the error margin." in page
