"""What carries the answer stands at every width; what does not is hidden by importance, and that is said."""

from __future__ import annotations

import pytest
from fake_results import small, ten_arms
from rich.cells import cell_len

from cachecost.views.run.report import run_text
from cachecost.views.tables.table import COMPARISON, COUNT, Column, Table, fit_table, hidden_note

WIDTHS = [80, 100, 110, 120, 200]
NAMES = ["a", "a strategy with quite a long name, and a second part"]


def table(width: int, longest: int = 1) -> str:
    columns = [
        Column("name", "strategy", NAMES[:longest], right=False),
        Column("calls", "calls", ["1", "2"][:longest], rank=COUNT),
        Column("read", "read", ["1.2M", "310k"][:longest]),
        Column("cost", "cost", ["$157.57", "$0.02"][:longest]),
        Column("vs", "vs first", ["–", "−99%"][:longest], rank=COMPARISON),
    ]
    made = fit_table(Table(columns), width)
    return f"{' '.join(column.key for column in made.columns)} | {hidden_note([made], '--csv F')}"


@pytest.mark.parametrize(
    ("width", "kept", "hidden"),
    [
        (42, "name calls read cost vs", ""),
        (41, "name read cost vs", "calls"),
        (34, "name calls read cost", "vs first"),
        (30, "name read cost", "calls, vs first"),
        (5, "name read cost", "calls, vs first"),
    ],
)
def test_columns_go_by_importance(width: int, kept: str, hidden: str) -> None:
    shown, _, notes = table(width).partition(" | ")
    assert shown == kept
    names = [f"“{each}”" for each in hidden.split(", ")] if hidden else []
    last = f" and {names[-1]} " if len(names) > 1 else " "
    assert all(each in notes for each in names) and (not names or notes.startswith("(column")) and last in f"{notes} "
    assert bool(notes) is bool(hidden)


def test_a_name_that_loses_its_middle_is_said() -> None:
    assert table(70, longest=2).endswith("(the middle of long names needs 86 columns; or see --csv F)")


def heads(text: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith("  strategy"))
    return [head.strip() for head in line.split("  ") if head.strip()]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_keeps_cost_and_every_class_that_counts(width: int) -> None:
    for shown in (small(), ten_arms()):
        text = run_text(shown, width=width)
        kept = heads(text)
        assert {"read", "write 5m", "uncached", "output", "cost", "a question"} <= set(kept)
        assert ("write 1h" in kept) is (shown is small())
        hidden = {"calls", "vs first"} - set(kept) if shown is small() else {"calls"} - set(kept)
        last = text[text.rindex("(column") :].replace("\n", " ") if hidden else ""
        assert all(head in last for head in hidden)
        assert max(map(cell_len, text.splitlines())) <= width


def test_what_is_hidden_is_the_last_line() -> None:
    text = run_text(ten_arms(), width=80)
    assert text.rstrip().endswith("; or see --json)")
    assert "or see --json" not in run_text(small(), width=200)


def test_each_column_has_one_precision() -> None:
    text = run_text(ten_arms(), width=200)
    rows = [line for line in text.splitlines() if line.count("$") >= 2 and "±" not in line]
    cells = [word for line in rows for word in line.split() if word.startswith("$")]
    assert cells
    assert {len(cell.rpartition(".")[2]) for cell in cells} == {2}
