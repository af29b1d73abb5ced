"""Calls of a coding agent's session store, while its lines are read: one form for the bill and for the request.

A store's parser makes `SessionCall`s without looking into content: pieces of it stay undecoded JSON. Each has its bill,
and `SessionRequests` makes recorded calls of them, with their requests as far as the store has them. So both agree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_ERRORS, OutOfLimits, is_tokens, json_value
from cachecost.base.times import iso, iso_milliseconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import (
    EVENTS,
    BilledCall,
    SessionFile,
    ToolResults,
    Warn,
    byte_lines,
    pack_results,
    quiet,
)
from cachecost.conversations.json_object import parse_json, reason
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.start_times import parse_time
from cachecost.prompts.blocks import NOTHING, THINKING, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import TTL, Breakpoint, NotAMessage, Request, block_of, text_block
from cachecost.providers.hosts import maker_of


class Piece(NamedTuple):
    """A part of a conversation as stored: its kind to the parser, its size, and its content where that is kept. Content
    is JSON as it is stored, or blocks of the Messages API; of these the role is the kind. Errors begin with `place`.
    `tool` is the tool whose result it is, where a parser says so."""

    kind: str
    chars: int
    data: msgspec.Raw | bytes | list[Any] | None
    place: str = ""
    tool: str = ""


@dataclass(slots=True, eq=False)
class SessionCall:
    """One call of a session store: its bill, and what its request is made of.

    `before` is the call that it continues, `events` what lies between the two; the bill has both when all calls are
    read. `after` is the time of the record before the request, `request` what it has after the answer of that call;
    with `is_cut`, all that it has. `answer` is what the model wrote; both are empty where content is not read.
    `has_content` is False where the store has the bill alone, `is_billed` where it has no usage. `is_copy`: it is a
    call of another file, and here only history. `thread` tells the chains of calls of one session apart (a sub-agent);
    "" is the main one. `prefix` names a static prefix that is not that of the thread: a summary has a prompt of its
    own.
    """

    bill: BilledCall
    before: SessionCall | None = None
    events: set[str] = field(default_factory=set)
    project: str = ""
    thread: str = ""
    first_token_s: float = 0.0
    after: float | None = None
    request: Sequence[Any] = ()
    answer: Sequence[Any] = ()
    prefix: str = ""
    is_cut: bool = False
    is_copy: bool = False
    is_billed: bool = True
    has_content: bool = True

    @property
    def agent(self) -> str:
        return self.bill.agent

    @property
    def conversation(self) -> str:
        """The session as a recorded call names it: sub-agents are conversations of their own."""
        return f"{self.bill.session} {self.thread}".strip()


@dataclass(slots=True, eq=False)
class CallChain:
    """A thread while its records are read: its last call, and what has been recorded for the next one since then."""

    thread: str = ""
    last: SessionCall | None = None
    request: list[Piece] = field(default_factory=list)
    events: set[str] = field(default_factory=set)
    is_cut: bool = False
    time: float | None = None
    """When the last input was recorded, or the answer before it."""

    def cut(self, *pieces: Piece) -> None:
        """A compaction: the history is replaced with these pieces."""
        self.request, self.is_cut = [*pieces], True
        self.events.add("compaction")

    def add_call(self, bill: BilledCall, answer: Sequence[Any] = ()) -> SessionCall:
        """The call that sent what was recorded; the next one continues it."""
        call = SessionCall(bill, self.last, self.events, thread=self.thread, request=self.request, answer=answer)
        call.is_cut, self.is_cut = self.is_cut, False
        self.last, self.request, self.events = call, [], set()
        return call


@dataclass(slots=True, eq=False)
class RecordNode:
    """A record of a session whose records form a tree (a rewind goes on from an earlier one), with the pieces that it
    adds to the next request. `call` is the call that it answers; with `is_cut` its pieces replace the history."""

    parent: RecordNode | None = None
    time: float | None = None
    pieces: Sequence[Piece] = ()
    events: Collection[str] = ()
    is_cut: bool = False
    call: SessionCall | None = None

    def chain(self) -> CallChain:
        """The thread up to this record."""
        chain, node = CallChain(), self
        while node.call is None:
            if not chain.is_cut:
                chain.request[:0] = node.pieces
                chain.events.update(node.events)
                chain.is_cut = node.is_cut
                chain.time = chain.time or (node.time if node.pieces and not node.is_cut else None)
            if node.parent is None:
                return chain
            node = node.parent
        chain.last, chain.time = node.call, chain.time or node.time
        return chain


@dataclass(slots=True)
class Session:
    """What a parser found in a file: its calls, and the folder that the agent worked in. `copies` are calls of another
    thread whose history the file begins with: they are billed with that."""

    project: str = ""
    system: str = ""
    """The system prompt, where the store has it and content is read."""
    calls: list[SessionCall] = field(default_factory=list)
    copies: Sequence[SessionCall] = ()
    notes: list[str] = field(default_factory=list)
    branches: list[tuple[int, str]] = field(default_factory=list)
    """As those of a `SessionFile`."""
    results: list[ToolResults] | None = None
    """None: the parser does not know which pieces are results of tools."""

    def finish(self) -> None:
        """Add to each call what its request adds, and the events that only show in comparison with the call before."""
        continued: set[int] = set()
        for call in self.calls:
            bill, before = call.bill, call.before
            call.project, bill.blocks = self.project, len(call.request)
            bill.new_chars = sum(piece.chars for piece in call.request)
            if self.results is not None and (sizes := [(one.tool, one.chars) for one in call.request if one.tool]):
                self.results.append(ToolResults(bill.number, bill.new_chars, sizes))
            if before is not None:
                differs = {
                    "model": before.bill.model != bill.model,
                    "client": bool(before.bill.version and bill.version and before.bill.version != bill.version),
                    "fork": before.bill.number in continued,
                }
                call.events |= {name for name, holds in differs.items() if holds}
                continued.add(before.bill.number)
        _complete_bills(self.calls)


def number_calls(found: Iterable[SessionCall]) -> list[SessionCall]:
    """The calls of several sessions in the order of their times, numbered from 1, each with whether its model is that
    of the call before. One without a time keeps its place, and none comes before the one that it continues."""
    calls, last = list(found), 0.0
    times: dict[SessionCall | None, float] = {}
    for call in calls:
        last = last if call.bill.start is None else call.bill.start
        last = max(last, times.get(call.before, last))
        times[call] = last
    calls.sort(key=times.__getitem__)
    for number, call in enumerate(calls, 1):
        call.bill.number = number
        if call.before and (call.before.bill.model, call.before.bill.host) != (call.bill.model, call.bill.host):
            call.events.add("model")
    _complete_bills(calls)
    return calls


def _complete_bills(calls: Iterable[SessionCall]) -> None:
    """Numbered calls: each bill says which call it continues, and what happened in between."""
    for call in calls:
        call.bill.before = call.before.bill.number if call.before else 0
        call.bill.events = tuple(name for name in EVENTS if name in call.events)


def bills_of(calls: Iterable[SessionCall]) -> list[BilledCall]:
    """What a bill needs of each numbered call whose usage is known."""
    return [call.bill for call in calls if call.is_billed]


def damaged_places(faults: Iterable[Fault], path: Path) -> tuple[tuple[int, str], ...]:
    """Errors as a `SessionFile` lists them: those of files beside `path` name their file."""
    return tuple(
        (fault.line or 0, fault.message if fault.file == str(path) else f"{Path(fault.file).name}: {fault.message}")
        for fault in faults
    )


def top_sessions(
    parents: Mapping[str, str | None], kind: Callable[[str], str] = lambda session: ""
) -> Iterator[tuple[str, str, int]]:
    """(session, session at the top, number) of each session by its parent: 0 of a person's; the sub-agents of one
    session are numbered from 1, each kind apart."""
    numbers: Counter[tuple[str, str]] = Counter()
    for session in parents:
        root, seen = session, {session}
        while (parent := parents[root] or "") in parents and parent not in seen:
            root = parent
            seen.add(root)
        if root != session:
            numbers[root, kind(session)] += 1
        yield session, root, numbers[root, kind(session)] if root != session else 0


def read_lines(
    path: Path, lines: Iterable[tuple[int, bytes]], read_line: Callable[[int, bytes], None], warn: Warn = quiet
) -> list[Fault]:
    """Pass each line with its number to `read_line`; one that it cannot decode is a fault, and the others still count.

    A last line without a newline that is not JSON is still being written: it is skipped, with a warning. Raises
    InputError if the file cannot be opened.
    """
    faults: list[Fault] = []
    for number, raw in lines:
        if not raw.strip():
            continue
        try:
            read_line(number, raw)
        except (msgspec.MsgspecError, NotAMessage, ValueError, RecursionError) as error:
            value = parse_json(raw)
            why = str(error) if isinstance(error, NotAMessage) else f"{error}".replace("Expected", "expected", 1)
            if isinstance(value, ValueError):
                why = reason(value)
                if not raw.endswith(b"\n") and not isinstance(value, OutOfLimits):
                    warn(f"{path}:{number} the last line is cut off (still being written?): skipped")
                    continue
            elif isinstance(error, RecursionError):
                why = "expected fewer levels of nesting"
            if len(faults) < MOST_ERRORS:
                faults.append(Fault(str(path), why, number))
    return faults


def time_of(timestamp: str | None) -> float | None:
    """Seconds since the epoch of a line's time; None without one. Raises NotAMessage."""
    return None if timestamp is None else parse_time(timestamp)


def last_of(*times: float | None) -> float | None:
    """The latest of the times that are known."""
    return max((time for time in times if time is not None), default=None)


AGENT_NUMBER = re.compile(r" \d+$")
"""What tells sub-agents of one kind apart."""
BYTES_PER_TOKEN = 4
"""Rough: it only divides the first call of a chain into static prefix and messages, whose sum is billed."""
Body = dict[str, Any]
RoleBlocks = tuple[str, list[Body]]
ToBlocks = Callable[[str, Any], Iterable[RoleBlocks]]
"""The kind of a piece and its JSON -> blocks of the Messages API, each list with its role. Raises NotAMessage."""


def whole_tokens(number: float | None, place: str) -> int:
    """A count of tokens as it is stored, perhaps as a float; 0 where there is none. Raises ValueError."""
    found: Any = 0 if number is None else number
    whole = int(found) if isinstance(found, float) and found.is_integer() else found
    if not is_tokens(whole):
        raise ValueError(f"{place}: expected a whole number of tokens; got {number!r}")
    return int(whole)


def text_body(text: object) -> Body:
    """A block with the text of a foreign record."""
    return {"type": "text", "text": str(text or "")}


def blocks_of_role(role: str, blocks: list[Body]) -> Iterator[RoleBlocks]:
    """`ToBlocks` for pieces that are blocks already."""
    if blocks:
        yield role, blocks


@dataclass
class SessionRequests:
    """Makes recorded calls of the calls of one file. What cannot be converted goes to `faults`.

    `system` is the system prompt, where the store has it; `client` names the unknown rest. With `looks_ahead` a chain
    that read nothing begins with as much as the next chain with the same kind of static prefix read in its first call.
    """

    path: Path
    client: str
    keep_content: bool
    faults: list[Fault]
    to_blocks: ToBlocks = blocks_of_role
    system: str = ""
    looks_ahead: bool = False
    stamp: ClassVar = staticmethod(iso)
    _threads: dict[SessionCall | None, Thread] = field(default_factory=dict)
    """What the request after each call begins with."""
    _heads: dict[tuple[str, ...], Part] = field(default_factory=dict)
    _parts: dict[tuple[str, int, int], Part] = field(default_factory=dict)
    _lines: dict[int, int] = field(default_factory=dict)
    _reads: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """(number, read) of the calls that begin a chain and read something, by the name of their static prefix."""
    _root: Thread = field(default_factory=Thread)

    def calls(self, session: Session) -> Iterator[Call]:
        """The calls in their order. Raises InputError at the end with all `faults`, also those of the parser."""
        for first in session.copies[:1]:  # a copied history begins with the static prefix of its first call
            self._heads[self._chain(first)] = self._head(first, _then(self._root, self._messages(first.request)))
        for call in session.calls if self.looks_ahead else ():
            if call.before is None and call.bill.read:
                self._reads.setdefault(self._prefix_name(call), []).append((call.bill.number, call.bill.read))
        for call in session.calls:
            try:
                answer, thread = self._messages(call.answer), self._root
                if call.has_content:
                    before = None if call.is_cut else call.before
                    thread = _then(self._threads.get(before, self._root), self._messages(call.request))
                self._threads[call] = _then(thread, answer)
                made = None if call.is_copy else self._recorded_call(call, thread, answer)
            except (NotAMessage, ValueError) as error:
                self.faults.append(Fault(str(self.path), str(error), call.bill.line or None))
            else:
                if made is not None:
                    self._lines[call.bill.number] = call.bill.line
                    yield made
        if self.faults:
            raise InputError(self.faults)

    def _recorded_call(self, call: SessionCall, thread: Thread, answer: Sequence[Message]) -> Call:
        bill = call.bill
        return Call(
            self._request(call, thread) if call.has_content else Request(bill.model, thread, params=self._params(call)),
            bill.start or 0.0,
            timestamp=None if bill.start is None else self.stamp(bill.start),
            host=bill.host or None,
            first_token_s=call.first_token_s,
            billed=bill.usage if call.is_billed else None,
            is_batch="batch" in bill.modes,
            response=tuple([block for message in answer for block in message.blocks]),
            session=call.conversation,
            id=bill.id,
            project=call.project,
            agent=call.agent,
            file=str(self.path),
            line=bill.line,
            before=self._lines.get(bill.before, 0),
        )

    def _request(self, call: SessionCall, thread: Thread) -> Request:
        key = self._chain(call)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._head(call, thread)
        breakpoints = tuple(self._breakpoints(call, head, thread))
        return Request(call.bill.model, thread, system=head, breakpoints=breakpoints, params=self._params(call))

    def _messages(self, pieces: Sequence[Any]) -> list[Message]:
        """Neighbours of the same role are one message."""
        runs = groupby(self._role_blocks(pieces), itemgetter(0))
        grouped = ((role, [block for _, blocks in run for block in blocks]) for role, run in runs)
        return [self._message(role, blocks) for role, blocks in grouped if blocks]

    def _role_blocks(self, pieces: Sequence[Piece]) -> Iterator[RoleBlocks]:
        for kind, _, data, place, _ in pieces:
            if isinstance(data, list):
                yield from blocks_of_role(kind, data)
            elif data is not None:
                try:
                    value = json_value(bytes(data).decode())
                except ValueError as error:
                    raise ValueError(f"{place}{error}") from None
                yield from self.to_blocks(kind, value)

    def _message(self, role: str, blocks: Iterable[Any]) -> Message:
        made = (
            block_of(role, block, self.keep_content)
            if isinstance(block, Mapping)
            else text_block(role, str(block), self.keep_content)
            for block in blocks
        )
        return Message.of(role, tuple(made))

    def _head(self, call: SessionCall, thread: Thread) -> Part:
        """The static prefix of a chain that begins with this call: the prompt that is known, and the unknown rest, of
        which other chains share what was cached before this one began."""
        known = (block_of("system", {"type": "text", "text": self.system}, self.keep_content),) if self.system else ()
        if not call.is_billed:
            return Part(known) if known else NOTHING
        size = sum(block.size for message in thread.messages() for block in message.blocks)
        size += sum(block.size for block in known)
        whole, name = max(0, call.bill.total_input - size // BYTES_PER_TOKEN), self._prefix_name(call)
        later = (read for number, read in self._reads.get(name, ()) if number > call.bill.number)
        shared = min(whole, call.bill.read or next(later, 0))
        unknown = self._parts.get((name, shared, whole))
        if unknown is None:
            blocks = tuple(
                given_block("text", "system", f"unknown head of {self.client} {name} {end}", tokens)
                for end, tokens in ((shared, shared), (whole, whole - shared))
                if tokens
            )
            unknown = self._parts[name, shared, whole] = Part(blocks) if blocks else NOTHING
        return Part((*known, *unknown.blocks)) if known else unknown

    def _params(self, call: SessionCall) -> Mapping[str, Any]:
        return {"service_tier": call.bill.modes[0]} if call.bill.modes else {}

    def _chain(self, call: SessionCall) -> tuple[str, ...]:
        """What the calls with one static prefix have in common."""
        return (call.thread,)

    def _prefix_name(self, call: SessionCall) -> str:
        """What chains with equal static prefixes have in common."""
        return call.bill.version

    def _breakpoints(self, call: SessionCall, head: Part, thread: Thread) -> Iterator[Breakpoint]:
        """On each block of the static prefix, and on the last block that can have one."""
        if (call.bill.host or maker_of(call.bill.model)) == "anthropic":
            yield from on_blocks(len(head.blocks), "5m")
            yield from islice(filter(None, map(on_last_block, thread.back())), 1)


@dataclass
class StoreRequests(SessionRequests):
    """For a store of several sessions, whose static prefix depends on model and agent.

    `marked` is how many of the last messages have a breakpoint; with `marks_first` it is the first message instead.
    With `joins` neighbours of the same role are one message.
    """

    looks_ahead: bool = True
    marked: int = 1
    marks_first: bool = False
    joins: bool = True
    stamp: ClassVar = staticmethod(iso_milliseconds)

    def _request(self, call: SessionCall, thread: Thread) -> Request:
        return super()._request(call, thread) if thread.length else Request(call.bill.model, thread)

    def _messages(self, pieces: Sequence[Any]) -> list[Message]:
        if self.joins:
            return super()._messages(pieces)
        return [self._message(role, blocks) for role, blocks in self._role_blocks(pieces) if blocks]

    def _chain(self, call: SessionCall) -> tuple[str, ...]:
        return call.bill.session, call.thread, call.prefix, call.bill.model

    def _prefix_name(self, call: SessionCall) -> str:
        names = call.bill.model, AGENT_NUMBER.sub("", call.bill.agent), call.prefix, call.project
        return " ".join(filter(None, names))

    def _breakpoints(self, call: SessionCall, head: Part, thread: Thread) -> Iterator[Breakpoint]:
        """On each block of the static prefix, and on the last block of the messages that the client marks."""
        if "claude" in call.bill.model:
            yield from on_blocks(len(head.blocks), "5m")
            nodes = list(thread.back())
            marked = nodes[-1:] if self.marks_first else nodes[: self.marked][::-1]
            yield from filter(None, map(on_last_block, marked))


def _then(thread: Thread, messages: Iterable[Message]) -> Thread:
    for message in messages:
        thread = thread.then(message)
    return thread


@cache
def on_blocks(blocks: int, ttl: TTL) -> tuple[Breakpoint, ...]:
    """Breakpoints on all blocks of a static prefix."""
    return tuple(Breakpoint(Layer.SYSTEM, index, ttl) for index in range(blocks))


def on_last_block(node: Thread, ttl: TTL = "5m") -> Breakpoint | None:
    """On the last block of a message that can have one; None if no block can."""
    blocks = node.message_blocks
    for index in range(len(blocks) - 1, -1, -1):
        if not (blocks[index].kind in THINKING or blocks[index].is_empty_text):
            return Breakpoint(Layer.MESSAGES, index, ttl, node)
    return None


class SessionParser:
    """A file while it is read: one with a session, line by line, or what overrides `read`.

    `path` is the file with the calls, `notes` what is said of it where its calls are read with content.
    """

    requests: ClassVar[Callable[..., SessionRequests]] = SessionRequests

    def __init__(self, path: Path, keeps_content: bool) -> None:
        self.session = Session()
        self.path = path
        self.keeps = keeps_content
        self.chain = CallChain()
        self.notes = ReaderNotes()

    def read_line(self, number: int, raw: bytes) -> None:
        """Read one line. Raises what decoding raises, and NotAMessage."""
        raise NotImplementedError

    def piece(self, kind: str, data: msgspec.Raw | bytes, place: str = "") -> Piece:
        return Piece(kind, memoryview(data).nbytes, data if self.keeps else None, place)

    def add_call(self, bill: BilledCall, answer: Sequence[Any] = (), chain: CallChain | None = None) -> SessionCall:
        """The next call of a chain: of the file's only one, or of another."""
        call = (chain or self.chain).add_call(bill, answer)
        self.session.calls.append(call)
        bill.number = len(self.session.calls)
        return call

    def finish(self) -> Session:
        """The session, after the last line."""
        self.session.finish()
        return self.session

    def lines(self) -> Iterable[tuple[int, bytes]]:
        """The lines of the file, numbered from 1. Raises InputError if it cannot be opened."""
        return byte_lines(self.path)

    def read(self, faults: list[Fault], warn: Warn) -> Session:
        """The session. Each damaged line is a fault. Raises InputError if the file cannot be opened."""
        faults += read_lines(self.path, self.lines(), self.read_line, warn)
        return self.finish()


class StoreParser(SessionParser):
    """A store of several sessions, or of several files: its calls are numbered in the order of their times."""

    requests = staticmethod(partial(StoreRequests, marked=2))

    def stored_calls(self, faults: list[Fault]) -> Iterable[SessionCall]:
        """The calls, with their projects, session by session. Raises InputError where the file cannot be read."""
        raise NotImplementedError

    def read(self, faults: list[Fault], warn: Warn) -> Session:
        calls = self.session.calls = number_calls(self.stored_calls(faults))
        self.session.project = calls[0].project if calls else ""
        return self.session


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """A format of sessions. `client` is as in `SessionFile`, `name` as people write it."""

    client: str
    name: str
    parser: Callable[[Path, bool], SessionParser]
    to_blocks: ToBlocks = blocks_of_role

    def calls(self, path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
        """The calls in the order of their bills; copies of one call in other files share its `id`. Raises InputError
        with every error, each with its line."""
        faults: list[Fault] = []
        parser = self.parser(path, True)
        session = parser.read(faults, warn)
        parser.notes.report(path, warn)
        if faults:
            raise InputError(faults)
        requests = parser.requests(path, self.name, keep_content, faults, self.to_blocks, session.system)
        yield from requests.calls(session)

    def session_files(self, path: Path) -> list[SessionFile]:
        """The calls of a file without content, for a bill. What is damaged is listed, and the rest counts."""
        faults: list[Fault] = []
        parser = self.parser(path, False)
        session = parser.read(faults, quiet)
        damaged, calls = damaged_places(faults, parser.path), bills_of(session.calls)
        file = SessionFile(str(path), self.client, session.project, calls, damaged, tuple(session.notes))
        file.branches = tuple(session.branches)
        file.results = b"" if session.results is None else pack_results(session.results)
        return [file]
