"""Checks of JSON values that another tool wrote. Each raises NotAMessage with the value's path.

Calls that a log does not keep in the order in which they began.

Calls of session stores: what a reader finds of each, and how it becomes a `RecordedCall` or a `BilledCall`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from cachecost.base.times import iso_milliseconds
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import EVENTS, BilledCall
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import Breakpoint, NotAMessage, Request, block_of, text_block
from cachecost.providers.usage import Usage


def by_start(calls: Iterable[RecordedCall], traces: Collection[str]) -> list[RecordedCall]:
    """The calls by their start. A session that is one of `traces` and that only one call has is none: tracers and
    gateways make up an id for every request, and calls of different sessions never go on from each other."""
    found = sorted(calls, key=attrgetter("start"))
    times = Counter(call.session for call in found)
    return [
        replace(call, session="") if times[call.session] == 1 and call.session in traces else call for call in found
    ]


def objects_in(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none if it is not a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def object_or_empty(value: Any) -> Mapping[str, Any]:
    """The object; an empty one in place of anything else. Raises nothing."""
    return value if isinstance(value, Mapping) else {}


def object_at(value: Any, path: str) -> Mapping[str, Any]:
    """The object; an empty one if there is no value."""
    return {} if value is None else require_object(value, path)


def require_object(value: Any, path: str, expected: str = "an object") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise NotAMessage(path, expected, value)
    return value


def array_at(value: Any, path: str, expected: str = "an array") -> list[Any]:
    if not isinstance(value, list):
        raise NotAMessage(path, expected, value)
    return value


BYTES_PER_TOKEN = 4
"""Rough: it only divides the first call of a chain into static prefix and messages, whose sum is billed."""
NUMBER = re.compile(r" \d+$")
"""What tells sub-agents of one kind apart."""
Body = dict[str, Any]


@dataclass(slots=True, eq=False)
class StoredCall:
    """One billed answer of a session store, and what its request has after the answer of the call `before`.

    `messages` are messages of the Messages API (role and content blocks), `answer` content blocks; both are empty where
    the store or the caller has no content. With `is_cut` the request begins with `messages`: the history was compacted.
    `prefix` names a static prefix that is not that of the chain: a summary has a prompt of its own. Times are seconds
    since the epoch. `blocks` and `new_chars` are those of the content that the request has and the one before did not
    (its answer is part of it). `id` is equal for all copies of a call. `usage` is None where it is unknown.
    """

    model: str
    usage: Usage | None
    host: str | None = None
    start: float | None = None
    end: float | None = None
    first_token_s: float = 0.0
    before: StoredCall | None = None
    events: frozenset[str] = frozenset()
    session: str = ""
    agent: str = ""
    project: str = ""
    id: str = ""
    line: int = 0
    version: str = ""
    blocks: int = 0
    new_chars: int = 0
    has_thinking: bool = False
    messages: list[Body] = field(default_factory=list)
    answer: list[Body] = field(default_factory=list)
    is_cut: bool = False
    prefix: str = ""
    number: int = 0


def number_calls(found: Iterable[StoredCall]) -> list[StoredCall]:
    """The calls in the order of their times, numbered from 1. One without a time keeps its place, and none comes before
    the one that it continues."""
    calls, last = list(found), 0.0
    times: dict[int, float] = {}
    for call in calls:
        last = last if call.start is None else call.start
        last = max(last, times.get(id(call.before), last))
        times[id(call)] = last
    calls.sort(key=lambda call: times[id(call)])
    for number, call in enumerate(calls, 1):
        call.number = number
    return calls


def billed_calls(found: Iterable[StoredCall]) -> list[BilledCall]:
    """The bill of each numbered call whose usage is known."""
    return [_billed_call(call, call.usage) for call in found if call.usage is not None]


def _billed_call(call: StoredCall, usage: Usage) -> BilledCall:
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
        blocks=call.blocks,
        new_chars=call.new_chars,
        has_thinking=call.has_thinking,
        host=call.host or "",
    )


@dataclass(slots=True)
class RequestBuilder:
    """Makes recorded calls of stored ones, in their order. `marked` is how many of the last messages have a breakpoint,
    with `marks_first` the first one instead; `client` names the static prefix."""

    client: str
    path: Path
    keep_content: bool
    marked: int = 1
    marks_first: bool = False
    _root: Thread = field(default_factory=Thread)
    _threads: dict[int, Thread] = field(default_factory=dict)
    _prefixes: dict[tuple[str, str], Part] = field(default_factory=dict)
    _reads: dict[tuple[str, ...], list[tuple[int, int]]] = field(default_factory=dict)
    """(number, read) of the calls that begin a chain and read something, by the kind of their static prefix."""

    def calls(self, found: list[StoredCall]) -> Iterator[RecordedCall]:
        for call in found:
            if call.before is None and call.usage and call.usage.read:
                self._reads.setdefault(_kind(call), []).append((call.number, call.usage.read))
        for call in found:
            yield self._recorded_call(call, self._thread(call))

    def _thread(self, call: StoredCall) -> Thread:
        """The messages of a call. Those before it are made first, whatever their times."""
        waiting = [call]
        while (before := _continued(waiting[-1])) and id(before) not in self._threads:
            waiting.append(before)
        for one in reversed(waiting):
            self._threads[id(one)] = self._own_thread(one)
        return self._threads[id(call)]

    def _own_thread(self, call: StoredCall) -> Thread:
        before, thread = _continued(call), self._root
        if before is not None:
            thread = self._then(self._threads[id(before)], "assistant", before.answer)
        for message in call.messages:
            thread = self._then(thread, str(message["role"]), message["content"])
        return thread

    def _then(self, thread: Thread, role: str, content: list[Any]) -> Thread:
        blocks = self._blocks(role, content)
        return thread.then(Message.of(role, blocks)) if blocks else thread

    def _blocks(self, role: str, content: list[Any]) -> tuple[Block, ...]:
        return tuple(_block(role, item, self.keep_content) for item in content)

    def _recorded_call(self, call: StoredCall, thread: Thread) -> RecordedCall:
        return RecordedCall(
            self._request(call, thread),
            call.start or 0.0,
            timestamp=None if call.start is None else iso_milliseconds(call.start),
            host=call.host,
            first_token_s=call.first_token_s,
            billed=call.usage,
            response=self._blocks("assistant", call.answer),
            session=f"{call.session} {call.agent}".strip(),
            project=call.project,
            agent=call.agent,
            id=call.id,
            file=str(self.path),
            line=call.line,
        )

    def _request(self, call: StoredCall, thread: Thread) -> Request:
        if not thread.length:  # only the bill is known
            return Request(call.model, thread)
        key = f"{call.session} {call.agent} {call.prefix}", call.model
        if key not in self._prefixes:
            self._prefixes[key] = self._new_prefix(call, thread)
        prefix = self._prefixes[key]
        breakpoints = self._breakpoints(prefix, thread) if "claude" in call.model else ()
        return Request(call.model, thread, system=prefix, breakpoints=tuple(breakpoints))

    def _new_prefix(self, call: StoredCall, thread: Thread) -> Part:
        if call.usage is None:
            return NOTHING
        messages = sum(block.size for message in thread.messages() for block in message.blocks) // BYTES_PER_TOKEN
        whole = max(0, call.usage.total_input - messages)
        shared = min(whole, call.usage.read or self._read_later(call))
        kind = " ".join(filter(None, _kind(call)))
        parts = ((f"{kind} {shared}", shared), (f"{kind} {whole}", whole - shared))
        return Part(tuple(self._unknown(name, tokens) for name, tokens in parts if tokens))

    def _read_later(self, call: StoredCall) -> int:
        """What the next chain of the same kind read in its first call; 0 if there is none."""
        later = (read for number, read in self._reads.get(_kind(call), ()) if number > call.number)
        return next(later, 0)

    def _unknown(self, name: str, tokens: int) -> Block:
        return given_block("text", "system", f"unknown head of {self.client} {name}", tokens)

    def _breakpoints(self, prefix: Part, thread: Thread) -> Iterator[Breakpoint]:
        for index in range(len(prefix.blocks)):
            yield Breakpoint(Layer.SYSTEM, index, "5m")
        nodes = [node for node in thread.back() if node.message]
        chosen = nodes[-1:] if self.marks_first else nodes[: self.marked][::-1]
        for node in chosen:
            yield from _last_block(node)


def _kind(call: StoredCall) -> tuple[str, ...]:
    """What calls with the same static prefix have in common."""
    return call.model, NUMBER.sub("", call.agent), call.prefix, call.project


def _continued(call: StoredCall) -> StoredCall | None:
    """The call whose messages begin the request of this one."""
    return None if call.is_cut else call.before


def _last_block(node: Thread) -> Iterator[Breakpoint]:
    blocks = node.message_blocks
    for index in range(len(blocks) - 1, -1, -1):
        if not blocks[index].is_thinking and not blocks[index].is_empty_text:
            yield Breakpoint(Layer.MESSAGES, index, "5m", node)
            return


def _block(role: str, item: Any, keep_content: bool) -> Block:
    return (
        block_of(role, item, keep_content) if isinstance(item, Mapping) else text_block(role, str(item), keep_content)
    )
