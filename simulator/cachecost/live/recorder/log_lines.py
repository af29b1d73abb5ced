"""A captured call -> a readable line of a request log, without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.request_log.reader import RequestLog
from cachecost.live.body_secrets import redact_text, redact_value, remove_secrets, secrets_of
from cachecost.live.keys import workspace_of
from cachecost.live.log import moment
from cachecost.live.recorder.answers import ParsedAnswer, decode_body, parse_answer
from cachecost.live.recorder.capture import MOST_BYTES, Capture
from cachecost.prompts.intake import Intake
from cachecost.prompts.wire import NotAMessage

RETRY = "x-stainless-retry-count"
MOST_DIGITS = 10
"""A longer retry count is not plausible, and not recorded."""
UNKNOWN = "unknown"
"""The model of a call whose body was too long to keep, and whose answer does not name one."""
FORGET_AFTER = 256 << 20
"""Bytes of bodies after which the reader is replaced, to bound its memory."""
TOO_LONG = f"longer than {MOST_BYTES >> 20} MiB, or over the memory limit"


@dataclass(frozen=True, slots=True)
class LogLine:
    """The line of a call: `fields` and the `request`. `notes` say what is missing, and why."""

    fields: dict[str, Any]
    request: bytes
    notes: tuple[str, ...] = ()


class NotRecorded(Exception):
    """A call that cannot be recorded; the message says why."""


class LineReader(RequestLog):
    """Reads single lines of a request log as `RequestLog` reads a file."""

    def call(self, line: bytes) -> RecordedCall:
        """Raises NotAMessage, msgspec.DecodeError, UnicodeDecodeError."""
        return self._call(1, self._decode(line))


@dataclass(slots=True)
class LogLineBuilder:
    """Builds lines, and reads each back: one unreadable line would spoil the whole file."""

    _reader: LineReader = field(default_factory=lambda: LineReader(Path(), Intake(keep_content=True)))
    _seen: int = 0

    def line(self, capture: Capture) -> LogLine:
        """The line of an ended call. Raises NotRecorded."""
        notes: list[str] = []
        body = _request(capture, notes)
        answer = _answer(capture, notes)
        if body is None:
            body = json.dumps({"model": (answer.message or {}).get("model") or UNKNOWN, "messages": []}).encode()
        secrets = secrets_of(capture.secrets, body)
        fields = redact_value({**_circumstances(capture, answer), **_answer_fields(answer)}, secrets)
        notes = [redact_text(note, secrets) for note in notes]
        return self._readable_line(fields, remove_secrets(body, secrets), notes)

    def _readable_line(self, fields: dict[str, Any], body: bytes, notes: list[str]) -> LogLine:
        """The line, without the answer if only the answer is unreadable."""
        fault = self._fault(fields, body)
        if fault and (fields.pop("response", None), fields.pop("usage", None)) != (None, None):
            notes.append(f"its answer is omitted: {fault}")
            fault = self._fault(fields, body)
        if fault:
            raise NotRecorded(fault)
        return LogLine(fields, body, tuple(notes))

    def _fault(self, fields: Mapping[str, Any], body: bytes) -> str | None:
        self._forget(len(body))
        head = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        try:
            self._reader.call(b'%b,"request":%b}' % (head[:-1], body))
        except NotAMessage as fault:
            return str(fault)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return "it is not JSON"
        return None

    def _forget(self, size: int) -> None:
        self._seen += size
        if self._seen > FORGET_AFTER:
            self._seen = size
            self._reader = LineReader(Path(), Intake(keep_content=True))


def _request(capture: Capture, notes: list[str]) -> bytes | None:
    """The decoded body; None if it was not kept."""
    if not capture.request.is_whole:
        notes.append(f"its request is {TOO_LONG}: recorded without content")
        return None
    try:
        return decode_body(capture.request.data, capture.asked.get("content-encoding", ""), "request")
    except NotAMessage as fault:
        notes.append(f"recorded without content: {fault}")
        return None


def _answer(capture: Capture, notes: list[str]) -> ParsedAnswer:
    if not capture.answer.is_whole:
        notes.append(f"its answer is {TOO_LONG}: recorded without usage")
        return ParsedAnswer()
    try:
        return parse_answer(capture.answer, capture.answered)
    except NotAMessage as fault:
        if capture.status is not None and capture.status < 400 and not capture.is_cut:
            notes.append(f"recorded without usage: {fault}")
        return ParsedAnswer()


def _circumstances(capture: Capture, answer: ParsedAnswer) -> dict[str, Any]:
    """Times, workspace and status; None is omitted."""
    retry = capture.asked.get(RETRY, "")
    first = answer.first_content_at
    fields = {
        "timestamp": moment(capture.start),
        "first_token_s": None if first is None else round(first - capture.start, 6),
        "duration_s": round(capture.end - capture.start, 6),
        "workspace": workspace_of(capture.asked) or None,
        "status": _status(capture, answer),
        "retry": int(retry) or None if retry.isascii() and retry.isdecimal() and len(retry) < MOST_DIGITS else None,
        "error": answer.error,
        "cut": True if _is_cut(capture, answer) else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _status(capture: Capture, answer: ParsedAnswer) -> int | None:
    """The status; an error inside a stream takes precedence."""
    is_fine = capture.status is not None and capture.status < 400
    return answer.status if is_fine and answer.status else capture.status


def _is_cut(capture: Capture, answer: ParsedAnswer) -> bool:
    """Whether the answer was cut off. A stream tells its own end; clients may leave right after it."""
    is_stream = "event-stream" in capture.answered.get("content-type", "")
    fine = capture.status is not None and capture.status < 400
    return not answer.is_whole if is_stream and fine and capture.answer.is_whole else capture.is_cut


def _answer_fields(answer: ParsedAnswer) -> dict[str, Any]:
    fields = {"usage": answer.usage, "response": answer.message}
    return {name: value for name, value in fields.items() if value is not None}
