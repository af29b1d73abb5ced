"""Scenarios as commands load them. Only `check` and `run` run the command of one; the others take its recording.

A scenario may come with a cloned repository: what explains it, sweeps it or answers an agent must not execute it.
"""

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

REPORTS = Path("reports")
"""Where `check --update` keeps what a command sent, unless told otherwise."""


def command_recorder(compares: bool = False) -> AgentRecorder:
    """What runs commands, for `check` and `run` alone. Its recordings exist until the current command ends."""
    from cachecost.live.agent_runs.recorder import AgentRecorder

    recorder = AgentRecorder(print_diagnostic, compares)
    click.get_current_context().call_on_close(recorder.close)
    return recorder


def load_recorded(path: Path, sets: Sequence[str] = ()) -> Scenario:
    """The scenario at `path` under these `--set`s; for one with a command what `check --update` recorded of it.

    Raises InputError, also where nothing was recorded yet.
    """
    from cachecost.scenario import load

    return use_recording(path, load(path, sets, scenario_defaults())).scenario


def use_recording(path: Path, scenario: Scenario) -> RecordedScenario:
    """A `Record` that runs nothing: the recording of the last `check --update` stands in the place of a command.

    Raises InputError where there is none.
    """
    from cachecost.budgets.accepted_calls import RECORDING
    from cachecost.conversations.readers.detect import read_calls
    from cachecost.scenario.recorded import RecordedScenario, with_recording

    if scenario.conversation.command is None:
        return RecordedScenario(scenario)
    recording = REPORTS / scenario.name / RECORDING
    if not recording.is_file():
        words = f"only check and run run it, and {recording} is not there: cachecost check {path} --update makes it"
        raise InputError([scenario.fault(("conversation", "command"), words)])
    calls = list(read_calls(recording))
    return RecordedScenario(with_recording(scenario, path.parent, recording, calls), kept=recording, kept_calls=calls)


def load_with_strategies(path: Path, sets: Sequence[str], purpose: str, runs_command: bool = False) -> Scenario:
    """As `load_recorded`, for a command that needs strategies for its `purpose`, before anything runs.

    With `runs_command` what its command sends now is the recording. Raises NotInstalled, CommandFailed, too.
    """
    from cachecost.scenario import load

    scenario = load(path, sets, scenario_defaults())
    check_strategies(scenario, purpose)
    return (command_recorder().record if runs_command else use_recording)(path, scenario).scenario


def check_strategies(scenario: Scenario, purpose: str) -> None:
    """Raises InputError for a scenario without strategies."""
    if not scenario.strategies:
        raise InputError([scenario.fault(("strategies",), f"expected a list: {purpose}")])
