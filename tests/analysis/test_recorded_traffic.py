"""The recorded traffic of this repository: what the evidence page claims, claimed again here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachecost.analysis.evidence import evidence_of
from cachecost.analysis.validation import Validation
from cachecost.ledger import Fidelity
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.tokens.ctok_ import has_ctok
from cachecost.views.fidelity_json import fidelity_object
from cachecost.views.fidelity_rows import score

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
        return Validation(logs, RuleBook(), PriceBook.load()).fidelity()


def test_every_cold_start_is_right(fidelity: Fidelity) -> None:
    cold = fidelity.of("cold")
    assert len(cold) >= 267 + 20 and sum(not one.exact for one in cold) <= 1, "one transcript's read is unexplained"


@needs_ctok
def test_at_least_99_of_100_hits_are_exact(fidelity: Fidelity) -> None:
    whole = score("all", fidelity.judgements)
    assert whole.hits >= 84 and whole.exact_hits >= 0.99 * whole.hits


@needs_ctok
def test_the_evidence_page_is_true(fidelity: Fidelity) -> None:
    committed = json.loads((ROOT / "reports" / "fidelity" / "result.json").read_text())
    now = json.loads(json.dumps(fidelity_object(fidelity)))
    assert {**now, "readings": committed["readings"]} == committed, "`make evidence` writes it anew"


def test_rules_that_bills_prove_are_not_contradicted_by_hits(fidelity: Fidelity) -> None:
    rows = {each.rule: each for each in evidence_of(fidelity.judgements)}
    assert rows["9 mark"].proved > 50 and not rows["9 mark"].contradicted
    assert rows["10 nothing else"].proved >= 267 and not rows["10 nothing else"].contradicted
    assert rows["15 split"].proved > 10 and not rows["15 split"].contradicted
