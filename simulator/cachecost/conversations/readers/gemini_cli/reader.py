"""Reads sessions of Gemini CLI (`session-*.jsonl`, `session-*.json`) as calls, with their requests as far as they go.

The file has the messages, the tool calls with their results, and the tokens of each answer, but neither the system
prompt nor the tools: they are sized by the bill (common/session_calls.py). It is a log of records, or one JSON value
(until spring 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cachecost.conversations.input_files import BOM, billed_call, first_line, read_input
from cachecost.conversations.readers.apis.gemini import from_generate_content
from cachecost.conversations.readers.common import session_calls as common
from cachecost.conversations.readers.common.json_values import array_at, decode, object_at, object_or_empty
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.hosts import maker_of
from cachecost.providers.usage import Usage

Raw = msgspec.Raw
EMPTY = Raw(b"null")


class ToolCall(msgspec.Struct):
    timestamp: str | None = None


class Message(msgspec.Struct, rename="camel"):
    """A message: `type` is user, gemini, info, warning or error; only gemini has a model and tokens."""

    id: str = ""
    timestamp: str | None = None
    type: str = ""
    content: Raw = EMPTY
    tokens: dict[str, Any] | None = None
    model: str | None = None
    thoughts: Raw = EMPTY
    tool_calls: Raw = EMPTY


class Update(msgspec.Struct, rename="camel"):
    """`$set`: changed metadata; with `messages`, all messages that are left; with a session id, it was resumed."""

    messages: list[Raw] | None = None
    session_id: str | None = None


class Record(msgspec.Struct, rename="camel"):
    """A line: the head of the session, a message, or a change. A file of one JSON value is a head with messages."""

    id: str = ""
    session_id: str | None = None
    project_hash: str | None = None
    kind: str | None = None
    directories: list[str] | None = None
    messages: list[Raw] | None = None
    update: Update | None = msgspec.field(default=None, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")


TOOL_CALLS: Any = list[ToolCall] | None
MODEL = "gemini"
"""The type of a message that the model wrote; also the host of the calls."""
ROOT_FILE = ".project_root"
MOST_ROOT = 1 << 12
"""Bytes of a file that has nothing but a path."""
UNKNOWN_MODEL = "unknown"


@dataclass(slots=True, eq=False)
class Entry:
    """A message of the session, as it was last recorded. `line` and `time` are those of its first record."""

    line: int
    id: str
    kind: str
    time: float | None
    done: float | None = None
    """When the last of its tools had finished."""
    model: str = UNKNOWN_MODEL
    usage: Usage | None = None
    has_thinking: bool = False
    is_human: bool = False
    pieces: tuple[common.Piece, ...] = ()


class GeminiSession(common.SessionParser):
    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self._head = Record()
        self._entries: dict[str, Entry] = {}
        self._timeline: list[Entry | tuple[tuple[str, ...], str]] = []
        """Messages, and changes: the ids of the messages that are left, and what happened to the others."""
        self._live: dict[str, None] = {}
        self._name = ""
        self._sent: list[Entry] = []
        """What a call that is made now would send."""
        self._call_of: dict[str, common.SessionCall] = {}

    def read_line(self, number: int, raw: bytes) -> None:
        record = decode(raw, Record)
        if record.id:
            self._add_message(number, msgspec.Raw(raw))
        elif record.update is not None:
            if record.update.messages is not None:
                before, known = list(self._live), set(self._entries)
                self._live = {}
                ids = [self._add_message(number, message) for message in record.update.messages]
                if before[: len(ids)] != ids[: len(before)] or len(ids) < len(before):
                    event = "compaction" if set(ids) - known else "clear"
                    self._timeline.append((tuple(self._live), event))
            if record.update.session_id is not None:
                self._timeline.append((tuple(self._live), "resume"))
        elif record.rewind_to is not None:
            live = list(self._live)
            self._live = dict.fromkeys(live[: live.index(record.rewind_to)] if record.rewind_to in self._live else ())
            self._timeline.append((tuple(self._live), "fork" if self._live else "clear"))
        elif record.session_id:
            self._head = record
            for message in record.messages or ():
                self._add_message(number, message)

    def _add_message(self, number: int, raw: msgspec.Raw) -> str:
        message = decode(raw, Message)
        if message.type not in ("user", MODEL):
            return message.id
        time = common.time_of(message.timestamp)
        usage = None if message.tokens is None else usage_from(message.tokens, "tokens", "gemini-cli")
        ended = [common.time_of(call.timestamp) for call in decode(message.tool_calls, TOOL_CALLS) or ()]
        entry = self._entries.get(message.id)
        if entry is None:
            entry = self._entries[message.id] = Entry(number, message.id, message.type, time)
            self._timeline.append(entry)
        entry.done, entry.usage = common.last_of(entry.done, *ended), usage or entry.usage
        entry.model = message.model or entry.model
        entry.has_thinking |= bytes(message.thoughts) not in (b"null", b"[]")
        entry.is_human = message.type == "user" and b'"functionResponse"' not in bytes(message.content)
        entry.pieces = (self.piece(message.type, message.content),)
        if bytes(message.tool_calls) not in (b"null", b"[]"):
            entry.pieces = (*entry.pieces, self.piece("tools", message.tool_calls))
        self._live[message.id] = None
        return message.id

    def lines(self) -> Iterable[tuple[int, bytes]]:
        if first_line(self.path) != b"{":
            return super().lines()
        return [(1, read_input(self.path).removeprefix(BOM) + b"\n")]

    def finish(self) -> common.Session:
        head = self._head
        self.session.project = (head.directories or [head.project_hash or ""])[0]
        for folder in list(self.path.absolute().parents)[1:3]:  # Gemini CLI keeps the agent's folder beside sessions
            try:
                with (folder / ROOT_FILE).open("rb") as file:
                    self.session.project = file.read(MOST_ROOT).decode("utf-8", "replace").strip()
                break
            except OSError:
                continue
        self._name = head.session_id or ""
        if head.kind == "subagent":
            self._name, self.chain.thread = self.path.parent.name, self._name
        for one in self._timeline:
            if not isinstance(one, Entry):
                left, event = one
                self._sent = [self._entries[name] for name in left if name in self._entries]
                if event == "fork":
                    self.chain.events.discard("human")
                else:
                    self.chain.events.add(event)
                    self.chain.is_cut |= event != "resume"
                continue
            if one.usage is not None:
                self._add_call(one, one.usage)
            elif one.is_human:
                self.chain.events.add("human")
            self._sent.append(one)
        return super().finish()

    def _add_call(self, entry: Entry, usage: Usage) -> None:
        sent, is_cut = self._sent, self.chain.is_cut
        at = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].id in self._call_of), -1)
        request = sent if is_cut else sent[at + 1 :]
        start = entry.time
        if sent:  # when the message or the tool result before it was recorded
            known = common.last_of(sent[-1].time, sent[-1].done)
            start = start if known is None else known if start is None else min(known, start)
        bill = billed_call(entry.line, entry.model, usage, start, entry.time, session=self._name, id=entry.id)
        bill.agent, bill.has_thinking = "subagent" if self.chain.thread else "", entry.has_thinking
        bill.host = "" if maker_of(entry.model) else MODEL
        answered = [] if is_cut or at < 0 else [piece for piece in sent[at].pieces if piece.kind == "tools"]
        results = answered if not any(one.kind == "user" and not one.is_human for one in request) else []
        self.chain.request = [common.Piece("results", piece.chars, piece.data) for piece in results]
        self.chain.request += [piece for one in request for piece in one.pieces]
        call = self._call_of[entry.id] = self.add_call(bill, entry.pieces)
        if not is_cut:
            call.before = self._call_of[sent[at].id] if at >= 0 else None


LACKS = (
    "Gemini CLI's sessions lack system prompt and tools: sized by the bill; "
    "calls for compression, routing and loop detection are not in them"
)


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a session of Gemini CLI; None if it is not."""
    is_one = {"sessionId", "projectHash"} <= set(top_keys(head))
    return 'its first object has a "sessionId" and a "projectHash"' if is_one else None


def _to_blocks(kind: str, value: Any) -> Iterator[common.RoleBlocks]:
    if kind == "tools":
        calls = [object_at(call, "toolCalls") for call in array_at(value, "toolCalls")]
        use = {"type": "tool_use"}
        yield (
            "assistant",
            [use | {"id": one.get("id"), "name": one.get("name"), "input": one.get("args") or {}} for one in calls],
        )
    elif kind == "results":
        for call in array_at(value, "toolCalls"):
            yield from content_blocks("user", object_or_empty(call).get("result"))
    else:
        yield from content_blocks("model" if kind == MODEL else "user", value)


def content_blocks(role: str, content: Any) -> Iterator[common.RoleBlocks]:
    """The blocks of a content in Gemini's form: parts, one part, or a text."""
    if content:
        parts = content if isinstance(content, list) else [content]
        parts = [{"text": part} if isinstance(part, str) else part for part in parts]
        body = from_generate_content({"contents": [{"role": role, "parts": parts}]}, "")
        yield "assistant" if role == "model" else "user", body["messages"][0]["content"]


FORMAT = common.SessionFormat("gemini-cli", "Gemini CLI", GeminiSession, _to_blocks)
calls, session_files = FORMAT.calls, FORMAT.session_files
