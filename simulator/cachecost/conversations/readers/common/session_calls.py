"""Calls of a coding agent's session store, while its lines are read: one form for the bill and for the request.

A store's parser makes `SessionCall`s without looking into content: pieces of it stay undecoded JSON. `billed_call` is
what the bill needs of one, `SessionRequests` makes it a recorded call with its request. So both agree.

Makes the requests of a session store's calls, as far as the store has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_ERRORS, OutOfLimits, json_value
from cachecost.base.times import iso, seconds
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import BOM, EVENTS, BilledCall, SessionFile, Warn, byte_lines, quiet
from cachecost.conversations.json_object import parse_json, reason
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import Breakpoint, NotAMessage, Request, block_of
from cachecost.providers.hosts import maker_of
from cachecost.providers.usage import Usage

NO_USAGE = Usage()
CUT_OFF = "cut off"


class Piece(NamedTuple):
    """A part of a conversation as stored: its kind to the parser, its size, and its JSON where content is kept."""

    kind: str
    chars: int
    data: msgspec.Raw | None


@dataclass(slots=True, eq=False)
class SessionCall:
    """One call of a session. The fields are those of `BilledCall`, and what the request is made of.

    `request` is what the request has after the answer of the call `before`; with `is_cut`, all that it has. `answer`
    is what the model wrote. `has_content` is False where the store has the bill alone. `thread` tells the chains of
    calls of one session apart (the id of a sub-agent); "" is the main one.
    """

    number: int
    line: int
    model: str = ""
    usage: Usage = NO_USAGE
    start: float | None = None
    end: float | None = None
    before: int = 0
    events: set[str] = field(default_factory=set)
    agent: str = ""
    session: str = ""
    thread: str = ""
    id: str = ""
    version: str = ""
    host: str = ""
    modes: tuple[str, ...] = ()
    first_token_s: float = 0.0
    request: Sequence[Piece] = ()
    answer: Sequence[Piece] = ()
    is_cut: bool = False
    has_content: bool = True
    has_thinking: bool = False


@dataclass(slots=True)
class Session:
    """What a parser found in a file: its calls, and the folder that the agent worked in.

    `copies` are calls of another thread whose history the file begins with: they are billed with that.
    """

    project: str = ""
    system: str = ""
    """The system prompt, where the store has it and content is read."""
    calls: list[SessionCall] = field(default_factory=list)
    copies: list[SessionCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def link(self) -> None:
        """Add to each call the events that only show in comparison with the call before it."""
        by_number = {call.number: call for call in self.calls}
        continued: set[int] = set()
        for call in self.calls:
            if before := by_number.get(call.before):
                call.events |= {name for name, holds in _differences(before, call, continued).items() if holds}
                continued.add(call.before)


def _differences(before: SessionCall, call: SessionCall, continued: set[int]) -> dict[str, bool]:
    return {
        "model": before.model != call.model,
        "client": bool(before.version and call.version and before.version != call.version),
        "fork": before.number in continued,
    }


def billed_call(call: SessionCall) -> BilledCall:
    """What the bill needs of a call."""
    usage = call.usage
    return BilledCall(
        call.number,
        call.line,
        call.model,
        (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens),
        call.start,
        call.end,
        call.before,
        tuple(name for name in EVENTS if name in call.events),
        call.agent,
        call.session,
        call.id,
        call.version,
        call.modes,
        len(call.request),
        sum(piece.chars for piece in call.request),
        call.has_thinking,
        host=call.host,
        tool_uses=usage.tool_uses,
        charged_usd=usage.charged_usd,
    )


def take_lines(path: Path, take: Callable[[int, bytes], None], warn: Warn = quiet) -> list[Fault]:
    """Pass each line with its number to `take`; a line that it cannot decode is a fault, and the others still count.

    A last line without a newline that is not JSON is still being written: it is skipped, with a warning. Raises
    InputError if the file cannot be opened.
    """
    faults: list[Fault] = []
    for number, raw in byte_lines(path):
        if not raw.strip():
            continue
        why = _try_to_take(take, number, raw)
        if why == CUT_OFF:
            warn(f"{path}:{number} the last line is cut off (still being written?): skipped")
        elif why and len(faults) < MOST_ERRORS:
            faults.append(Fault(str(path), why, number))
    return faults


def take_all(path: Path, data: bytes, take: Callable[[int, bytes], None]) -> list[Fault]:
    """Pass the one value of a file to `take`."""
    why = _try_to_take(take, 1, data.removeprefix(BOM) + b"\n")
    return [Fault(str(path), why, 1)] if why else []


def _try_to_take(take: Callable[[int, bytes], None], number: int, line: bytes) -> str:
    """Why a line cannot be read; empty if it was."""
    try:
        take(number, line)
    except (msgspec.MsgspecError, NotAMessage, ValueError, RecursionError) as error:
        value = parse_json(line)
        if isinstance(value, ValueError):
            is_cut_off = not line.endswith(b"\n") and not isinstance(value, OutOfLimits)
            return CUT_OFF if is_cut_off else reason(value)
        if isinstance(error, RecursionError):
            return "expected fewer levels of nesting"
        return str(error) if isinstance(error, NotAMessage) else f"{error}".replace("Expected", "expected", 1)
    return ""


def time_of(timestamp: str | None) -> float | None:
    """Seconds since the epoch of a line's time; None without one. Raises NotAMessage."""
    if timestamp is None:
        return None
    try:
        return seconds(timestamp)
    except (ValueError, OverflowError):
        raise NotAMessage("timestamp", "an ISO 8601 time", timestamp) from None


def last_of(*times: float | None) -> float | None:
    """The latest of the times that are known."""
    return max((time for time in times if time is not None), default=None)


def piece_of(kind: str, data: msgspec.Raw, keeps_content: bool) -> Piece:
    return Piece(kind, memoryview(data).nbytes, data if keeps_content else None)


BYTES_PER_TOKEN = 4
"""Rough: it only divides the first call of a chain into static prefix and messages, whose sum is billed."""
Body = dict[str, Any]
RoleBlocks = tuple[str, list[Body]]
ToBlocks = Callable[[str, Any], Iterable[RoleBlocks]]
"""The kind of a piece and its JSON -> blocks of the Messages API, each list with its role. Raises NotAMessage."""


@dataclass(slots=True)
class SessionRequests:
    """Makes recorded calls of the calls of one file. What cannot be converted goes to `faults`.

    `system` is the system prompt, where the store has it; `client` names the unknown rest.
    """

    path: Path
    client: str
    to_blocks: ToBlocks
    keep_content: bool
    faults: list[Fault]
    system: str = ""
    _threads: dict[int, Thread] = field(default_factory=dict)
    _heads: dict[str, Part] = field(default_factory=dict)
    _parts: dict[tuple[str, int, int], Part] = field(default_factory=dict)
    _lines: dict[int, int] = field(default_factory=dict)
    _root: Thread = field(default_factory=Thread)

    def calls(self, session: Session) -> Iterator[RecordedCall]:
        for first in session.copies[:1]:  # a copied history begins with the static prefix of its first call
            self._heads[first.thread] = self._head(first, _then(self._root, self._messages(first.request)))
        for call in session.calls:
            try:
                made = self._call(call, session.project)
            except (NotAMessage, ValueError) as error:
                self.faults.append(Fault(str(self.path), str(error), call.line))
            else:
                yield made

    def _call(self, call: SessionCall, project: str) -> RecordedCall:
        answer = self._messages(call.answer)
        request = self._request(call)
        self._threads[call.number], self._lines[call.number] = _then(request.thread, answer), call.line
        return RecordedCall(
            request,
            call.start or 0.0,
            timestamp=None if call.start is None else iso(call.start),
            host=call.host or None,
            first_token_s=call.first_token_s,
            billed=call.usage,
            response=tuple(block for message in answer for block in message.blocks),
            session=f"{call.session} {call.thread}".strip(),
            id=call.id,
            project=project,
            agent=call.agent,
            file=str(self.path),
            line=call.line,
            before=self._lines.get(call.before, 0),
        )

    def _request(self, call: SessionCall) -> Request:
        """The request; an empty one where the store has the bill alone."""
        if not call.has_content:
            return Request(call.model, self._root, params=_params(call))
        before = self._root if call.is_cut else self._threads.get(call.before, self._root)
        thread = _then(before, self._messages(call.request))
        head = self._heads.get(call.thread)
        if head is None:
            head = self._heads[call.thread] = self._head(call, thread)
        breakpoints = tuple(_breakpoints(head, thread)) if (call.host or maker_of(call.model)) == "anthropic" else ()
        return Request(call.model, thread, system=head, breakpoints=breakpoints, params=_params(call))

    def _messages(self, pieces: Sequence[Piece]) -> list[Message]:
        """Neighbours of the same role are one message."""
        told = (
            one for piece in pieces if piece.data is not None for one in self.to_blocks(piece.kind, _json(piece.data))
        )
        grouped = (
            (role, [block for _, blocks in run for block in blocks]) for role, run in groupby(told, itemgetter(0))
        )
        return [
            Message.of(role, tuple(block_of(role, block, self.keep_content) for block in blocks))
            for role, blocks in grouped
            if blocks
        ]

    def _head(self, call: SessionCall, thread: Thread) -> Part:
        """The static prefix of a chain that begins with this call: the prompt that is known, and the unknown rest."""
        known = (block_of("system", {"type": "text", "text": self.system}, self.keep_content),) if self.system else ()
        size = sum(block.size for message in thread.messages() for block in message.blocks)
        size += sum(block.size for block in known)
        unknown = self._unknown(call.usage, max(0, call.usage.total_input - size // BYTES_PER_TOKEN), call.version)
        return Part((*known, *unknown.blocks)) if known or unknown.blocks else NOTHING

    def _unknown(self, usage: Usage, whole: int, version: str) -> Part:
        shared = min(whole, usage.read)
        key = (version, shared, whole - shared)
        if key not in self._parts:
            sizes = ((shared, shared), (whole, whole - shared))
            self._parts[key] = Part(
                tuple(_unknown_block(f"{self.client} {version} {name}", size) for name, size in sizes if size)
            )
        return self._parts[key]


def _json(data: Any) -> Any:
    return json_value(bytes(data).decode())


def _params(call: SessionCall) -> Mapping[str, Any]:
    return {"service_tier": call.modes[0]} if call.modes else {}


def _unknown_block(name: str, tokens: int) -> Block:
    return given_block("text", "system", f"unknown head of {name}", tokens)


def _then(thread: Thread, messages: Iterable[Message]) -> Thread:
    for message in messages:
        thread = thread.then(message)
    return thread


def _breakpoints(head: Part, thread: Thread) -> Iterator[Breakpoint]:
    """On each block of the static prefix, and on the last block that can have one."""
    yield from (Breakpoint(Layer.SYSTEM, index, "5m") for index in range(len(head.blocks)))
    for node in thread.back():
        blocks = node.message.blocks if node.message else ()
        for index in range(len(blocks) - 1, -1, -1):
            if not blocks[index].is_thinking and not blocks[index].is_empty_text:
                yield Breakpoint(Layer.MESSAGES, index, "5m", node)
                return


@dataclass(frozen=True, slots=True)
class SessionStore:
    """A format whose files hold one session each: what its reader module offers.

    `client` is as in `SessionFile`, `name` as people write it. `read` parses a file (path, errors, where notes go,
    whether content is kept).
    """

    client: str
    name: str
    read: Callable[[Path, list[Fault], Warn, bool], Session]
    to_blocks: ToBlocks

    def calls(self, path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
        """The calls in the order of their bills; copies of one call in other files share its `id`.

        Raises InputError with every error, each with its line.
        """
        faults: list[Fault] = []
        session = self.read(path, faults, warn, True)
        if faults:
            raise InputError(faults)
        requests = SessionRequests(path, self.name, self.to_blocks, keep_content, faults, session.system)
        yield from requests.calls(session)
        if faults:
            raise InputError(faults)

    def session_files(self, path: Path) -> list[SessionFile]:
        """The calls of a file without content, for a bill. A damaged line is listed, and the others count."""
        faults: list[Fault] = []
        session = self.read(path, faults, quiet, False)
        calls = [billed_call(call) for call in session.calls]
        damaged = tuple((fault.line or 0, fault.message) for fault in faults)
        return [SessionFile(str(path), self.client, session.project, calls, damaged, tuple(session.notes))]
