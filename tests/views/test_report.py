"""The folder of a report: the same bytes each time, whole or as it was before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_results import comparison, ledger, result, small, ten_arms

from cachecost.views.run import report
from cachecost.views.run.files import OURS, PROVIDERS
from cachecost.views.run.report import report_files, write_report

HERE = Path(__file__).parent
WRITE = """
import sys
from pathlib import Path
from cachecost.views.run.report import write_report
from fake_results import ten_arms
write_report(ten_arms(), Path(sys.argv[1]))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def ten() -> dict[str, bytes]:
    return dict(sorted(report_files(ten_arms()).items()))


def test_a_report_is_its_files(tmp_path: Path, ten: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "report_files", lambda *_: ten)
    path = write_report(ten_arms(), tmp_path / "reports" / "answer-inquiry")
    assert path == tmp_path / "reports" / "answer-inquiry" / "report.md"
    assert contents(path.parent) == ten
    assert sorted({*OURS} - {PROVIDERS}) == sorted(each.name for each in path.parent.iterdir())


def test_every_picture_that_the_report_links_is_there(tmp_path: Path) -> None:
    for shown in (small(), result(comparison([ledger("a", asks=0)]))):
        path = write_report(shown, tmp_path)
        links = re.findall(r"\]\(([^)]*)\)", path.read_text(encoding="utf-8"))
        assert links
        assert all((tmp_path / link).is_file() for link in links)


@pytest.mark.slow
def test_the_same_bytes_in_any_process_whatever_it_is_set_to(tmp_path: Path, ten: dict[str, bytes]) -> None:
    (tmp_path / "matplotlibrc").write_text("font.family: monospace\nsavefig.dpi: 30\nsvg.fonttype: none\n")
    odd = {"MATPLOTLIBRC": str(tmp_path), "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONUTF8": "0", "NO_COLOR": "1"}
    environment = {**os.environ, **odd, "PYTHONHASHSEED": "2", "PYTHONPATH": str(HERE)}
    subprocess.run([sys.executable, "-c", WRITE, str(tmp_path / "odd")], env=environment, check=True)
    assert contents(tmp_path / "odd") == ten


def test_lines_end_in_a_newline_alone(ten: dict[str, bytes]) -> None:
    for name in ("report.md", "calls.csv", "result.json"):
        content = ten[name]
        assert content.endswith(b"\n")
        assert not content.endswith(b"\n\n")
        assert b"\r" not in content


def test_written_again_it_leaves_a_baseline_and_removes_what_it_no_longer_has(tmp_path: Path) -> None:
    write_report(small(), tmp_path)
    (tmp_path / "baseline.json").write_text("{}")
    write_report(result(comparison([ledger("a", asks=0)])), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "baseline.json",
        "calls.csv",
        "chart.png",
        "cumulative.svg",
        "dollars.svg",
        "index.html",
        "report.md",
        "result.json",
    ]


@pytest.mark.parametrize("step", range(12))
def test_a_fault_at_any_step_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    before = {name: b"old" for name in OURS if name != "chart.png"}
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    new = {name: b"new" for name in OURS if name != "question.svg"}
    monkeypatch.setattr(report, "report_files", lambda *_: new)
    with _failing_at(monkeypatch, step), pytest.raises(OSError, match="disk is gone"):
        write_report(small(), tmp_path)
    assert contents(tmp_path) == dict(sorted(before.items()))
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_fault_on_the_first_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "report_files", lambda *_: dict.fromkeys(OURS, b"new"))
    with _failing_at(monkeypatch, 3), pytest.raises(OSError, match="disk is gone"):
        write_report(small(), tmp_path / "reports" / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_a_folder_is_an_error_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "report_files", lambda *_: dict.fromkeys(OURS, b"new"))
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError):
            write_report(small(), folder)
    assert contents(tmp_path) == {"file": b"mine"}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        write_report(small(), tmp_path)
    tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def _failing_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Iterator[None]:
    """Let the `step`-th renaming (from 0) fail, and no other."""
    calls = iter(range(1_000))
    rename = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if next(calls) == step:
            raise OSError("disk is gone")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        yield
    assert next(calls) > step
