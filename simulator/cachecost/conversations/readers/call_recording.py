"""Reads our recordings of calls (their format: conversations/call_recording.py) as the calls of the log they were made
from.

Most lines are blocks that follow from their content, and calls with the fields that most calls have. These are read by
msgspec, which checks fields and types (`PlainBlock`, `PlainCall`), if it is certain that there is no error in them; all
other lines are read field by field, with errors (`CheckedCall`). What a call is made of its fields is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_ERRORS
from cachecost.conversations.call_recording import FORMAT, KIND, TOKENS, Title, sniff
from cachecost.conversations.calls import Call, Iteration
from cachecost.conversations.input_files import Warn, byte_lines, open_input, quiet
from cachecost.conversations.json_object import JsonObject, are_pairs, json_line, parse_json
from cachecost.conversations.model import CONTENTS, BlockReader
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread
from cachecost.prompts.exact_json import DECODE, ENCODE, Differs, PackedBlock, plain_block
from cachecost.prompts.intake import OBJECTS, PARAMETERS
from cachecost.prompts.request import ROLES, Breakpoint, MessageThread, NotAMessage, Request, show_found
from cachecost.providers.usage import Usage, usage_of

__all__ = ["RecordingLines", "calls", "sniff", "title"]
TTLS = ("5m", "1h")
PLACES = {"tools": 3, "system": 3, "messages": 4}
"""How many values a breakpoint in each layer has."""


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in order, until the first fault; then the rest is only checked. Content that is there is kept. Raises
    InputError with every fault. A last line that was cut off is skipped, with a note to `warn`."""
    parser = RecordingLines(path)
    for number, raw in byte_lines(path):
        if len(parser.faults) >= MOST_ERRORS and raw.strip():
            break
        call = parser.read_line(number, raw, warn)
        if parser.is_refused:
            break
        if call is not None and not parser.faults:
            yield call
    if parser.header is None and not parser.faults:
        parser.faults.append(Fault(str(path), "is empty: a recording starts with a whole header line"))
    if parser.faults:
        raise InputError(parser.faults)


def title(path: Path) -> Title:
    """The fields of the header, as far as it is one. Raises InputError where the file cannot be read."""
    with open_input(path) as stream:
        first = parse_json(next((raw for raw in stream if raw.strip()), b""))
    parsed = first if isinstance(first, dict) else {}
    return Title(*(str(parsed.get(name) or "") for name in ("name", "source", "licence")))


Count = Annotated[int, msgspec.Meta(ge=0, le=limits.MOST_TOKENS)]
Role = Literal["assistant", "system", "user"]
MessageBlocks = tuple[str, tuple[Block, ...]]
Check = Callable[[JsonObject], Any]


class NotPlain(Exception):
    """A line that must be read field by field."""


CANNOT_READ = (NotPlain, NotAMessage, Differs, KeyError, IndexError, ValueError, OverflowError, RecursionError)


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
    """The line of a call, with the fields that calls of agents have; the others are absent."""

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

    start_s: ClassVar[Any] = None
    automatic: ClassVar[Any] = None
    request_fault: ClassVar[Any] = None
    message_thread: ClassVar[Any] = None
    status: ClassVar[Any] = None
    is_batch: ClassVar[Any] = False
    iterations: ClassVar[Any] = ()
    seen_on: ClassVar[Any] = None

    def message_blocks(self, table: BlockReader) -> Iterator[MessageBlocks]:
        for role, numbers in self.messages:
            blocks = tuple([table.blocks[number] for number in numbers])
            if any(block.role != role for block in blocks):
                raise NotPlain
            yield role, blocks

    def response_blocks(self, table: BlockReader) -> tuple[Block, ...]:
        return tuple([table.blocks[number] for number in self.response])

    @property
    def billed(self) -> Usage | None:
        return None if self.usage is None else Usage(*msgspec.structs.astuple(self.usage))

    def fault(self, name: str, message: str) -> None:
        raise NotPlain


decode_block = msgspec.json.Decoder(PlainBlock).decode
decode_call = msgspec.json.Decoder(PlainCall).decode


class CheckedCall:
    """The fields of the line of a call, as those of `PlainCall`; each is checked when it is asked for."""

    def __init__(self, line: JsonObject) -> None:
        self._line = line
        self.fault = line.fault

    def __getattr__(self, name: str) -> Any:
        return FIELDS[name](self._line)

    def message_blocks(self, table: BlockReader) -> Iterator[MessageBlocks]:
        expected = "an array of [role, block numbers]"
        for number, (stated, numbers) in enumerate(self._line.get("messages", expected, are_pairs, [], required=False)):
            message = self._line.within({"role": stated, "blocks": numbers}, f"messages[{number}]")
            role, blocks = message.one_of("role", ROLES), table.get(message, "blocks")
            stranger = next((block for block in blocks if block.role != role), None)
            if stranger and role == stated:
                message.fault("blocks", f"expected blocks of role {role}; got one of role {stranger.role or 'none'}")
            yield role, blocks

    def response_blocks(self, table: BlockReader) -> tuple[Block, ...]:
        return _blocks(self._line, "response", table)


def _usage(parsed: JsonObject) -> Usage:
    def are_uses(value: Any) -> bool:
        return are_pairs(value) and all(type(tool) is str and _is_count(number) for tool, number in value)

    def is_amount(value: Any) -> bool:
        return isinstance(value, str) and bool(re.fullmatch(r"\d{1,12}(\.\d{1,20})?", value))

    uses = parsed.get("tool_uses", "an array of [tool, number]", are_uses, [], required=False)
    charged = parsed.get("charged_usd", "USD, a decimal number in a text", is_amount, None, required=False)
    counts = (parsed.whole(name, 0) or 0 for name in TOKENS)
    tool_uses = tuple((tool, number) for tool, number in uses)
    return usage_of(counts, tool_uses, None if charged is None else Decimal(charged))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _seconds(line: JsonObject, name: str = "first_token_s") -> float:
    return float(line.get(name, "a number", lambda value: type(value) in (int, float), 0.0, required=False))


def _inner(line: JsonObject, name: str, parse: Check) -> Any:
    if not line.has(name):
        return None
    inner = line.within(line.mapping(name), name)
    made = parse(inner)
    inner.refuse_unknown_keys()
    return made


def _iterations(line: JsonObject) -> tuple[Iteration, ...]:
    found = []
    for parsed in line.objects("iterations"):
        found.append(Iteration(parsed.text("type"), _usage(parsed), parsed.text("model", "")))
        parsed.refuse_unknown_keys()
    return tuple(found)


def _day(line: JsonObject) -> date | None:
    text = line.text("seen_on") if line.has("seen_on") else None
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError:
        line.fault("seen_on", f"expected a day like 2026-03-07; got '{text}'")
        return None
    return None if line.has("timestamp") else day


def _blocks(line: JsonObject, name: str, table: BlockReader) -> tuple[Block, ...]:
    return table.get(line, name) if line.has(name) else ()


def _field(name: str, expected: str, is_good: Callable[[Any], bool], default: Any = None) -> Check:
    return lambda line: line.get(name, expected, is_good, default, required=False)


def _text_if_there(name: str) -> Check:
    return lambda line: line.text(name) if line.has(name) else None


FIELDS: Mapping[str, Check] = {
    "call": lambda line: line.whole("call", required=True),
    "head": lambda line: line.whole("head", required=True),
    "timestamp": lambda line: line.moment("timestamp"),
    "start_s": lambda line: line.epoch("start_s"),
    "after": _field(
        "after", "[call, number of its messages]", lambda value: are_pairs([value]) and all(map(_is_count, value))
    ),
    "breakpoints": _field("breakpoints", "an array of breakpoints", lambda value: isinstance(value, list), []),
    "automatic": lambda line: line.one_of("automatic", TTLS) if line.has("automatic") else None,
    "request_fault": _text_if_there("fault"),
    "message_thread": lambda line: _inner(
        line,
        "message_thread",
        lambda thread: MessageThread(
            idle_s=_seconds(thread, "idle_s"),
            id=thread.text("id"),
            breakpoints=thread.whole("breakpoints", required=False) or 0,
        ),
    ),
    "billed": lambda line: _inner(line, "usage", _usage),
    "first_token_s": _seconds,
    "host": _text_if_there("host"),
    "status": _field("status", "a whole number", lambda value: type(value) is int),
    "is_batch": lambda line: line.has("service") and bool(line.one_of("service", ("batch",))),
    "iterations": _iterations,
    "seen_on": _day,
    "workspace": lambda line: line.text("workspace", ""),
    "session": lambda line: line.text("session", ""),
    "project": lambda line: line.text("project", ""),
    "agent": lambda line: line.text("agent", ""),
}


class RecordingLines:
    """A recording while it is read, or written, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[Fault] = []
        self.header: JsonObject | None = None
        self.is_refused = False
        """Whether the first line is no header that can be read."""
        self._source = ""
        self._table = BlockReader()
        self._starts = StartTimes()
        self._root = Thread()
        self._number = 0
        self._heads: dict[int, Request] = {}
        """The requests without their messages, by number."""
        self._threads: dict[int, Thread] = {}
        self._last = 0
        self._texts: dict[str, str] = {}
        self._breakpoints: dict[tuple[object, ...], Breakpoint] = {}

    def read(self, lines: bytes) -> list[Call]:
        """The calls in the next lines, which are whole. Raises InputError."""
        found: list[Call] = []
        for raw in lines.splitlines():
            self._number += 1
            call = self.read_line(self._number, raw, quiet)
            found += [] if call is None else [call]
        if self.faults:
            raise InputError(self.faults)
        return found

    def read_line(self, number: int, raw: bytes, warn: Warn) -> Call | None:
        """The call in a line, if it is one. Errors go to `faults`."""
        call = self.read_plain_line(number, raw)
        if call is not False:
            return None if call is True else call
        line = json_line(self.path, number, raw, self.faults, warn)
        if line is None:
            return None
        if self.header is None:
            self._header(line)
            self.is_refused = self.header is None
        elif "block" in line.data:
            self._table.add(line)
        elif "call" in line.data:
            found = self._call(CheckedCall(line), number)
            line.refuse_unknown_keys()
            return found
        elif "head" in line.data:
            self._head(line)
        else:
            line.fault("line", "expected a block, a head or a call")
        return None

    def read_plain_line(self, number: int, raw: bytes) -> Call | bool:
        """The call in this line, True for a block, which is kept; False where nothing was read."""
        began = self._starts.last
        try:
            if self.header is None:
                return False
            if raw.startswith(b'{"call":'):
                return self._call(decode_call(raw), number)
            if not raw.startswith(b'{"block":'):
                return False
            line = decode_block(raw)
            content: Any = DECODE(line.content)
            limits.check_depth({"content": content}, raw)
            if line.block in self._table.blocks or type(content) is not dict:
                return False
            block = plain_block(line.role, content, write=ENCODE)
            if type(block) is not PackedBlock:
                return False
            self._table.blocks[line.block] = block
            return True
        except CANNOT_READ:
            self._starts.last = began
            return False

    def _header(self, line: JsonObject) -> None:
        number = line.get("format", f"the header of a recording, format {FORMAT}", lambda value: True, None)
        if number is None:
            return
        if number != FORMAT or isinstance(number, bool):
            line.fault("format", f"expected {FORMAT}; got {show_found(number)}, which this version cannot read")
        elif line.one_of("kind", (KIND,)) == line.data.get("kind"):
            self.header = line
            line.one_of("content", CONTENTS)
            line.text("name")
            self._source = line.text("source", "")
            line.text("licence", "")
            line.refuse_unknown_keys()

    def _head(self, line: JsonObject) -> None:
        number = line.whole("head", required=True) or 0
        if number in self._heads:
            line.fault("head", f"{number} is already defined")
        parts = list[Part]()
        for name, of_places in (("tools", "tool_places"), ("system", "system_places")):
            blocks = _blocks(line, name, self._table)
            places = tuple(line.wholes(of_places, required=False)) or None
            if places and len(places) != len(blocks):
                line.fault(of_places, f"expected {len(blocks)} places, as many as {name}; got {len(places)}")
            parts.append(Part(blocks, places) if blocks else NOTHING)
        model = line.text("model")
        params = line.within(line.mapping("params", required=False), "params")
        for name in PARAMETERS:
            _ = params.mapping(name, required=False) if name in OBJECTS else params.has(name)
        params.refuse_unknown_keys()
        self._heads[number] = Request(model, self._root, parts[0], parts[1], params=dict(params.data))
        line.refuse_unknown_keys()

    def _call(self, line: PlainCall | CheckedCall, number: int) -> Call:
        """The call of a line. Its fields are asked for in the order in which their errors are listed."""
        expected, call = self._last + 1, line.call
        if call is not None and call != expected:
            line.fault("call", f"expected {expected}; got {call}")
        thread = self._before(line)
        for role, blocks in line.message_blocks(self._table):
            thread = thread.then(Message.of(role, blocks))
        timestamp = line.timestamp
        start = self._starts.next(timestamp, line.start_s)
        head_number = line.head
        head = self._heads.get(head_number or 0)
        if head is None and head_number is not None:
            line.fault("head", f"no line before this one defines head {head_number}")
        head = head or Request("", self._root)
        breakpoints = []
        for position, value in enumerate(line.breakpoints):
            breakpoint = self._breakpoint(value, head, thread)
            if isinstance(breakpoint, str):
                line.fault(f"breakpoints[{position}]", breakpoint)
            else:
                breakpoints.append(breakpoint)
        request = Request(
            head.model,
            thread,
            head.tools,
            head.system,
            tuple(breakpoints),
            line.automatic,
            head.params,
            line.request_fault,
            message_thread=line.message_thread,
        )
        made = Call(
            request,
            start,
            timestamp=timestamp,
            billed=line.billed,
            first_token_s=line.first_token_s,
            host=None if (host := line.host) is None else self._same(host),
            workspace=self._same(line.workspace),
            status=line.status,
            is_batch=line.is_batch,
            iterations=line.iterations,
            response=line.response_blocks(self._table),
            source=self._source,
            day=line.seen_on,
            session=self._same(line.session),
            project=self._same(line.project),
            agent=self._same(line.agent),
            line=number,
        )
        self._last = call or expected
        self._threads[self._last] = thread
        return made

    def _same(self, text: str) -> str:
        """The same object for the same text: most calls repeat those of the call before."""
        return self._texts.setdefault(text, text)

    def _before(self, line: PlainCall | CheckedCall) -> Thread:
        after = line.after
        if after is None:
            return self._root
        call, length = after
        whole = self._threads.get(call)
        if whole is None:
            line.fault("after", f"no line before this one defines call {call}")
            return self._root
        if length > whole.length:
            line.fault("after", f"call {call} has {whole.length} messages; got {length}")
        return whole.up_to(length)

    def _breakpoint(self, value: Any, head: Request, thread: Thread) -> Breakpoint | str:
        is_place = type(value) is list and len(value) >= 3 and type(value[0]) is str and value[-1] in TTLS
        if not is_place or PLACES.get(value[0]) != len(value) or not all(map(_is_count, value[1:-1])):
            expected = '[layer, block, "5m" or "1h"], with the message before the block in messages'
            return f"expected {expected}; got {show_found(value)}"
        layer, *message, index, ttl = value
        node = thread.up_to(message[0] + 1) if message else None
        blocks = node.message_blocks if node else (head.tools if layer == Layer.TOOLS else head.system).blocks
        if index >= len(blocks) or (node and node.length <= message[0]):
            return f"there is no block {'.'.join(map(str, value[:-1]))}"
        if node:
            return Breakpoint(Layer.MESSAGES, index, ttl, node)
        key = (layer, index, ttl)
        if key not in self._breakpoints:
            self._breakpoints[key] = Breakpoint(Layer(layer), index, ttl)
        return self._breakpoints[key]
