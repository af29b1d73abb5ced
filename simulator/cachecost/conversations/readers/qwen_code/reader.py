"""Reads sessions of Qwen Code (`~/.qwen/projects/PROJECT/chats/SESSION.jsonl`) as calls, with their requests.

The file has the messages and the tokens of each answer, but neither the system prompt nor the tools: they are sized by
the bill (common/session_calls.py).

Read in November 2026: files that Qwen Code 0.15.10 and 0.24.4 wrote (OpenAI and Anthropic protocol, resumed, with a
sub-agent), and its recording services (QwenLM/qwen-code).

- Records form a tree (`parentUuid`); a rewind goes on from an earlier one. An assistant record has the content and
  the usage of an answer, the `ui_telemetry` record before it the id of the response and the duration of the call.
- **Bill**: every `qwen-code.api_response`, and every assistant record that has none. Calls of sub-agents and of
  background agents are in the telemetry of the session, without content; a sub-agent also has a file of its own
  (`subagents/SESSION/agent-ID.jsonl`), whose calls have the same ids.
- The input includes what was read from a cache, and what was written to it: a write is not stated. With Anthropic's
  protocol, 0.15 counts neither in the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cachecost.conversations.input_files import add_branch, billed_call
from cachecost.conversations.readers.common import session_calls as common
from cachecost.conversations.readers.common.json_values import decode, object_at, object_or_empty
from cachecost.conversations.readers.common.peek import sniff_first_line
from cachecost.conversations.readers.gemini_cli.reader import content_blocks
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage
from cachecost.providers.hosts import host_of_provider, maker_of
from cachecost.providers.usage import Usage

Raw = msgspec.Raw
EMPTY = Raw(b"null")


class Origin(msgspec.Struct, rename="camel"):
    """Where a record was copied from: `/branch` copies those of a session into a new one."""

    session_id: str = ""


class Record(msgspec.Struct, rename="camel"):
    """A line: `type` is user, assistant, tool_result or system."""

    type: str = ""
    uuid: str = ""
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    subtype: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    model: str | None = None
    message: Raw = EMPTY
    usage: dict[str, Any] | None = msgspec.field(default=None, name="usageMetadata")
    payload: Raw = msgspec.field(default=EMPTY, name="systemPayload")
    copied_from: Origin | None = msgspec.field(default=None, name="forkedFrom")
    agent_id: str | None = None
    agent_name: str | None = None


class Message(msgspec.Struct):
    parts: Raw = EMPTY


class Response(msgspec.Struct):
    """The event `qwen-code.api_response`: one answer of the API, of the session or of an agent that it started."""

    name: str = msgspec.field(default="", name="event.name")
    timestamp: str | None = msgspec.field(default=None, name="event.timestamp")
    response_id: str | None = None
    model: str | None = None
    duration_ms: float | None = None
    ttft_ms: float | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    total_token_count: int | None = None
    auth_type: str | None = None
    subagent_id: str | None = None
    subagent_name: str | None = None


class Telemetry(msgspec.Struct, rename="camel"):
    """`ui_telemetry`."""

    ui_event: Response = msgspec.field(default_factory=Response)


class Kind(msgspec.Struct):
    name: str = msgspec.field(default="", name="event.name")


class TelemetryKind(msgspec.Struct, rename="camel"):
    """`ui_telemetry` of any kind: only an answer's is decoded further."""

    ui_event: Kind = msgspec.field(default_factory=Kind)


class Compression(msgspec.Struct, rename="camel"):
    """`chat_compression`: what the history is replaced with."""

    compressed_history: list[Raw] | None = None


MESSAGE: Any = Message | None
COMPRESSION: Any = Compression | None


ANY_SERVER = "openai"
"""The `auth_type` of every server with that protocol."""
API_RESPONSE = "qwen-code.api_response"
UNKNOWN_MODEL = "unknown"
NO_WRITES = "Qwen Code does not store cache writes: they count as uncached input, before version 0.24 maybe not at all"


@dataclass(slots=True, eq=False)
class Node(common.RecordNode):
    """A record; `response` is the call that telemetry tells of, in it or in a record before it in the same request."""

    response: common.SessionCall | None = None


class QwenSession(common.SessionParser):
    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self._nodes: dict[str, Node] = {}
        self._last: dict[str, common.SessionCall] = {}
        """The last call of each sub-agent."""
        self._figures: Counter[str] = Counter()
        self._matched: set[int] = set()
        self._agent_model: str | None = None

    def read_line(self, number: int, raw: bytes) -> None:
        record = decode(raw, Record)
        if record.uuid and record.uuid in self._nodes:
            return
        parent = self._nodes.get(record.parent_uuid or "") or Node()
        node = Node(parent, common.time_of(record.timestamp), response=None if parent.call else parent.response)
        handler = HANDLERS.get(record.type)
        if handler is not None:
            handler(self, record, node, number)
        if record.uuid:
            self._nodes[record.uuid] = node
        self.session.project = self.session.project or record.cwd or ""

    def input(self, record: Record, node: Node, number: int) -> None:
        node.pieces = self._parts("user", record.message)
        node.events = ("human",) if record.type == "user" else ()

    def system(self, record: Record, node: Node, number: int) -> None:
        if record.subtype == "ui_telemetry":
            if decode(record.payload, TelemetryKind).ui_event.name == API_RESPONSE:
                event = decode(record.payload, Telemetry).ui_event
                usage = usage_from(msgspec.to_builtins(event), "uiEvent", "qwen-code")
                end = common.time_of(event.timestamp) or node.time
                took = _seconds(event.duration_ms, "duration_ms")
                start = None if end is None else end - took
                call = self._new_call(record, number, event.model, usage, start, end)
                call.has_content, call.first_token_s = False, _seconds(event.ttft_ms, "ttft_ms")
                if event.auth_type != ANY_SERVER:
                    call.bill.host = host_of_provider(event.auth_type or "", call.bill.model) or ""
                if event.subagent_id or event.subagent_name:
                    self._set_agent(call, record, event.subagent_id or "", event.subagent_name or "")
                else:
                    call.bill.id = event.response_id or ""
                    node.response = call
        elif record.subtype == "chat_compression":
            compression = decode(record.payload, COMPRESSION)
            if compression is not None and compression.compressed_history is not None:
                node.pieces = [self.piece("content", one) for one in compression.compressed_history]
                node.events, node.is_cut, node.response = ("compaction",), True, None

    def _parts(self, kind: str, message: msgspec.Raw) -> list[common.Piece]:
        found = decode(message, MESSAGE)
        return [] if found is None else [self.piece(kind, found.parts)]

    def assistant(self, record: Record, node: Node, number: int) -> None:
        node.pieces = self._parts("model", record.message)
        if record.usage is None or node.parent is None:
            return
        chain, call = node.parent.chain(), node.response
        if call is None or call.bill.number in self._matched:
            usage = usage_from(record.usage, "usageMetadata", "qwen-code")
            model = record.model
            if not model:  # that of the session which started an agent: its own file does not say
                if record.agent_id and self._agent_model is None:
                    self._agent_model = _read_model(self.path)
                model = self._agent_model
            call = self._new_call(record, number, model, usage, chain.time, node.time)
            call.bill.id = record.uuid
            if record.agent_id:
                self._set_agent(call, record, record.agent_id, record.agent_name or "")
        self._matched.add(call.bill.number)
        call.has_content, call.before, call.is_cut = True, chain.last, chain.is_cut
        call.request, call.events, call.answer = chain.request, chain.events, node.pieces
        call.bill.has_thinking = bool(record.usage.get("thoughtsTokenCount"))
        node.call = call

    def _new_call(
        self, record: Record, number: int, model: str | None, usage: Usage, start: float | None, end: float | None
    ) -> common.SessionCall:
        bill = billed_call(number, model or UNKNOWN_MODEL, usage, start, end, session=record.session_id or "")
        bill.version = record.version or ""
        call = self.add_call(bill, chain=common.CallChain())
        add_branch(self.session.branches, bill.number, record.git_branch or "")
        return call

    def _set_agent(self, call: common.SessionCall, record: Record, agent: str, name: str) -> None:
        """A sub-agent's call: the telemetry of the session and the agent's own file have no id in common, so that it
        is known by its tokens, the n-th time that they occur."""
        bill = call.bill
        bill.agent, call.thread = name or agent, agent or name
        session = record.copied_from.session_id if record.copied_from else bill.session
        figures = f"{session} {call.thread} {bill.total_input}/{bill.read}/{bill.tokens[4]}"
        self._figures[figures] += 1
        bill.id = f"{figures} {self._figures[figures]}"
        call.before = self._last.get(call.thread)
        self._last[call.thread] = call

    def finish(self) -> common.Session:
        super().finish()
        if any((call.bill.host or maker_of(call.bill.model)) == "anthropic" for call in self.session.calls):
            self.session.notes.append(NO_WRITES)
        return self.session


HANDLERS: dict[str, Callable[[QwenSession, Record, Node, int], None]] = {
    "user": QwenSession.input,
    "tool_result": QwenSession.input,
    "assistant": QwenSession.assistant,
    "system": QwenSession.system,
}
"""What reads each kind of record."""


MOST_MILLISECONDS = 10**9


def _seconds(milliseconds: float | None, name: str) -> float:
    """0 where nothing is stated. Raises NotAMessage."""
    if not 0 <= (milliseconds or 0.0) <= MOST_MILLISECONDS:
        raise NotAMessage(f"uiEvent.{name}", f"milliseconds from 0 to {MOST_MILLISECONDS:,}", milliseconds)
    return (milliseconds or 0.0) / 1000


MOST_META = 1 << 20
"""Bytes of the file beside a sub-agent's."""


def _read_model(path: Path) -> str:
    """The model in `agent-ID.meta.json` beside a sub-agent's file; "" if there is none."""
    try:
        with path.with_name(f"{path.stem}.meta.json").open("rb") as file:
            meta = msgspec.json.decode(file.read(MOST_META))
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return ""
    model = object_or_empty(object_or_empty(meta).get("persistedCliFlags")).get("model")
    return model if isinstance(model, str) else ""


LACKS = (
    "Qwen Code's sessions lack system prompt and tools, sized by the bill, and cache writes: "
    "what was written counts as uncached input, before version 0.24 maybe not at all"
)
# Its records are like Claude Code's; but messages have "parts" instead of a "content".
sniff = sniff_first_line(
    'its first line has a "parentUuid" and a message with "parts"',
    {"uuid", "parentUuid", "sessionId", "type"},
    b'"parts"',
    b'"systemPayload"',
)


def _to_blocks(kind: str, value: Any) -> Iterator[common.RoleBlocks]:
    """The blocks of the parts of a message ("user", "model"), or of a whole `content` of a compressed history."""
    role, parts = kind, value
    if kind == "content":
        content = object_at(value, "compressedHistory")
        role, parts = str(content.get("role") or "user"), content.get("parts")
    yield from content_blocks(role, parts)


FORMAT = common.SessionFormat("qwen-code", "Qwen Code", QwenSession, _to_blocks)
calls, session_files = FORMAT.calls, FORMAT.session_files
