"""The committed reports say what the bundled scenarios give today: a change of cost is a diff to be reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachecost.analysis.comparison.run import run
from cachecost.scenario import load
from cachecost.views.run.report import report_files

ROOT = Path(__file__).parent.parent
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))
LONG = (
    "agents-side-by-side",
    "answer-inquiry",
    "compaction",
    "every-provider",
    "text-protocol-tools",
    "ttl",
    "two-or-four-breakpoints",
)
"""A minute and a half together: CI asks for them apart."""
NUMBERS = ("report.md", "result.json", "calls.csv")
"""Pictures are left out: their bytes follow the machine's fonts and matplotlib's version."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else []) for path in SCENARIOS],
)
def test_a_committed_report_is_true(path: Path) -> None:
    scenario = load(path)
    files = report_files(run(scenario, path.parent))
    committed = ROOT / "reports" / scenario.name
    stale = [name for name in NUMBERS if (committed / name).read_bytes() != files[name]]
    assert not stale, f"`make reports` writes {', '.join(stale)} of reports/{scenario.name} anew"


def test_rfd_033_to_the_cent_and_beyond() -> None:
    scenario = load(ROOT / "scenarios" / "answer-inquiry.yaml", ["conversation.turns=1", "variants=[]"])
    published_figures = {
        published_figure.says: str(published_figure.exact)
        for published_figure in run(scenario, ROOT / "scenarios").published_figures
    }
    assert list(published_figures.values()) == ["0.59375", "0.0475", "0.54625", "1.63875", "0.95"]
