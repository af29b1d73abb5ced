"""`cachecost init`: what it writes passes its own check, and nothing that is there is touched."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cachecost import __version__
from cachecost.base import extras as installation
from cachecost.base.extras import PLACEHOLDER, Installation
from cachecost.base.yaml_text import read
from cachecost.cli import exit_code
from cachecost.commands import init as module
from cachecost.commands.check import check
from cachecost.commands.init import ABOUT, NEW, RECORDING, SCENARIO, SCHEMA, WORKFLOW, init, starting_files
from cachecost.conversations.readers.detect import read_calls
from cachecost.scenario.models import schema_text


def call(command: Any, *args: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code(lambda: command.main(list(args), standalone_mode=False))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_it_writes_a_scenario_a_recording_a_schema_and_a_workflow(project: Path) -> None:
    code, out, err = call(init)
    assert (code, err) == (0, "")
    assert files_in(project) == sorted((SCENARIO, RECORDING, SCHEMA, WORKFLOW))
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == list(ABOUT)
    assert lines[5:7] == ["Next:", "  cachecost run scenarios/my-agent.yaml"]


def test_what_it_writes_passes_its_own_check(project: Path) -> None:
    call(init)
    code, out, _ = call(check, "--update")
    assert (code, out) == (0, "✓ my-agent: 7 limits hold.\n")
    code, out, _ = call(check)
    assert (code, out) == (0, "✓ my-agent: 7 limits hold.\n")


def test_before_update_there_is_no_baseline(project: Path) -> None:
    call(init)
    code, out, _ = call(check)
    assert code == 3
    assert out.endswith("  accept it with: cachecost check --update scenarios/my-agent.yaml\n")


def test_a_folder_can_be_named(project: Path) -> None:
    code, out, _ = call(init, "agents/mine")
    assert code == 0
    assert files_in(project / "agents/mine") == sorted(ABOUT)
    assert out.splitlines()[0].split()[0] == f"agents/mine/{SCENARIO}"
    assert "Next:\n  cd agents/mine\n  cachecost run" in out


@pytest.mark.parametrize("there", [[SCENARIO], [RECORDING, WORKFLOW]])
def test_a_file_that_is_there_stops_everything(project: Path, there: list[str]) -> None:
    for name in there:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("mine")
    code, out, err = call(init)
    assert (code, out) == (2, "")
    errors = "1 error" if len(there) == 1 else "2 errors"
    expected = "".join(f"{name} exists already; overwrite it with --force\n" for name in there)
    assert err == f"{expected}{errors}; nothing was run.\n"
    assert files_in(project) == sorted(there)
    assert {(project / name).read_text() for name in there} == {"mine"}


def test_a_link_that_leads_nowhere_is_there_too(project: Path) -> None:
    (project / "scenarios").mkdir()
    (project / SCENARIO).symlink_to("gone.yaml")
    code, _, err = call(init)
    assert (code, err.splitlines()[0]) == (2, f"{SCENARIO} exists already; overwrite it with --force")


def test_force_writes_anew(project: Path) -> None:
    call(init)
    (project / SCENARIO).write_text("mine")
    (project / "scenarios/own.yaml").write_text("own")
    assert call(init, "--force")[0] == 0
    assert (project / SCENARIO).read_text() == starting_files(project, None)[SCENARIO]
    assert (project / "scenarios/own.yaml").read_text() == "own"


def test_it_writes_all_or_nothing(project: Path) -> None:
    (project / ".github").write_text("a file where a folder is wanted")
    code, _, err = call(init)
    assert code == 2
    assert ".github/workflows" in err
    assert [str(path.relative_to(project)) for path in project.rglob("*")] == [".github"]


def test_a_folder_in_the_place_of_a_file_is_a_fault(project: Path) -> None:
    (project / WORKFLOW).mkdir(parents=True)
    code, _, err = call(init, "--force")
    assert code == 2
    assert err == f"{WORKFLOW} expected a file, or nothing; got a folder\n1 error; nothing was run.\n"
    assert files_in(project) == []


def test_nothing_unfinished_is_left(project: Path) -> None:
    call(init)
    assert not list(project.rglob(f"*{NEW}"))


def test_the_schema_is_the_one_that_scenarios_are_checked_by() -> None:
    contents = starting_files(Path(), None)
    assert contents[SCHEMA] == schema_text()
    assert contents[SCENARIO].startswith("# yaml-language-server: $schema=scenario.schema.json\n")


def test_the_recording_is_small_and_made_up(project: Path) -> None:
    call(init)
    assert (project / RECORDING).stat().st_size < 40_000
    calls = list(read_calls(project / RECORDING, "auto", lambda words: None))
    assert (len(calls), {call.source for call in calls}) == (16, {"made up for this example"})


def test_the_workflow_installs_this_version_and_asks_for_nothing(project: Path) -> None:
    call(init)
    workflow = read(project / WORKFLOW).value
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["check"]["steps"]
    assert steps[1]["env"] == {"CACHECOST": "cachecost[server] @ git+REPOSITORY@COMMIT"}
    assert not re.search(r"@[A-Z]+@", (project / WORKFLOW).read_text())
    assert "secrets." not in (project / WORKFLOW).read_text()


@pytest.mark.parametrize(
    ("installed", "requirement"),
    [
        (Installation("uv tool", "python"), f"cachecost[server]=={__version__}"),
        (Installation("pip", "python", {"url": "file:///tmp/cachecost"}), PLACEHOLDER),
        (None, PLACEHOLDER),
    ],
)
def test_the_workflow_installs_this_copy_where_ci_can_have_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, installed: Installation | None, requirement: str
) -> None:
    monkeypatch.setattr(installation, "find_installation", lambda: installed)
    _, out, _ = call(init)
    workflow = read(project / WORKFLOW).value
    assert workflow["jobs"]["check"]["steps"][1]["env"] == {"CACHECOST": requirement}
    assert ("in place of REPOSITORY and COMMIT" in out) == (requirement == PLACEHOLDER)


def test_the_command_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    heavy = ("pydantic", "numpy", "pandas", "tiktoken", "httpx2", "starlette")
    code = f"import sys, {module.__name__}; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
