"""Scenarios as commands load them: one whose conversation is what a command sends is recorded first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachecost.base.errors import InputError
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.project_defaults import scenario_defaults

if TYPE_CHECKING:
    from cachecost.live.agent_runs.recorder import AgentRecorder
    from cachecost.scenario import Scenario
    from cachecost.scenario.recorded import RecordedScenario


def command_recorder(compares: bool = False) -> AgentRecorder:
    """A recorder whose recordings exist until the current command ends; `compares` as in AgentRecorder."""
    from cachecost.live.agent_runs.recorder import AgentRecorder

    recorder = AgentRecorder(print_diagnostic, compares)
    click.get_current_context().call_on_close(recorder.close)
    return recorder


def load_recorded(path: Path, sets: Sequence[str] = ()) -> Scenario:
    """The scenario at `path` under these `--set`s, without a command: what it sends was recorded.

    Raises InputError, NotInstalled, CommandFailed.
    """
    return record_scenario(path, sets).scenario


def record_scenario(path: Path, sets: Sequence[str] = ()) -> RecordedScenario:
    """As `load_recorded`, with what was recorded."""
    from cachecost.scenario import load

    return command_recorder().record(path, load(path, sets, scenario_defaults()))


def load_with_strategies(path: Path, sets: Sequence[str], purpose: str) -> Scenario:
    """As `load_recorded`, for a command that needs strategies for its `purpose`, before anything runs."""
    from cachecost.scenario import load

    scenario = load(path, sets, scenario_defaults())
    check_strategies(scenario, purpose)
    return command_recorder().record(path, scenario).scenario


def check_strategies(scenario: Scenario, purpose: str) -> None:
    """Raises InputError for a scenario without strategies."""
    if not scenario.strategies:
        raise InputError([scenario.fault(("strategies",), f"expected a list: {purpose}")])
