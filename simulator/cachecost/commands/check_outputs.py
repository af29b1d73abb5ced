"""What `check` writes besides its answer: files of every format, the badge, the history and its chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachecost.base.atomic_files import write_text
from cachecost.base.errors import Fault, InputError

if TYPE_CHECKING:
    from cachecost.budgets.check import BudgetResult
    from cachecost.budgets.history import HistoryEntry
    from cachecost.budgets.source_lines import SourceLine


def find_lines(result: BudgetResult, scenarios: Sequence[Path], reports: Path) -> Mapping[tuple[str, ...], SourceLine]:
    """The source lines of all changes that have one; files are read only if something changed."""
    from cachecost.budgets.source_lines import find_source_line
    from cachecost.commands.project_files import project_folder, read_project_files

    wanted = {change.search for one in result.comparisons for change in one.changes if change.search}
    wanted |= {change.search for one in result.budgets for change in one.changes if change.search}
    if not wanted:
        return {}
    files = read_project_files(project_folder(scenarios), without=reports)
    found = ((search, find_source_line(search, files)) for search in wanted)
    return {search: line for search, line in found if line is not None}


def write_formats(report: dict[str, Any], files: Mapping[str, Path | None]) -> None:
    """The formats that were asked for; a comment without content is an empty file. Raises InputError."""
    from cachecost.views.check.formats import render_format

    for name, path in files.items():
        if path:
            write_text(path, render_format(name, report))


def write_badge(report: dict[str, Any], path: Path, shows: str) -> None:
    """Raises InputError where it cannot be written."""
    from cachecost.views.check.badge import badge_svg

    write_text(path, badge_svg(report, shows))


def read_history(path: Path) -> list[HistoryEntry]:
    """The accepted costs so far. Raises InputError."""
    from cachecost.budgets.history import parse_history

    if not path.exists():
        return []
    try:
        return parse_history(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Fault(str(path), f"cannot be read: {error}")]) from None


def update_history(path: Path, result: BudgetResult, scenarios: Sequence[Path], today: date) -> bool:
    """Add today's costs to the history unless it has them already. True: written. Raises InputError."""
    from cachecost.budgets.history import add_entries, entries_of, history_text
    from cachecost.commands.project_files import head_commit, project_folder

    before = read_history(path)
    entries = add_entries(before, entries_of(result, head_commit(project_folder(scenarios)), today))
    if len(entries) == len(before):
        return False
    write_text(path, history_text(entries))
    return True


def write_history_chart(path: Path, history: Path) -> None:
    """Raises InputError, also where there is no history to draw."""
    from cachecost.views.check.history_chart import history_svg

    entries = read_history(history)
    if not entries:
        raise InputError([Fault(str(history), "expected accepted costs; there are none: write them with `--update`")])
    write_text(path, history_svg(entries))
