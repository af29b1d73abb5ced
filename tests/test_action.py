"""The composite action, the workflows and the hooks: they load, and name only what there is; the comment is one."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from cachecost.base.yaml_text import read
from cachecost.cli import COMMANDS, LazyGroup
from cachecost.cli import cachecost as group

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"
EXAMPLE = ROOT / "docs" / "examples" / "cachecost.yml"
STARTING = ROOT / "simulator" / "cachecost" / "commands" / "templates" / "cachecost.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
OWN = "OWNER/cachecost@REF"
CALLED = re.compile(r"cachecost\"? (?P<command>[a-z]+)(?P<rest>(?:[^\n\\|]|\\\n)*)")
GH = """#!/bin/sh
# Notes how it was called; a list of comments is what the test says.
printf '%s\\n' "$*" >>"$GH_LOG"
case "$*" in *--paginate*) printf '%s' "$GH_COMMENTS" ;; esac
"""


def load(path: Path) -> Any:
    return read(path).value


def steps_of(path: Path) -> list[dict[str, Any]]:
    parsed = load(path)
    steps: list[dict[str, Any]] = parsed["runs"]["steps"] if "runs" in parsed else parsed["jobs"]["check"]["steps"]
    return steps


def step(path: Path, name: str) -> dict[str, Any]:
    return next(one for one in steps_of(path) if one.get("name") == name)


def options_of(command: str) -> set[str]:
    assert isinstance(group, LazyGroup)
    found = group.get_command(click.Context(group), command)
    assert found is not None
    return {name for one in found.params for name in one.opts}


@pytest.mark.parametrize("path", [ACTION, EXAMPLE, STARTING], ids=lambda path: path.parent.name)
def test_other_actions_are_pinned_by_a_full_hash(path: Path) -> None:
    for one in steps_of(path):
        if "uses" in one and one["uses"] != OWN:
            assert PINNED.fullmatch(one["uses"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_workflows_of_this_repository_pin_by_a_full_hash(path: Path) -> None:
    used = [one["uses"] for job in load(path)["jobs"].values() for one in job["steps"] if "uses" in one]
    assert used
    assert [one for one in used if not PINNED.fullmatch(one)] == []


def test_only_the_job_that_publishes_has_an_identity() -> None:
    release = load(ROOT / ".github" / "workflows" / "release.yml")
    assert release["permissions"] == {}
    jobs = release["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert (jobs["publish"]["needs"], jobs["publish"]["environment"]["name"]) == ("check", "pypi")
    assert "run" not in {key for one in jobs["publish"]["steps"] for key in one}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_script_of_a_workflow_can_be_read_by_bash(path: Path) -> None:
    for job in load(path)["jobs"].values():
        for one in job["steps"]:
            subprocess.run(["bash", "-n"], input=one.get("run", ""), text=True, check=True)


@pytest.mark.parametrize("path", [ACTION, STARTING, HOOKS], ids=lambda path: path.name)
def test_every_command_and_option_is_there(path: Path) -> None:
    found = [one for one in CALLED.finditer(path.read_text()) if one["command"] in COMMANDS]
    assert found
    for one in found:
        assert set(re.findall(r"(?<!\S)--[a-z-]+", one["rest"])) <= options_of(one["command"])


def test_the_action_asks_check_for_all_it_shows() -> None:
    script = step(ACTION, "Check budgets and baselines")["run"]
    assert set(re.findall(r"(?<=\s)--[a-z-]+", script)) == {"--reports", "--github", "--markdown", "--junit", "--sarif"}


def test_the_example_names_only_inputs_that_there_are() -> None:
    action, used = load(ACTION), next(one for one in steps_of(EXAMPLE) if one.get("uses") == OWN)
    assert set(used.get("with", {})) <= set(action["inputs"])
    outputs = re.findall(r"steps\.cachecost\.outputs\.([a-z-]+)", EXAMPLE.read_text())
    assert set(outputs) <= set(action["outputs"])


def test_inputs_never_become_text_of_a_script() -> None:
    for one in steps_of(ACTION):
        assert "${{" not in one["run"]


def test_every_script_of_the_action_has_a_shell() -> None:
    assert {one["shell"] for one in steps_of(ACTION)} == {"bash"}


@pytest.mark.parametrize("path", [ACTION, EXAMPLE, STARTING], ids=lambda path: path.parent.name)
def test_every_script_can_be_read_by_bash(path: Path) -> None:
    for one in steps_of(path):
        if "run" in one:
            subprocess.run(["bash", "-n"], input=one["run"], text=True, check=True)


# ----------------------------------------------------------------------------------- the scripts, run


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """A runner's environment, with a `gh` and a `cachecost` that only note how they were called."""
    (tmp_path / "bin").mkdir()
    _program(tmp_path / "bin" / "gh", GH)
    (tmp_path / "cachecost" / "venv" / "bin").mkdir(parents=True)
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GH_LOG": str(tmp_path / "gh.log"),
        "GH_COMMENTS": "",
        "REPOSITORY": "someone/project",
        "NUMBER": "12",
        "TEXT": str(tmp_path / "comment.md"),
    }


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def bash(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As a runner runs it (GitHub's documentation: `bash --noprofile --norc -eo pipefail`)."""
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(shell, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "comments", "method"),
    [
        ("It costs more.", "", "--method POST repos/someone/project/issues/12/comments --field body=@{text}"),
        ("It costs more.", "77\n", "--method PATCH repos/someone/project/issues/comments/77 --field body=@{text}"),
        ("It costs more.", "77\n78\n", "--method PATCH repos/someone/project/issues/comments/77 --field body=@{text}"),
        ("", "77\n", "--method DELETE repos/someone/project/issues/comments/77"),
        (None, "77\n", "--method DELETE repos/someone/project/issues/comments/77"),
        (None, "", None),
    ],
)
def test_there_is_one_comment_and_none_while_nothing_changed(
    runner: dict[str, str], text: str | None, comments: str, method: str | None
) -> None:
    if text is not None:
        Path(runner["TEXT"]).write_text(text)
    done = bash(step(ACTION, "Comment")["run"], {**runner, "GH_COMMENTS": comments})
    assert (done.returncode, done.stderr) == (0, "")
    asked, *changed = Path(runner["GH_LOG"]).read_text().splitlines()
    assert asked.startswith("api --paginate repos/someone/project/issues/12/comments --jq ")
    expected = [] if method is None else [f"api --silent {method.format(text=runner['TEXT'])}"]
    assert changed == expected


def test_the_comment_is_found_by_the_breakpoint_that_check_writes() -> None:
    from cachecost.views.check import markdown as check_markdown

    assert "<!-- cachecost" in step(ACTION, "Comment")["run"]
    assert "<!-- cachecost" in Path(check_markdown.__file__).read_text()


@pytest.mark.parametrize(
    ("scenarios", "expected"),
    [
        ("", []),
        ("scenarios/a.yaml  scenarios/b.yaml", ["scenarios/a.yaml", "scenarios/b.yaml"]),
        ("scenarios/a.yaml\nscenarios/b.yaml\n", ["scenarios/a.yaml", "scenarios/b.yaml"]),
        ("\n  a.yaml\tb.yaml\n\nc.yaml d.yaml", ["a.yaml", "b.yaml", "c.yaml", "d.yaml"]),
        ("'two words.yaml'\n\"it's one.yaml\" x.yaml", ["two words.yaml", "it's one.yaml", "x.yaml"]),
        ("*.yaml", ["*.yaml"]),
        ("$(touch pwned) `id`", ["$(touch", "pwned)", "`id`"]),
        ("-n a.yaml", ["-n", "a.yaml"]),
        ("dir\\a.yaml", ["dir\\a.yaml"]),
        ("$(id) *", ["$(id)", "*"]),
    ],
)
def test_check_is_called_with_the_scenarios_and_its_exit_code_is_kept(
    runner: dict[str, str], scenarios: str, expected: list[str]
) -> None:
    temp = Path(runner["RUNNER_TEMP"])
    noting = '#!/bin/sh\nfor one in "$@"; do printf "%s\\n" "$one"; done >"$RUNNER_TEMP/called"\nexit 1\n'
    _program(temp / "cachecost" / "venv" / "bin" / "cachecost", noting)
    environment = {**runner, "SCENARIOS": scenarios, "REPORTS": "reports"}
    done = bash(step(ACTION, "Check budgets and baselines")["run"], environment)
    assert (done.returncode, done.stderr) == (0, "")
    called = (temp / "called").read_text().splitlines()
    assert called[: 1 + len(expected)] == ["check", *expected]
    assert called[1 + len(expected) :][:3] == ["--reports", "reports", "--github"]
    outputs = dict(line.split("=", 1) for line in Path(runner["GITHUB_OUTPUT"]).read_text().splitlines())
    assert set(outputs) == set(load(ACTION)["outputs"])
    assert outputs["exit-code"] == "1"


@pytest.mark.parametrize("code", ["0", "1", "3"])
def test_the_verdict_is_that_of_check(runner: dict[str, str], code: str) -> None:
    assert bash(step(ACTION, "Verdict")["run"], {**runner, "CODE": code}).returncode == int(code)


def test_the_checkout_of_the_action_is_installed_with_what_its_lock_files_name(runner: dict[str, str]) -> None:
    temp = Path(runner["RUNNER_TEMP"])
    action = temp / "its checkout"
    _program(temp / "cachecost" / "venv" / "bin" / "python", '#!/bin/sh\necho "$*" >>"$RUNNER_TEMP/called"\n')
    (action / ".ci").mkdir(parents=True)
    (action / ".ci" / "find-python").write_text("echo true\n")
    done = bash(step(ACTION, "Install cachecost")["run"], {**runner, "GITHUB_ACTION_PATH": str(action)})
    assert (done.returncode, done.stderr) == (0, "")
    pip = "-m pip install --quiet --disable-pip-version-check --no-deps"
    assert (temp / "called").read_text().splitlines() == [
        f"{pip} --only-binary :all: --require-hashes"
        f" -r {action}/requirements-server.lock -r {action}/requirements-build.lock",
        f"{pip} --no-build-isolation {action}",
    ]


def test_an_open_quote_is_an_error_and_nothing_is_checked(runner: dict[str, str]) -> None:
    environment = {**runner, "SCENARIOS": "'a.yaml\nb.yaml", "REPORTS": "reports"}
    done = bash(step(ACTION, "Check budgets and baselines")["run"], environment)
    assert (done.returncode, done.stdout) == (2, "::error::scenarios: a quote is not closed\n")


def test_without_a_fitting_python_the_action_stops_and_says_so(runner: dict[str, str]) -> None:
    action = Path(runner["RUNNER_TEMP"]) / "action"
    (action / ".ci").mkdir(parents=True)
    (action / ".ci" / "find-python").write_text('echo "no Python >= 3.11 found" >&2; exit 1\n')
    done = bash(step(ACTION, "Install cachecost")["run"], {**runner, "GITHUB_ACTION_PATH": str(action)})
    assert (done.returncode, done.stderr) == (1, "no Python >= 3.11 found\n")


@pytest.mark.long
def test_the_action_in_a_clean_clone(runner: dict[str, str], tmp_path: Path) -> None:
    """All steps but the comment, as a runner runs them, in a project that was just begun. Needs the package index."""
    if not (ROOT / ".git").exists():
        pytest.skip("clones the repository")
    action, project = tmp_path / "action", tmp_path / "project"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(action)], check=True)
    project.mkdir()
    environment = {**runner, "GITHUB_ACTION_PATH": str(action), "SCENARIOS": "", "REPORTS": "reports"}

    def run(name: str, **more: str) -> subprocess.CompletedProcess[str]:
        return bash(f"cd {project}\n{step(ACTION, name)['run']}", {**environment, **more})

    installed = run("Install cachecost")
    assert installed.returncode == 0, installed.stderr
    cachecost = tmp_path / "cachecost" / "venv" / "bin" / "cachecost"
    for words in (["init"], ["check", "--update"]):
        subprocess.run([str(cachecost), *words], cwd=project, check=True, capture_output=True)
    assert run("Check budgets and baselines").returncode == 0
    assert Path(runner["GITHUB_OUTPUT"]).read_text().splitlines()[-1] == "exit-code=0"
    assert run("Verdict", CODE="0").returncode == 0

    scenario = project / "scenarios" / "my-agent.yaml"
    scenario.write_text(re.sub(r"max_cost_usd: \S+", "max_cost_usd: 0.0001", scenario.read_text()))
    assert run("Check budgets and baselines").returncode == 0
    assert Path(runner["GITHUB_OUTPUT"]).read_text().splitlines()[-1] == "exit-code=1"
    assert "max_cost_usd" in (tmp_path / "cachecost" / "junit.xml").read_text()
    assert run("Verdict", CODE="1").returncode == 1
    subprocess.run(["git", "diff", "--exit-code", "--quiet"], cwd=action, check=True)


# ------------------------------------------------------------------------------------------ pre-commit


def test_the_hooks_are_two_and_run_commands_that_there_are() -> None:
    hooks = load(HOOKS)
    assert [(one["id"], one["entry"]) for one in hooks] == [
        ("cachecost-check", "cachecost check"),
        ("cachecost-lint", "cachecost lint"),
    ]
    assert {one["language"] for one in hooks} == {"python"}


@pytest.mark.parametrize(
    ("path", "hook"),
    [
        ("scenarios/mine.yaml", "cachecost-check"),
        ("scenarios/recordings/mine.jsonl", "cachecost-check"),
        ("reports/mine/baseline.json", "cachecost-check"),
        ("reports/mine/index.html", None),
        ("requests/today.jsonl", "cachecost-lint"),
        ("src/scenarios/mine.yaml", None),
    ],
)
def test_a_hook_runs_for_its_files(path: str, hook: str | None) -> None:
    assert [one["id"] for one in load(HOOKS) if re.search(one["files"], path)] == ([hook] if hook else [])
