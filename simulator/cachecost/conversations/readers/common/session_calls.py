"""Calls of a coding agent's session store, while its lines are read: one form for the bill and for the request.

A store's parser makes `SessionCall`s without looking into content: pieces of it stay undecoded JSON. `billed_calls` are
what the bill needs of them, `SessionRequests` makes recorded calls with their requests, as far as the store has them.
So both agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_ERRORS, OutOfLimits, json_value
from cachecost.base.times import iso, iso_milliseconds, seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BOM, EVENTS, BilledCall, SessionFile, Warn, byte_lines, quiet
from cachecost.conversations.json_object import parse_json, reason
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import Breakpoint, NotAMessage, Request, block_of, text_block
from cachecost.providers.hosts import maker_of
from cachecost.providers.usage import Usage

NO_USAGE = Usage()
CUT_OFF = "cut off"


class Piece(NamedTuple):
    """A part of a conversation as stored: its kind to the parser, its size, and its content where that is kept.

    Content is JSON as it is stored, or blocks of the Messages API; of these the role is the kind.
    """

    kind: str
    chars: int
    data: msgspec.Raw | list[Any] | None


@dataclass(slots=True, eq=False)
class SessionCall:
    """One call of a session store, with what `BilledCall` has of it and what its request is made of.

    `request` is what the request has after the answer of the call `before`; with `is_cut`, all that it has. `answer`
    is what the model wrote; both are empty where content is not read. `has_content` is False where the store has the
    bill alone, `is_billed` where it has no usage. `thread` tells the chains of calls of one session apart (a
    sub-agent); "" is the main one. `prefix` names a static prefix that is not that of the thread: a summary has a
    prompt of its own. `blocks` and `new_chars` count what the request has and the one before did not.
    """

    number: int = 0
    line: int = 0
    model: str = ""
    usage: Usage = NO_USAGE
    start: float | None = None
    end: float | None = None
    before: SessionCall | None = None
    events: set[str] = field(default_factory=set)
    agent: str = ""
    session: str = ""
    project: str = ""
    thread: str = ""
    id: str = ""
    version: str = ""
    host: str = ""
    modes: tuple[str, ...] = ()
    first_token_s: float = 0.0
    blocks: int = 0
    new_chars: int = 0
    request: Sequence[Piece] = ()
    answer: Sequence[Piece] = ()
    prefix: str = ""
    is_cut: bool = False
    is_billed: bool = True
    has_content: bool = True
    has_thinking: bool = False

    @property
    def continued(self) -> SessionCall | None:
        """The call whose prompt and answer begin this one's request."""
        return None if self.is_cut else self.before


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

    def finish(self) -> None:
        """Add to each call what its request adds, and the events that only show in comparison with the call before."""
        continued: set[int] = set()
        for call in self.calls:
            call.project, call.blocks = self.project, len(call.request)
            call.new_chars = sum(piece.chars for piece in call.request)
            if before := call.before:
                call.events |= {name for name, holds in _differences(before, call, continued).items() if holds}
                continued.add(before.number)


def _differences(before: SessionCall, call: SessionCall, continued: set[int]) -> dict[str, bool]:
    return {
        "model": before.model != call.model,
        "client": bool(before.version and call.version and before.version != call.version),
        "fork": before.number in continued,
    }


def number_calls(found: Iterable[SessionCall]) -> list[SessionCall]:
    """The calls in the order of their times, numbered from 1. One without a time keeps its place, and none comes before
    the one that it continues."""
    calls, last = list(found), 0.0
    times: dict[SessionCall | None, float] = {}
    for call in calls:
        last = last if call.start is None else call.start
        last = max(last, times.get(call.before, last))
        times[call] = last
    calls.sort(key=times.__getitem__)
    for number, call in enumerate(calls, 1):
        call.number = number
    return calls


def billed_calls(found: Iterable[SessionCall]) -> list[BilledCall]:
    """What the bill needs of each numbered call whose usage is known."""
    return [_billed_call(call) for call in found if call.is_billed]


def _billed_call(call: SessionCall) -> BilledCall:
    usage = call.usage
    return BilledCall(
        call.number,
        call.line,
        call.model,
        (usage.input_tokens, usage.read, usage.write_5m, usage.write_1h, usage.output_tokens),
        call.start,
        call.end,
        call.before.number if call.before else 0,
        tuple(name for name in EVENTS if name in call.events),
        call.agent,
        call.session,
        call.id,
        call.version,
        call.modes,
        call.blocks,
        call.new_chars,
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


AGENT_NUMBER = re.compile(r" \d+$")
"""What tells sub-agents of one kind apart."""
BYTES_PER_TOKEN = 4
"""Rough: it only divides the first call of a chain into static prefix and messages, whose sum is billed."""
Body = dict[str, Any]
RoleBlocks = tuple[str, list[Body]]
ToBlocks = Callable[[str, Any], Iterable[RoleBlocks]]
"""The kind of a piece and its JSON -> blocks of the Messages API, each list with its role. Raises NotAMessage."""


def blocks_of_role(role: str, blocks: list[Body]) -> Iterator[RoleBlocks]:
    """`ToBlocks` for pieces that are blocks already."""
    if blocks:
        yield role, blocks


@dataclass(slots=True)
class SessionRequests:
    """Makes recorded calls of the calls of one file. What cannot be converted goes to `faults`.

    `system` is the system prompt, where the store has it; `client` names the unknown rest.
    """

    path: Path
    client: str
    keep_content: bool
    faults: list[Fault]
    to_blocks: ToBlocks = blocks_of_role
    system: str = ""
    _threads: dict[SessionCall | None, Thread] = field(default_factory=dict)
    """What the request after each call begins with."""
    _heads: dict[tuple[str, ...], Part] = field(default_factory=dict)
    _parts: dict[tuple[str, int, int], Part] = field(default_factory=dict)
    _root: Thread = field(default_factory=Thread)

    def calls(self, session: Session) -> Iterator[Call]:
        for first in session.copies[:1]:  # a copied history begins with the static prefix of its first call
            self._heads[self._chain(first)] = self._head(first, _then(self._root, self._messages(first.request)))
        for call in session.calls:
            try:
                made = self._call(call)
            except (NotAMessage, ValueError) as error:
                self.faults.append(Fault(str(self.path), str(error), call.line))
            else:
                yield made

    def _call(self, call: SessionCall) -> Call:
        answer = self._messages(call.answer)
        request = self._request(call)
        self._threads[call] = _then(request.thread, answer)
        return Call(
            request,
            call.start or 0.0,
            timestamp=None if call.start is None else self._stamp(call.start),
            host=call.host or None,
            first_token_s=call.first_token_s,
            billed=call.usage if call.is_billed else None,
            response=tuple(block for message in answer for block in message.blocks),
            session=f"{call.session} {call.thread}".strip(),
            id=call.id,
            project=call.project,
            agent=call.agent,
            file=str(self.path),
            line=call.line,
            before=call.before.line if call.before else 0,
        )

    def _request(self, call: SessionCall) -> Request:
        """The request; an empty one where the store has the bill alone."""
        if not call.has_content:
            return Request(call.model, self._root, params=_params(call))
        thread = _then(self._threads.get(call.continued, self._root), self._messages(call.request))
        return self._request_with(call, thread)

    def _request_with(self, call: SessionCall, thread: Thread) -> Request:
        key = self._chain(call)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._head(call, thread)
        breakpoints = tuple(self._breakpoints(call, head, thread))
        return Request(call.model, thread, system=head, breakpoints=breakpoints, params=_params(call))

    def _messages(self, pieces: Sequence[Piece]) -> list[Message]:
        """Neighbours of the same role are one message."""
        runs = groupby(self._role_blocks(pieces), itemgetter(0))
        grouped = ((role, [block for _, blocks in run for block in blocks]) for role, run in runs)
        return [self._message(role, blocks) for role, blocks in grouped if blocks]

    def _role_blocks(self, pieces: Sequence[Piece]) -> Iterator[RoleBlocks]:
        for kind, _, data in pieces:
            if data is not None:
                yield from self.to_blocks(kind, data if isinstance(data, list) else json_value(bytes(data).decode()))

    def _message(self, role: str, blocks: Iterable[Any]) -> Message:
        return Message.of(role, tuple(self._block(role, block) for block in blocks))

    def _block(self, role: str, item: Any) -> Block:
        if isinstance(item, Mapping):
            return block_of(role, item, self.keep_content)
        return text_block(role, str(item), self.keep_content)

    def _head(self, call: SessionCall, thread: Thread) -> Part:
        """The static prefix of a chain that begins with this call: the prompt that is known, and the unknown rest."""
        known = (block_of("system", {"type": "text", "text": self.system}, self.keep_content),) if self.system else ()
        if not call.is_billed:
            return Part(known) if known else NOTHING
        size = sum(block.size for message in thread.messages() for block in message.blocks)
        size += sum(block.size for block in known)
        whole = max(0, call.usage.total_input - size // BYTES_PER_TOKEN)
        unknown = self._unknown(self._prefix_name(call), whole, min(whole, self._shared(call)))
        return Part((*known, *unknown.blocks)) if known or unknown.blocks else NOTHING

    def _unknown(self, name: str, whole: int, shared: int) -> Part:
        """`shared` tokens that other chains begin with, too, and the rest."""
        key = (name, shared, whole - shared)
        if key not in self._parts:
            sizes = ((shared, shared), (whole, whole - shared))
            self._parts[key] = Part(
                tuple(_unknown_block(f"{self.client} {name} {end}", size) for end, size in sizes if size)
            )
        return self._parts[key]

    # ------------------------------------------------------------------------------- what differs between stores

    def _stamp(self, time: float) -> str:
        return iso(time)

    def _chain(self, call: SessionCall) -> tuple[str, ...]:
        """What the calls with one static prefix have in common."""
        return (call.thread,)

    def _prefix_name(self, call: SessionCall) -> str:
        """What chains with equal static prefixes have in common."""
        return call.version

    def _shared(self, call: SessionCall) -> int:
        """Tokens of the static prefix that were cached before the chain began."""
        return call.usage.read

    def _breakpoints(self, call: SessionCall, head: Part, thread: Thread) -> Iterator[Breakpoint]:
        """On each block of the static prefix, and on the last block that can have one."""
        if (call.host or maker_of(call.model)) != "anthropic":
            return
        yield from _on_system(head)
        yield from islice(chain.from_iterable(map(_on_last_block, thread.back())), 1)


@dataclass
class StoreRequests(SessionRequests):
    """For a store of several sessions, whose static prefix depends on model and agent.

    `marked` is how many of the last messages have a breakpoint; with `marks_first` it is the first message instead.
    With `joins` neighbours of the same role are one message.
    """

    marked: int = 1
    marks_first: bool = False
    joins: bool = True
    _reads: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """(number, read) of the calls that begin a chain and read something, by the name of their static prefix."""

    def calls(self, session: Session) -> Iterator[Call]:
        for call in session.calls:
            if call.before is None and call.usage.read:
                self._reads.setdefault(self._prefix_name(call), []).append((call.number, call.usage.read))
        yield from super().calls(session)

    def _request_with(self, call: SessionCall, thread: Thread) -> Request:
        return super()._request_with(call, thread) if thread.length else Request(call.model, thread)

    def _messages(self, pieces: Sequence[Piece]) -> list[Message]:
        if self.joins:
            return super()._messages(pieces)
        return [self._message(role, blocks) for role, blocks in self._role_blocks(pieces) if blocks]

    def _stamp(self, time: float) -> str:
        return iso_milliseconds(time)

    def _chain(self, call: SessionCall) -> tuple[str, ...]:
        return call.session, call.thread, call.prefix, call.model

    def _prefix_name(self, call: SessionCall) -> str:
        return " ".join(filter(None, (call.model, AGENT_NUMBER.sub("", call.agent), call.prefix, call.project)))

    def _shared(self, call: SessionCall) -> int:
        """As above; where nothing was, what the next chain of the same kind read in its first call."""
        later = (read for number, read in self._reads.get(self._prefix_name(call), ()) if number > call.number)
        return call.usage.read or next(later, 0)

    def _breakpoints(self, call: SessionCall, head: Part, thread: Thread) -> Iterator[Breakpoint]:
        """On each block of the static prefix, and on the last block of the messages that the client marks."""
        if "claude" not in call.model:
            return
        yield from _on_system(head)
        nodes = [node for node in thread.back() if node.message]
        for node in nodes[-1:] if self.marks_first else nodes[: self.marked][::-1]:
            yield from _on_last_block(node)


def _params(call: SessionCall) -> Mapping[str, Any]:
    return {"service_tier": call.modes[0]} if call.modes else {}


def _unknown_block(name: str, tokens: int) -> Block:
    return given_block("text", "system", f"unknown head of {name}", tokens)


def _then(thread: Thread, messages: Iterable[Message]) -> Thread:
    for message in messages:
        thread = thread.then(message)
    return thread


def _on_system(head: Part) -> Iterator[Breakpoint]:
    return (Breakpoint(Layer.SYSTEM, index, "5m") for index in range(len(head.blocks)))


def _on_last_block(node: Thread) -> Iterator[Breakpoint]:
    """On the last block of a message that can have one."""
    blocks = node.message.blocks if node.message else ()
    for index in range(len(blocks) - 1, -1, -1):
        if not blocks[index].is_thinking and not blocks[index].is_empty_text:
            yield Breakpoint(Layer.MESSAGES, index, "5m", node)
            return


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """A format whose files hold one session each: what its reader module offers.

    `client` is as in `SessionFile`, `name` as people write it. `read` parses a file (path, errors, where notes go,
    whether content is kept).
    """

    client: str
    name: str
    read: Callable[[Path, list[Fault], Warn, bool], Session]
    to_blocks: ToBlocks

    def calls(self, path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
        """The calls in the order of their bills; copies of one call in other files share its `id`.

        Raises InputError with every error, each with its line.
        """
        faults: list[Fault] = []
        session = self.read(path, faults, warn, True)
        if faults:
            raise InputError(faults)
        requests = SessionRequests(path, self.name, keep_content, faults, self.to_blocks, session.system)
        yield from requests.calls(session)
        if faults:
            raise InputError(faults)

    def session_files(self, path: Path) -> list[SessionFile]:
        """The calls of a file without content, for a bill. A damaged line is listed, and the others count."""
        faults: list[Fault] = []
        session = self.read(path, faults, quiet, False)
        damaged = tuple((fault.line or 0, fault.message) for fault in faults)
        calls, notes = billed_calls(session.calls), tuple(session.notes)
        return [SessionFile(str(path), self.client, session.project, calls, damaged, notes)]
