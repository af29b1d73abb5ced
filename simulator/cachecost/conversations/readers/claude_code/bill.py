"""The bill of a Claude Code transcript: one `BilledCall` a step, in one pass, without its content.

The rules by which lines become steps are those of transcript.py, which a test holds this module to. A transcript that
has grown is continued: `TranscriptBill.state` is what must be kept, `offset` where to go on.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.times import seconds
from cachecost.conversations.input_files import BOM, COMMENT, BilledCall, SessionFile, open_input, too_long
from cachecost.conversations.readers.claude_code.record_kinds import (
    ATTACHMENTS,
    BOUNDARIES,
    COMMANDS,
    MAIN_KINDS,
    THINKING,
    TOOL_EVENTS,
    LineMessage,
    LineUsage,
    NotJson,
    RequestFacts,
    TranscriptLine,
    answer_pieces,
    billed_tokens,
    client_sums,
    counts_nothing,
    decode_line,
    digest,
    extra_passes,
    has_passes,
    is_client_generated,
    modes_in,
    piece_types,
    tool_uses_in,
)
from cachecost.providers.hosts import host_of_message

CLIENT = "claude-code"
CUT_OFF = "the last line is cut off (still being written?): skipped"
NO_STEP = 0
SUMS_LINE = "cost-state"
REQUEST_LINES = ("api-request", "api-request-shape")
COMPARED = ("tools", "system", "thinking", "effort")
"""Parts of a request whose change is an event of the same name."""
WEAK = ("tools", "agents", "system")
"""Events that only surround a request; where the request itself is recorded, it decides."""


class ChainState(msgspec.Struct, array_like=True, gc=False):
    """The main thread of a session, or a sub-agent: its last step and record, and what it last was sent with."""

    key: str
    is_side: bool
    step: int = NO_STEP
    time: float | None = None
    thinking: tuple[str | None, bool | None] | None = None
    has_image: bool = False


class PendingEvents(msgspec.Struct, array_like=True, gc=False):
    """What was recorded since a step's request, its own answer included."""

    events: list[str] = []
    blocks: int = 0
    chars: int = 0
    goes_on: bool = False

    def add(self, event: str) -> None:
        if event not in self.events:
            self.events.append(event)


class TranscriptState(msgspec.Struct, array_like=True, gc=False):
    """All that reading the rest of a transcript needs. Steps are numbered from 1, chains from 0."""

    offset: int = 0
    line: int = 0
    project: str = ""
    calls: list[BilledCall] = []
    pending: list[PendingEvents] = []
    """By step number less one."""
    beginnings: list[PendingEvents] = []
    """By chain: what was recorded before its first step."""
    chains: list[ChainState] = []
    chain_of: dict[str, int] = {}
    step_of: dict[str, int] = {}
    positions: dict[str, tuple[int, int, float | None]] = {}
    """(chain, last step, time) of each record, by uuid."""
    shapes: dict[str, tuple[bytes, bytes]] = {}
    """Digests of tools and system prompt, by the hash that requests refer to."""
    requests: dict[str, RequestFacts] = {}
    """What is recorded of requests, by their id."""
    request_of: dict[int, str] = {}
    """The request of a step, by its number."""
    damaged: list[tuple[int, str]] = []
    client_sums: dict[str, tuple[int, int, int, int, int]] = {}
    """What the client counted for the session, last."""


class TranscriptBill:
    """Reads a transcript, or the rest of one."""

    def __init__(self, path: Path, state: TranscriptState | None = None) -> None:
        self.path = path
        self.state = state or TranscriptState()
        self.notes: list[str] = []
        self._whole: bytes | None = None

    @property
    def saved_state(self) -> bytes:
        """The state after the last line that is whole: one without a newline is read again, as more may follow."""
        return encode_state(self.state) if self._whole is None else self._whole

    def read(self) -> SessionFile:
        """The calls so far. A last line that is still being written is left for the next time. Raises InputError."""
        with open_input(self.path) as stream:
            if self.state.offset:
                stream.seek(self.state.offset)
            self._read_lines(stream)
        state = self.state
        return SessionFile(
            str(self.path),
            CLIENT,
            state.project,
            state.calls,
            tuple(state.damaged),
            tuple(self.notes),
            client_sums=state.client_sums,
        )

    def _read_lines(self, stream: BinaryIO) -> None:
        state, most = self.state, limits.LINE.value()
        for line in iter(partial(stream.readline, most + 1), b""):
            number, size = state.line + 1, len(line)
            if len(line) > most:
                raise too_long(self.path, number)
            if not line.endswith(b"\n"):
                self._whole = encode_state(state)
            if not state.positions:
                line = line.removeprefix(BOM)
            if not line.isspace() and (state.positions or not line.lstrip().startswith(COMMENT)):
                try:
                    found = decode_line(line)
                    if found is not None:
                        self._take(found, number)
                except (ValueError, OverflowError) as error:
                    if isinstance(error, NotJson) and not line.endswith(b"\n"):
                        self.notes.append(f":{number} {CUT_OFF}")
                    else:
                        self._note_damage(number, str(error))
            state.line = number
            state.offset += size

    def _note_damage(self, number: int, reason: str) -> None:
        """Note a damaged line. Raises InputError where there are so many that the file is none of these."""
        damaged = self.state.damaged
        damaged.append((number, reason))
        if len(damaged) > limits.MOST_ERRORS:
            raise InputError([Fault(str(self.path), reason, line) for line, reason in damaged])

    def _take(self, line: TranscriptLine, number: int) -> None:
        kind, uuid, positions = line.type, line.uuid, self.state.positions
        if kind in REQUEST_LINES:
            self._note_request(line)
        if kind == SUMS_LINE:
            self.state.client_sums = client_sums(line)
        if kind in MAIN_KINDS and uuid in positions:
            return
        if kind not in MAIN_KINDS and uuid is None:
            return
        _check(line, kind)
        time = seconds(line.timestamp) if line.timestamp is not None else None
        chain, step, before_time = self._before(line, number)
        if line.cwd and not self.state.project:
            self.state.project = line.cwd
        if kind == "assistant":
            step = self._answer(line, number, chain, step, time, before_time)
        elif kind is not None:
            self._note_events(line, kind, chain, step)
        time = before_time if time is None else time
        self.state.chains[chain].step, self.state.chains[chain].time = step, time
        if uuid is not None:
            positions[uuid] = (chain, step, time)

    def _note_request(self, line: TranscriptLine) -> None:
        """A request as it was sent (client 2.1.282 and later): its tools and system prompt, or all of it."""
        state = self.state
        if line.shape and line.shapeHash:
            state.shapes[line.shapeHash] = (digest(line.shape.tools), digest(line.shape.system))
        elif line.params and line.id:
            tools, system = state.shapes.get(line.shapeHash or "", (b"", b""))
            params = digest(line.params.thinking), digest(line.params.output_config)
            messages = line.keep + len(line.tail)
            state.requests[line.id] = RequestFacts(tools, system, *params, line.base or "", line.keep, messages)

    # ------------------------------------------------------------------------------- the tree of records

    def _before(self, line: TranscriptLine, number: int) -> tuple[int, int, float | None]:
        """(chain, last step, time) of the record that the line follows."""
        state, is_side = self.state, bool(line.isSidechain)
        key = _chain_key(line, is_side, number)
        parent = self._position(line.parentUuid) or self._position(line.logicalParentUuid)
        if parent and state.chains[parent[0]].is_side == is_side:
            state.chain_of.setdefault(key, parent[0])
            return parent
        index = state.chain_of.get(key)
        if index is None:
            index = state.chain_of[key] = len(state.chains)
            state.chains.append(ChainState(key, is_side))
            state.beginnings.append(PendingEvents(["continued"] if line.parentUuid and not is_side else []))
        chain = state.chains[index]
        return index, chain.step, chain.time

    def _position(self, uuid: str | None) -> tuple[int, int, float | None] | None:
        return None if uuid is None else self.state.positions.get(uuid)

    def _pending(self, chain: int, step: int) -> PendingEvents:
        return self.state.pending[step - 1] if step else self.state.beginnings[chain]

    # --------------------------------------------------------------------------------- one kind of line

    def _answer(
        self, line: TranscriptLine, number: int, chain: int, step: int, time: float | None, before_time: float | None
    ) -> int:
        message = line.message or LineMessage()
        if is_client_generated(line, message):
            self._pending(chain, step).add("error")
            return step
        if message.usage is None or counts_nothing(message.usage):
            return step
        key = f"{message.id or f'line {number}'} {line.requestId or ''}"
        found = self.state.step_of.get(key)
        if found is None or self._is_another(found, message.usage, step):
            found = self._start_step(line, message, message.usage, number, (chain, step, time, before_time))
            self.state.step_of[key] = found
            self.state.calls[-1].id = key.rstrip() if message.id else ""
            self.state.calls[-1].host = host_of_message(message.id or "") or ""
        self._extend_step(found, message, message.usage, time)
        return found

    def _is_another(self, found: int, usage: LineUsage, before: int) -> bool:
        """Whether a line with the ids of an answer is of another one (transcript.py)."""
        if found == before and "human" not in self.state.pending[found - 1].events:
            return False
        call, (uncached, read, five, hour, _) = self.state.calls[found - 1], billed_tokens(usage)
        return (uncached, read, five + hour) != (call.tokens[0], call.read, call.written)

    def _start_step(
        self,
        line: TranscriptLine,
        message: LineMessage,
        usage: LineUsage,
        number: int,
        place: tuple[int, int, float | None, float | None],
    ) -> int:
        chain, before, time, before_time = place
        pending = self._pending(chain, before)
        start = time if before_time is None or time is None else min(before_time, time)
        call = BilledCall(
            len(self.state.calls) + 1,
            number,
            message.model or "",
            billed_tokens(usage),
            start,
            None,
            before,
            tuple(pending.events),
            agent=line.agentId or (self.state.chains[chain].key if line.isSidechain else ""),
            session=line.sessionId or "",
            version=line.version or "",
            modes=modes_in(usage),
            blocks=pending.blocks,
            new_chars=pending.chars,
            is_summed=has_passes(usage),
            extra=extra_passes(usage),
            answered=time,
            agent_type=line.attributionAgent or "",
            is_output_partial=message.is_partial,
            tool_uses=tool_uses_in(usage),
        )
        call.events += self._differences(call, before, pending)
        if line.requestRef:
            self._compare_requests(call, before, line.requestRef)
        pending.goes_on = True
        self.state.calls.append(call)
        self.state.pending.append(PendingEvents())
        return call.number

    def _differences(self, call: BilledCall, before: int, pending: PendingEvents) -> tuple[str, ...]:
        """How a step differs from the one that it continues."""
        if not before:
            return ()
        earlier = self.state.calls[before - 1]
        differs = {
            "model": call.model != earlier.model,
            "client": bool(call.version and earlier.version and call.version != earlier.version),
            "fork": pending.goes_on,
        }
        return tuple(name for name, holds in differs.items() if holds and name not in call.events)

    def _compare_requests(self, call: BilledCall, before: int, request_id: str) -> None:
        """Where both requests are recorded, what differs between them takes the place of what only surrounds them."""
        state = self.state
        state.request_of[call.number] = request_id
        request = state.requests.get(request_id)
        earlier = state.requests.get(state.request_of.get(before, ""))
        if request is None or earlier is None or not request.tools or not earlier.tools:
            return
        differs = {name: getattr(request, name) != getattr(earlier, name) for name in COMPARED}
        differs["history"] = request.base == state.request_of[before] and request.keep < earlier.messages
        kept = tuple(event for event in call.events if event not in WEAK)
        call.events = kept + tuple(name for name, holds in differs.items() if holds and name not in kept)

    def _extend_step(self, step: int, message: LineMessage, usage: LineUsage, time: float | None) -> None:
        call, pending = self.state.calls[step - 1], self.state.pending[step - 1]
        pieces = answer_pieces(message.content)
        pending.blocks += len(pieces)
        pending.chars += len(memoryview(message.content))
        for piece in pieces:
            call.has_thinking = call.has_thinking or piece.type in THINKING
            if piece.type == "tool_use" and (event := TOOL_EVENTS.get(bytes(piece.name))):
                pending.add(event)
        if message.is_partial:
            call.answer_bytes += sum(piece.bytes for piece in pieces)
        call.is_output_partial = call.is_output_partial and message.is_partial
        tokens = billed_tokens(usage)
        if tokens[4] >= call.tokens[4]:
            call.tokens, call.extra = tokens, extra_passes(usage)
        if time is not None and call.answered is not None:
            call.end = time if call.end is None else max(call.end, time)
        if message.diagnostics and message.diagnostics.cache_miss_reason:
            reason = message.diagnostics.cache_miss_reason if message.diagnostics else None
            if isinstance(reason, str):
                call.miss_reason = reason
            elif reason:
                call.miss_reason, call.missed_tokens = reason.type, reason.cache_missed_input_tokens or 0

    def _note_events(self, line: TranscriptLine, kind: str, chain: int, step: int) -> None:
        """What lines of a person, a tool or the client say of the next request."""
        pending = self._pending(chain, step)
        if kind == "user" and line.message:
            self._note_input(line, line.message, self.state.chains[chain], pending)
        elif kind == "system" and line.subtype in BOUNDARIES:
            pending.add(BOUNDARIES[line.subtype])
        elif line.attachment:
            _note_attachment(line.attachment.type, line.attachment.hookName or "", pending)

    def _note_input(
        self, line: TranscriptLine, message: LineMessage, chain: ChainState, pending: PendingEvents
    ) -> None:
        types, command = piece_types(message.content)
        pending.blocks += len(types)
        pending.chars += len(memoryview(message.content))
        if line.isCompactSummary:
            pending.add("compaction")
        elif any(kind != "tool_result" for kind in types):
            pending.add("human")
        if command in COMMANDS:
            pending.add(COMMANDS[command])
        if "image" in types and not chain.has_image:
            chain.has_image = True
            pending.add("images")
        if line.thinkingMetadata:
            assert line.thinkingMetadata
            thinking = (line.thinkingMetadata.level, line.thinkingMetadata.disabled)
            if chain.thinking not in (None, thinking):
                pending.add("thinking")
            chain.thinking = thinking


def _note_attachment(kind: str, hook: str, pending: PendingEvents) -> None:
    if kind in ATTACHMENTS:
        pending.add(ATTACHMENTS[kind])
    elif hook.startswith("SessionStart:"):
        source = hook.partition(":")[2]
        if source in ("resume", "clear"):
            pending.add(source)


def _check(line: TranscriptLine, kind: str | None) -> None:
    """Raises ValueError where a line lacks what its kind must have."""
    message = line.message
    if kind in ("user", "assistant") and message is None:
        raise ValueError("message: expected an object; got nothing")
    is_billed = kind == "assistant" and message is not None and message.usage is not None
    if is_billed and message and message.model is None and not line.isApiErrorMessage:
        raise ValueError("message.model: expected a text; got nothing")


def _chain_key(line: TranscriptLine, is_side: bool, number: int) -> str:
    """What identifies the chain of a record that the tree does not connect."""
    if not is_side:
        return f"main {line.sessionId}"
    return f"agent {line.agentId}" if line.agentId else f"root {number}"


def read_sessions(path: Path, state: bytes = b"") -> tuple[list[SessionFile], bytes]:
    """The session in a transcript, and the state to go on from; `state` is that of an earlier reading.

    Raises InputError where the file cannot be read.
    """
    from cachecost.conversations.readers.claude_code.step_bills import is_content_free, read_step_bills

    if not state and path.is_file() and is_content_free(path):
        return [SessionFile(str(path), CLIENT, calls=read_step_bills(path))], b""
    bill = TranscriptBill(path, decode_state(state) if state else None)
    file = bill.read()
    return [file] if file.calls or file.damaged or file.notes else [], bill.saved_state


decode_state = msgspec.msgpack.Decoder(TranscriptState).decode
encode_state = msgspec.msgpack.Encoder().encode
