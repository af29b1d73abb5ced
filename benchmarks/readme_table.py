"""The table of README.md: each ratio before, now, and where it should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cases import Case
from verdicts import SLACK, Recorded

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- recorded: written by --record -->\n", "<!-- end -->\n"
HEAD = "| case | against | before | recorded | limit | goal | MiB |\n|---|---|---|---|---|---|---|\n"


def table(cases: Sequence[Case], recorded: Mapping[str, Recorded]) -> str:
    """Markdown, one row a case that is recorded."""
    return HEAD + "".join(_row(case, recorded[case.name]) for case in cases if case.name in recorded)


def write(cases: Sequence[Case], recorded: Mapping[str, Recorded], path: Path = README) -> None:
    text = path.read_text(encoding="utf-8")
    start, stop = text.index(BEGIN) + len(BEGIN), text.index(END)
    path.write_text(text[:start] + table(cases, recorded) + text[stop:], encoding="utf-8")


def _row(case: Case, one: Recorded) -> str:
    ratios = [case.before, one.ratio, one.ratio * SLACK, case.goal]
    memory = "" if one.peak_mib is None else f"{one.peak_mib:.0f}"
    cells = [f"`{case.name}`", case.against, *map(_number, ratios), memory]
    return f"| {' | '.join(cells)} |\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:#.2g}" if value < 10 else f"{value:.0f}"
