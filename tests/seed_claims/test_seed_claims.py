"""Every claim of the source documents: its figures by plain arithmetic, its scenario, and its line on the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from plain_agents import FIGURES as AGENTS
from plain_progressive import FIGURES as PROGRESSIVE
from plain_rfc013 import FIGURES as RFC013
from plain_rfd033 import FIGURES as RFD033

from cachecost.scenario import load
from command_runs import run_here
from tools import seed_claims
from tools.reference import SEEDS
from tools.seed_claims import requests
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
    named = set(re.findall(r"scenarios/seed-claims/([\w-]+)\.yaml", seed_claims.page()))
    assert named == {path.stem for path in FOLDER.glob("*.yaml")}
    assert all(load(FOLDER / f"{name}.yaml").name == name for name in named)


def test_no_call_of_a_scenario_is_refused() -> None:
    for path in FOLDER.glob("*.yaml"):
        own = claim_scenario(path.stem)
        rows = [row for spec in load(path).strategies for row in own.rows(spec.name)]
        assert rows and all(row.error is None for row in rows)


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / SEEDS).read_text(encoding="utf-8") == seed_claims.page()


def test_every_verdict_decides() -> None:
    verdicts = {claim.verdict for claim in seed_claims.claims().values()}
    assert [text for text in verdicts if not re.match(r"(right under a condition|right|wrong)\b", text)] == []


def test_the_verdicts_are_counted() -> None:
    kinds = [claim.kind for claim in seed_claims.claims().values()]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    assert (
        f"Of {len(kinds)} claims {counts['right']} are right, {counts['right under a condition']} are right under a "
        f"condition, {counts['wrong']} are wrong." in seed_claims.page()
    )


def test_the_command_on_the_page_writes_a_log_of_requests() -> None:
    name = next(iter(requests.LOGS))
    command = [sys.executable, "-m", "tools.seed_claims", name]
    written = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (written.stderr, written.stdout) == ("", "".join(requests.lines(name)))


@pytest.mark.parametrize("name", requests.LOGS)
def test_a_log_of_requests_is_what_replay_reads(name: str, tmp_path: Path) -> None:
    """As the page says: `cachecost replay` gives the same tokens."""
    (tmp_path / "log.jsonl").write_text("".join(requests.lines(name)))
    day = requests.LOGS[name][0].isoformat()
    done = run_here("replay", "log.jsonl", "--tokens", "bytes", "--as-of", day, "--json", cwd=tmp_path)
    replayed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["usage"]["cache_read_input_tokens"] for row in replayed if not row.get("error")] == [
        row.usage.read for row in requests.rows(name) if row.error is None
    ]


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
