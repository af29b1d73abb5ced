"""Writes the lines of Claude Code transcripts (2.1.2xx) from records whose calls have been billed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from event_cache import Bill, EventCall
from event_requests import request_id, request_line, shape_line

JSON = dict[str, Any]
CHARS_PER_TOKEN = 4
WORDS = "the build reads every module and writes its output before a test checks the value of each config path "


def text_of(tokens: int) -> str:
    """Filler of so many tokens, at four characters each."""
    length = tokens * CHARS_PER_TOKEN
    return (WORDS * (length // len(WORDS) + 1))[:length]


def hex_of(*names: object, length: int = 32) -> str:
    return blake2b(" ".join(map(str, names)).encode(), digest_size=32).hexdigest()[:length]


def uuid_of(*names: object) -> str:
    text = hex_of(*names)
    return "-".join((text[:8], text[8:12], f"4{text[13:16]}", f"a{text[17:20]}", text[20:32]))


def iso_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Record:
    """One line of a transcript, or the lines of an answer where it has a `call`.

    `fields` are those of its kind. `in_tree` lines have a uuid and a parent; `cuts` lets the tree begin anew.
    """

    at: float
    fields: JSON
    call: EventCall | None = None
    content: Sequence[JSON] = ()
    in_tree: bool = True
    cuts: bool = False


@dataclass
class File:
    """A transcript to write. `path` is relative to the projects' folder; `copied` are the lines it begins with."""

    path: str
    session: str
    agent: str = ""
    records: list[Record] = field(default_factory=list)
    copied: File | None = None
    cwd: str = "/work/shop"
    version: str = "2.1.276"
    lines: list[JSON] = field(default_factory=list)

    def render(self) -> bytes:
        """The bytes of the file; its calls learn their file and line."""
        self.lines = self._copied_lines()
        parent = next((line["uuid"] for line in reversed(self.lines) if "uuid" in line), None)
        for record in self.records:
            if record.call is not None and self.is_recorded:
                self._append_request(record.call)
            for line in self._lines_of(record):
                parent = self._append(line, record, parent)
        return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in self.lines)

    def _append(self, line: JSON, record: Record, parent: str | None) -> str | None:
        """Append a line after the line `parent`; the parent of the next one."""
        if not record.in_tree:
            self.lines.append(line)
            return parent
        uuid = uuid_of(self.path, len(self.lines))
        cut = {"logicalParentUuid": parent} if record.cuts else {}
        place = {"parentUuid": None if record.cuts else parent, **cut, "isSidechain": bool(self.agent)}
        agent = {"agentId": self.agent} if self.agent else {}
        self.lines.append({**place, **agent, **line, "uuid": uuid, **self._common()})
        return uuid

    def _append_request(self, call: EventCall) -> None:
        """Lines of the request. Its shape stands before it unless the file has it since the last compaction."""
        shapes = {line.get("shapeHash") for line in self._since_compaction(self.lines)}
        if call.static.key not in shapes:
            self.lines.append(shape_line(call))
        self.lines.append(request_line(call, iso_of(call.start), self.version))

    @staticmethod
    def _since_compaction(written: list[JSON]) -> list[JSON]:
        cuts = [number for number, line in enumerate(written) if line.get("subtype") == "compact_boundary"]
        return written[cuts[-1] if cuts else 0 :]

    def _common(self) -> JSON:
        names = {"userType": "external", "entrypoint": "cli", "cwd": self.cwd, "sessionId": self.session}
        return {**names, "version": self.version, "gitBranch": "main"}

    def _lines_of(self, record: Record) -> Iterable[JSON]:
        if record.call is None:
            yield record.fields | ({"timestamp": iso_of(record.at)} if record.in_tree else {})
            return
        call = record.call
        call.file, call.line = self.path, len(self.lines) + 1
        for index, block in enumerate(record.content):
            is_last = index == len(record.content) - 1
            reference = {"requestRef": request_id(call), "apiBlockIndex": index} if self.is_recorded else {}
            yield {
                "message": self._message(call, block, is_last),
                "requestId": f"req_{hex_of('request', call.id, length=24)}",
                "type": "assistant",
                **reference,
                "timestamp": iso_of(record.at + 1.5 * index),
            }

    @property
    def is_recorded(self) -> bool:
        """Whether a client of this version records its requests, and what the API says of a miss."""
        return tuple(map(int, self.version.split("."))) >= RECORDED_SINCE

    def _message(self, call: EventCall, block: JSON, is_last: bool) -> JSON:
        """An answer stands on a line a block, each with its usage; only the last has all output tokens."""
        reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
        return {
            "model": call.model,
            "id": call.id,
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": reason if is_last else None,
            "stop_sequence": None,
            "usage": usage_of(call.bill, call.ttl, call.output if is_last else min(call.output, 3)),
            "diagnostics": self._diagnosis(call),
        }

    def _diagnosis(self, call: EventCall) -> JSON | None:
        """What the API says of a miss: a cause and an estimate, 3% below what was rewritten."""
        reason = API_REASONS.get(call.event, "")
        if not (reason and call.rewritten) or not self.is_recorded:
            return None
        missed = {} if reason == NOT_FOUND else {"cache_missed_input_tokens": call.rewritten * 97 // 100}
        return {"cache_miss_reason": {"type": reason, **missed}}

    def _copied_lines(self) -> list[JSON]:
        """The lines of the other session since its last compaction: same uuids and messages, this session's id."""
        copied = self._since_compaction(self.copied.lines) if self.copied else []
        return [{**line, "sessionId": self.session} for line in copied if "uuid" in line]


RECORDED_SINCE = (2, 1, 282)
NOT_FOUND = "previous_message_not_found"
API_REASONS = {
    "ttl_expired": NOT_FOUND,
    "model_changed": "model_changed",
    "tools_changed": "tools_changed",
    "compaction": "messages_changed",
}
"""`diagnostics.cache_miss_reason` of a call after each event."""


def usage_of(bill: Bill, ttl: str, output: int) -> JSON:
    return {
        "input_tokens": bill.uncached,
        "cache_creation_input_tokens": bill.written,
        "cache_read_input_tokens": bill.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0 if ttl == "1h" else bill.written,
            "ephemeral_1h_input_tokens": bill.written if ttl == "1h" else 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def human(at: float, content: str | list[JSON], **fields: Any) -> Record:
    message = {"role": "user", "content": content}
    return Record(at, {"type": "user", "message": message, "permissionMode": "default", **fields})


def tool_result(at: float, tool_use_id: str, tokens: int) -> Record:
    text = text_of(tokens)
    content = [{"tool_use_id": tool_use_id, "type": "tool_result", "content": text}]
    message = {"role": "user", "content": content}
    return Record(at, {"type": "user", "message": message, "toolUseResult": {"stdout": text, "stderr": ""}})


def attachment(at: float, kind: str, **fields: Any) -> Record:
    return Record(at, {"attachment": {"type": kind, **fields}, "type": "attachment"})


def system(at: float, subtype: str, cuts: bool = False, **fields: Any) -> Record:
    return Record(at, {"type": "system", "subtype": subtype, "isMeta": False, **fields}, cuts=cuts)


def outside_tree(at: float, kind: str, **fields: Any) -> Record:
    """A line of the client's own that is no part of the conversation."""
    return Record(at, {"type": kind, **fields}, in_tree=False)


def client_answer(at: float, text: str) -> Record:
    """What the client writes in place of an answer when the API fails: not a call."""
    zeros = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": uuid_of(at, text), "type": "message", "role": "assistant", "model": "<synthetic>", "usage": zeros,
               "content": [{"type": "text", "text": text}], "stop_reason": "stop_sequence"}  # fmt: skip
    return Record(at, {"type": "assistant", "message": message, "isApiErrorMessage": True, "error": "overloaded"})
