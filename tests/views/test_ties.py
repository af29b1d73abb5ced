"""A tie is called a tie: in the verdict, in titles, in the table of variants; and columns name what they compare to."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from fake_results import comparison, ledger, result

from cachecost.analysis.comparison.answer import verdict_of
from cachecost.analysis.comparison.sentences import dollars_title, who_is_cheapest
from cachecost.analysis.comparison.summary import summarise
from cachecost.ledger.results import Comparison
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
