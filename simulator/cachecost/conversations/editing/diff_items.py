"""Calls and events in a form that can be compared: a key for what was sent, fields for the rest, blocks by place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from cachecost.base.times import iso
from cachecost.conversations.call_recording import TOKENS
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.model import Conversation, ConversationState, Inquiry, Reply
from cachecost.conversations.recording import EVENTS
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.blocks import Block, Message, Part, Thread
from cachecost.prompts.request import Breakpoint, Request
from cachecost.providers.usage import Usage

LAYERS = ("tools", "system", "messages", "response", "blocks")
Place = tuple[int, ...]
"""Layer (its number in `LAYERS`), message (only in messages) and block, all from 0: places sort in prompt order."""
Identity = Callable[[Block], bytes]
WORDS = ("workspace", "session", "fault", "params.", "answer_type", "tool_use")
"""Fields that hold words, which differ under another digest key."""


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block and where it stands."""

    place: Place
    block: Block


@dataclass(frozen=True, slots=True)
class DiffItem:
    """A call, an event, or the head of a conversation (number 0).

    `key` is equal where the requests are, `answer` where the responses are; `blocks` gives the blocks of both.
    """

    number: int
    key: bytes
    answer: tuple[bytes, ...]
    fields: Mapping[str, Any]
    blocks: Callable[[], Iterator[PlacedBlock]]


def by_digest(block: Block) -> bytes:
    """What a block is."""
    return block.digest


def by_shape(block: Block) -> bytes:
    """The part of a block that is the same in recordings under different keys."""
    return json.dumps([block.kind, block.role, block.size]).encode()


def place_name(place: Place) -> str:
    """A place as the API names it: messages.3.0"""
    return ".".join([LAYERS[place[0]], *map(str, place[1:])])


@dataclass(slots=True)
class ItemBuilder:
    """Builds items. With `words` false, they leave out the fields that differ under another key."""

    identity: Identity = by_digest
    words: bool = True
    _threads: dict[Thread, bytes] = field(default_factory=dict)

    def of_calls(self, calls: Iterable[RecordedCall]) -> list[DiffItem]:
        starts = StartTimes()
        return [
            self._call(number, call, starts.next_if_unusual(call.start, call.timestamp))
            for number, call in enumerate(calls, 1)
        ]

    def of_conversation(self, conversation: Conversation) -> list[DiffItem]:
        """The head, then the events. Raises ValueError for a conversation found in calls."""
        events = [event for event in conversation.events if isinstance(event, ConversationState)]
        if len(events) < len(conversation.events):
            raise ValueError("a conversation built from calls: compare its calls")
        return [self._head(conversation), *(self._event(number, event) for number, event in enumerate(events, 1))]

    # ----------------------------------------------------------------------------------------- calls

    def _call(self, number: int, call: RecordedCall, start_s: float | None) -> DiffItem:
        sent = self._fields(_request_fields(call.request))
        key = self._key(
            sorted(sent.items()),
            self._part(call.request.tools),
            self._part(call.request.system),
            self._thread(call.request.thread),
        )
        fields = {
            **sent,
            "messages": call.request.thread.length,
            **self._fields(_call_fields(call, start_s)),
            **_bill_fields(call),
        }
        answer = tuple(map(self.identity, call.response))
        return DiffItem(number, key, answer, fields, lambda: _blocks_of_call(call))

    def _thread(self, thread: Thread) -> bytes:
        return thread.fold(self._threads, b"", self._append)

    def _append(self, key: bytes, message: Message) -> bytes:
        return self._key(message.role, key, *map(self.identity, message.blocks))

    def _part(self, part: Part) -> bytes:
        return self._key("", *map(self.identity, part.blocks))

    def _key(self, fields: object, *identities: bytes) -> bytes:
        digest = blake2b(json.dumps(fields).encode(), digest_size=16)
        for identity in identities:
            digest.update(len(identity).to_bytes(4, "big") + identity)
        return digest.digest()

    def _fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in fields.items() if value is not None and value not in ("", [])}
        return fields if self.words else {name: value for name, value in fields.items() if not name.startswith(WORDS)}

    # ---------------------------------------------------------------------------------- conversations

    def _head(self, conversation: Conversation) -> DiffItem:
        fields = self._fields({"model": conversation.model, **_params(conversation.params)})
        parts = (conversation.tools, conversation.system)
        key = self._key(sorted(fields.items()), *map(self._part, parts))
        return DiffItem(0, key, (), fields, lambda: _blocks_of_parts(*parts))

    def _event(self, number: int, event: ConversationState) -> DiffItem:
        blocks = (event.question, event.answer) if isinstance(event, Inquiry) else event.blocks
        fields = self._fields({"event": EVENTS[type(event)], "at": iso(event.at), **_details(event)})
        key = self._key(EVENTS[type(event)], *map(self.identity, blocks))
        return DiffItem(number, key, (), fields, lambda: (PlacedBlock((4, n), block) for n, block in enumerate(blocks)))


def _blocks_of_parts(tools: Part, system: Part) -> Iterator[PlacedBlock]:
    for layer, part in enumerate((tools, system)):
        yield from (PlacedBlock((layer, n), block) for n, block in enumerate(part.blocks))


def _blocks_of_call(call: RecordedCall) -> Iterator[PlacedBlock]:
    yield from _blocks_of_parts(call.request.tools, call.request.system)
    for number, message in enumerate(call.request.thread.messages()):
        yield from (PlacedBlock((2, number, n), block) for n, block in enumerate(message.blocks))
    yield from (PlacedBlock((3, n), block) for n, block in enumerate(call.response))


def _request_fields(request: Request) -> dict[str, Any]:
    """The fields of a request besides its blocks."""
    breakpoints = [_breakpoint(breakpoint) for breakpoint in request.breakpoints]
    fields = {
        "model": request.model,
        "breakpoints": breakpoints,
        "automatic": request.automatic,
        "fault": request.fault,
    }
    return {**fields, **_params(request.params)}


def _breakpoint(breakpoint: Breakpoint) -> str:
    message = [str(breakpoint.node.length - 1)] if breakpoint.node else []
    return ".".join([str(breakpoint.layer), *message, str(breakpoint.index)]) + f" {breakpoint.ttl}"


def _params(params: Mapping[str, Any]) -> dict[str, Any]:
    return {f"params.{name}": value for name, value in params.items()}


def _call_fields(call: RecordedCall, start_s: float | None) -> dict[str, Any]:
    return {
        "timestamp": call.timestamp,
        "start_s": start_s,
        "seen_on": call.day.isoformat() if call.day and call.timestamp is None else None,
        "first_token_s": call.first_token_s or None,
        "host": call.host,
        "workspace": call.workspace,
        "session": call.session,
        "project": call.project,
        "agent": call.agent,
        "status": call.status,
        "service": "batch" if call.is_batch else None,
    }


def _bill_fields(call: RecordedCall) -> dict[str, Any]:
    passes = [{"type": one.kind, "model": one.model, **_usage(one.usage, "")} for one in call.iterations]
    usage = _usage(call.billed, "usage.") if call.billed is not None else {}
    return {**usage, **({"iterations": passes} if passes else {})}


def _usage(usage: Usage, prefix: str) -> dict[str, int]:
    return {prefix + name: getattr(usage, of) for name, of in TOKENS.items()}


def _details(event: ConversationState) -> dict[str, Any]:
    if isinstance(event, Reply):
        return {"first_token_s": event.first_token_s, "output_tokens": event.output_tokens}
    if isinstance(event, Inquiry):
        return {"answer_type": event.answer_type, "tool_use": event.tool_use, "batch": event.batch}
    return {}
