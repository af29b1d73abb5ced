"""The example agents: ten harmless changes together leave `check` green, and their baselines are right to the cent.

Every fault, each harmless change alone, and all three clients: tests/clients/test_client_agents.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from planted_agents import langchain_agent, python_sdk, typescript_sdk
from planted_agents.checks import EXPECTED, check
from planted_agents.costs import cost, sent_calls
from planted_agents.edits import AGENTS, project

FOLDERS = sorted(path.parents[1] for path in AGENTS.glob("*/scenarios/agent.yaml"))
PATH = str(Path(sys.executable).parent)


@pytest.mark.slow
def test_ten_harmless_changes_cost_nothing(tmp_path: Path) -> None:
    pytest.importorskip("anthropic", reason="the agent's own package; it is in the extra live")
    edits = [edit for each in python_sdk.HARMLESS.values() for edit in each]
    code, report = check(project("python-sdk", tmp_path / "agent", *edits), PATH)
    assert (code, report["verdict"]) == (0, "pass")
    (session,) = report["sessions"]
    assert session["cost_usd"] == session["baseline_usd"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_committed_baseline_is_what_the_committed_recording_costs(folder: Path) -> None:
    baseline = json.loads((folder / "reports/agent/baseline.json").read_text())
    (figures,) = baseline["strategies"].values()
    assert figures["cost_usd"] == str(cost(sent_calls(folder / "reports/agent/recording.jsonl")))


def test_the_agents_differ_only_in_their_code() -> None:
    assert len(FOLDERS) == 3
    for name in ("prompt.md", "library/README.md", "library/loans.txt", "library/opening-hours.txt"):
        assert len({(folder / name).read_bytes() for folder in FOLDERS}) == 1


def test_they_are_small() -> None:
    code = [path for folder in FOLDERS for path in folder.iterdir() if path.suffix in (".py", ".mjs")]
    assert len(code) == 6
    assert [path for path in code if len(path.read_text().splitlines()) > 80] == []


@pytest.mark.parametrize("edits", [python_sdk, langchain_agent, typescript_sdk], ids=lambda edits: edits.__name__)
def test_each_agent_has_every_fault_and_ten_harmless_changes(edits: object) -> None:
    assert set(edits.FAULTS) <= set(EXPECTED)
    assert len(edits.FAULTS) >= 6
    assert len(edits.HARMLESS) == 10
