"""Reads our recordings of calls (their format: call_recording.py) as the calls of the log they were made from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_ERRORS
from cachecost.conversations.call_recording import FORMAT, KIND, TOKENS, Title, sniff
from cachecost.conversations.calls import Iteration, Call
from cachecost.conversations.input_files import Warn, byte_lines, open_input, quiet
from cachecost.conversations.json_object import JsonObject, are_pairs, json_line, parse_json
from cachecost.conversations.model import CONTENTS
from cachecost.conversations.readers.plain_recording_lines import PlainLineParser, RecordingState, RequestHead
from cachecost.prompts.blocks import NOTHING, Block, Layer, Message, Part, Thread
from cachecost.prompts.intake import OBJECTS, PARAMETERS
from cachecost.prompts.request import ROLES, TTL, Breakpoint, MessageThread, Request, show_found
from cachecost.providers.usage import Usage, usage_of

__all__ = ["RecordingLines", "calls", "sniff", "title"]
TTLS = ("5m", "1h")
AMOUNT = re.compile(r"\d{1,12}(\.\d{1,20})?")
BREAKPOINT = 'expected [layer, block, "5m" or "1h"], with the message before the block in messages'


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in order, until the first fault; then the rest is only checked. Content that is there is kept.

    `Call.line` is a line of the recording. Raises InputError with every fault, each with its line. A last line
    that was cut off is left out and said to `warn`.
    """
    faults: list[Fault] = []
    parser = _CallRecordingParser(faults)
    for number, raw in byte_lines(path):
        if len(faults) >= MOST_ERRORS and raw.strip():
            break
        call: Call | bool | None = parser.parse_plain_line(raw, number)
        if call is False and (line := json_line(path, number, raw, faults, warn)):
            call = parser.parse_line(line)
            if parser.header is None:
                break
        if isinstance(call, Call) and not faults:
            yield call
    if parser.header is None and not faults:
        faults.append(Fault(str(path), "is empty: a recording starts with a whole header line"))
    if faults:
        raise InputError(faults)


class RecordingLines:
    """Reads a recording while it is written, line by line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._parser = _CallRecordingParser([])

    def read(self, lines: bytes) -> list[Call]:
        """The calls in the next lines, which are whole. Raises InputError."""
        found: list[Call] = []
        for raw in lines.splitlines():
            self._number += 1
            call: Call | bool | None = self._parser.parse_plain_line(raw, self._number)
            if call is False and (line := json_line(self._path, self._number, raw, self._parser.faults, quiet)):
                call = self._parser.parse_line(line)
            found += [call] if isinstance(call, Call) else []
        if self._parser.faults:
            raise InputError(self._parser.faults)
        return found


def title(path: Path) -> Title:
    """What the header says, as far as it is one. Raises InputError where the file cannot be read."""
    with open_input(path) as stream:
        first = parse_json(next((raw for raw in stream if raw.strip()), b""))
    parsed = first if isinstance(first, dict) else {}
    return Title(*(str(parsed.get(name) or "") for name in ("name", "source", "licence")))


class _CallRecordingParser:
    """A recording while it is read, line by line."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.header: JsonObject | None = None
        self.state = RecordingState()
        self._plain = PlainLineParser(self.state)

    def parse_plain_line(self, raw: bytes, number: int) -> Call | bool:
        """As `PlainLineParser.parse_line`; False for all before the header."""
        return self.header is not None and self._plain.parse_line(raw, number)

    def parse_line(self, line: JsonObject) -> Call | None:
        """Read a line; the call, if it is one."""
        if self.header is None:
            self._header(line)
        elif "block" in line.data:
            self.state.table.add(line)
        elif "call" in line.data:
            return self._call(line)
        elif "head" in line.data:
            self._head(line)
        else:
            line.fault("line", "expected a block, a head or a call")
        return None

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
            self.state.source = line.text("source", "")
            line.text("licence", "")
            line.refuse_unknown_keys()

    def _head(self, line: JsonObject) -> None:
        number = line.whole("head", required=True) or 0
        if number in self.state.heads:
            line.fault("head", f"{number} is already defined")
        tools, system = self._part(line, "tools", "tool_places"), self._part(line, "system", "system_places")
        self.state.heads[number] = RequestHead(line.text("model"), _params(line), tools, system)
        line.refuse_unknown_keys()

    def _part(self, line: JsonObject, name: str, of_places: str) -> Part:
        blocks = self._blocks(line, name)
        places = tuple(line.wholes(of_places, required=False)) or None
        if places and len(places) != len(blocks):
            line.fault(of_places, f"expected {len(blocks)} places, as many as {name}; got {len(places)}")
        return Part(blocks, places) if blocks else NOTHING

    def _blocks(self, line: JsonObject, name: str) -> tuple[Block, ...]:
        return self.state.table.get(line, name) if line.has(name) else ()

    def _call(self, line: JsonObject) -> Call:
        self._number(line)
        thread = self.state.threads[self.state.last] = self._thread(line)
        timestamp = line.moment("timestamp")
        start = self.state.starts.next(timestamp, line.epoch("start_s"))
        request = self._request(line, thread)
        usage = _usage(line.within(line.mapping("usage"), "usage"), done=True) if line.has("usage") else None
        call = Call(
            request,
            start,
            timestamp=timestamp,
            first_token_s=float(line.get("first_token_s", "a number", _is_number, 0.0, required=False)),
            host=line.text("host") if line.has("host") else None,
            workspace=line.text("workspace", ""),
            status=line.get("status", "a whole number", lambda value: type(value) is int, None, required=False),
            is_batch=line.has("service") and bool(line.one_of("service", ("batch",))),
            billed=usage,
            iterations=tuple(map(_iteration, line.objects("iterations"))),
            response=self._blocks(line, "response"),
            source=self.state.source,
            day=_day(line, timestamp),
            session=line.text("session", ""),
            project=line.text("project", ""),
            agent=line.text("agent", ""),
            line=line.line or 0,
        )
        line.refuse_unknown_keys()
        return call

    def _number(self, line: JsonObject) -> None:
        number = line.whole("call", required=True)
        if number is not None and number != self.state.last + 1:
            line.fault("call", f"expected {self.state.last + 1}; got {number}")
        self.state.last = number or self.state.last + 1

    def _request(self, line: JsonObject, thread: Thread) -> Request:
        number = line.whole("head", required=True)
        if number is not None and number not in self.state.heads:
            line.fault("head", f"no line before this one defines head {number}")
        head = self.state.heads.get(number or 0, RequestHead())
        return Request(
            head.model,
            thread,
            head.tools,
            head.system,
            _breakpoints(line, head, thread),
            cast("TTL", line.one_of("automatic", TTLS)) if line.has("automatic") else None,
            head.params or {},
            line.text("fault") if line.has("fault") else None,
            message_thread=_message_thread(line),
        )

    # -------------------------------------------------------------------------------------- messages

    def _thread(self, line: JsonObject) -> Thread:
        thread = self._before(line)
        expected = "an array of [role, block numbers]"
        for number, (role, blocks) in enumerate(line.get("messages", expected, are_pairs, [], required=False)):
            thread = thread.then(self._message(line.within({"role": role, "blocks": blocks}, f"messages[{number}]")))
        return thread

    def _before(self, line: JsonObject) -> Thread:
        """The messages that an earlier call had already."""
        after = line.get("after", "[call, number of its messages]", _are_two_counts, None, required=False)
        if after is None:
            return self.state.root
        call, length = after
        whole = self.state.threads.get(call)
        if whole is None:
            line.fault("after", f"no line before this one defines call {call}")
        elif length > whole.length:
            line.fault("after", f"call {call} has {whole.length} messages; got {length}")
        return whole.up_to(length) if whole else self.state.root

    def _message(self, message: JsonObject) -> Message:
        role = message.one_of("role", ROLES)
        blocks = self.state.table.get(message, "blocks")
        stranger = next((block for block in blocks if block.role != role), None)
        if stranger and role == message.data["role"]:
            message.fault("blocks", f"expected blocks of role {role}; got one of role {stranger.role or 'none'}")
        return Message.of(role, blocks)


def _message_thread(line: JsonObject) -> MessageThread | None:
    if not line.has("message_thread"):
        return None
    thread = line.within(line.mapping("message_thread"), "message_thread")
    idle_s = float(thread.get("idle_s", "a number", _is_number, 0.0, required=False))
    made = MessageThread(thread.text("id"), thread.whole("breakpoints", required=False) or 0, idle_s)
    thread.refuse_unknown_keys()
    return made


def _params(line: JsonObject) -> dict[str, Any]:
    params = line.within(line.mapping("params", required=False), "params")
    for name in PARAMETERS:
        _ = params.mapping(name, required=False) if name in OBJECTS else params.has(name)
    params.refuse_unknown_keys()
    return dict(params.data)


def _breakpoints(line: JsonObject, head: RequestHead, thread: Thread) -> tuple[Breakpoint, ...]:
    raw = line.get("breakpoints", "an array of breakpoints", lambda value: isinstance(value, list), [], required=False)
    breakpoints = [_breakpoint(line, f"breakpoints[{number}]", value, head, thread) for number, value in enumerate(raw)]
    return tuple(breakpoint for breakpoint in breakpoints if breakpoint)


def _breakpoint(line: JsonObject, place: str, value: object, head: RequestHead, thread: Thread) -> Breakpoint | None:
    if not _is_breakpoint(value):
        line.fault(place, f"{BREAKPOINT}; got {show_found(value)}")
        return None
    layer, *message, index, ttl = cast("list[Any]", value)
    parts = {Layer.TOOLS: head.tools.blocks, Layer.SYSTEM: head.system.blocks}
    node = thread.up_to(message[0] + 1) if message else None
    blocks = parts[layer] if node is None else node.message_blocks
    if index >= len(blocks) or (node and node.length <= message[0]):
        line.fault(place, f"there is no block {'.'.join(map(str, [layer, *message, index]))}")
        return None
    return Breakpoint(Layer(layer), index, ttl, node)


def _is_breakpoint(value: object) -> bool:
    if not isinstance(value, list) or len(value) < 3 or value[-1] not in TTLS:
        return False
    numbers = {Layer.TOOLS: 1, Layer.SYSTEM: 1, Layer.MESSAGES: 2}
    layer = value[0] if isinstance(value[0], str) else ""
    return len(value) - 2 == numbers.get(cast("Layer", layer)) and all(map(_is_count, value[1:-1]))


def _usage(parsed: JsonObject, done: bool) -> Usage:
    uses = parsed.get("tool_uses", "an array of [tool, number]", _are_uses, [], required=False)
    charged = parsed.get("charged_usd", "USD, a decimal number in a text", _is_amount, None, required=False)
    counts = (parsed.whole(name, 0) or 0 for name in TOKENS)
    tool_uses = tuple((tool, number) for tool, number in uses)
    usage = usage_of(counts, tool_uses, None if charged is None else Decimal(charged))
    if done:
        parsed.refuse_unknown_keys()
    return usage


def _are_uses(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and _is_count(one[1]) for one in value
    )


def _is_amount(value: object) -> bool:
    return isinstance(value, str) and AMOUNT.fullmatch(value) is not None


def _iteration(parsed: JsonObject) -> Iteration:
    one = Iteration(parsed.text("type"), _usage(parsed, done=False), parsed.text("model", ""))
    parsed.refuse_unknown_keys()
    return one


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _day(line: JsonObject, timestamp: str | None) -> date | None:
    """The day of `seen_on`; a timestamp says it better."""
    text = line.text("seen_on") if line.has("seen_on") else None
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError:
        line.fault("seen_on", f"expected a day like 2026-03-07; got '{text}'")
        return None
    return day if timestamp is None else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_two_counts(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_count, value))
