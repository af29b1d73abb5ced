"""Projects of Claude Code sessions in which every rewrite of the cache has a known cause and an exact price.

`event_project()` is one project with each event once, `random_project(seed)` mixes them at random places. Usage and
dollars come from the small model of a cache in event_cache.py, which shares nothing with cachecost. Everything but the
events is unremarkable: each call reads all that the call before it left in the cache.

    cd tests && python -m event_project FOLDER [--ttl 1h] [--sessions 3] [--copied] [--version 2.1.290] [--seed N]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

from event_cache import DAY, MINUTE, TTL_SECONDS, EventCall, bill_calls
from event_lines import File, uuid_of
from event_threads import AGENT_TYPES, MainThread, Thread, static_prefix

MODEL, OTHER_MODEL = "claude-opus-5-5", "claude-sonnet-5-5"
START = datetime(2026, 10, 12, 9, tzinfo=UTC).timestamp()
FOLDER = "-work-shop"
SERVER_TOKENS = 3_900
"""Tokens of the tools of an MCP server."""
CONNECT_AT = 102_900
"""The size of the prompt at which the MCP server connects."""
VERSIONS = ("2.1.276", "2.1.290")
"""Clients without and with recorded requests and `diagnostics` in their answers (since 2.1.282)."""


@dataclass(frozen=True)
class Finding:
    """A rewrite that has to be found. `file` is relative to the folder, `line` the first of the call's answer.

    `call` is the call's number in its file: in the main thread or the sub-agent's, copied calls included.
    """

    file: str
    line: int
    session: str
    agent: str
    call: int
    cause: str
    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True)
class Project:
    """`files` are by their path in the folder. `calls` are all that were billed, copies once, by time."""

    files: dict[str, bytes]
    calls: list[EventCall]

    @property
    def findings(self) -> list[Finding]:
        return [_finding(call) for call in self.calls if call.rewritten]

    @property
    def cold_starts(self) -> list[EventCall]:
        """First calls that read nothing and repeat nothing that another call was just writing."""
        return [call for call in self.calls if call.before is None and not call.bill.read and not call.rewritten]

    @property
    def billed_usd(self) -> Decimal:
        return sum((call.cost_usd for call in self.calls), Decimal())

    @property
    def rewritten_usd(self) -> Decimal:
        return sum((call.rewritten_usd for call in self.calls), Decimal())

    def write(self, folder: Path) -> None:
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)


def _finding(call: EventCall) -> Finding:
    cause = call.event if call.before else "concurrent_write"
    return Finding(
        call.file, call.line, call.session, call.agent, call.number, cause, call.rewritten, call.rewritten_usd
    )


class _Planner:
    """Makes the sessions of a project and bills them together."""

    def __init__(self, ttl: str, version: str, random: Random, name: str) -> None:
        self.ttl, self.version, self.random, self.name = ttl, version, random, name
        self.sessions: list[MainThread] = []

    def session(self, start: float, template: MainThread | None = None) -> MainThread:
        """A new session, with the tools that `template` ended with."""
        static = template.static if template else static_prefix()
        thread = MainThread(self.file(), MODEL, self.ttl, static, start, self.random)
        thread.open()
        self.sessions.append(thread)
        return thread

    def fork(self, origin: MainThread, pause: float) -> MainThread:
        thread = origin.fork(self.file(), pause)
        self.sessions.append(thread)
        return thread

    def file(self) -> File:
        """The file of the next session. Names ascend, so that a copy comes after its original."""
        number = len(self.sessions)
        session = f"{number:x}{uuid_of(self.name, 'session', number)[1:]}"
        return File(f"{FOLDER}/{session}.jsonl", session, version=self.version)

    def gap(self) -> float:
        """A pause that outlives the TTL."""
        return TTL_SECONDS[self.ttl] * 1.5 + 7 * MINUTE

    def project(self) -> Project:
        threads: list[Thread] = [thread for main in self.sessions for thread in (main, *main.agents)]
        calls = sorted((call for thread in threads for call in thread.calls), key=lambda call: call.start)
        bill_calls(calls)
        files = {thread.file.path: thread.file.render() for thread in threads}
        agents = [agent for main in self.sessions for agent in main.agents]
        return Project(files | dict(_meta(agent) for agent in agents), calls)


def _meta(agent: Thread) -> tuple[str, bytes]:
    """The file that stands beside the transcript of a sub-agent."""
    fields = {"agentType": agent.kind, "isBuiltIn": True, "description": "look around", "spawnDepth": 1}
    return agent.file.path.replace(".jsonl", ".meta.json"), json.dumps(fields).encode()


def event_project(ttl: str = "5m", sessions: int = 1, copied: bool = False, version: str = VERSIONS[0]) -> Project:
    """A session with each event once; then shorter sessions with one event each, and a fork of the first.

    `ttl` is that of main threads; sub-agents write for five minutes. The first session has about 110 calls.
    """
    planner = _Planner(ttl, version, Random(ttl), "events")
    first = planner.session(START)
    _all_events(planner, first)
    if copied:
        _fork(planner, first)
    last = first
    for number in range(1, sessions):
        last = planner.session(planner.sessions[-1].clock + 90.0, last)
        _short_session(planner, last, number)
    return planner.project()


def _all_events(planner: _Planner, thread: MainThread) -> None:
    thread.work(7)
    thread.fail()
    thread.work(5)
    thread.start_agents(["Explore"] * 3)
    thread.work(4)
    thread.start_agents(["Explore"], 5)
    thread.defer_tools()
    thread.work(8)
    thread.idle(planner.gap())
    thread.work(10, says=False)
    thread.switch_model(OTHER_MODEL)
    thread.work(3, 2_400, says=False)
    thread.switch_model(MODEL)
    thread.work(6, says=False)
    thread.work_until(CONNECT_AT, 2_500)
    thread.connect_server("tickets", SERVER_TOKENS)
    thread.work(8, says=False)
    thread.compact(7_800)
    thread.work(9, says=False)
    thread.resume(DAY)
    thread.work(8, says=False)


def _fork(planner: _Planner, origin: MainThread) -> None:
    thread = planner.fork(origin, 70.0)
    thread.work(5)
    thread.idle(planner.gap())
    thread.work(4, says=False)


def _short_session(planner: _Planner, thread: MainThread, number: int) -> None:
    thread.work(6)
    events = (
        lambda: thread.idle(planner.gap()),
        lambda: thread.compact(2_500),
        lambda: thread.connect_server(f"server {number}", SERVER_TOKENS),
        lambda: thread.resume(2 * DAY),
    )
    events[(number - 1) % len(events)]()
    thread.work(5, says=False)


def random_project(seed: int) -> Project:
    """One to three sessions that overlap, with events at random places; equal seeds give equal projects."""
    attempts = (_random_attempt(Random(f"{seed} {attempt}")) for attempt in range(100))
    return next(project for project in attempts if not _crosses_sessions(project))


def _random_attempt(random: Random) -> Project:
    planner = _Planner(random.choice(("5m", "1h")), random.choice(VERSIONS), random, f"random {random.random()}")
    for _ in range(random.randint(1, 3)):
        thread = planner.session(START + random.random() * 3 * TTL_SECONDS[planner.ttl])
        _random_session(planner, thread, random.randint(1, 7))
    if random.random() < 0.3:
        thread = planner.fork(planner.sessions[0], 20.0 + 60 * random.random())
        _random_session(planner, thread, random.randint(1, 3))
    return planner.project()


def _crosses_sessions(project: Project) -> bool:
    """Whether a session wrote what another session was just writing: whose rewrite that is would be open."""
    firsts = [call for call in project.calls if call.rewritten and call.before is None]
    starts = [(call.start, call.session) for call in project.calls]
    return any(abs(start - one.start) < 3 and session != one.session for one in firsts for start, session in starts)


def _random_session(planner: _Planner, thread: MainThread, events: int) -> None:
    thread.work(planner.random.randint(1, 6))
    for _ in range(events):
        _random_event(planner, thread)
        _distract(planner.random, thread)
        if planner.random.random() < 0.8:
            thread.work(planner.random.randint(1, 6), planner.random.choice((60, 400, 1_500, 4_000)))


def _distract(random: Random, thread: MainThread) -> None:
    """Something that costs nothing but may look like a cause."""
    kind = random.choice(("none", "fail", "defer", "wait"))
    if kind == "fail":
        thread.fail()
    elif kind == "defer":
        thread.defer_tools()
    elif kind == "wait":
        thread.wait_until(TTL_SECONDS[thread.ttl] - random.choice((0.5, 3.0, 60.0)))
        thread.work(random.randint(1, 2), says=False)


def _random_event(planner: _Planner, thread: MainThread) -> None:
    random = planner.random
    kind = random.choice(("idle", "edge", "resume", "model", "server", "compaction", "agents", "lost", "none"))
    if kind == "agents":
        kinds = [random.choice(list(AGENT_TYPES)) for _ in range(random.randint(1, 4))]
        thread.start_agents(kinds, random.randint(1, 5))
    elif kind == "model":
        other = OTHER_MODEL if thread.model == MODEL else MODEL
        thread.switch_model(other)
        thread.work(random.randint(1, 3), says=False)
        if random.random() < 0.8:
            thread.switch_model(MODEL if other == OTHER_MODEL else OTHER_MODEL)
            thread.work(random.randint(1, 3), says=False)
    elif kind != "none":
        _random_break(kind, planner, thread)
        thread.work(random.randint(1, 3), says=False)


def _random_break(kind: str, planner: _Planner, thread: MainThread) -> None:
    random = planner.random
    if kind == "edge":
        thread.wait_until(TTL_SECONDS[thread.ttl] + random.choice((0.5, 3.0, 60.0)))
    elif kind == "lost":
        thread.work(1)
        thread.lose()
    elif kind == "idle":
        thread.idle(planner.gap() + random.random() * 8 * TTL_SECONDS[planner.ttl])
    elif kind == "resume":
        thread.resume((0.5 + 3 * random.random()) * DAY)
    elif kind == "server":
        name = f"server {random.randrange(3)} of {len(thread.calls)}"
        thread.connect_server(name, random.randint(400, 9_000))
    else:
        thread.compact(random.randint(800, 9_000))


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a project with known events; prints what has to be found.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ttl", choices=list(TTL_SECONDS), default="5m")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--copied", action="store_true", help="with a fork that copies the first session")
    parser.add_argument("--version", choices=VERSIONS, default=VERSIONS[0])
    parser.add_argument("--seed", type=int, help="a random project instead")
    options = parser.parse_args()
    if options.seed is None:
        project = event_project(options.ttl, options.sessions, options.copied, options.version)
    else:
        project = random_project(options.seed)
    project.write(options.folder)
    for finding in project.findings:
        print(json.dumps(asdict(finding), default=str))
    print(f"{len(project.calls)} calls, ${project.billed_usd} billed, ${project.rewritten_usd} rewritten")


if __name__ == "__main__":
    main()
