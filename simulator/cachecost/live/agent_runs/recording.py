"""Runs the command of a scenario against the simulated API: what it sends is the recording.

Calls that overlap in time arrive in another order each time: those of sub-agents, or of a program that does not wait.
Of conversations that run at the same time, the shorter call comes first, and of equally long ones the one with the
smaller digest of its body. A call that continues another is longer, so it stays behind it.

The API derives an id from what was asked, so that a change of one message would change the ids in all that follow. In a
recording that is compared with another, only what was changed is to differ.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachecost.base.errors import CommandFailed, InputError
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.base.times import day_of, midnight
from cachecost.base.yaml_text import PlacedValue
from cachecost.conversations import call_recording
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import Call
from cachecost.conversations.model import BlockWriter, ContentFree
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.agent_runs.processes import (
    CommandEnd,
    CommandLine,
    Launcher,
    RunClock,
    environment_of,
    find_program,
    hidden_paths,
    machine_names,
    named_paths,
    named_variables,
    run_clocks,
    secrets_in_environment,
)
from cachecost.live.clock import Say, SteppingClock, moment
from cachecost.live.keys import redact_text
from cachecost.live.request_log import CallLog
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.answers.script import ScriptAnswerer
from cachecost.live.server.app import app_of, serving_at
from cachecost.live.server.model import Answerer, models_of
from cachecost.live.server.state import Meter, ServerState
from cachecost.prompts.blocks import Block, Thread
from cachecost.providers.rules import data_date
from cachecost.scenario import Scenario
from cachecost.scenario.loading import COMMAND, TURN, RecordedScenario, placed_of, project_folder, with_recording
from cachecost.scenario.models import ConversationSource
from cachecost.simulation.workload import scenario_setup
from cachecost.tokens.factory import FILLER
from cachecost.tokens.tokenizers import count_content

STEP_S = 2.0
"""Seconds from one call to the next."""
MOMENT_S = 0.02
"""How long an answer waits for requests that are sent at the same time."""


@dataclass(slots=True)
class Exchange:
    """A request from its first byte to the last of its answer, on a clock that counts events."""

    begin: int
    end: int = 0


@dataclass(frozen=True, slots=True)
class ArrivedCall:
    """A recorded call, when it began and ended, and the digest of its body."""

    exchange: Exchange
    digest: bytes


_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class WatchedApp:
    """The simulated API; notes when requests begin and end, and those for which it has no endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._events = count(1)
        self.unknown: list[str] = []
        self._latest = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(next(self._events))
        _current.set(exchange)
        loop = asyncio.get_running_loop()
        self._latest = loop.time()
        while (left := self._latest + MOMENT_S - loop.time()) > 0:  # so that calls made at once overlap in every run
            await asyncio.sleep(left)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body"):
                exchange.end = next(self._events)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            exchange.end = exchange.end or next(self._events)
            if scope["type"] == "http" and "endpoint" not in scope:
                self.unknown.append(f"{scope['method']} {scope['path']}")


class WatchedLog(CallLog):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.arrived: list[ArrivedCall] = []

    def append(self, fields: Mapping[str, Any], request: bytes) -> int:
        exchange = _current.get()
        assert exchange is not None
        self.arrived.append(ArrivedCall(exchange, blake2b(request, digest_size=16).digest()))
        return super().append(fields, request)


def stable_calls(log: WatchedLog, start: float) -> list[Call]:
    """The calls of a log in an order that does not depend on how parallel calls arrived, with ids of answers by that
    order, and with the times of a clock that begins at `start` and steps from call to call.

    They are without what only this run has: digests of keys (the first workspace is "", the next "2"), bills that
    nobody sent, and places in its log.
    """
    order = stable_order(list(read_calls(log.path, "request-log")), log.arrived)
    lines = with_stable_ids(log.path.read_bytes().rstrip().split(b"\n"), order)
    named = log.path.with_suffix(".named.jsonl")
    named.write_bytes(b"\n".join(lines) + b"\n")
    calls = list(read_calls(named, "request-log"))
    names: dict[str, str] = {}
    ordered = []
    for number, place in enumerate(order):
        call, at = calls[place], start + STEP_S * number
        name = names.setdefault(call.workspace, str(len(names) + 1) if names else "")
        only_here = {"billed": None, "iterations": (), "file": "", "line": 0, "output_tokens": None}
        timed = replace(call, start=at, timestamp=moment(at), day=day_of(at), workspace=name, **only_here)
        ordered.append(timed)
    return ordered


def stable_order(calls: Sequence[Call], arrived: Sequence[ArrivedCall]) -> list[int]:
    """The places of the calls in an order that does not depend on how parallel calls arrived. Conversations that run
    at the same time share the places that their calls have.
    """
    order = list(range(len(calls)))
    keys = [(call.request.thread.length, came.digest) for call, came in zip(calls, arrived, strict=True)]
    for group in _parallel_groups(calls, arrived):
        for place, number in zip(group, sorted(group, key=lambda number: keys[number]), strict=True):
            order[place] = number
    return order


def _parallel_groups(calls: Sequence[Call], arrived: Sequence[ArrivedCall]) -> list[list[int]]:
    """The calls of conversations of which a call overlaps one of another, directly or through others."""
    latest_of: dict[Thread, int] = {}
    conversations: list[int] = []
    for call in calls:  # a call is of the conversation of the latest call whose messages it begins with
        thread = call.request.thread
        known = next((latest_of[node] for node in thread.back() if node in latest_of), len(conversations))
        conversations.append(known)
        latest_of[thread] = known
    parent = {number: number for number in conversations}

    def leader(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    latest = 0
    for place in range(1, len(arrived)):  # in the order of arrival, so this connects all that overlap
        if arrived[place].exchange.begin < arrived[latest].exchange.end:
            parent[leader(conversations[latest])] = leader(conversations[place])
        if arrived[place].exchange.end > arrived[latest].exchange.end:
            latest = place
    groups: dict[int, list[int]] = {}
    for place, number in enumerate(conversations):
        groups.setdefault(leader(number), []).append(place)
    return list(groups.values())


ID_KEYS = ("id", "call_id", "tool_use_id")
SHORTEST = 12
TOKEN = re.compile(rb"[A-Za-z0-9_-]{%d,}" % SHORTEST)


def with_stable_ids(lines: Sequence[bytes], order: Sequence[int]) -> list[bytes]:
    """The lines of a request log with each id of an answer, wherever it is sent back, replaced by one of the same
    length: its prefix and its number among those with this prefix, counted in this `order` of the lines.
    """
    names: dict[bytes, bytes] = {}
    numbers: Counter[bytes] = Counter()
    for place in order:
        for found in _ids_in(json.loads(lines[place]).get("response")):
            if found not in names:
                prefix, mark, rest = found.rpartition(b"_")
                numbers[prefix] += 1
                names[found] = prefix + mark + b"%0*d" % (len(rest), numbers[prefix])
    return [TOKEN.sub(lambda match: names.get(match[0], match[0]), line) for line in lines]


def _ids_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ID_KEYS and isinstance(inner, str) and TOKEN.fullmatch(inner.encode()):
                yield inner.encode()
            else:
                yield from _ids_in(inner)


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

        def count_for_all(block: Block) -> tuple[Mapping[str, int], str]:
            counts, prose = count_content(block)  # those that every installation can make
            return {name: number for name, number in counts.items() if not name.startswith("ctok")}, prose

        call_recording.write(Title(scenario.name), runs[0], kept, BlockWriter(ContentFree(key), count_for_all))
        kept_calls = list(read_calls(kept, "calls"))
    replaced = with_recording(scenario, path.parent, recording, runs[0])
    return RecordedScenario(replaced, runs, kept, kept_calls, clock, machine_names(os.environ))


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
