"""Runs the command of a scenario against the simulated API: what it sends is the recording."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

from cachecost.base.errors import CommandFailed, InputError
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.base.times import midnight
from cachecost.base.yaml_text import PlacedValue
from cachecost.conversations import call_recording
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import Call
from cachecost.conversations.model import BlockWriter, ContentFree
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.agent_runs.call_order import STEP_S, WatchedApp, WatchedLog, stable_calls
from cachecost.live.agent_runs.environment import (
    RunClock,
    environment_of,
    hidden_paths,
    machine_names,
    named_paths,
    named_variables,
    run_clocks,
    secrets_in_environment,
)
from cachecost.live.agent_runs.processes import CommandEnd, CommandLine, Launcher, find_program
from cachecost.live.clock import Say, SteppingClock
from cachecost.live.keys import redact_text
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.answers.script import ScriptAnswerer
from cachecost.live.server.app import app_of
from cachecost.live.server.endpoints import serving_at
from cachecost.live.server.meter import Meter
from cachecost.live.server.model import Answerer, models_of
from cachecost.live.server.state import ServerState
from cachecost.prompts.blocks import Block
from cachecost.providers.rules import data_date
from cachecost.scenario import Scenario
from cachecost.scenario.loading import COMMAND, TURN, RecordedScenario, placed_of, project_folder, with_recording
from cachecost.scenario.models import ConversationSource
from cachecost.simulation.workload import scenario_setup
from cachecost.tokens.factory import FILLER
from cachecost.tokens.tokenizers import count_content

ANSWERS = ("conversation", "answers")


def scenario_answerer(scenario: Scenario, folder: Path) -> Answerer:
    """What answers; files are relative to `folder`. Raises InputError."""
    answers = scenario.conversation.answers
    if not isinstance(answers, str):  # the replies that the scenario itself lists
        replies = placed_of(scenario).at(ANSWERS)
        script = PlacedValue({"format": 1}, {(): replies.place(())}).put(("replies",), replies)
        try:
            return ScriptAnswerer.from_values(script)
        except InputError as error:
            path = ".".join(ANSWERS)
            faults = [replace(one, message=f"{path}{one.message.removeprefix('replies')}") for one in error.faults]
            raise InputError(faults) from None
    kind = next((kind for kind in ("script:", "recording:") if answers.startswith(kind)), None)
    text = f"{kind}{folder / answers.removeprefix(kind)}" if kind else answers
    try:
        return answerer_from(text)
    except ValueError as error:
        raise InputError([scenario.fault(ANSWERS, str(error))]) from None


NO_REQUEST = "does its client take the address from ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL?"


def record_agent(path: Path, scenario: Scenario, place: Path, times: int, say: Say) -> RecordedScenario:
    """The scenario at `path` without its command, which runs here so many times; recordings go to the folder `place`.

    Raises CommandFailed, InputError.
    """
    source = scenario.conversation
    assert source.command is not None
    job = _Job(path, scenario, source, source.command, place, Launcher())
    runs, clock = [job.run(0)], ""
    if times > 1:
        again, clock = job.run_again()
        runs.append(again)
    often = f", {len(runs)} times" if times > 1 else ""
    later = f"; the second run's clock: {clock or 'as the first'}" if times > 1 else ""
    calls = count_text(len(runs[0]), "call")
    cut_off = f"no internet access: {job.launcher.description}"
    say(f"{path}: ran {shlex.join(job.command)}{often}: {calls}; {cut_off}{later}")
    recording = kept = place / "recording.jsonl"
    call_recording.write(Title(scenario.name), runs[0], recording)
    kept_calls = runs[0]
    if source.content == "digest":
        # The key is that of the scenario: equal texts have equal digests in each recording of it, so that they can be
        # compared, and whoever guesses a text can find it.
        key = blake2b(scenario.name.encode(), digest_size=32, person=b"scenario key").digest()
        kept = place / "digests.jsonl"
        call_recording.write(Title(scenario.name), runs[0], kept, BlockWriter(ContentFree(key), _count_for_all))
        kept_calls = list(read_calls(kept, "calls"))
    replaced = with_recording(scenario, path.parent, recording, runs[0])
    return RecordedScenario(replaced, runs, kept, kept_calls, clock, machine_names(os.environ))


def _count_for_all(block: Block) -> tuple[Mapping[str, int], str]:
    """The counts of a block that every installation can make."""
    counts, prose = count_content(block)
    return {name: number for name, number in counts.items() if not name.startswith("ctok")}, prose


@dataclass(frozen=True, slots=True)
class _Job:
    """The command of a scenario, its simulated API, and a folder for its logs. The calls of all commands of a run, one
    after the other, are those of one session.
    """

    path: Path
    scenario: Scenario
    source: ConversationSource
    command: Sequence[str]
    place: Path
    launcher: Launcher

    def run_again(self) -> tuple[list[Call], str]:
        """The calls of the second run, under another clock where a program takes one, and how it was set: a command
        that fails under another clock runs once more under its own. Raises CommandFailed, InputError.
        """
        seen = self.place / "clocks"
        seen.mkdir()
        for number, clock in enumerate(run_clocks(seen)):
            with suppress(CommandFailed):
                calls = self.run(1, f"run-2-{number}", clock)
                if clock.description:
                    return calls, clock.description
        return self.run(1), ""

    def run(self, number: int, name: str = "", clock: RunClock | None = None) -> list[Call]:
        """The calls of the `number`-th run (from 0). Raises CommandFailed, InputError."""
        start = midnight(self.scenario.as_of or data_date(self.scenario.host))
        folder, faults = self.path.parent, list[str]()
        setup = replace(scenario_setup(self.scenario, folder, ()), tokens=FILLER, model=None)
        answerer, clock_of_api = scenario_answerer(self.scenario, folder), SteppingClock(STEP_S, start)
        models = models_of(setup.rules, setup.host)
        with WatchedLog(self.place / f"{name or f'run-{number + 1}'}.jsonl") as log:
            served = ServerState(answerer, Meter(setup), clock_of_api, log, models=models, say=faults.append)
            app = WatchedApp(app_of(served))
            for line in self._lines():
                variables = named_variables(os.environ, self.source.env)
                if not find_program(line.words[0], line.folder, variables.get("PATH", os.environ.get("PATH"))):
                    raise self._failure("cannot run: there is no such program")
                environment = partial(environment_of, os.environ, variables, turns=self._turns, run=number, clock=clock)
                with self.launcher.begin(line, environment) as running, serving_at(app, running.listener):
                    ended = running.wait(self.source.timeout)
                if app.unknown:
                    raise self._failure(f"asked for {app.unknown[0]}, which the simulated API does not have", ended)
                if ended.status:
                    raise self._failure(f"ended with status {ended.status}", ended)
                if ended.status is None:
                    raise self._failure(f"did not end within {self.source.timeout:g} s", ended)
            if not log.arrived:
                count = count_text(served.unreadable, "request")
                hint = f"{count} had a body that is no request for a model" if served.unreadable else NO_REQUEST
                raise self._failure(f"made no call: {hint}")
            if faults:
                raise RuntimeError("; ".join(faults))
            return stable_calls(log, start)

    def _lines(self) -> Iterator[CommandLine]:
        own, cwd = self.path.parent, self.source.cwd
        folder = project_folder(own) if cwd is None else own / cwd
        variables = named_variables(os.environ, self.source.env)
        line = CommandLine(self.command, folder, b"", hidden_paths(os.environ), named_paths(variables))
        if not any(TURN in word for word in self.command):
            text = "".join(f"{' '.join(turn.splitlines())}\n" for turn in self._turns)
            yield replace(line, standard_input=text.encode())
            return
        for turn in self._turns:
            yield replace(line, words=[word.replace(TURN, turn) for word in self.command])

    @property
    def _turns(self) -> Sequence[str]:
        return self.source.turns if isinstance(self.source.turns, list) else ()

    def _failure(self, what: str, ended: CommandEnd | None = None) -> CommandFailed:
        secrets = secrets_in_environment(os.environ, self.source.env)
        printed = redact_text(ended.errors, secrets) if ended else ""
        fault = self.scenario.fault(COMMAND, f"{shlex.join(self.command)} {what}")
        # how much of the end of a command's stderr is shown
        return CommandFailed(fault, printed.rstrip().splitlines()[-12:])
