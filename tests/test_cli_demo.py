"""`cachecost demo`: a bundled session's bill and the change that pays, and the verdict of a bundled comparison."""

from __future__ import annotations

import json
import shlex
import shutil
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.formatting import dollars
from cachecost.commands import demo
from cachecost.scenario import load
from command_runs import run_apart, run_here

ROOT = Path(__file__).parents[1]
RECORDING = demo.SCENARIO.parent / load(ROOT / demo.SCENARIO).conversation.recording
FILES = (demo.SESSION, demo.SCENARIO, demo.RESULT, RECORDING)


SMALL = """format: 1
name: answer-inquiry
question: Small?
as_of: 2026-03-07
model: claude-opus-4-6
tokens: bytes
conversation:
  synthetic: {turns: 1, calls: 2, tools: 1, sizes: {human: 67_920}, inquiries: {rate: 1}}
strategies: ["structured output, no tools", "answer_inquiry, forced", "answer tool, auto"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the demo's session, a scenario that takes no time, and its result."""
    made = tmp_path / "a checkout"
    for path in FILES:
        (made / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / demo.SESSION, made / demo.SESSION)
    (made / demo.SCENARIO).write_text(SMALL)
    (made / demo.RESULT).write_text(run_here("run", made / demo.SCENARIO, "--no-report", "--json").stdout)
    monkeypatch.setattr(demo, "bundled_folder", lambda: made)
    return made


def _change(folder: Path, **keys: Any) -> None:
    path = folder / demo.RESULT
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def test_the_session_is_what_bill_says_of_it(folder: Path) -> None:
    """The dollars, the share written again and the saving are those of `bill`, and the change is its first advice."""
    bill = json.loads(run_here("bill", folder / demo.SESSION, "--json", "--timezone", "UTC").stdout)
    lines = run_here("demo", cwd=folder).stdout.splitlines()
    best = bill["advice"][0]
    cost, saved = Decimal(bill["billed_usd"]), Decimal(best["saved_usd"])
    assert lines[1].startswith(f"  {dollars(cost)} in 1 session, {bill['calls']} calls, ")
    assert lines[3] == f"  {dollars(saved)} ({saved / cost:.0%}) less: {best['change']}"
    assert lines[5] == f"  more: cachecost bill {demo.SESSION}"


def test_the_verdict_is_the_committed_one(folder: Path) -> None:
    """Each figure is read from the result: another one in it is another one shown."""
    found = json.loads((folder / demo.RESULT).read_text())
    best = next(row for row in found["strategies"] if row["name"] == found["best"])
    best["cost_usd"] = "12.34"
    _change(folder, strategies=found["strategies"])
    lines = run_here("demo", cwd=folder).stdout.splitlines()
    shown = [line.split("  ")[1] for line in lines[8:11]]
    assert (shown[0], shown[2]) == (found["compare_to"], found["best"])
    assert shown[1].startswith(demo.PROPOSED)
    assert " $12.34 in all" in lines[10] and lines[10].endswith("cheapest")
    assert lines[11] == f"  more: cachecost run {demo.SCENARIO}"


@pytest.mark.parametrize(
    "stale",
    [{"versions": {"cachecost": "0.0.1"}}, {"question": "Another?"}, {"strategies": "fewer"}, None],
    ids=["another version", "another question", "other strategies", "no result"],
)
def test_a_result_that_is_not_of_this_version_is_computed(folder: Path, stale: dict[str, Any] | None) -> None:
    """The dollars of the file, which are wrong, are not shown."""
    right = run_here("demo", cwd=folder).stdout
    rows = json.loads((folder / demo.RESULT).read_text())["strategies"]
    _change(folder, strategies=[{**row, "cost_usd": "12.34"} for row in rows])
    assert "$12.34" in run_here("demo", cwd=folder).stdout
    if stale is None:
        (folder / demo.RESULT).write_text("{")
    else:
        _change(folder, **{key: rows[:1] if key == "strategies" else value for key, value in stale.items()})
    assert run_here("demo", cwd=folder).stdout == right


def test_it_is_short_equal_each_time_and_writes_nothing(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run_here("demo", cwd=folder, COLUMNS="120")
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 12)
    assert run_here("demo", cwd=folder, COLUMNS="120", TZ="Asia/Tokyo").stdout == done.stdout
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_commands_it_names_work_where_it_was_called(folder: Path, tmp_path: Path) -> None:
    """Elsewhere than in the folder of its files the paths are whole."""
    (tmp_path / "elsewhere").mkdir()
    lines = run_here("demo", cwd=tmp_path / "elsewhere", COLUMNS="500").stdout.splitlines()
    commands = [shlex.split(line.partition("more: ")[2])[1:] for line in lines if "more: " in line]
    assert commands == [["bill", str(folder / demo.SESSION)], ["run", str(folder / demo.SCENARIO)]]
    assert run_here(*commands[0], cwd=tmp_path / "elsewhere").returncode == 0


def test_the_checkout_has_it_from_any_folder(tmp_path: Path) -> None:
    done = run_apart("demo", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines()) < 15, list(tmp_path.iterdir())) == (0, True, [])


def test_the_wheel_and_the_image_have_its_files() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for path in FILES:
        assert packed[str(path)] == f"cachecost/demo/{path}"
        assert f"!{path}" in (ROOT / ".dockerignore").read_text().splitlines()
