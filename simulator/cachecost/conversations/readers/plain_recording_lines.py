"""A fast path to the lines that most of a recording consists of: blocks that follow from their content, and calls with
the fields that most calls have.

A line is read here only if it is certain that call_recording.py would read the same of it, without an error. msgspec
checks the fields and their types; what it cannot check is checked before anything is kept. All other lines are left to
call_recording.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

import msgspec

from cachecost.base import limits
from cachecost.base.times import seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.model import BlockReader
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread
from cachecost.prompts.exact_json import DECODE, ENCODE, Differs, PackedBlock, plain_block
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.providers.usage import Usage

Count = Annotated[int, msgspec.Meta(ge=0, le=limits.MOST_TOKENS)]
Role = Literal["assistant", "system", "user"]
BLOCK, CALL = b'{"block":', b'{"call":'
LAYERS: dict[str | int, Layer] = {"tools": Layer.TOOLS, "system": Layer.SYSTEM}
TTLS: tuple[object, ...] = ("5m", "1h")


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What a request says before its messages."""

    model: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: Part = NOTHING
    system: Part = NOTHING


@dataclass(slots=True)
class RecordingState:
    """What the lines of a recording so far define: blocks and heads by number, the thread of each call."""

    table: BlockReader = field(default_factory=BlockReader)
    starts: StartTimes = field(default_factory=StartTimes)
    heads: dict[int, RequestHead] = field(default_factory=dict)
    root: Thread = field(default_factory=Thread)
    threads: dict[int, Thread] = field(default_factory=dict)
    last: int = 0
    source: str = ""


class PlainBlock(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The line of a block that follows from its content."""

    block: Count
    role: Role
    content: msgspec.Raw


class PlainUsage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The usage of a call; the fields are those of `Usage`, in its order."""

    input_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    ephemeral_5m_input_tokens: Count = 0
    ephemeral_1h_input_tokens: Count = 0
    output_tokens: Count = 0


class PlainCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The line of a call, with the fields that calls of agents have."""

    call: Count
    head: Count
    timestamp: str | None = None
    first_token_s: float = 0.0
    host: str | None = None
    workspace: str = ""
    session: str = ""
    project: str = ""
    agent: str = ""
    after: tuple[Count, Count] | None = None
    messages: list[tuple[Role, list[int]]] = []
    breakpoints: list[list[str | int]] = []
    usage: PlainUsage | None = None
    response: list[int] = []


decode_block = msgspec.json.Decoder(PlainBlock).decode
decode_call = msgspec.json.Decoder(PlainCall).decode


class NotPlain(Exception):
    """A line that only call_recording.py can read."""


CANNOT_READ = (NotPlain, Differs, KeyError, IndexError, ValueError, OverflowError, RecursionError)
"""Errors of msgspec and of UTF-8 are ValueErrors."""


class PlainLineParser:
    """Reads lines of a recording into its state."""

    def __init__(self, state: RecordingState) -> None:
        self._state = state
        self._texts: dict[str, str] = {}
        self._breakpoints: dict[tuple[object, ...], Breakpoint] = {}

    def parse_line(self, raw: bytes, number: int) -> Call | bool:
        """The call in this line, True for a block, which is kept; False where nothing was read."""
        try:
            if raw.startswith(BLOCK):
                return self._block(raw)
            return self._call(raw, number) if raw.startswith(CALL) else False
        except CANNOT_READ:
            return False

    def _block(self, raw: bytes) -> bool:
        line = decode_block(raw)
        content: Any = DECODE(line.content)
        limits.check_depth({"content": content}, raw)
        if line.block in self._state.table.blocks or type(content) is not dict:
            return False
        block = plain_block(line.role, content, write=ENCODE)
        if type(block) is not PackedBlock:
            return False
        self._state.table.blocks[line.block] = block
        return True

    def _call(self, raw: bytes, number: int) -> Call | bool:
        line, state = decode_call(raw), self._state
        if line.call != state.last + 1:
            return False
        head = state.heads[line.head]
        start = None if line.timestamp is None else seconds(line.timestamp)
        thread, response = self._thread(line), self._blocks(line.response)
        breakpoints = tuple([self._breakpoint(place, head, thread) for place in line.breakpoints])
        request = Request(head.model, thread, head.tools, head.system, breakpoints, params=head.params)
        state.last = line.call
        state.threads[line.call] = thread
        if start is None:
            start = state.starts.next(None)
        state.starts.last = start
        return self._recorded(line, number, start, request, response)

    def _recorded(
        self, line: PlainCall, number: int, start: float, request: Request, response: tuple[Block, ...]
    ) -> Call:
        usage = line.usage
        return Call(
            request,
            start,
            timestamp=line.timestamp,
            host=line.host if line.host is None else self._text(line.host),
            workspace=self._text(line.workspace),
            first_token_s=line.first_token_s,
            response=response,
            billed=None if usage is None else Usage(*msgspec.structs.astuple(usage)),
            source=self._state.source,
            session=self._text(line.session),
            project=self._text(line.project),
            agent=self._text(line.agent),
            line=number,
        )

    def _text(self, text: str) -> str:
        """The same object for the same text: most calls repeat those of the call before."""
        return self._texts.setdefault(text, text)

    def _thread(self, line: PlainCall) -> Thread:
        thread = self._before(line.after)
        for role, numbers in line.messages:
            blocks = self._blocks(numbers)
            if any(block.role != role for block in blocks):
                raise NotPlain
            thread = thread.then(Message.of(role, blocks))
        return thread

    def _before(self, after: tuple[int, int] | None) -> Thread:
        if after is None:
            return self._state.root
        call, length = after
        whole = self._state.threads[call]
        if length > whole.length:
            raise NotPlain
        return whole.up_to(length)

    def _blocks(self, numbers: list[int]) -> tuple[Block, ...]:
        blocks = self._state.table.blocks
        return tuple([blocks[number] for number in numbers])

    def _breakpoint(self, place: list[str | int], head: RequestHead, thread: Thread) -> Breakpoint:
        layer, *message, index, ttl = place
        if type(index) is not int or index < 0 or ttl not in TTLS:
            raise NotPlain
        if layer == "messages":
            (position,) = message
            if type(position) is not int or not 0 <= position < thread.length:
                raise NotPlain
            node = thread.up_to(position + 1)
            if node.message is None or index >= len(node.message.blocks):
                raise NotPlain
            return Breakpoint(Layer.MESSAGES, index, cast("TTL", ttl), node)
        part = head.tools if layer == "tools" else head.system
        if message or layer not in LAYERS or index >= len(part.blocks):
            raise NotPlain
        key = (layer, index, ttl)
        if key not in self._breakpoints:
            self._breakpoints[key] = Breakpoint(LAYERS[layer], index, cast("TTL", ttl))
        return self._breakpoints[key]
