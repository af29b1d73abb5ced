"""`cachecost init` finds the agent of a project by reading its files, and writes a scenario that runs it."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cachecost.base.yaml_text import read
from cachecost.cli import exit_code
from cachecost.commands import init as project_sources
from cachecost.commands.init import (
    SCENARIO,
    SCHEMA,
    WORKFLOW,
    EntryPoint,
    ModelName,
    find_entry_point,
    init,
    starting_files,
)
from cachecost.scenario import load

IMPORT = "import anthropic\n"
MAIN = IMPORT + 'MODEL = "claude-opus-5-5"\nif __name__ == "__main__":\n    pass\n'
SDK = 'import Anthropic from "@anthropic-ai/sdk";\n'
PROJECTS: dict[str, tuple[dict[str, str], str | None]] = {
    "a file named agent": ({"agent.py": IMPORT}, "python agent.py"),
    "a program before a module of a likelier name": ({"agent.py": IMPORT, "main.py": MAIN}, "python main.py"),
    "the likelier of two programs": ({"agent.py": MAIN, "main.py": MAIN}, "python agent.py"),
    "the one nearer to the root": ({"app/agent.py": MAIN, "cli.py": MAIN}, "python cli.py"),
    "one that uses it through another file": ({"main.py": "import llm\nprint()", "llm.py": IMPORT}, "python main.py"),
    "through two others": (
        {"main.py": "from a import b", "a.py": "from c import d", "c.py": "from google import genai"},
        "python main.py",
    ),
    "not one that uses none": ({"main.py": "import os\nprint()", "llm.py": IMPORT}, None),
    "a program of another name": ({"assistant.py": MAIN}, "python assistant.py"),
    "a name with a space": ({"my app/agent.py": MAIN}, "python 'my app/agent.py'"),
    "a module of a package": ({"bot/__init__.py": "", "bot/agent.py": MAIN}, "python -m bot.agent"),
    "a package that runs": ({"bot/__init__.py": "", "bot/__main__.py": IMPORT}, "python -m bot"),
    "a package in src": ({"src/bot/__init__.py": "", "src/bot/cli.py": MAIN}, "python -m bot.cli"),
    "a package at the root of nothing": ({"__init__.py": "", "agent.py": MAIN}, "python agent.py"),
    "one that takes words": ({"agent.py": MAIN + "import argparse\n"}, "python agent.py {turn}"),
    "words and stdin": ({"agent.py": MAIN + "import argparse, sys\nsys.stdin.read()\n"}, "python agent.py"),
    "LangChain": ({"main.py": "from langchain.agents import create_agent\n"}, "python main.py"),
    "OpenAI": ({"app.py": "from openai import OpenAI\n"}, "python app.py"),
    "a name that only begins so": ({"agent.py": "import anthropic_tools\n"}, None),
    "an import in a text of JavaScript's kind": ({"agent.py": "x = 'import \"openai\"'\n"}, None),
    "JavaScript": ({"index.js": 'const { default: A } = require("@anthropic-ai/sdk");\n'}, "node index.js"),
    "TypeScript": ({"src/agent.ts": SDK}, "npx tsx src/agent.ts"),
    "TypeScript through a file beside it": (
        {"index.ts": 'import { ask } from "./llm.js";\n', "llm.ts": 'import OpenAI from "openai";\n'},
        "npx tsx index.ts",
    ),
    "scripts.agent before scripts.start": (
        {"package.json": '{"scripts": {"start": "node b.mjs", "agent": "node a.mjs"}}', "a.mjs": SDK, "b.mjs": SDK},
        "node a.mjs",
    ),
    "a script that needs a shell": (
        {"package.json": '{"scripts": {"start": "npm run build && node a.mjs"}}', "a.mjs": SDK},
        "npm run --silent start",
    ),
    "a script of an installed program": (
        {"package.json": '{"scripts": {"start": "tsx a.ts"}}', "a.ts": SDK},
        "npm run --silent start",
    ),
    "a script that runs something else": (
        {"package.json": '{"scripts": {"start": "vite"}}', "src/main.ts": SDK},
        "npx tsx src/main.ts",
    ),
    "bin": ({"package.json": '{"bin": {"desk": "./desk.js"}}', "desk.js": SDK}, "node desk.js"),
    "bin as one path": ({"package.json": '{"bin": "desk.js"}', "desk.js": SDK}, "node desk.js"),
    "project.scripts": (
        {"pyproject.toml": '[project.scripts]\ndesk = "desk.cli:main"\n', "src/desk/cli.py": IMPORT, "main.py": MAIN},
        "desk",
    ),
    "project.scripts of something else": (
        {"pyproject.toml": '[project.scripts]\ntidy = "tidy:main"\n', "tidy.py": "", "main.py": MAIN},
        "python main.py",
    ),
    "metadata that is damaged": (
        {"pyproject.toml": "[project", "package.json": "[" * 100_000, "main.py": MAIN},
        "python main.py",
    ),
    "metadata of other shapes": (
        {"pyproject.toml": "project = 1", "package.json": '{"scripts": [], "bin": 3}', "main.py": MAIN},
        "python main.py",
    ),
    "only in folders that are not read": (
        {"node_modules/x/index.js": SDK, ".venv/lib/agent.py": MAIN, "tests/agent.py": MAIN},
        None,
    ),
    "nothing": ({}, None),
}


def write(root: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def found(root: Path) -> EntryPoint:
    entry = find_entry_point(root)
    assert entry is not None
    return entry


def call(*args: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code(lambda: init.main(list(args), standalone_mode=False))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", PROJECTS)
def test_the_command_that_starts_the_agent(case: str, tmp_path: Path) -> None:
    contents, command = PROJECTS[case]
    write(tmp_path, contents)
    entry = find_entry_point(tmp_path)
    assert (entry and entry.command) == command
    text = starting_files(tmp_path, entry)[SCENARIO]
    if entry:
        (tmp_path / "scenarios").mkdir()
        (tmp_path / SCENARIO).write_text(text)
        assert list(load(tmp_path / SCENARIO).conversation.command or ()) == shlex.split(entry.command)


@pytest.mark.parametrize(
    ("text", "model", "host", "line"),
    [
        ('import anthropic\nMODEL = "claude-opus-5-5"\n', "claude-opus-5-5", "anthropic", 2),
        ("import anthropic\nx = 'claude-of-mine'\ny = 'claude-haiku-5-5'\n", "claude-haiku-5-5", "anthropic", 3),
        ('import litellm\nm = "anthropic/claude-haiku-5-5"\n', "claude-haiku-5-5", "anthropic", 2),
        ('import langchain\nm = "openai:gpt-6-sol"\n', "gpt-6-sol", "openai", 2),
        ('import openai\na = "claude-haiku-5-5"\nb = "o3"\n', "o3", "openai", 3),
        ("from google import genai\nm = 'gemini-2.5-pro'\n", "gemini-2.5-pro", "gemini", 2),
    ],
)
def test_the_model_is_the_first_known_one_in_the_source(
    text: str, model: str, host: str, line: int, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(text)
    assert found(tmp_path).model == ModelName(model, host, "agent.py", line)
    assert found(tmp_path).host == host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("import openai, os\nm = os.environ['MODEL']\n", "openai"),
        ("import anthropic\nm = 'claude-of-mine'\n", "anthropic"),
        ("from google.genai import types\n", "gemini"),
        ("import litellm\n", "anthropic"),
    ],
)
def test_without_a_known_model_the_library_gives_the_host(text: str, host: str, project: Path) -> None:
    (project / "agent.py").write_text(text)
    assert (found(project).model, found(project).host) == (None, host)
    _, out, _ = call()
    assert "\nModel: that of its first call; the source names none\n" in out
    scenario = read(project / SCENARIO).value
    assert (scenario["host"], "model" in scenario) == (host, False)


def test_a_model_in_another_file_is_found(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "import llm\n", "llm.py": IMPORT + 'M = "claude-opus-5-5"\n'})
    entry = found(tmp_path)
    assert entry.model == ModelName("claude-opus-5-5", "anthropic", "llm.py", 2)
    assert entry.reason == "main.py imports anthropic in llm.py"


def test_links_are_not_followed_and_the_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"away/agent.py": MAIN, "project/a/b/c/d/e/f/agent.py": MAIN})
    (tmp_path / "project/agent.py").symlink_to(tmp_path / "away/agent.py")
    (tmp_path / "project/linked").symlink_to(tmp_path / "away")
    (tmp_path / "project/round").symlink_to(tmp_path / "project")
    assert find_entry_point(tmp_path / "project") is None
    monkeypatch.setattr(project_sources, "MOST_FILES", 10)
    write(tmp_path / "wide", {f"{number:02}.py": MAIN for number in range(20)})
    assert len(project_sources.read_sources(tmp_path / "wide")) == 10


SAID = f"""\
{SCENARIO}                  runs your agent against a simulated API, within a budget
{SCHEMA}           JSON Schema of scenarios, for editors
{WORKFLOW}          checks the budget in every pull request

Agent: python agent.py   (agent.py imports anthropic)
Model: claude-opus-5-5   (agent.py:2)

Next:
  cachecost check --update          runs the agent, writes reports/my-agent/; commit it with the rest
  cachecost check                   what CI runs; exit code 1 if a budget is exceeded

If the agent starts in another way, change `command` and `turns` in {SCENARIO}.
"""


def test_it_says_what_it_found_and_why(project: Path) -> None:
    (project / "agent.py").write_text(MAIN)
    code, out, err = call()
    assert (code, err) == (0, "")
    assert out.startswith(SAID)


def test_nothing_is_executed(project: Path) -> None:
    (project / "agent.py").write_text(MAIN + "open('executed', 'w')\n")
    assert call()[0] == 0
    assert not (project / "executed").exists()


def test_without_an_agent_it_says_so(project: Path) -> None:
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "No agent was found: no program here imports anthropic" in out


@pytest.mark.parametrize(
    ("contents", "part"),
    [
        ({"agent.py": MAIN}, {"command": "python agent.py"}),
        ({"agent.py": MAIN + "import argparse\n"}, {"command": "python agent.py {turn}"}),
        ({"my: app/agent.py": MAIN}, {"command": "python 'my: app/agent.py'"}),
        ({"src/bot/__init__.py": "", "src/bot/cli.py": MAIN}, {"env": {"PYTHONPATH": "src"}}),
    ],
)
def test_the_scenario_has_the_command(contents: dict[str, str], part: dict[str, object], project: Path) -> None:
    write(project, contents)
    call()
    scenario = read(project / SCENARIO).value
    assert scenario["conversation"] == scenario["conversation"] | part | {"cwd": ".."}
    assert (scenario["host"], scenario["model"]) == ("anthropic", "claude-opus-5-5")


@pytest.mark.parametrize(
    ("contents", "installs"),
    [
        ({"agent.py": MAIN}, "install --quiet anthropic\n"),
        ({"agent.py": MAIN + "import langchain_openai\n"}, "install --quiet anthropic langchain-openai\n"),
        ({"agent.py": MAIN, "requirements.txt": "", "pyproject.toml": ""}, "install --quiet -r requirements.txt\n"),
        ({"agent.py": MAIN, "pyproject.toml": ""}, "install --quiet .\n"),
        ({"agent.mjs": SDK}, "npm install"),
        ({"agent.mjs": SDK, "package-lock.json": ""}, "npm ci"),
    ],
)
def test_the_workflow_installs_the_agent(contents: dict[str, str], installs: str, project: Path) -> None:
    write(project, contents)
    call()
    steps = read(project / WORKFLOW).value["jobs"]["check"]["steps"]
    (step,) = (one for one in steps if one.get("name") == "Install the agent")
    assert installs in step["run"]


def test_an_existing_file_stops_it_unless_forced(project: Path) -> None:
    write(project, {"agent.py": MAIN, SCENARIO: "mine"})
    assert call()[0] == 2
    assert (project / SCENARIO).read_text() == "mine"
    assert call("--force")[0] == 0
    assert "command: python agent.py" in (project / SCENARIO).read_text()
