"""Ranks say how sure the order of cost is: one place where it is, several where strategies are indistinguishable."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ties import by_layer

import cachecost
from cachecost.analysis.comparison.summary import (
    StrategyLine,
    find_ranks,
    is_tied,
    rank_fields,
    rank_sentences,
    ranked,
    summarise_ledgers,
)
from cachecost.ledger.results import Ledger
from command_runs import printed

LOG = Path(__file__).parents[2] / "scenarios" / "recordings" / "jp-17653152345.jsonl"
THREE = ("--tokens", "tiktoken", "-s", "none", "-s", "automatic", "-s", "progressive")


def ranks(*ledgers: Ledger) -> list[str]:
    found = find_ranks(summarise_ledgers(ledgers))
    return [str(found.get(ledger.strategy, "")) for ledger in ledgers]


# dollars of tools and messages: counts of other layers may err apart, 10% each


@pytest.mark.parametrize(
    ("second", "places"),
    [
        # "one" is ("3", "4"); ±(1.80 + 2.17) × 10% on the difference from ("1.2", "6.17"): 0.397
        (("1.2", "6.17"), ["1–2", "1–2", "3"]),  # 0.37 more
        (("1.2", "6.1999"), ["1–2", "1–2", "3"]),  # 0.3999 more against 0.39999
        (("1.2", "6.2"), ["1–2", "1–2", "3"]),  # 0.40 more against 0.40: at the margin
        (("1.2", "6.2001"), ["1", "2", "3"]),  # 0.4001 more against 0.40001
        (("3", "4"), ["1–2", "1–2", "3"]),  # equal
        (("3", "3.999999"), ["1–2", "1–2", "3"]),  # hardly cheaper: within half of the smaller one's ±0.70
        (("3", "4.35"), ["1–2", "1–2", "3"]),  # 0.35 more against half of ±0.70: at the margin
        (("3", "4.36"), ["1", "2", "3"]),
    ],
)
def test_a_rank_is_one_place_from_the_error_margin_on(second: tuple[str, str], places: list[str]) -> None:
    assert ranks(by_layer("one", "3", "4"), by_layer("two", *second), by_layer("none", "90", "900")) == places


def test_indistinguishable_is_not_transitive_and_ranks_show_it() -> None:
    """Each is within the margin of its neighbour, the first not of the last."""
    chain = [by_layer("low", "4", "4"), by_layer("middle", "3", "5.3"), by_layer("high", "4", "4.6")]
    assert ranks(*chain) == ["1–2", "1–3", "2–3"]


def test_what_is_not_compared_has_no_rank() -> None:
    left_out = by_layer("less", "0", "1")
    left_out = Ledger(left_out.strategy, left_out.rows, error_margin=0.1, ranked=False)
    assert ranks(by_layer("one", "3", "4"), left_out, by_layer("two", "3", "9")) == ["1", "", "2"]
    summary = summarise_ledgers([by_layer("one", "3", "4"), left_out])
    assert rank_fields(summary)["less"] == {"rank_from": None, "rank_to": None}
    assert rank_sentences(summary) == ["“one” is the only strategy that can be compared: $7.00."]


@pytest.mark.parametrize(
    ("strategies", "sentences"),
    [
        (
            [("two", "3", "9"), ("one", "3", "4")],
            ["“one” is the cheapest: $7.00, $5.00 (42%, ±$0.50) less than “two”."],
        ),
        ([("one", "3", "4"), ("two", "3", "4")], ["“one” and “two” tie as the cheapest: $7.00 each."]),
        (
            [("one", "3", "4"), ("two", "3", "4"), ("three", "3", "5"), ("four", "3", "5")],
            [
                "“one” and “two” tie as the cheapest: $7.00 each, $1.00 (13%, ±$0.35) less than “three”.",
                "Equal to the last digit: “three” and “four” at $8.00.",
            ],
        ),
        (
            [("one", "3", "4"), ("two", "1.2", "6.17"), ("none", "20", "20")],
            [
                "“one” and “two” are indistinguishable: “one” has a lead of $0.37 against ±$0.40, "
                "$33.00 (83%, ±$3.30) less than “none”."
            ],
        ),
        (
            [("one", "3", "4"), ("same", "3", "4"), ("two", "1.2", "6.17")],
            [
                "“one”, “same” and “two” are indistinguishable: “one” has a lead of $0.37 against ±$0.40 over “two”.",
                "Equal to the last digit: “one” and “same” at $7.00.",
            ],
        ),
        ([("one", "3", "4")], []),
    ],
)
def test_the_answer_names_the_cheapest_its_lead_and_ties(
    strategies: list[tuple[str, str, str]], sentences: list[str]
) -> None:
    assert rank_sentences(summarise_ledgers([by_layer(*one) for one in strategies])) == sentences


cents = st.integers(0, 40).map(lambda count: str(Decimal(count) / 4))


@given(st.lists(st.tuples(cents, cents), min_size=2, max_size=7), st.sampled_from([0.0, 0.02, 0.1, 0.5]))
def test_ranks_are_consistent_with_costs(costs: list[tuple[str, str]], margin: float) -> None:
    ledgers = [by_layer(f"s{number}", *cost, margin=margin) for number, cost in enumerate(costs)]
    summary = summarise_ledgers(ledgers)
    found, lines = find_ranks(summary), ranked(summary.lines)
    order = sorted(lines, key=lambda line: line.effort)
    for place, line in enumerate(order, 1):
        assert found[line.name].first <= place <= found[line.name].last, "the place by cost is among those of the rank"
    for one in lines:
        for other in lines:
            assert is_tied(one, other) == is_tied(other, one), "indistinguishable is symmetric"
            _check_pair(one, other, found[one.name].last - found[one.name].first, len(lines))
    assert (found[order[0].name].first, found[order[-1].name].last) == (1, len(lines))


def _check_pair(one: StrategyLine, other: StrategyLine, spread: int, lines: int) -> None:
    """Equal costs cannot be told apart, and a rank spreads over no more places than there are."""
    assert one.effort != other.effort or is_tied(one, other)
    assert 0 <= spread < lines


def test_replay_shows_ranks_in_every_form(tmp_path: Path) -> None:
    text = printed("replay", LOG, *THREE).splitlines()
    assert [line.split()[-1] for line in text[1:5]] == ["rank", "3", "1–2", "1–2"]
    answer = "“automatic” and “progressive” tie as the cheapest: $0.25 each, $0.26 (51%, ±$0.043) less than “none”."
    assert text[5].strip() == answer
    rows = [json.loads(line) for line in printed("replay", LOG, *THREE, "--json").splitlines()]
    places = {(row["strategy"], row["rank_from"], row["rank_to"]) for row in rows}
    assert places == {("none", 3, 3), ("automatic", 1, 2), ("progressive", 1, 2)}
    table, page = tmp_path / "calls.csv", tmp_path / "page.html"
    printed("replay", LOG, *THREE, "--csv", table, "--html", page)
    with table.open() as stream:
        assert {(row["strategy"], row["rank_from"]) for row in csv.DictReader(stream)} == {
            (name, str(first)) for name, first, _ in places
        }
    assert "tie as the cheapest: $0.25 each, $0.26 (51%, " in page.read_text()
    assert '<th scope="col">rank</th>' in page.read_text()


def test_one_strategy_alone_has_no_rank() -> None:
    assert "rank" not in printed("replay", LOG, "-s", "automatic")
    rows = [json.loads(line) for line in printed("replay", LOG, "-s", "automatic", "--json").splitlines()]
    assert all("rank_from" not in row for row in rows)


def test_the_result_of_compare_prints_ranks() -> None:
    found = cachecost.compare(cachecost.read(LOG), ["none", "automatic", "progressive"])
    assert repr(found) == "<Result none: $0.57 (rank 3); automatic: $0.31 (rank 1–2); progressive: $0.31 (rank 1–2)>"
    assert ">rank</th>" in found._repr_html_() and "tie as the cheapest: $0.31 each" in found._repr_html_()
    assert found.frame()["rank_from"].tolist() == [3, 1, 1] and found.frame()["rank_to"].tolist() == [3, 2, 2]
