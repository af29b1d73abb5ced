"""What one question costs in each variant: as a table, and in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.comparison.run import run
from cachecost.analysis.comparison.summary import MOST_COLUMNS, summarise
from cachecost.ledger.results import RunResult
from cachecost.scenario import from_mapping
from cachecost.views.run.report import report_markdown
from cachecost.views.run.tables import question_variants
from cachecost.views.tables.output import markdown_table

SCENARIO: dict[str, Any] = {
    "format": 1,
    "name": "small",
    "as_of": "2026-03-12",
    "model": "claude-opus-4-6",
    "conversation": {
        "synthetic": {
            "seed": 1,
            "turns": 1,
            "calls": 3,
            "sizes": {"human": 210_000, "thinking": 0},
            "inquiries": {"rate": 1},
        }
    },
    "strategies": ["structured output, same tools", "answer tool, auto"],
}
TODAY = {"name": "a day later", "as_of": "2026-03-13"}


def compared(*variants: dict[str, Any], **keys: Any) -> RunResult:
    return run(from_mapping({**SCENARIO, "variants": list(variants), **keys}, Path()), Path())


def table(result: RunResult) -> str:
    found = question_variants([summarise(one) for one in result.comparisons])
    return "" if found is None else markdown_table(found)


def test_a_question_costs_half_without_the_price_of_long_prompts() -> None:
    rows = table(compared(TODAY)).splitlines()
    assert rows[0] == "| strategy | as written | a day later |"
    assert rows[2:] == [
        "| structured output, same tools | $2.64 | $1.32 |",
        "| answer tool, auto | **$0.22 (−92%)** | **$0.11 (−92%)** |",
    ]


def test_many_variants_are_rows() -> None:
    rows = table(compared(*({**TODAY, "name": f"day {n}"} for n in range(MOST_COLUMNS)))).splitlines()
    assert rows[0] == "| variant | structured output, same tools | answer tool, auto |"
    assert rows[3] == "| day 0 | $1.32 | **$0.11 (−92%)** |"
    assert len(rows) == 2 + 1 + MOST_COLUMNS


@pytest.mark.parametrize(("variants", "keys"), [([], {}), ([TODAY], {"strategies": ["none"]})])
def test_there_is_none_without_variants_or_questions(variants: list[dict[str, Any]], keys: dict[str, Any]) -> None:
    result = compared(*variants, **keys)
    assert table(result) == ""
    assert "Cost of one question" not in report_markdown(result)


def test_the_report_has_it() -> None:
    result = compared(TODAY)
    assert f"Cost of one question in each variant:\n\n{table(result)}" in report_markdown(result)
