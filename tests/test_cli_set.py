"""`--set` in a matrix: each variant has a report and a baseline of its own, and the documented matrix runs."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.yaml_text import parse
from cachecost.scenario.loading import MOST_NAME, name_with_sets
from command_runs import run_here
from docs_pages import ROOT

SCENARIO = """\
format: 1
name: agent
as_of: 2026-11-20
model: claude-sonnet-5-5
tokens: bytes
conversation:
  synthetic: {seed: 1, turns: 2, calls: 2, tools: 1}
  head: {tools: {count: 3, tokens: 3_000}, system: {tokens: 1_000}}
strategies: [automatic]
budget:
  - max_regression: 5%
"""
VARIANT = ("--set", "model=claude-haiku-4-5", "--set", "conversation.head.tools.tokens=4000")
FOLDER = "agent@conversation.head.tools.tokens=4000,model=claude-haiku-4-5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "agent.yaml").write_text(SCENARIO)
    return tmp_path


def test_a_variant_has_a_baseline_of_its_own(folder: Path) -> None:
    assert run_here("check", "--update", cwd=folder).returncode == 0
    plain = (folder / "reports" / "agent" / "baseline.json").read_bytes()
    missing = run_here("check", *VARIANT, cwd=folder)
    assert missing.returncode == 3, "the baseline of the scenario as written is never that of a variant"
    assert f"{FOLDER}: " in missing.stdout
    updated = run_here("check", "--update", *VARIANT, cwd=folder)
    assert updated.returncode == 0 and f"reports/{FOLDER}/baseline.json updated" in updated.stderr
    assert run_here("check", *VARIANT, cwd=folder).returncode == 0
    assert run_here("check", *VARIANT[2:], *VARIANT[:2], cwd=folder).returncode == 0, "in any order"
    assert sorted(path.name for path in (folder / "reports").iterdir()) == ["agent", FOLDER, "history.jsonl"]
    assert (folder / "reports" / "agent" / "baseline.json").read_bytes() == plain


def test_a_variant_that_got_more_expensive_names_its_command(folder: Path) -> None:
    assert run_here("check", "--update", *VARIANT, cwd=folder).returncode == 0
    path = folder / "scenarios" / "agent.yaml"
    path.write_text(SCENARIO.replace("system: {tokens: 1_000}", "system: {tokens: 9_000}"))
    broken = run_here("check", "--json", *VARIANT, cwd=folder)
    assert broken.returncode == 1
    words = "--set model=claude-haiku-4-5 --set conversation.head.tools.tokens=4000"
    assert json.loads(broken.stdout)["accept"] == [f"cachecost check --update scenarios/agent.yaml {words}"]


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("modle=x", 2, "--set modle=x: modle: unknown key (did you mean 'model'?)"),
        (
            "conversation.hed.tools.tokens=4",
            2,
            "--set conversation.hed.tools.tokens=4: conversation.hed: unknown",
        ),
        (
            "budget.1.max_cost_usd=4",
            2,
            "--set budget.1.max_cost_usd=4: budget: expected the number of an item",
        ),
        ("model=claude-haiku-45", 3, "unknown model 'claude-haiku-45' on host anthropic (did you mean"),
    ],
)
def test_an_unknown_path_is_an_error_with_the_nearest_name(
    folder: Path, command: str, text: str, code: int, error: str
) -> None:
    done = run_here(command, "scenarios/agent.yaml", "--set", text, cwd=folder)
    assert done.returncode == code and error in done.stderr
    assert not (folder / "reports").exists(), "nothing is half-written"


def test_the_report_of_a_variant_is_no_report_of_the_scenario(folder: Path) -> None:
    assert run_here("run", "scenarios/agent.yaml", *VARIANT, cwd=folder).returncode == 0
    assert [path.name for path in (folder / "reports").iterdir()] == [FOLDER]
    assert run_here("run", "scenarios/agent.yaml", *VARIANT, "--out", "here", cwd=folder).returncode == 0
    assert (folder / "here" / "report.md").exists()


@pytest.mark.parametrize(
    ("sets", "name"),
    [
        ((), "a"),
        (("name=b",), "a"),
        (("b=1", "a.b=x"), "a@a.b=x,b=1"),
        (("b=1", "b=2"), "a@b=2"),
        (("strategies=[none]",), "a@strategies=-none--"),
        (("model=Qwen/Qwen3",), "a@model=Qwen-Qwen3-"),
    ],
)
def test_names_of_variants(sets: tuple[str, ...], name: str) -> None:
    found = name_with_sets("a", sets)
    assert found == name or re.fullmatch(re.escape(name) + "[0-9a-f]{8}", found)


values = st.text(st.characters(codec="utf-8", exclude_characters="="), max_size=200).map(str.strip)


@given(values, values)
def test_a_name_is_a_folder_and_each_variant_has_another(one: str, other: str) -> None:
    first, second = (name_with_sets("a", [f"x={value}"]) for value in (one, other))
    assert (first == second) == (one == other)
    assert "/" not in first and len(first) < MOST_NAME + 20


def test_the_documented_matrix_runs(folder: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "ci-owner.md").read_text()
    (block,) = [text for text in re.findall(r"```yml\n(.*?)```", page, re.DOTALL) if "matrix:" in text]
    job = parse(block, "").value["jobs"]["variants"]
    matrix, command = job["strategy"]["matrix"], job["steps"][-1]["run"]
    for cell in itertools.product(*matrix.values()):
        line = command
        for name, value in zip(matrix, cell, strict=True):
            line = line.replace(f"${{{{ matrix.{name} }}}}", str(value))
        assert "${{" not in line
        words = shlex.split(line)[1:]
        assert run_here(*words, "--update", cwd=folder).returncode == 0
        assert run_here(*words, cwd=folder).returncode == 0
    names = {path.name for path in (folder / "reports").iterdir() if path.is_dir()}
    assert len(names) == len(list(itertools.product(*matrix.values()))) and FOLDER in names
    assert f"`reports/{FOLDER.replace('agent', 'NAME')}/`" in page
