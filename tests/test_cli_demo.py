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

from cachecost.analysis.comparison.variant_run import versions_of
from cachecost.base.formatting import dollars
from cachecost.commands import demo
from cachecost.providers.prices import PriceBook
from cachecost.scenario import load
from command_runs import run_apart, run_here

ROOT = Path(__file__).parents[1]
RECORDING = demo.SCENARIO.parent / load(ROOT / demo.SCENARIO).conversation.recording
FILES = (demo.SESSION, demo.SCENARIO, demo.RESULT, RECORDING)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's files in a folder of their own, with a result that this version wrote."""
    made = tmp_path / "a checkout"
    for path in FILES:
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, made / path)
    _change(made, versions=versions_of("anthropic", PriceBook()))
    monkeypatch.setattr(demo, "bundled_folder", lambda: made)
    return made


def _change(folder: Path, **keys: Any) -> None:
    path = folder / demo.RESULT
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def _small(folder: Path) -> None:
    """A scenario that takes no time, so that it can be computed."""
    (folder / demo.SCENARIO).write_text(
        "format: 1\nname: answer-inquiry\nquestion: Small?\nas_of: 2026-03-07\nmodel: claude-opus-4-6\ntokens: bytes\n"
        "conversation:\n"
        "  synthetic:\n    turns: 1\n    calls: 2\n    tools: 1\n    sizes: {human: 67_920}\n    inquiries: {rate: 1}\n"
        'strategies: ["structured output, no tools", "answer_inquiry, forced", "answer tool, auto"]\n'
    )


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
    [{"versions": {"cachecost": "0.0.1"}}, {"question": "Another?"}, {"strategies": []}, None],
    ids=["another version", "another question", "other strategies", "no result"],
)
def test_a_result_that_is_not_of_this_version_is_computed(folder: Path, stale: dict[str, Any] | None) -> None:
    _small(folder)
    _change(folder, question="Small?", strategies=[{"name": "structured output, no tools"}])
    if stale is None:
        (folder / demo.RESULT).write_text("{")
    else:
        _change(folder, **stale)
    done = run_here("demo", cwd=folder)
    run = json.loads(run_here("run", folder / demo.SCENARIO, "--no-report", "--json").stdout)
    costs = [dollars(Decimal(row["cost_usd"])) for row in run["strategies"]]
    assert done.returncode == 0
    assert [line.split(" each  ")[1].split()[0] for line in done.stdout.splitlines()[8:11]] == costs


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
