"""Every claim of the source documents: its figures by plain arithmetic, its scenario, and its line on the page."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from plain_agents import FIGURES as AGENTS
from plain_progressive import FIGURES as PROGRESSIVE
from plain_rfc013 import FIGURES as RFC013
from plain_rfd033 import FIGURES as RFD033

from cachecost.scenario import load
from tools import reference, seed_claims
from tools.reference import BEGIN, END, STRATEGIES
from tools.seed_claims.claim import off_by, rounded, share, usd
from tools.seed_claims.claim_scenario import FOLDER, claim_scenario

ROOT = Path(__file__).parents[2]
EXPECTED = {**RFD033, **PROGRESSIVE, **RFC013, **AGENTS}
PLACES = Decimal("1e-12")


def test_every_claim_is_recomputed() -> None:
    assert {key: set(claim.figures) for key, claim in seed_claims.claims().items()} == {
        key: set(figures) for key, figures in EXPECTED.items()
    }


@pytest.mark.parametrize("key", EXPECTED)
def test_a_figure_is_what_plain_arithmetic_gives(key: str) -> None:
    for name, figure in seed_claims.claims()[key].figures.items():
        assert abs(Decimal(figure) - _decimal(EXPECTED[key][name])) < PLACES, f"{key}: {name}"


def _decimal(number: object) -> Decimal:
    """Fractions of the time model have no finite decimal."""
    ratio = getattr(number, "as_integer_ratio", None)
    assert ratio is not None
    over, under = ratio()
    return Decimal(over) / Decimal(under)


def test_every_scenario_is_used_and_loads() -> None:
    named = set(re.findall(r"scenarios/seed-claims/([\w-]+)\.yaml", seed_claims.section()))
    assert named == {path.stem for path in FOLDER.glob("*.yaml")}
    assert all(load(FOLDER / f"{name}.yaml").name == name for name in named)


def test_no_call_of_a_scenario_is_refused() -> None:
    for path in FOLDER.glob("*.yaml"):
        own = claim_scenario(path.stem)
        rows = [row for spec in load(path).strategies for row in own.rows(spec.name)]
        assert rows and all(row.error is None for row in rows)


def test_the_page_has_the_section_once() -> None:
    page = (ROOT / STRATEGIES).read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == seed_claims.section().strip()


@pytest.mark.parametrize("page", ["", BEGIN, END])
def test_a_page_without_the_lines_for_the_section_is_an_error(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / STRATEGIES).parent.mkdir(parents=True)
    (tmp_path / STRATEGIES).write_text(page)
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"docs/reference/agents\.md: expected the lines <!-- seed claims"):
        reference.generated()


def test_every_verdict_decides() -> None:
    verdicts = {key: claim.verdict for key, claim in seed_claims.claims().items()}
    assert [key for key, verdict in verdicts.items() if not re.match(r"(right|wrong|depends)\b", verdict)] == []


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0"),
        ("12.345", "$12.34"),
        ("1", "$1.00"),
        ("0.5", "$0.500"),
        ("0.0941", "$0.0941"),
        ("0.00093", "$0.000930"),
        ("-0.00216", "−$0.00216"),
    ],
)
def test_dollars_are_written_with_the_digits_that_matter(amount: str, text: str) -> None:
    assert usd(Decimal(amount)) == text


@pytest.mark.parametrize(
    ("claimed", "exact", "verdict"),
    [
        ("0.59", "0.59375", "right, rounded"),
        ("0.59", "0.595", "right, rounded"),
        ("0.59", "0.5951", "right within 1%"),
        ("0.59", "0.5961", "wrong: 1% too low"),
        ("1.65", "1.2435", "wrong: 33% too high"),
    ],
)
def test_a_rounded_figure_is_right_where_the_exact_one_rounds_to_it(claimed: str, exact: str, verdict: str) -> None:
    assert rounded(Decimal(claimed), Decimal(exact)) == verdict


def test_shares_have_a_true_minus() -> None:
    assert (share(Decimal("-0.0257")), share(Decimal("0.855"), 0)) == ("−2.6%", "86%")
    assert off_by(Decimal(100), Decimal(142)) == "30% too low"
