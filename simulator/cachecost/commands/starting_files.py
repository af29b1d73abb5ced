"""The files that `cachecost init` writes: a scenario that runs the project's agent, or one of a made-up recording."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from cachecost.base.installation import workflow_requirement
from cachecost.commands.entry_points import TURN, EntryPoint

SCENARIO = "scenarios/my-agent.yaml"
RECORDING = "scenarios/recordings/my-agent.jsonl"
SCHEMA = "scenarios/scenario.schema.json"
WORKFLOW = ".github/workflows/cachecost.yml"
ABOUT = {
    SCENARIO: "the cost of a session under four strategies, and a budget",
    RECORDING: "a made-up session of 16 calls; replace it with one of yours",
    SCHEMA: "JSON Schema of scenarios, for editors",
    WORKFLOW: "checks the budget in every pull request",
}
ABOUT_AGENT = "runs your agent against a simulated API, within a budget"
PLAIN = re.compile(r"[\w./@-][\w./@ -]*")
PYTHON_STEP = """      - name: Install the agent
        run: |
          python3 -m venv "$RUNNER_TEMP/agent"
          "$RUNNER_TEMP/agent/bin/pip" install --quiet {packages}
          echo "$RUNNER_TEMP/agent/bin" >>"$GITHUB_PATH"
"""
NODE_STEP = """      - name: Install the agent
        run: npm {install}
"""
STEP = "      # @AGENT@\n"


def starting_files(folder: Path, agent: EntryPoint | None) -> dict[str, str]:
    """The text of each file by its path from the project root, `folder`; `agent` is what was found there."""
    from cachecost.scenario.text import schema_text

    recording = {} if agent else {RECORDING: _shipped("my-agent.jsonl")}
    return {
        SCENARIO: _agent_scenario(agent) if agent else _shipped("my-agent.yaml"),
        **recording,
        SCHEMA: schema_text(),
        WORKFLOW: _workflow(_agent_step(folder, agent) if agent else ""),
    }


def _shipped(name: str) -> str:
    return files("cachecost.commands.templates").joinpath(name).read_text(encoding="utf-8")


def _workflow(agent_step: str) -> str:
    return _shipped("cachecost.yml").replace("@CACHECOST@", workflow_requirement()).replace(STEP, agent_step)


def _agent_scenario(agent: EntryPoint) -> str:
    command = agent.command if PLAIN.fullmatch(agent.command) else json.dumps(agent.command, ensure_ascii=False)
    environment = f"\n  env: {{PYTHONPATH: {json.dumps(agent.python_path)}}}" if agent.python_path else ""
    values = {
        "@HOST@": agent.host,
        "@MODEL@": f"\nmodel: {agent.model.id}" if agent.model else "",
        "@COMMAND@": command,
        "@ENVIRONMENT@": environment,
        "@HOW@": ", each in a run of its own" if agent.command.endswith(TURN) else ", a line each on stdin",
    }
    text = _shipped("agent.yaml")
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _agent_step(folder: Path, agent: EntryPoint) -> str:
    """The step of the workflow that installs what the agent needs."""
    if not agent.is_python:
        return NODE_STEP.format(install="ci" if (folder / "package-lock.json").exists() else "install")
    if (folder / "requirements.txt").exists():
        return PYTHON_STEP.format(packages="-r requirements.txt")
    if (folder / "pyproject.toml").exists():
        return PYTHON_STEP.format(packages=".")
    return PYTHON_STEP.format(packages=" ".join(re.sub(r"[._]", "-", name) for name in agent.libraries))
