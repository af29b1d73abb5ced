"""The steps of a Claude Code transcript with the content of their requests and answers; every error of a line.

The lines become steps in transcript.py. What it leaves undecoded is decoded here, and a line that msgspec refuses is
looked at field by field, so that each error names its field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import DEEPEST, MOST_ERRORS, OutOfLimits, check_depth
from cachecost.base.times import seconds
from cachecost.conversations.calls import parse_usage
from cachecost.conversations.input_files import (
    BilledCall,
    SessionFile,
    Warn,
    billed_call,
    byte_lines,
    open_input,
    quiet,
)
from cachecost.conversations.json_object import (
    JsonObject,
    json_line,
    json_lines,
    parse_json,
)
from cachecost.conversations.readers.claude_code.content_free import KIND, parse_steps
from cachecost.conversations.readers.claude_code.lines import (
    BOUNDARIES,
    MAIN,
    MAIN_KINDS,
    PRICED,
    SIDE,
    SYNTHETIC,
    CacheCreation,
    Iteration,
    LineMessage,
    LineUsage,
    TranscriptLine,
    counts_nothing,
    is_client_generated,
    kind_of,
)
from cachecost.conversations.readers.claude_code.transcript import CLIENT, Transcript, answer_key, decode_state
from cachecost.conversations.readers.common.peek import ReaderNotes, top_keys
from cachecost.conversations.readers.common.session_calls import BYTES_PER_TOKEN, SessionCall, bills_of
from cachecost.prompts.blocks import Block, digest_of, encode_simple
from cachecost.prompts.exact_json import ENCODE, Differs, WriteSimple, plain_block, refuse_number
from cachecost.prompts.request import TTL, NotAMessage, show_found
from cachecost.providers.usage import Usage

REQUEST = "api-request"
SILENT = (
    *("summary", "attachment", "progress", "file-history-snapshot", "file-history-delta", "queue-operation", "pr-link"),
    *("mode", "permission-mode", "last-prompt", "ai-title", "custom-title", "tag", "agent-name", "agent-color"),
    *("agent-setting", "relocated", "worktree-state", "cost-state", "tools-used", "atis-latch", "isolation-latch"),
    *("api-request", "api-request-shape", "api-request-blob", "api-request-resumed", "content-replacement"),
    *("fork-context-ref", "observer-ref", "derived-from", "continued-in", "resume-head-vouch", "session-owner"),
    *("history-suppression", "attribution-snapshot", "memory-mode", "dev-mods", "bridge-session", "frame-link"),
)
"""Types of lines that are known to contain no calls (Claude Code 2.1.330)."""
OWN_KEYS = ("parentUuid", "leafUuid", "sessionId", "isSidechain", "isSnapshotUpdate")
OWN_PAIRS = (("uuid", "message"), ("messageId", "snapshot"))
"""Keys that, together with "type", only transcript lines have: one of `OWN_KEYS`, or both of a pair."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a transcript or the content-free form of one; None if it is neither."""
    is_free = is_content_free(head.split(b"\n", 1)[0])
    return f"its first line says format and kind {KIND}" if is_free else sniff_lines(head)


def is_content_free(line: bytes) -> bool:
    """Whether a file's first line is the header of the content-free form."""
    first = parse_json(line) if b'"kind"' in line else None
    return isinstance(first, dict) and first.get("kind") == KIND


def sniff_lines(head: bytes) -> str | None:
    """Why a file that begins with `head` is a transcript; None if it is not.

    Clients begin a transcript with lines that are no part of the tree of records, and every version has new ones: so
    the first line that can only be a transcript's decides, as long as all lines before it have a "type".
    """
    for number, line in enumerate(BytesIO(head), 1):
        if not line.strip():
            continue
        keys = set(top_keys(line))
        if "type" not in keys:
            return None
        own = [key for key in OWN_KEYS if key in keys] or [pair[0] for pair in OWN_PAIRS if keys >= set(pair)]
        if own:
            place = "its first line" if number == 1 else f"its line {number}"
            return f'{place} has a "type" and a "{own[0]}"'
    return None


LONGEST_NUMBER = 4300
"""Digits that Python's own parser takes."""
STEP = LONGEST_NUMBER // 2
TWO_DIGITS = re.compile(rb"\d\d")

_decode_fields = msgspec.json.Decoder(TranscriptLine, float_hook=refuse_number).decode
_decode_content = msgspec.json.Decoder(list[Any] | str | None, float_hook=refuse_number).decode
_decode_all = msgspec.json.Decoder().decode


def parse_fields(line: bytes) -> tuple[TranscriptLine, list[Any]] | None:
    """The fields of a line and the blocks of its message, whose values msgspec writes as Python's own encoder does.
    None if the line has to be parsed whole and looked at field by field."""
    try:
        if line.count(b"[") + line.count(b"{") > DEEPEST:
            check_depth(_decode_all(line))
        fields = _decode_fields(line)
        content = _decode_content(fields.message.content) if fields.message else None
        if not line.isascii():
            line.decode()
    except (Differs, msgspec.MsgspecError, UnicodeDecodeError, OutOfLimits, RecursionError):
        return None
    if len(line) > LONGEST_NUMBER and TWO_DIGITS.search(line[::STEP]) is not None:
        return None  # perhaps a number with more digits than Python takes: it would be at two places of this sample
    if fields.type is None or not fields.is_whole:
        return None
    return fields, content if isinstance(content, list) else [] if content is None else [content]


class RecordedBreakpoints(NamedTuple):
    """The TTL of the breakpoints on tools and system prompt (None: there is none), and those in messages, in order."""

    head: TTL | None
    messages: tuple[TTL, ...]


def recorded_breakpoints(raw: msgspec.Raw) -> RecordedBreakpoints | None:
    """The breakpoints in the `cacheControl` of an api-request line (client 2.1.282 and later). None if it states none
    that can be read."""
    try:
        stated = _decode_all(raw) if bytes(raw) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(stated, list):
        return None
    found: list[tuple[str, TTL]] = []
    for one in stated:  # {"path": ["system", 1], "value": {"type", "ttl"?}}
        match one:
            case {"path": [layer, *_], "value": dict() as control} if control.get("ttl", "5m") in get_args(TTL):
                found.append((str(layer), control.get("ttl", "5m")))
            case _:
                return None
    head = [ttl for layer, ttl in found if layer != "messages"]
    return RecordedBreakpoints(head[-1] if head else None, tuple(ttl for layer, ttl in found if layer == "messages"))


class TranscriptBlock(msgspec.Struct, frozen=True, gc=False):
    """A block, with its own id and that of the tool call that it answers, as far as it has them."""

    block: Block
    id: object = None
    answers: object = None


FIELDS: dict[str, Callable[[Any], str | None]] = {
    **dict.fromkeys(("sessionId", "agentId", "cwd", "version"), lambda value: str(value or "")),
    **dict.fromkeys(("id", "requestRef"), str),
    **dict.fromkeys(
        ("uuid", "parentUuid", "logicalParentUuid", "subtype"), lambda value: value if isinstance(value, str) else None
    ),
}
"""What a field that is not null stands for, whatever it is."""
HEADER_BYTES = 4096
"""How long the header of the content-free form may be."""
COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


def bare_line(line: JsonObject) -> TranscriptLine:
    """The line without its message, time and flags, of which nothing is checked but the type."""
    data = line.data
    found = TranscriptLine(line.text("type"))
    for name, convert in FIELDS.items():
        setattr(found, name, None if data.get(name) is None else convert(data[name]))
    found.isApiErrorMessage, found.isCompactSummary = data.get("isApiErrorMessage"), data.get("isCompactSummary")
    if "cacheControl" in data:
        found.cacheControl = msgspec.Raw(encode_simple(data["cacheControl"]) or b"")
    return found


def _parse_usage(message: JsonObject, value: dict[str, Any]) -> LineUsage:
    try:
        usage = parse_usage(value, "usage")
    except NotAMessage as fault:
        message.fault(fault.path, str(fault).removeprefix(f"{fault.path}: "))
        return LineUsage()
    stated = {name: value.get(name) for name in (*COUNTED, *PRICED)}
    passes, uses = value.get("iterations"), value.get("server_tool_use")
    return LineUsage(
        **stated,
        cache_creation=CacheCreation(usage.write_5m, usage.write_1h),
        iterations=[Iteration()] * len(passes) if isinstance(passes, list) else None,
        server_tool_use=uses if isinstance(uses, dict) else None,
    )


def _parse_content(message: JsonObject) -> list[Any]:
    content = message.data.get("content")
    if isinstance(content, list):
        return content
    if content is not None and not isinstance(content, str):
        message.fault("content", f"expected a text or an array of blocks; got {show_found(content)}")
    return [content] if isinstance(content, str) else []


@dataclass(slots=True, eq=False)
class InputRecord:
    """The input of one record (by a person, a tool or the client), linked to the input before it since the last step.
    `is_cut` is a compaction: nothing before it goes into the next request."""

    blocks: list[TranscriptBlock]
    before: InputRecord | None
    is_cut: bool = False

    def path(self) -> list[InputRecord]:
        """All since the last step or the last compaction, latest first; the compaction ends it."""
        found, node = [self], self
        while node.before is not None and not node.is_cut:
            node = node.before
            found.append(node)
        return found


@dataclass(slots=True, eq=False)
class Step(SessionCall):
    """A call with what its request and its answer contain; both have no blocks where content is not read.

    `inputs` is what was recorded since its request, `breakpoints` those of its request, where they are recorded.
    `agent_name` names a sub-agent without an id by its place in the file.
    """

    agent_name: str = ""
    breakpoints: RecordedBreakpoints | None = None
    request: list[TranscriptBlock] = field(default_factory=list)
    answer: list[TranscriptBlock] = field(default_factory=list)
    inputs: list[InputRecord] = field(default_factory=list)

    @property
    def agent(self) -> str:
        return self.agent_name

    @property
    def conversation(self) -> str:
        """A sub-agent has the session of the main thread, also in a file of its own."""
        return self.bill.session


class Position(NamedTuple):
    """What leads to a record: the last step, the input since its answer, and all input since its request."""

    step: Step | None
    last_input: InputRecord | None
    inputs: list[InputRecord]


class DetailedTranscript(Transcript):
    """A transcript while it is read. Errors go to `faults`. With `with_blocks` its steps have the blocks of requests
    and answers, with `keep_content` also their content."""

    def __init__(self, path: Path, faults: list[Fault], with_blocks: bool = False, keep_content: bool = False) -> None:
        super().__init__(path)
        self.steps: dict[int | str, Step] = {}
        """By the numbers of their calls; those of another file by the key of their answers."""
        self.skipped = ReaderNotes()
        self._faults = faults
        self._with_blocks, self._keep_content = with_blocks, keep_content
        self._write: WriteSimple = ENCODE
        """Is certain to write the values of the line as Python's own encoder does, or does not."""
        self._odd: JsonObject | None = None
        """The line whose fields still have to be checked."""
        self._content: list[Any] = []
        self._breakpoints: dict[str, RecordedBreakpoints | None] = {}
        self._position_of: dict[str, Position] = {}
        self._chains: list[str] = []
        """The names of the main thread and of sub-agents."""
        self._positions: list[Position] = []
        """Where each of them is now."""

    def read_lines(self, first: JsonObject | None, lines: NumberedLines, warn: Warn) -> None:
        """Read all lines, up to the last error that counts."""
        if first is not None:
            self._read_object(first)
        for number, raw in lines:
            if len(self._faults) >= MOST_ERRORS and raw.strip():
                break
            if (parsed := parse_fields(raw)) is not None:
                line, self._content = parsed
                self.read_line(line, number)
            elif found := json_line(self.path, number, raw, self._faults, warn):
                self._read_object(found)
        self.skipped.report(self.path, warn)

    def _read_object(self, found: JsonObject) -> None:
        """Read a line that was parsed whole."""
        self._odd, self._content, self._write = found, [], encode_simple
        self.read_line(bare_line(found), found.line or 0)
        self._odd, self._write = None, ENCODE

    def read_line(self, line: TranscriptLine, number: int) -> None:
        is_main = line.type in MAIN_KINDS
        is_known = is_main and line.uuid in self.state.positions
        if is_known:
            self.skipped.skip("line", "same uuid as an earlier line")
        elif line.type == REQUEST:
            self._breakpoints[str(line.id)] = recorded_breakpoints(line.cacheControl)
        elif line.type and not is_main and line.type not in SILENT:
            self.skipped.skip("line", f"unknown type {show_found(line.type)}")
        has_place = not is_known if is_main else line.uuid is not None
        if has_place:
            self._check(line, number)
        super().read_line(line, number)
        if has_place:
            self._place(line, number)

    def _check(self, line: TranscriptLine, number: int) -> None:
        """Complete a bare line; a field that is wrong becomes an error, and harmless."""
        if (odd := self._odd) is not None:
            line.timestamp = odd.data.get("timestamp") if odd.moment_in_seconds("timestamp") is not None else None
            line.isSidechain = odd.flag("isSidechain")
            if line.type in ("assistant", "user"):
                line.message = self._message(line, odd.within(odd.mapping("message"), "message"), odd)
                kinds = [{"type": str(kind_of(block))} for block in self._content]
                line.message.content = msgspec.Raw(json.dumps(kinds, ensure_ascii=False).encode("utf-8", "replace"))
        elif line.timestamp is not None:
            try:
                seconds(line.timestamp)
            except (ValueError, OverflowError):
                fault = f"timestamp: expected an ISO 8601 time; got {show_found(line.timestamp)}"
                self._faults.append(Fault(str(self.path), fault, number))
                line.timestamp = None

    def _message(self, line: TranscriptLine, message: JsonObject, odd: JsonObject) -> LineMessage:
        """The message of a bare line. Only the first line of an answer needs a model; what the client made, nothing."""
        if line.type == "user":
            self._content = _parse_content(message)
            return LineMessage()
        if message.data.get("model") == SYNTHETIC or line.isApiErrorMessage:
            return LineMessage(model=SYNTHETIC)
        if not message.has("usage"):
            return LineMessage()
        name, line.requestId = message.text("id", ""), odd.text("requestId", "")
        value, self._content = message.mapping("usage"), _parse_content(message)
        key = answer_key(name, line.requestId, odd.line or 0)
        is_begun = key in self.state.step_of or key in self.steps
        model = message.text("model") if not is_begun or isinstance(message.data.get("model"), str) else ""
        return LineMessage(name, model, _parse_usage(message, value))

    def _place(self, line: TranscriptLine, number: int) -> None:
        """Find where the line stands, and what the records after it follow."""
        if self.chain == len(self._chains):
            word = SIDE if line.isSidechain else MAIN
            earlier = sum(name.startswith(word) for name in self._chains)
            self._chains.append(word if word == MAIN and not earlier else f"{word} {earlier + 1}")
            self._positions.append(Position(None, None, []))
        here = self._positions[self.chain] if self.followed is None else self._position_of[self.followed]
        here = self._after_answer(line, number, here) if line.type == "assistant" else self._after_input(line, here)
        self._positions[self.chain] = here
        if line.uuid is not None:
            self._position_of[line.uuid] = here

    def _after_answer(self, line: TranscriptLine, number: int, here: Position) -> Position:
        message = line.message or LineMessage()
        if is_client_generated(line, message):
            self.skipped.add("client-generated message", "ignored")
        elif message.usage is None:
            self.skipped.skip("answer", "no usage")
        else:
            key: int | str = self.state.chains[self.chain].step
            if counts_nothing(message.usage):
                name = answer_key(message.id, line.requestId, number)
                key = self.state.step_of.get(name, name)
            if key not in self.steps:
                call = self.state.calls[key - 1] if isinstance(key, int) else None
                self.steps[key] = self._new_step(line, call, here)
            made = self.steps[key]
            made.answer += self._blocks("assistant")
            return Position(made, here.last_input if made is here.step else None, made.inputs)
        return here

    def _new_step(self, line: TranscriptLine, call: BilledCall | None, here: Position) -> Step:
        """A step that begins with this line; without a call it is one of another file."""
        name, (before, time) = self._chains[self.chain], self.times
        step = Step(call or billed_call(0, "", Usage()), here.step, thread=name, project=line.cwd or "")
        step.after = None if time is None or before is None else min(before, time)
        step.is_copy, step.agent_name = call is None, line.agentId or (name if line.isSidechain else "")
        step.request, step.is_cut = request_blocks_of(here)
        step.breakpoints = self._breakpoints.get(str(line.requestRef))
        if call is not None and call.start is not None and call.answered is not None:
            step.first_token_s = max(0.0, call.answered - call.start)
        return step

    def _after_input(self, line: TranscriptLine, here: Position) -> Position:
        before = here.last_input
        is_boundary = line.type == "system" and BOUNDARIES.get(line.subtype or "") == "compaction"
        if is_boundary or (line.type == "user" and line.isCompactSummary):  # with the summary after it they are one
            before = before if before is not None and before.is_cut else InputRecord([], None, is_cut=True)
        if line.type == "user" and self._with_blocks:
            before = InputRecord(self._blocks("user"), before)
            here.inputs.append(before)
        return here._replace(last_input=before)

    def _blocks(self, role: str) -> list[TranscriptBlock]:
        return [self._block(role, item) for item in self._content] if self._with_blocks else []

    def _block(self, role: str, item: Any) -> TranscriptBlock:
        """A block of a message. A redacted one states its number of characters."""
        if not isinstance(item, dict):
            return TranscriptBlock(plain_block(role, {"type": "text", "text": str(item)}, self._keep_content))
        if isinstance(item.get("digest"), str) and isinstance(item.get("chars"), int):
            kind = str(item.get("type") or "text")
            size = item["chars"] + (item.get("signature_chars") or 0)
            digest = digest_of(role, kind, item["digest"].encode())
            block = Block(kind, role, digest, size, tokens=max(1, size // BYTES_PER_TOKEN))
        else:
            block = plain_block(role, item, self._keep_content, self._write)
        return TranscriptBlock(block, item.get("id"), item.get("tool_use_id"))


def request_blocks_of(here: Position) -> tuple[list[TranscriptBlock], bool]:
    """The blocks that a request has after the answer before it, in the order of the file; whether it was cut there.
    Results of tools that ran at once stand on branches of their own: they belong to the request all the same."""
    path = here.last_input.path() if here.last_input else []
    is_cut = bool(path) and path[-1].is_cut
    called = {block.id for block in here.step.answer} if here.step else set()
    missing = called - {block.answers for record in path for block in record.blocks} - {None}
    request_blocks: list[TranscriptBlock] = []
    for record in here.inputs:
        if record in path:
            request_blocks += record.blocks
        elif not is_cut:
            request_blocks += [block for block in record.blocks if block.answers in missing]
    return request_blocks, is_cut


NumberedLines = Iterator[tuple[int, bytes]]


def read_steps(path: Path, warn: Warn = quiet) -> list[SessionCall]:
    """The calls of a transcript without content, or of the content-free form of one, in the order of their first lines.

    Lines are read one by one and not kept. What was skipped, and an incomplete last line, goes to `warn`.
    Raises InputError with every error, each with its line.
    """
    return [call for call in _read(path, warn) if not call.is_copy]


def read_steps_with_content(path: Path, warn: Warn, keep_content: bool) -> list[SessionCall]:
    """The steps of a transcript with the blocks of their requests and answers, and with their content if it is kept.
    Raises InputError with every error, each with its line."""
    return _read(path, warn, with_blocks=True, keep_content=keep_content)


def _read(path: Path, warn: Warn, with_blocks: bool = False, keep_content: bool = False) -> list[SessionCall]:
    faults: list[Fault] = []
    lines = byte_lines(path)
    first = next(json_lines(path, faults, warn, lines), None)
    if first is None and not faults:
        faults.append(Fault(str(path), "is empty; expected a transcript, one JSON object per line"))
    if first is not None and first.data.get("kind") == KIND and not with_blocks:
        calls = parse_steps(chain([first], json_lines(path, faults, warn, lines)))
    else:
        transcript = DetailedTranscript(path, faults, with_blocks, keep_content)
        transcript.read_lines(first, lines, warn)
        calls = list(transcript.steps.values())
    if faults:
        raise InputError(faults)
    return calls


def read_sessions(path: Path, state: bytes = b"") -> tuple[list[SessionFile], bytes]:
    """The session in a transcript, and the state to go on from; `state` is that of an earlier reading. Raises
    InputError where the file cannot be read."""
    if not state and path.is_file():
        with open_input(path) as stream:
            is_free = is_content_free(stream.readline(HEADER_BYTES))
        if is_free:
            calls = read_steps(path)
            for call in calls:
                call.bill.agent = call.thread if call.thread.startswith(SIDE) else ""
            return [SessionFile(str(path), CLIENT, calls=bills_of(calls))], b""
    transcript = Transcript(path, decode_state(state) if state else None)
    file = transcript.read()
    return [file] if file.calls or file.damaged or file.notes else [], transcript.saved_state
