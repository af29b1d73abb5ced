"""Makes the requests of a session store's calls, as far as the store has them.

- **Static prefix**: tools, and the system prompt where the store has none, become blocks of the system layer. Their
  size is that of the first call's input minus its messages. What that call read was there before the session, so
  chains that begin with the same read share that much.
- **Breakpoints**: only for Claude models, as no other host needs them: on the static prefix and on the last block.
- Parameters of the request that the store does not have are not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.limits import json_value
from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.common.session_calls import Piece, Session, SessionCall
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import Breakpoint, Request
from cachecost.prompts.wire import NotAMessage, block_of
from cachecost.providers.hosts import maker_of
from cachecost.providers.usage import Usage

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
