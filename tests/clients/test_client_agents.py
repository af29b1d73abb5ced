"""The example agents with their own clients: every fault is found out, and no harmless change is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from clients_bench import folder_of

from planted_agents import langchain_agent, python_sdk, typescript_sdk
from planted_agents.checks import ONE_RUN, check, verify
from planted_agents.edits import Edits, project

pytestmark = pytest.mark.clients
CLIENTS = {"python-sdk": "anthropic", "langchain": "langchain", "typescript-sdk": "typescript-sdk"}
EDITS: dict[str, ModuleType] = {
    "python-sdk": python_sdk,
    "langchain": langchain_agent,
    "typescript-sdk": typescript_sdk,
}
FAULTS = [(agent, name) for agent, edits in EDITS.items() for name in edits.FAULTS]
HARMLESS = [(agent, name) for agent, edits in EDITS.items() for name in ("nothing", *edits.HARMLESS)]


def edited(agent: str, target: Path, edits: Edits) -> tuple[Path, str]:
    """A copy of an agent with edits, and the folder of the programs that run it."""
    client = folder_of(CLIENTS[agent])
    folder = project(agent, target, *edits)
    if agent == "typescript-sdk":
        (folder / "node_modules").symlink_to(client / "node_modules")
        return folder, str(Path(sys.executable).parent)
    return folder, str(client / "bin")


@pytest.mark.parametrize(("agent", "fault"), FAULTS)
def test_a_fault_is_found_out(agent: str, fault: str, tmp_path: Path) -> None:
    folder, path = edited(agent, tmp_path / "agent", EDITS[agent].FAULTS[fault])
    verify(fault, folder, path)


@pytest.mark.parametrize(("agent", "change"), HARMLESS)
def test_a_harmless_change_costs_nothing(agent: str, change: str, tmp_path: Path) -> None:
    folder, path = edited(agent, tmp_path / "agent", EDITS[agent].HARMLESS.get(change, ()))
    if change != "nothing":  # whether two runs are alike is seen there
        ONE_RUN.apply(folder)
    code, report = check(folder, path)
    assert (code, report["verdict"]) == (0, "pass")
    (session,) = report["sessions"]
    assert session["cost_usd"] == session["baseline_usd"]
