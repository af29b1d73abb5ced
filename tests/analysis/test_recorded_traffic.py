"""The recorded traffic of this repository: what the evidence page claims, claimed again here."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path

import pytest

from cachecost.analysis.fidelity.judging import evidence_of, evidence_of_hosts
from cachecost.analysis.fidelity.validation import Validation, is_held_out
from cachecost.base.structs import replace
from cachecost.ledger.results import Fidelity
from cachecost.providers.listing import DATA
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.tokenizers import has_ctok
from cachecost.views.fidelity.scores import Score
from cachecost.views.fidelity.text import anthropic_judgements, fidelity_object, host_scores
from tools.rule_sightings import render

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "scenarios" / "recordings"
TRAFFIC = [*sorted(RECORDINGS.glob("traffic/*/*.jsonl")), *sorted(RECORDINGS.glob("transcripts/*.jsonl"))]
needs_ctok = pytest.mark.skipif(
    not has_ctok(), reason="lengths that no bill tells are counted by ctok (Python >= 3.12)"
)


@pytest.fixture(scope="module")
def fidelity() -> Fidelity:
    logs = [path.relative_to(ROOT) for path in TRAFFIC]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        validation = Validation(logs, ReplaySetup(RuleBook(), PriceBook.load()))
        return replace(validation.fidelity(), estimates=validation.estimates())


def test_every_cold_start_is_right(fidelity: Fidelity) -> None:
    cold = [one for one in anthropic_judgements(fidelity) if one.kind == "cold"]
    assert len(cold) >= 267 and all(one.exact for one in cold)


def test_requests_and_steps_of_transcripts_are_never_in_one_sum(fidelity: Fidelity) -> None:
    told = fidelity_object(fidelity)
    assert told["judged"] == "requests" and told["calls"] == len(fidelity.requests)
    assert told["transcripts"]["calls"] == len(fidelity.transcripts) == 930
    steps = Score("transcripts", fidelity.transcripts)
    assert (steps.hits - steps.exact_hits, steps.cold - steps.exact_cold) == (11, 1), "a step's read is unexplained"
    misses = [one for one in fidelity.transcripts if one.kind == "hit" and not one.exact]
    less = [one for one in misses if "tool loop" not in one.features]
    assert len(less) == 10 and all(0 < one.billed.read < one.predicted.read for one in less), "after a person's words"
    calls = {row["name"]: row["calls"] for row in told["by"]["model"]}
    of_model = [one for one in fidelity.judgements if one.model == "claude-opus-4-6"]
    in_transcripts = sum(one.is_identity for one in of_model)
    assert calls["claude-opus-4-6, transcripts"] == in_transcripts > 0
    assert calls["claude-opus-4-6"] == len(of_model) - in_transcripts > 0


@needs_ctok
def test_what_nobody_can_know_is_left_out_of_off_by(fidelity: Fidelity) -> None:
    """Unknown earlier writes made nearly all of the difference in dollars.

    Requests without a breakpoint are sized by no bill: they say how good the counts are, not the cache. Of transcripts
    the missed hits stand apart: ten steps after a person's words read less than the steps before them wrote.
    """
    steps = [one for one in fidelity.transcripts if one.exact or one.kind == "unknown"]
    with_breakpoints = [one for one in fidelity.requests if "no breakpoints" not in one.features]
    for judgements in (with_breakpoints, steps):
        whole = Score("all", judgements)
        assert whole.off_usd is not None and whole.known.billed is not None and whole.not_known.billed is not None
        assert whole.billed_usd == whole.known.billed + whole.not_known.billed
        assert abs(whole.off_usd) < whole.known.billed / 100


@needs_ctok
def test_at_least_99_of_100_hits_are_exact(fidelity: Fidelity) -> None:
    whole = Score("all", anthropic_judgements(fidelity))
    assert whole.hits >= 84 and whole.exact_hits >= 0.99 * whole.hits


@needs_ctok
def test_how_often_each_rule_was_seen_is_true(fidelity: Fidelity) -> None:
    assert DATA.read_text(encoding="utf-8") == render(fidelity), "`make evidence` writes it anew"


@needs_ctok
def test_the_evidence_page_is_true(fidelity: Fidelity) -> None:
    committed = json.loads((ROOT / "reports" / "fidelity" / "result.json").read_text())
    now = json.loads(json.dumps(fidelity_object(fidelity)))
    assert {**now, "assumptions": committed["assumptions"]} == committed, "`make evidence` writes it anew"


def test_rules_that_bills_prove_are_not_contradicted_by_hits(fidelity: Fidelity) -> None:
    rows = {each.rule: each for each in evidence_of(fidelity.judgements)}
    assert rows["9 breakpoint"].seen > 50 and not rows["9 breakpoint"].contradicted
    assert rows["10 nothing else"].seen >= 267 and not rows["10 nothing else"].contradicted
    assert rows["15 split"].seen > 10 and not rows["15 split"].contradicted


HOSTS = """
azure      grid        14  4/7    2/3   2/2     4
bedrock    best_effort 6   0/0    0/0   6/6     0
bedrock    breakpoint  10  4/4    5/5   0/0     1
cerebras   best_effort 6   0/0    2/2   0/0     4
deepseek   grid        14  8/10   0/0   0/0     4
deepseek   units       26  17/18  5/5   0/0     3
gemini     best_effort 18  0/0    5/5   3/3     2
gemini     named       3   2/2    0/0   0/0     1
groq       best_effort 6   0/0    1/1   0/0     1
mistral    grid        8   1/1    2/5   0/0     2
openai     breakpoint  4   1/2    2/2   0/0     0
openai     grid        183 93/112 34/42 101/105 29
openrouter best_effort 5   0/0    1/1   0/0     4
openrouter grid        3   2/2    1/1   0/0     0
together   none        1   0/0    1/1   0/0     0
vertex     best_effort 1   0/0    1/1   0/0     0
xai        grid        33  20/30  0/0   23/23   3
zai        best_effort 5   0/0    3/3   1/1     0
"""


def test_what_the_recordings_say_of_each_other_host(fidelity: Fidelity) -> None:
    """Calls, exact of hits, exact of cold starts, ranges that hold (none as wide as its prompt), calls that nobody can
    judge."""
    found = []
    for row in host_scores(fidelity):
        told = row.score
        right = (told.exact_hits, told.hits), (told.exact_cold, told.cold), (told.held, told.ranges)
        counts = [f"{exact}/{of_them}" for exact, of_them in right]
        found.append([row.host, row.matching, str(told.calls), *counts, str(told.unknown)])
    assert [row for row in found if row[0] != "anthropic" and row[2] != "0"] == [
        line.split() for line in HOSTS.strip().splitlines()
    ]


DISCRETE = ("openai",)
"""Hosts whose ranges take in whole places, machines with one prompt or another, so that they may hold more often."""


@pytest.mark.parametrize("held_out", [False, True])
def test_a_range_holds_as_often_as_it_says(fidelity: Fidelity, held_out: bool) -> None:
    ranges = [one for one in fidelity.requests if one.has_range and is_held_out(one.source) is held_out]
    for host, stated in {(one.host, one.coverage) for one in ranges}:
        of_it = [one.holds for one in ranges if (one.host, one.coverage) == (host, stated)]
        is_whole = host in DISCRETE and sum(of_it) > stated * len(of_it)
        assert all(of_it) if stated == 1 else is_whole or is_likely(sum(of_it), len(of_it), stated), (host, stated)
    assert {one.host for one in ranges} >= {"gemini", "xai"}


def is_likely(held: int, calls: int, stated: float) -> bool:
    """Whether a range that holds in a share `stated` of all calls holds in so many of a few: neither so few nor so many
    are less likely than one in forty."""
    chances = [comb(calls, n) * stated**n * (1 - stated) ** (calls - n) for n in range(calls + 1)]
    return min(sum(chances[: held + 1]), sum(chances[held:])) >= 1 / 40


def test_hits_of_held_out_files_are_exact_where_the_host_promises_them(fidelity: Fidelity) -> None:
    """DeepSeek's: hits of xAI, Mistral and Gemini are ranges, of which the test above counts how often they hold."""
    of_it = [one for one in fidelity.requests if one.host == "deepseek" and one.kind == "hit"]
    hits = [one.exact for one in of_it if is_held_out(one.source)]
    assert len(hits) >= 3 and is_likely(sum(hits), len(hits), 0.95)


def test_all_reads_are_on_the_grids_that_the_rules_state(fidelity: Fidelity) -> None:
    """Also those that nobody recorded the writing of; but the hidden text of GPT-5.5 varies by request, and that of
    gpt-5-mini is longer with tools."""
    rows = {each.rule: each for each in evidence_of_hosts(fidelity.judgements)}
    steps = {rule: (row.seen, len(row.contradicted)) for rule, row in rows.items() if rule.endswith(": step")}
    assert steps == {
        "azure: step": (10, 1),
        "deepseek: step": (35, 0),
        "mistral: step": (3, 0),
        "openai: step": (138, 3),
        "openrouter: step": (2, 0),
        "xai: step": (27, 0),
    }
    contradicted = [*rows["openai: step"].contradicted, *rows["azure: step"].contradicted]
    assert all("TestChatOpenAICodexStandard" in place or "caching_tool" in place for place in contradicted)
    assert not any(row.contradicted for rule, row in rows.items() if rule.endswith(": minimum"))
