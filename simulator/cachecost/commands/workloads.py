"""Scenarios as commands load them, and how commands show progress. Only `check` and `run` run a scenario's command."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachecost.base.errors import InputError
from cachecost.base.formatting import count_text
from cachecost.commands.catalogue import scenario_defaults
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.options import SECONDS_BEFORE_SHOWN, WorkBar
from cachecost.simulation.engine import Simulation
from cachecost.simulation.workload import Workload

if TYPE_CHECKING:
    from cachecost.live.agent_runs.recorder import AgentRecorder
    from cachecost.scenario import Scenario
    from cachecost.scenario.loading import RecordedScenario
    from cachecost.simulation.workload import LeftOut


SECONDS_BETWEEN_LINES = 30.0
REPORTS = Path("reports")
"""Where `check --update` keeps what a command sent, unless told otherwise."""


@contextmanager
def cells_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function of the number of newly finished cells, first called with those of earlier runs. Shows cells and the
    time left: a bar on terminals after a second, elsewhere a line every half minute."""
    if not sys.stderr.isatty():
        yield _CellLines(title, total).step
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cachecost.views.streams import inert_console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=inert_console(sys.stderr), transient=True, refresh_per_second=2)
    started = time.monotonic()

    def step(done: int) -> None:
        if bar.task_ids:
            bar.advance(bar.task_ids[0], done)
        else:
            bar.add_task(title, total=total, completed=done)
        if not bar.live.is_started and time.monotonic() - started > SECONDS_BEFORE_SHOWN:
            bar.start()

    try:
        yield step
    finally:
        bar.stop()


class _CellLines:
    """Progress in a log: `small: 640 of 1,280 cells, 0:02:30 left`."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._done: int | None = None
        self._before = 0
        self._began = self._printed = time.monotonic()

    def step(self, done: int) -> None:
        if self._done is None:
            self._before = self._done = done
            return
        self._done += done
        now = time.monotonic()
        if now - self._printed >= SECONDS_BETWEEN_LINES and self._done < self._total:
            self._printed = now
            each = (now - self._began) / (self._done - self._before)
            left = timedelta(seconds=round(each * (self._total - self._done)))
            print_diagnostic(f"{self._title}: {self._done:,} of {self._total:,} cells, {left} left")


@contextmanager
def pressed_keys() -> Iterator[None]:
    """Keys arrive one by one and are not shown while the body runs. Ctrl-C still interrupts."""
    if not _has_keys():
        yield
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    kept = termios.tcgetattr(number)
    tty.setcbreak(number, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSANOW, kept)


def read_key(wait_s: float) -> str:
    """The key that is pressed within `wait_s` seconds; empty where none is."""
    if not _has_keys():
        time.sleep(wait_s)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], wait_s)
    if not ready:
        return ""
    found = os.read(sys.stdin.fileno(), 1)
    if not found:  # the terminal is gone
        time.sleep(wait_s)
    return found.decode("latin-1")


def _has_keys() -> bool:
    return os.name == "posix" and sys.stdin is not None and sys.stdin.isatty()


def command_recorder(compares: bool = False) -> AgentRecorder:
    """What runs commands, for `check` and `run` alone. Its recordings exist until the current command ends."""
    from cachecost.live.agent_runs.recorder import AgentRecorder

    recorder = AgentRecorder(print_diagnostic, compares)
    click.get_current_context().call_on_close(recorder.close)
    return recorder


def load_recorded(path: Path, sets: Sequence[str] = ()) -> Scenario:
    """The scenario under these `--set`s; for one with a command what `check --update` recorded of it. Raises
    InputError."""
    from cachecost.scenario import load

    return use_recording(path, load(path, sets, scenario_defaults())).scenario


def use_recording(path: Path, scenario: Scenario) -> RecordedScenario:
    """A `Record` that runs nothing: the recording of the last `check --update` stands in the place of a command. Raises
    InputError where there is none."""
    from cachecost.budgets.baseline import RECORDING
    from cachecost.conversations.readers.detect import read_calls
    from cachecost.scenario.loading import RecordedScenario, with_recording

    if scenario.conversation.command is None:
        return RecordedScenario(scenario)
    recording = REPORTS / scenario.name / RECORDING
    if not recording.is_file():
        words = f"only check and run run it, and {recording} is not there: cachecost check {path} --update makes it"
        raise InputError([scenario.fault(("conversation", "command"), words)])
    calls = list(read_calls(recording))
    return RecordedScenario(with_recording(scenario, path.parent, recording, calls), kept=recording, kept_calls=calls)


def load_with_strategies(path: Path, sets: Sequence[str], purpose: str, runs_command: bool = False) -> Scenario:
    """As `load_recorded`, for a command that needs strategies for its `purpose`. With `runs_command` what its command
    sends now is the recording. Raises NotInstalled, CommandFailed, too."""
    from cachecost.scenario import load

    scenario = load(path, sets, scenario_defaults())
    if not scenario.strategies:
        raise InputError([scenario.fault(("strategies",), f"expected a list: {purpose}")])
    return (command_recorder().record if runs_command else use_recording)(path, scenario).scenario


def only_supported(workload: Workload, command: str) -> Workload:
    """The workload without the calls of caches that `command` does not support. Raises CannotEvaluate for all calls."""
    from cachecost.simulation.workload import supported_calls

    supported, left_out = supported_calls(workload, command)
    print_left_out(left_out, command)
    return supported


def print_left_out(left_out: LeftOut, command: str) -> None:
    """A line on stderr for each model and host of which calls were left out."""
    for note in left_out.notes(command):
        print_diagnostic(note)


@dataclass(frozen=True, slots=True)
class WatchedWorkload(Workload):
    """A workload whose replays a bar counts; workloads that are made from it do so, too."""

    bar: WorkBar = field(default_factory=WorkBar)

    def expect(self, replays: int) -> None:
        self.bar.expect(replays)

    def simulation(self, *args: Any, **kinds: Any) -> Simulation:
        self.bar.advance(1)
        return Workload.simulation(self, *args, **kinds)


def watched(workload: Workload, bar: WorkBar) -> Workload:
    """The workload, and a phase of `bar` that counts its replays; itself where no bar can be shown."""
    if not bar.is_shown:
        return workload
    bar.begin(f"explaining {count_text(len(workload.calls), 'call')}", None, "replay")
    return WatchedWorkload(workload.name, workload.calls, workload.setup, workload.strategy, bar)
