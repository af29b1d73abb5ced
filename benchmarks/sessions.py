"""Writes a folder of Claude Code sessions, shaped like real ones: what `cachecost bill` is timed on.

    python benchmarks/sessions.py FOLDER [--sessions 350] [--megabytes 380] [--seed 1]

By default 350 sessions with about 20,000 calls in 12 projects. Sizes, pauses and counts are drawn from those of real
sessions (session_shapes.py); some sessions have sub-agents, some are compacted, some begin with a copy of another.
Usage comes from a small model of the cache. The text is filler. Same options, same bytes, on every Python. Memory: a
session's calls at most, and 2 MB of filler.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import session_shapes as shapes
from cachecost.base.structs import replace
from session_lines import (
    AGENT_PROGRESS,
    AGENT_RESULT,
    ANSWER,
    ATTACHMENT,
    BASH_RESULT,
    BLOCKS,
    BOUNDARY,
    HUMAN,
    LINE,
    PROGRESS,
    RESULT,
    SNAPSHOT,
    SUMMARY,
    TURN_DURATION,
    USAGE,
)
from session_shapes import Draws, EscapedText

START = datetime(2026, 1, 8, 8, tzinfo=UTC)
PROJECTS = 12
CHARS_PER_TOKEN = 3.6
TTL_S = {"5m": 300.0, "1h": 3600.0}
COMPACT_AT = 155_000
LOST_SHARE = 0.005
"""Of the calls, those that read the static prefix alone for no visible reason (103 of 19,677)."""
AGENT_SHARE = 0.16
"""Of the sessions, those that start sub-agents."""
COPY_EVERY = 20
"""One session in so many begins with a copy of the session before."""
MODELS = ("claude-opus-4-5-20251101", "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929")
NEW_MODEL, NEW_MODEL_AT = "claude-opus-4-6", 29 * 86_400
"""A model that came out on 2026-02-05; seconds since START from when half of the sessions take it."""
VERSIONS = ("2.0.76", "2.1.4", "2.1.12", "2.1.14", "2.1.17", "2.1.29", "2.1.33", "2.1.37", "2.1.37", "2.1.276")
NEWEST = "2.1.276"
"""It writes attachments where the others write progress."""


UUID = re.compile(rb'"uuid":"([0-9a-f-]+)"')
ANSWER_END = b'"type":"assistant","uuid"'
CACHED = re.compile(rb'"cache_creation_input_tokens":(\d+),"cache_read_input_tokens":(\d+)')


@dataclass
class Totals:
    """What was written. Copied lines count in `lines` and `size` only."""

    files: int = 0
    lines: int = 0
    size: int = 0
    calls: int = 0
    answer_lines: int = 0
    input: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    compactions: int = 0
    agents: int = 0
    copies: int = 0


@dataclass
class Thread:
    """A main thread or a sub-agent: its place, and what of its prompt is cached until when."""

    session: str
    agent: str
    model: str
    version: str
    ttl: str
    static: int
    cwd: bytes
    size: int
    cached: int = 0
    alive_until: float = 0.0
    parent: bytes = b"null"
    calls: int = 0


@dataclass
class Folder:
    """Writes sessions one after the other. `now` is in seconds since START."""

    folder: Path
    sessions: int
    target: float
    draws: Draws
    totals: Totals = field(default_factory=Totals)
    now: float = 0.0
    scale: float = 1.0
    _number: int = 0
    _static_until: dict[tuple[str, str, int], float] = field(default_factory=dict)
    _last: tuple[Path, Thread] | None = None

    def __post_init__(self) -> None:
        self.text = EscapedText(self.draws)

    def write(self) -> Totals:
        planned = self.draws.calls_of_sessions(self.sessions)
        all_calls, done = sum(planned), 0
        for number, calls in enumerate(planned):
            done += calls
            left = self.target - self.totals.size
            per_call = left / max(1, all_calls - done + calls)
            self.scale = min(6.0, max(0.05, self.scale * 0.5 + 0.5 * self._scale_for(per_call)))
            self._session(number, calls)
            self.now += 60 * (1 + self.draws.below(90))
        return self.totals

    def _scale_for(self, per_call: float) -> float:
        """By how much results are to grow so that a call takes so many bytes."""
        others = 0.36 * shapes.BYTES_PER_CALL
        return (per_call - others) / (shapes.BYTES_PER_CALL - others)

    # ------------------------------------------------------------------------------------------------ sessions

    def _session(self, number: int, calls: int) -> None:
        is_copy = self._last is not None and number % COPY_EVERY == COPY_EVERY // 2
        path, thread = self._resumed(*self._last) if is_copy and self._last else self._new(number)
        in_agents = calls // 3 if self.draws.random() < AGENT_SHARE and calls > 12 else 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            if is_copy and self._last:
                self._copy(file, self._last[0], thread)
            else:
                self._begin(file, thread)
            self._turns(file, thread, calls - in_agents)
        self.totals.files += 1
        self._agents(path, thread, in_agents)
        self._last = path, thread

    def _new(self, number: int) -> tuple[Path, Thread]:
        """A session that begins with nothing but its static prefix."""
        draws, project = self.draws, self.draws.below(PROJECTS)
        session, static = self._uuid().decode(), 16_000 + 700 * project
        is_new = self.now > NEW_MODEL_AT and draws.random() < 0.5
        model = NEW_MODEL if is_new else MODELS[draws.below(len(MODELS))]
        version = VERSIONS[number * len(VERSIONS) // self.sessions]
        ttl = "1h" if draws.random() < 0.6 else "5m"
        size = static + 3_000 + draws.below(6_000)
        path = self.folder / f"-home-dev-project-{project}" / f"{session}.jsonl"
        return path, Thread(session, "", model, version, ttl, static, b"/home/dev/project-%d" % project, size)

    def _resumed(self, path: Path, thread: Thread) -> tuple[Path, Thread]:
        """A session that goes on from a copy of another one, in the same project."""
        session = self._uuid().decode()
        return path.with_name(f"{session}.jsonl"), replace(thread, session=session)

    def _copy(self, file: BinaryIO, original: Path, thread: Thread) -> None:
        """The first half of another session's lines: same uuids and messages, this session's id."""
        old, new = original.stem.encode(), thread.session.encode()
        left = original.stat().st_size // 2
        with original.open("rb") as lines:
            for line in lines:
                self._put(file, line.replace(old, new))
                thread.parent = b'"%b"' % found[-1] if (found := UUID.findall(line)) else thread.parent
                if ANSWER_END in line and (usage := CACHED.search(line)):
                    thread.cached = sum(map(int, usage.groups()))
                    thread.size = thread.cached + 300
                left -= len(line)
                if left < 0 and b'"toolUseResult":' in line:
                    break
        self.totals.copies += 1

    def _agents(self, path: Path, main: Thread, calls: int) -> None:
        """Sub-agents of a session, of 4 to 16 calls each."""
        folder = path.with_suffix("") / "subagents"
        while calls > 0:
            folder.mkdir(parents=True, exist_ok=True)
            share = min(calls, 4 + self.draws.below(13))
            agent = self._hex(7).decode()
            thread = Thread(
                main.session, agent, main.model, main.version, "5m", main.static - 6_000, main.cwd, main.static - 4_000
            )
            with (folder / f"agent-{agent}.jsonl").open("wb") as file:
                self._turns(file, thread, share)
            self.totals.files += 1
            self.totals.agents += 1
            calls -= share

    def _begin(self, file: BinaryIO, thread: Thread) -> None:
        """What clients write before the first message."""
        if self.draws.random() < 0.2:
            text = self.text.take(64)
            self._put(file, b'{"type":"summary","summary":"%b","leafUuid":"%b"}\n' % (text, self._uuid()))
        if self.draws.random() < 0.66:
            self._snapshot(file)

    def _turns(self, file: BinaryIO, thread: Thread, calls: int) -> None:
        while calls > 0:
            turn = min(calls, round(self.draws.of(shapes.TURN_CALLS)) if not thread.agent else calls)
            self._human(file, thread)
            for left in range(turn - 1, -1, -1):
                next_at = self._call(file, thread, is_last=left == 0)
            self._end_turn(file, thread)
            self.now = max(self.now, next_at)
            calls -= turn

    # --------------------------------------------------------------------------------------------------- calls

    def _call(self, file: BinaryIO, thread: Thread, is_last: bool) -> float:
        """One call: its answer, a line a block, and the results of its tools. When the next call begins."""
        if thread.size > COMPACT_AT:
            self._compact(file, thread)
        usage, output = self._bill(thread)
        blocks = self._blocks(is_last)
        message, request = self._hex(24), self._hex(24)
        before = self.now
        for index, (kind, block) in enumerate(blocks):
            self.now += 1.0
            tokens = output if index == len(blocks) - 1 else 1 + index
            text = BLOCKS[kind] % ((b"%b%d" % (message, index), block) if kind == b"tool_use" else block)
            self._answer(file, thread, message, request, text, usage % tokens)
        self.totals.calls += 1
        self.totals.answer_lines += len(blocks)
        self.totals.output += output
        thread.calls += 1
        shown = sum(len(block) for _, block in blocks)
        next_at = before + self.draws.of(shapes.PAUSE)
        self.now = max(self.now, next_at) if not is_last else self.now
        uses = [index for index, (kind, _) in enumerate(blocks) if kind == b"tool_use"]
        shown += sum(self._result(file, thread, b"%b%d" % (message, index)) for index in uses)
        thread.size += 40 + int(shown / CHARS_PER_TOKEN)
        return next_at

    def _bill(self, thread: Thread) -> tuple[bytes, int]:
        """The usage of a call, without its output; and that. It reads what is cached and alive, and writes the rest."""
        key = (thread.model, thread.agent and "agent", thread.static)
        shared = thread.static if self.now < self._static_until.get(key, -1.0) else 0
        is_lost = thread.calls > 0 and self.draws.random() < LOST_SHARE
        own = thread.cached if self.now < thread.alive_until and not is_lost else 0
        read = min(max(own, shared), thread.size)
        written, uncached = thread.size - read, 1 + self.draws.below(10)
        thread.cached, thread.alive_until = thread.size, self.now + TTL_S[thread.ttl]
        self._static_until[key] = thread.alive_until
        totals = self.totals
        totals.input, totals.read, totals.written = (
            totals.input + uncached,
            totals.read + read,
            totals.written + written,
        )
        parts = (uncached, written, read, *((0, written) if thread.ttl == "1h" else (written, 0)))
        return USAGE % parts, 40 + int(self.draws.of(shapes.BLOCK["tool_use"]) / 2)

    def _blocks(self, is_last: bool) -> list[tuple[bytes, bytes]]:
        """(type, text) of each block of an answer. The last one is a tool's, or a text at the end of a turn."""
        count = self.draws.weighted(shapes.LINES_OF_ANSWER)
        text = "text" if self.draws.random() < shapes.TEXT_SHARE else "tool_use"
        kinds = ["thinking", text, *["tool_use"] * 4][:count]
        if count == 2 and self.draws.random() < 0.35:
            kinds[0] = "text"
        kinds[-1] = "text" if is_last else "tool_use"
        kinds = [kind for kind in kinds if not (is_last and kind == "tool_use")]
        return [(kind.encode(), self.text.take(self.draws.of(shapes.BLOCK[kind]), self._is_ascii())) for kind in kinds]

    def _result(self, file: BinaryIO, thread: Thread, message: bytes) -> int:
        """Progress, and a tool's result, which the line holds twice; the bytes that the model sees."""
        if thread.version != NEWEST:
            while self.draws.random() < shapes.PROGRESS_PER_RESULT / (1 + shapes.PROGRESS_PER_RESULT):
                self._progress(file, thread, message)
        elif self.draws.random() < 0.3:
            self._tree(file, thread, ATTACHMENT % self.text.take(self.draws.of(shapes.BLOCK["text"])))
        size = max(64.0, self.scale * self.draws.of(shapes.RESULT_LINE) - 650)
        is_ascii = self._is_ascii()
        shown = self.text.take(min(60_000.0, size / (1 + self.draws.of(shapes.TWICE_RATIO))), is_ascii)
        kept = self.text.take(max(32.0, size - len(shown)), is_ascii)
        is_agent = self.draws.random() < shapes.AGENT_RESULT_SHARE
        twice = AGENT_RESULT % (kept, self._other_usage()) if is_agent else BASH_RESULT % kept
        self._tree(file, thread, RESULT % (message, shown, twice))
        return len(shown)

    def _progress(self, file: BinaryIO, thread: Thread, message: bytes) -> None:
        """What a tool has done so far; where the tool is a sub-agent, its last answer."""
        text = self.text.take(max(64.0, self.draws.of(shapes.PROGRESS_LINE) - 540))
        if self.draws.random() < shapes.AGENT_PROGRESS_SHARE:
            fields = (thread.model.encode(), self._hex(24), text, self._other_usage(), message)
            self._tree(file, thread, AGENT_PROGRESS % fields)
        else:
            self._tree(file, thread, PROGRESS % (text, message, message))

    def _is_ascii(self) -> bool:
        return self.draws.random() >= shapes.OTHER_SHARE

    def _other_usage(self) -> bytes:
        """The usage of a call that stands elsewhere."""
        return USAGE % (3, 500, 20_000, 500, 0) % (1 + self.draws.below(900))

    # --------------------------------------------------------------------------------------------------- lines

    def _human(self, file: BinaryIO, thread: Thread) -> None:
        if not thread.agent:
            self._snapshot(file)
        text = self.text.take(max(32.0, self.draws.of(shapes.HUMAN_LINE) - 430))
        self._tree(file, thread, HUMAN % text)
        thread.size += 20 + int(len(text) / CHARS_PER_TOKEN)

    def _end_turn(self, file: BinaryIO, thread: Thread) -> None:
        if self.draws.random() < 0.8:
            self._tree(file, thread, TURN_DURATION % self.draws.below(400_000))
        if self.draws.random() < 0.2:
            fields = (self._time(), thread.session.encode())
            self._put(
                file, b'{"type":"queue-operation","operation":"dequeue","timestamp":"%b","sessionId":"%b"}\n' % fields
            )

    def _compact(self, file: BinaryIO, thread: Thread) -> None:
        parent, thread.parent = thread.parent, b"null"
        self._tree(file, thread, BOUNDARY % (parent, thread.size))
        self._tree(file, thread, SUMMARY % self.text.take(10_000))
        thread.size = thread.static + 3_000 + int(10_000 / CHARS_PER_TOKEN)
        thread.cached = min(thread.cached, thread.static)
        self.totals.compactions += 1

    def _snapshot(self, file: BinaryIO) -> None:
        uuid, text = self._uuid(), self.text.take(32 + self.draws.below(600))
        self._put(file, SNAPSHOT % (uuid, uuid, text, self._time()))

    def _answer(
        self, file: BinaryIO, thread: Thread, message: bytes, request: bytes, block: bytes, usage: bytes
    ) -> None:
        fields = (thread.model.encode(), message, block, usage, request)
        self._tree(file, thread, ANSWER % fields)

    def _tree(self, file: BinaryIO, thread: Thread, fields: bytes) -> None:
        """A line of the tree of records, after the line before it."""
        uuid = self._uuid()
        side = b'true,"agentId":"%b"' % thread.agent.encode() if thread.agent else b"false"
        place = (thread.parent, side, thread.cwd, thread.session.encode(), thread.version.encode())
        self._put(file, LINE % (*place, fields, uuid, self._time()))
        thread.parent = b'"%b"' % uuid

    def _put(self, file: BinaryIO, line: bytes) -> None:
        self.totals.lines += 1
        self.totals.size += file.write(line)

    def _time(self) -> bytes:
        moment = START + timedelta(seconds=self.now)
        return moment.isoformat(timespec="milliseconds")[:23].encode() + b"Z"

    def _hex(self, length: int) -> bytes:
        """A new id: a counter, scattered."""
        self._number += 1
        return b"%0*x" % (length, self._number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 16**length)

    def _uuid(self) -> bytes:
        text = self._hex(32)
        return b"-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def write_sessions(folder: Path, sessions: int = 350, megabytes: float = 380.0, seed: int = 1) -> Totals:
    """Writes the folder. A megabyte is 10**6 bytes."""
    return Folder(folder, sessions, megabytes * 10**6, Draws(seed)).write()


def report(totals: Totals) -> Iterator[str]:
    calls, size = totals.calls, totals.size
    yield f"{totals.files:,} files, {size / 10**6:,.1f} MB, {totals.lines:,} lines, {calls:,} calls"
    yield f"{calls / size * 10**6:.1f} calls per MB, {totals.lines / calls:.2f} lines per call"
    yield f"{totals.answer_lines / calls:.2f} lines per answer, mean line {size / totals.lines:,.0f} bytes"
    yield f"{totals.agents} sub-agents, {totals.compactions} compactions, {totals.copies} copied sessions"
    rate = totals.read / (totals.input + totals.read + totals.written)
    yield f"cache hit rate {rate:.1%}, {totals.output / calls:,.0f} output tokens per call"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a folder of Claude Code sessions of filler text.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sessions", type=int, default=350)
    parser.add_argument("--megabytes", type=float, default=380.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    for line in report(write_sessions(options.folder, options.sessions, options.megabytes, options.seed)):
        print(line)


if __name__ == "__main__":
    main()
