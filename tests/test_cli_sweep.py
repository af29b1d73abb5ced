"""`cachecost sweep` end to end: what people read, and what machines do."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cachecost.commands.sweep import sweep

SCENARIO = """\
format: 1
name: small
as_of: 2026-11-01
model: claude-opus-4-6
tokens: bytes
conversation:
  synthetic: {turns: 3, calls: 3, pauses: {turn: 400}}
  head: {system: {tokens: 6_000}}
strategies:
  - automatic
  - {name: an hour, preset: automatic, ttl: 1h}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(sweep, [str(arg) for arg in args], catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CACHECOST_STORE", "off")
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


GRID = ("--grid", "conversation.synthetic.pauses.turn=100,400", "--jobs", "1")


@pytest.mark.parametrize("width", [80, 120])
def test_the_answer_comes_first(scenario: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(scenario, *GRID)
    assert result.return_value == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "small   conversation.synthetic.pauses.turn · 2 cells"
    assert lines[1] == "Who is cheapest depends on the point: automatic at 1, an hour at 1 of 2."
    assert max(map(len, lines)) <= width
    head = "  turn  strategy" if width == 80 else "  conversation.synthetic.pauses.turn  strategy"
    assert lines[3].startswith(head)
    assert [line.split()[0] for line in lines[4:8]] == ["100", "100", "400", "400"]


def test_seeds_tell_percentiles_and_how_settled_the_mean_is(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    draw = ("--draw", "turn={choices: [100, 400]}")
    lines = run(scenario, "--seeds", 500, *draw, "--jobs", 1).stdout.splitlines()
    assert lines[0] == "small   500 cells"
    assert lines[1].startswith("an hour is cheapest: $")
    assert lines[1].endswith(", means of 500 seeds.")
    assert lines[3].split() == ["strategy", "mean", "settled", "p5", "p25", "p50", "p75", "p95"]


def test_json_is_one_object(scenario: Path) -> None:
    parsed = json.loads(run(scenario, *GRID, "--json").stdout)
    assert {name: parsed[name] for name in ("format", "scenario", "axes", "cells", "faults")} == {
        "format": 1,
        "scenario": "small",
        "axes": ["conversation.synthetic.pauses.turn"],
        "cells": 2,
        "faults": [],
    }
    assert [(row["at"], row["strategy"], row["calls"]) for row in parsed["rows"]] == [
        ({"conversation.synthetic.pauses.turn": turn}, name, 9)
        for turn in ("100", "400")
        for name in ("automatic", "an hour")
    ]
    assert all(Decimal(row["cost_usd"]) > 0 for row in parsed["rows"])


BEST_EFFORT = """\
format: 1
name: implicit
as_of: 2026-11-01
host: gemini
model: gemini-3.8-flash
tokens: bytes
conversation:
  synthetic: {turns: 2, calls: 2}
  head: {system: {tokens: 30_000}}
strategies: [automatic]
"""


def test_hits_that_are_best_effort_make_a_range(tmp_path: Path) -> None:
    path = tmp_path / "implicit.yaml"
    path.write_text(BEST_EFFORT, encoding="utf-8")
    grid = ("--grid", "conversation.synthetic.turns=1,2", "--jobs", 1)
    lines = run(path, *grid).stdout.splitlines()
    assert lines[1].startswith("automatic is cheapest at best everywhere: $")
    assert lines[2] == "Where a cost is a range, hits are best effort: the cheapest strategy is the cheapest at best."
    assert all("–" in line for line in lines[5:7])
    for row in json.loads(run(path, *grid, "--json").stdout)["rows"]:
        least, most = map(Decimal, row["cost_range_usd"])
        assert least == Decimal(row["cost_usd"]) < most


def test_json_of_seeds_has_percentiles_in_dollars(scenario: Path) -> None:
    parsed = json.loads(run(scenario, "--seeds", 40, "--draw", "turn=[100, 500]", "--json", "--jobs", 1).stdout)
    first = parsed["rows"][0]
    assert first["seeds"] == 40
    spread = [Decimal(first["percentiles_usd"][name]) for name in ("5", "25", "50", "75", "95")]
    assert spread == sorted(spread)
    assert spread[0] <= Decimal(first["cost_usd"]) <= spread[-1]
    assert 0 < first["convergence"] < 1


def test_a_fault_of_a_cell_is_told_and_the_exit_code_is_3(scenario: Path) -> None:
    result = run(scenario, "--grid", "model=claude-opus-4-6,claude-opus-4-66", "--jobs", 1)
    assert result.return_value == 3
    lines = result.stdout.splitlines()
    assert "1 error; all other cells were computed:" in lines
    assert lines[-1].startswith("  model=claude-opus-4-66: ")
    parsed = json.loads(run(scenario, "--grid", "model=claude-opus-4-6,claude-opus-4-66", "--jobs", 1, "--json").stdout)
    assert [fault["at"] for fault in parsed["faults"]] == [{"model": "claude-opus-4-66"}]
    assert len(parsed["rows"]) == 2


def test_a_table_goes_where_it_is_asked_to(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.csv"
    result = run(scenario, *GRID, "--out", out)
    assert result.stdout.splitlines()[-1] == f"table   {out}"
    lines = out.read_text(encoding="utf-8").splitlines()
    names = "seed,strategy,calls,errors,read,write_5m,write_1h,input,output,cost_usd,cost_if_missed_usd,fault"
    assert lines[0] == f"conversation.synthetic.pauses.turn,{names}"
    assert [line.split(",")[:3] for line in lines[1:]] == [
        [turn, "0", name] for turn in ("100", "400") for name in ("automatic", "an hour")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--draw", "turn=3", *GRID), "--draw: expected --seeds N too"),
        (("--resume", *GRID), "--resume: expected --out too; without it nothing was kept"),
        (("--as-of", "2026-01-01", *GRID), "not with a scenario; set it in"),
    ],
)
def test_options_that_do_not_go_together(scenario: Path, options: tuple[object, ...], words: str) -> None:
    import click

    with pytest.raises(click.UsageError, match=words):
        run(scenario, *options)


def test_help_imports_nothing_heavy() -> None:
    """Nor does any other command pay for this one."""
    code = (
        "import sys\nimport cachecost.commands.sweep as module\n"
        "from click.testing import CliRunner\n"
        "assert CliRunner().invoke(module.sweep, ['--help']).exit_code == 0\n"
        "print(sorted({'joblib', 'numpy', 'pandas', 'distributed', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
