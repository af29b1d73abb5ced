"""Fitted beside held-out recordings, what is thin, and how often ranges and error margins hold."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.structs import replace
from cachecost.ledger.results import Evidence, Fidelity, Judgement, is_thin
from cachecost.providers.usage import Usage
from cachecost.views.fidelity.page import fidelity_page
from cachecost.views.fidelity.scores import Score, coverages, host_parts
from cachecost.views.fidelity.text import (
    basis_sentence,
    coverage_table,
    evidence_markdown,
    fidelity_object,
    headline,
    part_table,
)

FITTED, HELD_OUT = "logs/e.jsonl", "logs/g.jsonl"
HIT = Judgement(
    *(FITTED, 1, 1, "claude-sonnet-5", "hit", True, Usage(3, 1000), Usage(3, 1000)),
    *(Decimal("0.002"), Decimal("0.001"), "", "https://one"),
    tokenizer="claude-4.8",
    error_margin=0.05,
)
UNKNOWN = replace(HIT, kind="unknown", exact=False, predicted_usd=Decimal(9))
COLD = replace(HIT, kind="cold", source=HELD_OUT, billed=Usage(1003), predicted=Usage(1003), project="https://two")


def test_the_names_of_this_test_are_one_of_each_part() -> None:
    assert (is_held_out("e.jsonl"), is_held_out("g.jsonl")) == (False, True)


def test_each_host_has_a_row_for_each_part() -> None:
    """What is unknown is in no part's "off by"."""
    fidelity = Fidelity([HIT, HIT, UNKNOWN, COLD, replace(HIT, host="xai", source=HELD_OUT)], "crude")
    rows = [
        (one.host, one.part, one.files, one.clients, one.score.hits, one.score.cold) for one in host_parts(fidelity)
    ]
    assert rows == [
        ("anthropic", "fitted", 1, 1, 2, 0),
        ("anthropic", "held out", 1, 1, 0, 1),
        ("xai", "fitted", 0, 0, 0, 0),
        ("xai", "held out", 1, 1, 1, 0),
    ]
    assert [one.score.off_usd for one in host_parts(fidelity)][:2] == [Decimal("0.002"), Decimal("0.001")]
    table = dict(zip(part_table(fidelity).headers, part_table(fidelity).rows[0], strict=True))
    assert (table["hits exact"], table["unknown"], table["off by"], table["remark"]) == (
        "2 of 2",
        "1",
        "+$0.002",
        "thin",
    )


@pytest.mark.parametrize(("calls", "clients", "thin"), [(4, 2, True), (5, 1, True), (5, 2, False), (0, 0, True)])
def test_few_calls_or_one_client_are_thin(calls: int, clients: int, thin: bool) -> None:
    assert is_thin(calls, clients) == thin
    names = tuple(map(str, range(clients)))
    standing = Evidence("8", "", calls, (), ("m",), names).standing
    assert standing.endswith(" (thin)") == (thin and calls > 0)


def estimate(source: str, tokens: int, **more: object) -> Judgement:
    return replace(COLD, source=source, predicted=Usage(tokens), billed=Usage(1000), **more)


def test_a_margin_holds_up_to_itself() -> None:
    """Of 1,000 tokens, 50 are within ±5%, and 51 are not. Server tools and cache objects are in no request."""
    estimates = [
        *(estimate(FITTED, tokens) for tokens in (950, 1050, 1051)),
        estimate(HELD_OUT, 949),
        estimate(HELD_OUT, 2000, features=("server tools",)),
        estimate(HELD_OUT, 2000, way="named"),
        estimate(HELD_OUT, 2000, error_margin=0.0),
    ]
    (found,) = coverages(Fidelity([], "crude", estimates=estimates))
    assert (found.what, found.stated) == ("claude-4.8: tokens of a prompt", "±5% (median) in 9 of 10")
    assert (found.fitted, found.held_out, found.is_thin) == ((2, 3), (0, 1), True)


def test_a_log_of_ones_own_is_of_no_part() -> None:
    fidelity = Fidelity([HIT], "crude")
    assert (fidelity_object(fidelity)["parts"], fidelity_object(fidelity)["coverage"]) == ([], [])
    whole = fidelity_object(replace(fidelity, estimates=[HIT]))
    assert [one["part"] for one in whole["parts"]] == ["fitted", "held_out"]
    assert "Fitted and held out" not in fidelity_page(fidelity, [])
    assert "Fitted and held out" in fidelity_page(replace(fidelity, estimates=[HIT]), [])


def test_ranges_are_counted_by_part() -> None:
    wide = replace(HIT, host="gemini", kind="range", exact=False, holds=True)
    judgements = [wide, wide, replace(wide, holds=False), replace(wide, source=HELD_OUT, project="https://two"), HIT]
    fidelity = Fidelity(judgements, "crude")
    assert [tuple(row) for row in coverage_table(fidelity).rows] == [
        ("gemini: tokens read", "from nothing to the ideal", "2 of 3 (67%)", "1 of 1 (100%)", "0%", "thin")
    ]
    coverage, _ = fidelity_object(replace(fidelity, estimates=[HIT]))["coverage"]
    assert coverage["fitted"] == {"holds": 2, "calls": 3} and coverage["thin"] is True


def test_the_first_figures_say_what_they_count() -> None:
    """Requests, not sessions; how many models under any of their ids, clients and recordings; which could be wrong."""
    dated = replace(HIT, model="claude-sonnet-5-20260630", model_row="claude-sonnet-5", line=3)
    again = replace(COLD, source=FITTED, line=2)
    fidelity = Fidelity([HIT, dated, UNKNOWN, COLD, again], "crude")
    assert basis_sentence(fidelity) == (
        "Counted are requests, not sessions: 5 requests (1 model, 2 clients, 2 recordings), of which 1 read what no"
        " recorded call can have written. The hits are in 1 recording. 1 cold start opens a recording:"
        " there no hit can be predicted."
    )
    title = headline(Score("all", fidelity.judgements))
    assert title.endswith("prompts are 0% off at the median, 0% at the 95th percentile.")
    page = evidence_markdown(fidelity, [], [], "picture.svg", "again")
    assert f"**{title}** {basis_sentence(fidelity)}" in page
    assert basis_sentence(fidelity) in fidelity_page(fidelity, [])


def test_ids_of_a_model_are_one_model() -> None:
    of = {"claude-haiku-4-5": "claude-haiku-4-5", "eu.anthropic.claude-haiku-4-5": "claude-haiku-4-5"}
    assert {row: replace(HIT, model_row=row).model_name for row in of} == of
    assert replace(HIT, model_row="").model_name == HIT.model


def test_what_is_off_stands_beside_what_was_billed() -> None:
    """Both without the unknown calls."""
    table = part_table(Fidelity([HIT, HIT, UNKNOWN], "crude"))
    cells = dict(zip(table.headers, table.rows[0], strict=True))
    assert (cells["billed"], cells["off by"]) == ("$0.002", "+$0.002")
