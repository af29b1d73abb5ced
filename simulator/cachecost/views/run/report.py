"""Writing a report's folder: every file whole, or the folder as it was."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from cachecost.analysis.comparison.summary import summarise
from cachecost.base.inert import inert_text
from cachecost.ledger.results import RunResult
from cachecost.views.bound_units import bind_units_in_markdown
from cachecost.views.run.files import CALLS, OURS, PAGE, REPORT, RESULT
from cachecost.views.run.json_output import calls_csv, run_json
from cachecost.views.run.markdown import report_markdown


def write_report(result: RunResult, folder: Path, again: str | None = None) -> Path:
    """Write the report of `result` into `folder`, made if missing; returns the path of report.md. `again` is the
    command that makes it.

    The same result is the same bytes. A file of ours that this result does not have is removed.
    Raises OSError if the folder cannot be written; it then holds what it held before.
    """
    files = report_files(result, again)
    made = _make(folder)
    try:
        _replace_all(folder, files)
    except BaseException:
        with suppress(OSError):
            for path in made:
                path.rmdir()
        raise
    return folder / REPORT


def report_files(result: RunResult, again: str | None = None) -> dict[str, bytes]:
    """File name to content of a whole report; nothing is written."""
    from cachecost.views.run.charts import chart_files
    from cachecost.views.run.page import run_page

    summaries = [summarise(comparison) for comparison in result.comparisons]
    charts = chart_files(summaries[0], summaries)
    texts = {
        REPORT: report_markdown(result, tuple(charts), again),
        CALLS: calls_csv(result),
        RESULT: run_json(result),
    }
    inert = {name: inert_text(text) for name, text in texts.items()}
    inert[REPORT] = bind_units_in_markdown(inert[REPORT])
    inert[PAGE] = run_page(result, again)
    return {name: text.encode("utf-8") for name, text in inert.items()} | charts


def _make(folder: Path) -> list[Path]:
    """Make `folder`; the folders that were missing, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _replace_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write into a temporary folder on the same disk, then move each file; on an error restore the old ones."""
    work = Path(mkdtemp(prefix=".report-", dir=folder))
    try:
        new, old = work / "new", work / "old"
        new.mkdir()
        old.mkdir()
        for name, content in files.items():
            (new / name).write_bytes(content)
        _swap(folder, new, old)
    finally:
        rmtree(work, ignore_errors=True)


def _swap(folder: Path, new: Path, old: Path) -> None:
    fresh = {path.name for path in new.iterdir()}
    begun: list[str] = []
    try:
        for name in OURS:
            begun.append(name)
            _move(folder / name, old / name)
            _move(new / name, folder / name)
    except BaseException:
        for name in begun:
            if name in fresh and not (new / name).exists():
                (folder / name).unlink()
            _move(old / name, folder / name)
        raise


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)
