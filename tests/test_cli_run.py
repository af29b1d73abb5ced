"""`run` and `check` through the real command: results on stdout, files whole or absent, the same bytes each time."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_runs import run_apart, run_here

SCENARIO = """\
format: 1
name: small
model: claude-sonnet-4-5
as_of: 2026-08-22
tokens: bytes
conversation:
  synthetic: {seed: 5, turns: 3, calls: 3, tools: 2, inquiries: {rate: 1.0}}
  head: {tools: {count: 3, tokens: 2_000}, system: {tokens: 1_500}}
strategies: [none, "structured output, same tools", "answer tool, auto"]
compare_to: none
budget: [{strategy: "answer tool, auto", max_regression: 5%}]
"""
SIX_FAULTS = """\
format: 2
name: small
model: claude-sonnet-4-5
as_of: yesterday
tokens: tiktokens
conversation:
  synthetic: {seed: 5, turn: 3}
strategies:
  - progresive
budget: {max_cost: 40}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "small.yaml").write_text(SCENARIO)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_run_prints_the_comparison_and_writes_the_report(folder: Path) -> None:
    done = run_here("run", "scenarios/small.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "answer tool, auto" in done.stdout and "report   reports/small/index.html" in done.stdout
    assert set(files(folder / "reports" / "small")) == {
        "index.html",
        "report.md",
        "dollars.svg",
        "cumulative.svg",
        "question.svg",
        "chart.png",
        "calls.csv",
        "result.json",
    }


def test_run_json_prints_one_object_with_what_the_contract_promises(folder: Path) -> None:
    done = run_here("run", "scenarios/small.yaml", "--json", "--no-report", cwd=folder)
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["format"] == 1 and result["scenario"] == "small" and result["best"] == "answer tool, auto"
    for strategy in result["strategies"]:
        promised = {"name", "calls", "errors", "usage", "cost_usd", "cost_by_class_usd", "cost_by_layer_usd"}
        assert promised <= set(strategy)
    assert not (folder / "reports").exists()


ASSUMING = """\
question_about: ["answer tool, auto"]
assumptions:
  - name: retry rate
    set: strategies.answer tool, auto.inquiry.retry_rate
    range: [0, 1]
    why: nobody measured it
  - {name: nobody misses anything}
"""


def test_run_says_what_the_answer_assumes_in_terminal_report_and_json(folder: Path) -> None:
    compared = SCENARIO.replace("compare_to: none", 'compare_to: "structured output, same tools"')
    (folder / "scenarios" / "small.yaml").write_text(compared + ASSUMING)
    done = run_here("run", "scenarios/small.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"assumes   \d of \d+ assumptions were varied; ", done.stdout)
    assert "\n\nA question costs $" in done.stdout, "the answer to the question comes first"
    assert "none †" in done.stdout, "a strategy that asks nothing is compared apart"
    report = (folder / "reports" / "small" / "report.md").read_text()
    assert "- Retry rate: 0.1 (nobody measured it). “answer tool, auto” stays the cheapest from 0 to 1: " in report
    assert "- Nobody misses anything." in report.partition("Not tried:")[2]
    assert 'id="assumes">What the answer assumes</h2>' in (folder / "reports" / "small" / "index.html").read_text()
    result = json.loads((folder / "reports" / "small" / "result.json").read_text())
    rate = next(one for one in result["assumptions"] if one["name"] == "retry rate")
    assert (rate["value"], rate["changes_answer"], rate["break_even"]) == (0.1, False, [])
    assert [(one["value"], one["best"]) for one in rate["tried"]] == [
        (0, "answer tool, auto"),
        (1, "answer tool, auto"),
    ]
    assert result["lead"]["over"] == "structured output, same tools" and result["tied_with"] == []


def test_faults_of_assumptions_are_named_at_their_lines(folder: Path) -> None:
    wrong = ASSUMING.replace("[0, 1]", "[0, 7]").replace('["answer tool, auto"]', "[ans]")
    (folder / "scenarios" / "small.yaml").write_text(SCENARIO + wrong + "  - {name: x, set: name, values: [y]}\n")
    done = run_here("run", "scenarios/small.yaml", cwd=folder)
    assert done.returncode == 2
    messages = [line.partition(" ")[2] for line in done.stderr.splitlines()[:-1]]
    assert messages[0].startswith("question_about[0]: expected one of 'answer tool, auto'")
    assert messages[1:] == [
        "assumptions[0].range[1]: strategies[2].inquiry.retry_rate: expected at most 1.0; got 7",
        "assumptions[2].set: expected a path to what changes a cost; got 'name', which is only reported",
    ]


def test_the_same_bytes_come_out_in_any_process_and_hash_seed(folder: Path) -> None:
    """This process has a seed that chance chose."""
    here = run_here("run", "scenarios/small.yaml", "--out", "here", cwd=folder)
    apart = run_apart("run", "scenarios/small.yaml", "--out", "apart", cwd=folder, PYTHONHASHSEED="2")
    assert (here.returncode, apart.returncode) == (0, 0), here.stderr + apart.stderr
    assert files(folder / "here") == files(folder / "apart")


def test_a_strategys_figures_do_not_depend_on_the_others(folder: Path) -> None:
    def figures(scenario: str) -> dict[str, Any]:
        (folder / "scenarios" / "turned.yaml").write_text(scenario)
        done = run_here("run", "scenarios/turned.yaml", "--json", "--no-report", cwd=folder)
        return {strategy["name"]: strategy for strategy in json.loads(done.stdout)["strategies"]}

    names = '[none, "structured output, same tools", "answer tool, auto"]'
    turned = '["answer tool, auto", "structured output, same tools", none]'
    assert figures(SCENARIO) == figures(SCENARIO.replace(names, turned))


def test_six_faults_are_told_at_once_with_their_lines_and_nothing_runs(folder: Path) -> None:
    (folder / "scenarios" / "bad.yaml").write_text(SIX_FAULTS)
    done = run_here("run", "scenarios/bad.yaml", cwd=folder)
    lines = done.stderr.splitlines()
    assert done.returncode == 2 and lines[-1] == "6 errors; nothing was run."
    assert [line.split(" ")[0] for line in lines[:-1]] == [
        "scenarios/bad.yaml:1:1",
        "scenarios/bad.yaml:4:1",
        "scenarios/bad.yaml:5:1",
        "scenarios/bad.yaml:7:24",
        "scenarios/bad.yaml:9:5",
        "scenarios/bad.yaml:10:10",
    ]
    assert "(did you mean 'progressive'?)" in lines[4] and "(did you mean 'max_cost_usd'?)" in lines[5]
    assert not (folder / "reports").exists()


def test_an_unwritable_folder_is_named_and_nothing_is_left(folder: Path) -> None:
    target = folder / "reports"
    target.write_text("a file stands where the folder should be")
    done = run_here("run", "scenarios/small.yaml", cwd=folder)
    assert done.returncode == 2 and "reports" in done.stderr, done.stderr
    assert target.read_text() == "a file stands where the folder should be"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(folder: Path) -> None:
    (folder / "locked").mkdir()
    (folder / "locked").chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = run_here("run", "scenarios/small.yaml", "--out", "locked/small", cwd=folder)
    assert done.returncode == 2 and "locked" in done.stderr


def test_check_wants_a_baseline_then_holds_it(folder: Path) -> None:
    assert run_here("check", cwd=folder).returncode == 3, "without a baseline nothing can be said"
    assert run_here("check", "--update", cwd=folder).returncode == 0
    assert run_here("check", cwd=folder).returncode == 0
    dearer = SCENARIO.replace("system: {tokens: 1_500}", "system: {tokens: 9_500}")
    (folder / "scenarios" / "small.yaml").write_text(dearer)
    broken = run_apart("check", cwd=folder)
    assert broken.returncode == 1 and "the limit is 5%" in broken.stdout, broken.stdout
    verdict = json.loads(run_here("check", "--json", cwd=folder).stdout)
    assert verdict["format"] == 1 and verdict["verdict"] == "fail"


def test_check_tells_changed_rules_apart_from_changed_prompts(folder: Path) -> None:
    run_here("check", "--update", cwd=folder)
    other_day = SCENARIO.replace("as_of: 2026-08-22", "as_of: 2026-08-23")
    (folder / "scenarios" / "small.yaml").write_text(other_day)
    done = run_here("check", "--json", cwd=folder)
    assert done.returncode == 3 and json.loads(done.stdout)["verdict"] == "not_comparable"


def test_an_unknown_model_cannot_be_evaluated(folder: Path) -> None:
    (folder / "scenarios" / "small.yaml").write_text(SCENARIO.replace("claude-sonnet-4-5", "claude-sonet-4-5"))
    done = run_here("run", "scenarios/small.yaml", cwd=folder)
    assert done.returncode == 3 and "did you mean 'claude-sonnet-4-5'?" in done.stderr, done.stderr


@pytest.mark.parametrize("command", ["strategies", "models", "rules", "rules --assumptions"])
def test_listings_have_sources_in_text_and_json(folder: Path, command: str) -> None:
    assert run_here(*command.split(), cwd=folder).returncode == 0
    done = run_here(*command.split(), "--json", cwd=folder)
    (rows,) = (value for value in json.loads(done.stdout).values() if isinstance(value, list))
    assert len(rows) > 5 and "source" in json.dumps(rows[0])


def test_help_imports_nothing_heavy(folder: Path) -> None:
    heavy = "'numpy', 'pandas', 'matplotlib', 'tiktoken', 'pydantic', 'rich'"
    code = f"""
import sys
from cachecost.cli import cachecost
try:
    cachecost(['--help'])
except SystemExit:
    pass
print([name for name in ({heavy}) if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_conversation_is_replayed_under_the_strategies_that_are_named(folder: Path) -> None:
    recording = Path(__file__).parents[1] / "scenarios" / "recordings" / "jp-17727484633.jsonl"
    done = run_here("replay", str(recording), "--strategy", "none", "--strategy", "automatic", "--json", cwd=folder)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert [row["strategy"] for row in rows] == ["none"] * 7 + ["automatic"] * 7
    assert sum(row["usage"]["cache_read_input_tokens"] for row in rows[:7]) == 0
    assert sum(row["usage"]["cache_read_input_tokens"] for row in rows[7:]) > 0


def test_an_unknown_strategy_is_named_with_the_nearest(folder: Path) -> None:
    done = run_apart("replay", "scenarios/small.yaml", "--strategy", "progresive", cwd=folder)
    assert done.returncode == 2 and "did you mean 'progressive'?" in done.stderr


def test_a_conversation_without_a_strategy_says_what_is_missing(folder: Path) -> None:
    recording = Path(__file__).parents[1] / "scenarios" / "recordings" / "jp-17727484633.jsonl"
    done = run_here("replay", str(recording), cwd=folder)
    assert done.returncode == 2 and "got a conversation" in done.stderr and "choose a --strategy" in done.stderr
