"""A session file of Gemini CLI -> the calls of its session.

Read in November 2026: files that Gemini CLI 0.61.0 wrote (new, resumed, with a sub-agent), its chat recording service
(google-gemini/gemini-cli), and descriptions of older files (one JSON value per session until spring 2026).

- A file is a log of records: a message replaces an earlier one with its id (tool results are added later),
  `$set.messages` replaces all of them (a checkpoint, a compression), `$rewindTo` drops a message and those after it.
  What is dropped was billed all the same.
- **Bill**: `tokens` of each gemini message: `input` includes `cached`; `thoughts` are charged as output.
- **Time**: a request starts when its last message or tool result was recorded; a gemini message is recorded when it
  is complete.
- **Sub-agents** have files of their own, in a folder with the name of the session that called them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cachecost.conversations.readers.common.session_calls import Piece, Session, SessionCall, last_of, piece_of, time_of
from cachecost.conversations.readers.gemini_cli import lines
from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.hosts import maker_of
from cachecost.providers.usage import Usage

MODEL = "gemini"
"""The type of a message that the model wrote; also the host of the calls."""
ROOT_FILE = ".project_root"
MOST_ROOT = 1 << 12
"""Bytes of a file that has nothing but a path."""
UNKNOWN_MODEL = "unknown"


@dataclass(slots=True, eq=False)
class Entry:
    """A message of the session, as it was last recorded. `line` and `time` are those of its first record."""

    line: int
    id: str
    kind: str
    time: float | None
    done: float | None = None
    """When the last of its tools had finished."""
    model: str = UNKNOWN_MODEL
    usage: Usage | None = None
    has_thinking: bool = False
    is_human: bool = False
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """The messages that are left, by id; `event` is what happened to the others."""

    left: tuple[str, ...]
    event: str


class GeminiSession:
    """A file while it is read, record by record."""

    def __init__(self, path: Path, keeps_content: bool = False) -> None:
        self.session = Session()
        self._path = path
        self._keeps = keeps_content
        self._head = lines.Record()
        self._entries: dict[str, Entry] = {}
        self._timeline: list[Entry | Change] = []
        self._live: dict[str, None] = {}

    def take(self, number: int, raw: bytes) -> None:
        """Read one record. Raises what decoding raises, and NotAMessage."""
        record = lines.RECORD.decode(raw)
        if record.id:
            self._message(number, msgspec.Raw(raw))
        elif record.update is not None:
            self._update(number, record.update)
        elif record.rewind_to is not None:
            self._rewind(record.rewind_to)
        elif record.session_id:
            self._head = record
            for message in record.messages or ():
                self._message(number, message)

    def _update(self, number: int, update: lines.Update) -> None:
        if update.messages is not None:
            self._replace(number, update.messages)
        if update.session_id is not None:
            self._timeline.append(Change(tuple(self._live), "resume"))

    def _message(self, number: int, raw: msgspec.Raw) -> str:
        """Read a message; returns its id."""
        message = lines.MESSAGE.decode(raw)
        if message.type not in ("user", MODEL):
            return message.id
        time = time_of(message.timestamp)
        usage = None if message.tokens is None else usage_from(message.tokens, "tokens", "gemini-cli")
        ended = [time_of(call.timestamp) for call in lines.TOOL_CALLS.decode(message.tool_calls) or ()]
        entry = self._entries.get(message.id)
        if entry is None:
            entry = self._entries[message.id] = Entry(number, message.id, message.type, time)
            self._timeline.append(entry)
        entry.done, entry.usage = last_of(entry.done, *ended), usage or entry.usage
        entry.model = message.model or entry.model
        entry.has_thinking |= bytes(message.thoughts) not in (b"null", b"[]")
        entry.is_human = message.type == "user" and b'"functionResponse"' not in bytes(message.content)
        entry.pieces = self._pieces(message)
        self._live[message.id] = None
        return message.id

    def _pieces(self, message: lines.Message) -> tuple[Piece, ...]:
        content = piece_of(message.type, message.content, self._keeps)
        has_tools = bytes(message.tool_calls) not in (b"null", b"[]")
        return (content, piece_of("tools", message.tool_calls, self._keeps)) if has_tools else (content,)

    def _replace(self, number: int, messages: Sequence[msgspec.Raw]) -> None:
        before, known = list(self._live), set(self._entries)
        self._live = {}
        ids = [self._message(number, message) for message in messages]
        if before[: len(ids)] == ids[: len(before)] and len(ids) >= len(before):
            return
        self._timeline.append(Change(tuple(self._live), "compaction" if set(ids) - known else "clear"))

    def _rewind(self, target: str) -> None:
        """An unknown target drops everything, as Gemini CLI does."""
        live = list(self._live)
        self._live = dict.fromkeys(live[: live.index(target)] if target in self._live else ())
        self._timeline.append(Change(tuple(self._live), "fork" if self._live else "clear"))

    # ------------------------------------------------------------------------------------------------------ calls

    def finish(self) -> Session:
        """The session, after the last record."""
        head = self._head
        is_side = head.kind == "subagent"
        self.session.project = self._project()
        _Calls(
            self.session,
            self._entries,
            self._path.parent.name if is_side else head.session_id or "",
            head.session_id or "" if is_side else "",
        ).make(self._timeline)
        self.session.link()
        return self.session

    def _project(self) -> str:
        """The folder that the agent worked in: Gemini CLI keeps it beside the sessions; else its hash."""
        for folder in list(self._path.absolute().parents)[1:3]:
            try:
                with (folder / ROOT_FILE).open("rb") as file:
                    return file.read(MOST_ROOT).decode("utf-8", "replace").strip()
            except OSError:
                continue
        return (self._head.directories or [self._head.project_hash or ""])[0]


class _Calls:
    """Makes the calls of a timeline."""

    def __init__(self, session: Session, entries: dict[str, Entry], name: str, thread: str) -> None:
        self._session = session
        self._entries = entries
        self._name, self._thread = name, thread
        self._live: list[Entry] = []
        self._numbers: dict[str, int] = {}
        self._events: set[str] = set()
        self._is_cut = False

    def make(self, timeline: Sequence[Entry | Change]) -> None:
        for one in timeline:
            if isinstance(one, Change):
                self._change(one)
            else:
                if one.usage is not None:
                    self._add(one, one.usage)
                elif one.is_human:
                    self._events.add("human")
                self._live.append(one)

    def _change(self, change: Change) -> None:
        self._live = [self._entries[name] for name in change.left if name in self._entries]
        if change.event == "resume":
            self._events.add("resume")
        elif change.event == "fork":
            self._events.discard("human")
        else:
            self._events.add(change.event)
            self._is_cut = True

    def _add(self, entry: Entry, usage: Usage) -> None:
        at = self._last_call()
        request = self._live if self._is_cut else self._live[at + 1 :]
        last = self._session.calls[-1].number if self._session.calls else 0
        before = last if self._is_cut else self._numbers[self._live[at].id] if at >= 0 else 0
        call = SessionCall(last + 1, entry.line, entry.model, usage, self._start(entry), entry.time, before)
        call.events, call.is_cut, call.id = self._events, self._is_cut, entry.id
        call.session, call.thread, call.agent = self._name, self._thread, "subagent" if self._thread else ""
        call.host = "" if maker_of(entry.model) else MODEL
        answered = [] if self._is_cut or at < 0 else [piece for piece in self._live[at].pieces if piece.kind == "tools"]
        results = answered if not _has_results(request) else []
        call.request = [*_as_results(results), *(piece for one in request for piece in one.pieces)]
        call.answer, call.has_thinking = entry.pieces, entry.has_thinking
        self._numbers[entry.id] = call.number
        self._session.calls.append(call)
        self._events, self._is_cut = set(), False

    def _last_call(self) -> int:
        """Where the last call that is left stands; -1: nowhere."""
        return next((at for at in range(len(self._live) - 1, -1, -1) if self._live[at].id in self._numbers), -1)

    def _start(self, entry: Entry) -> float | None:
        """When the message or the tool result before it was recorded."""
        if not self._live:
            return entry.time
        known = last_of(self._live[-1].time, self._live[-1].done)
        return entry.time if known is None else known if entry.time is None else min(known, entry.time)


def _has_results(request: Sequence[Entry]) -> bool:
    """Whether tool results have messages of their own, as since 2026; before, only the tool calls have them."""
    return any(one.kind == "user" and not one.is_human for one in request)


def _as_results(pieces: Sequence[Piece]) -> list[Piece]:
    return [Piece("results", piece.chars, piece.data) for piece in pieces]
