"""Calls as they are captured and written: readable lines of a request log, without secrets, sorted by start at the end.

Bytes are copied while they are forwarded, within limits; hop-by-hop headers (RFC 9110, 7.6.1) are not forwarded. Of an
answer its message, usage, error and the time of its first token are read. A recording without content is written call
by call; a request log is appended to.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec

from cachecost.base.atomic_files import InUse, open_replacement
from cachecost.conversations.call_recording import Title, records
from cachecost.conversations.calls import Call
from cachecost.conversations.model import BlockWriter, ContentFree, encode_record
from cachecost.conversations.readers import call_recording as recording
from cachecost.conversations.readers.apis.formats import STATUS
from cachecost.conversations.readers.http.exchange import answer, decode_content
from cachecost.conversations.readers.request_log import RequestLog
from cachecost.conversations.start_times import parse_time
from cachecost.live.clock import Say, moment
from cachecost.live.keys import redact_text, redact_value, remove_secrets, secrets_of, workspace_of
from cachecost.live.recorder.helper import RecorderHelper
from cachecost.live.request_log import (
    COMPRESSIONS,
    CallLog,
    LineFile,
    call_line,
    decompressor,
    message_of_events,
)
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import BareWord, NotAMessage, text_block
from cachecost.tokens.tokenizers import count_content

MOST_BYTES = 64 << 20
"""The longest body that is recorded, encoded or decoded; the API accepts 32 MB. A longer one is only forwarded."""
ROOM = 512 << 20
"""Bytes of all calls that are kept at once; beyond that, bytes are forwarded and not kept."""
PER_CHUNK = 128
"""Overhead of a chunk in bytes."""


@dataclass(slots=True)
class CaptureMemory:
    left: int = ROOM


@dataclass(slots=True)
class BodyCopy:
    """The chunks of a body, each with its time of arrival. Not `is_whole`: it was too long and is dropped."""

    room: CaptureMemory
    most: int = MOST_BYTES
    is_whole: bool = True
    size: int = 0
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    _reserved: int = 0

    def add(self, at: float, data: bytes) -> None:
        self.size += len(data)
        kept = len(data) + PER_CHUNK
        if self.is_whole and (self.size > self.most or kept > self.room.left):
            self.is_whole = False
            self.drop()
        elif self.is_whole:
            self.room.left -= kept
            self._reserved += kept
            self.chunks.append((at, data))

    def drop(self) -> None:
        self.room.left += self._reserved
        self._reserved = 0
        self.chunks = []

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.chunks)


@dataclass(slots=True)
class Capture:
    """One call to the Messages API. Times are seconds since the epoch; `number` counts calls by their start, from 1.

    `asked` and `answered` are headers by lower-case name, which are never stored, and `secrets` their secrets, longest
    first. `is_cut`: the answer's end was not forwarded (yet), because the upstream broke off or the client left.
    """

    number: int
    start: float
    asked: Mapping[str, str]
    request: BodyCopy
    answer: BodyCopy
    answered: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    end: float = 0.0
    is_cut: bool = True
    secrets: Sequence[str] = ()

    def drop(self) -> None:
        self.request.drop()
        self.answer.drop()


Pairs = list[tuple[bytes, bytes]]
HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
LENGTH, ENCODING = b"content-length", b"transfer-encoding"


def has_two_lengths(pairs: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body has both a length and chunks: servers disagree where it ends (RFC 9112, 6.1 and 11.2)."""
    return {LENGTH, ENCODING} <= {name.lower() for name, _ in pairs}


def for_upstream(pairs: Iterable[tuple[bytes, bytes]], host: bytes) -> Pairs:
    """A client's headers as they are forwarded: with the upstream's `host`; a body without a length is chunked."""
    pairs = list(pairs)
    dropped = _dropped_names(pairs)
    forwarded = [(b"host", host)]
    for name, value in pairs:
        lower = name.lower()
        if lower == ENCODING:
            forwarded.append((b"transfer-encoding", b"chunked"))
        elif lower != b"host" and lower not in dropped:
            forwarded.append((name, value))
    return forwarded


def for_client(pairs: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """The upstream's headers as they are forwarded: in the same order, with all duplicates.

    The length of a chunked body is dropped, since the chunks say how long it is (RFC 9112, 6.1).
    """
    pairs = list(pairs)
    dropped = _dropped_names(pairs) | ({LENGTH} if has_two_lengths(pairs) else frozenset())
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def _dropped_names(pairs: Pairs) -> frozenset[bytes]:
    """Hop-by-hop names, with those in a `connection` header."""
    named = (value.split(b",") for name, value in pairs if name.lower() == b"connection")
    return HOP_BY_HOP | {one.strip().lower() for each in named for one in each}


def decoded(pairs: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in pairs]


FIRST_CONTENT = b"event: content_block_start"


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer. `message` has no usage; `status` is that of an error inside a stream.

    `first_content_at` is when the first content of a stream came, in seconds since the epoch (None: not a stream, or no
    content). `is_whole`: the stream was complete.
    """

    message: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    error: str | None = None
    status: int | None = None
    first_content_at: float | None = None
    is_whole: bool = False


def parse_answer(copy: BodyCopy, headers: Mapping[str, str]) -> ParsedAnswer:
    """Parse an answer. Raises NotAMessage if it is damaged or its encoding is unknown."""
    encoding = headers.get("content-encoding", "")
    data = decode_body(copy.data, encoding, "response")
    if not data.strip():
        return ParsedAnswer()
    body, first_content_at, is_whole = answer(data, headers.get("content-type", ""), "response"), None, True
    if isinstance(body, list):
        events = body
        first_content_at = _first_content(copy.chunks, encoding)
        is_whole = any(event.get("type") == "message_stop" for event in events)
        failed = next((event for event in events if event.get("type") == "error"), {})
        body = {**message_of_events(events), **({"error": failed["error"]} if "error" in failed else {})}
    error, usage = body.get("error"), body.get("usage")
    kind = str(error.get("type") or "unknown") if isinstance(error, Mapping) else None
    is_message = isinstance(body.get("content"), list)
    return ParsedAnswer(
        {name: value for name, value in body.items() if name not in ("usage", "error")} if is_message else None,
        usage if isinstance(usage, Mapping) else None,
        kind,
        None if kind is None or is_message else STATUS.get(kind),
        first_content_at,
        is_whole,
    )


def decode_body(data: bytes, encoding: str, at: str) -> bytes:
    """A body without its content coding. Raises NotAMessage if damaged, unknown, or longer than MOST_BYTES."""
    coding = encoding.strip().lower()
    if not coding or coding == "identity":
        return data
    if coding not in COMPRESSIONS:
        return decode_content(data, encoding, at)
    unpacker = decompressor(coding, data)
    try:
        plain = unpacker.decompress(data, MOST_BYTES)
    except zlib.error:
        raise NotAMessage(at, f"a body in {coding}", BareWord("damaged bytes")) from None
    if unpacker.unconsumed_tail:
        raise NotAMessage(at, f"at most {MOST_BYTES:,} bytes", BareWord("more"))
    return plain


def _first_content(chunks: Sequence[tuple[float, bytes]], encoding: str) -> float | None:
    """When the first event with content came; the first bytes, if the encoding cannot be decoded in pieces."""
    coding = encoding.strip().lower()
    if coding and coding != "identity" and coding not in COMPRESSIONS:
        return chunks[0][0] if chunks else None
    unpacker = decompressor(coding, chunks[0][1]) if coding in COMPRESSIONS and chunks else None
    seen = b""
    for at, data in chunks:
        try:
            seen += unpacker.decompress(data, MOST_BYTES) if unpacker else data
        except zlib.error:
            return None
        if FIRST_CONTENT in seen or b'"content_block_start"' in seen:
            return at
        seen = seen[-len(FIRST_CONTENT) :]
    return None


RETRY = "x-stainless-retry-count"
UNKNOWN = "unknown"
"""The model of a call whose body was too long to keep, and whose answer does not name one."""
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
    def call(self, line: bytes) -> Call:
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
        body, answer = None, ParsedAnswer()
        if not capture.request.is_whole:
            notes.append(f"its request is {TOO_LONG}: recorded without content")
        else:
            try:
                body = decode_body(capture.request.data, capture.asked.get("content-encoding", ""), "request")
            except NotAMessage as error:
                notes.append(f"recorded without content: {error}")
        if not capture.answer.is_whole:
            notes.append(f"its answer is {TOO_LONG}: recorded without usage")
        else:
            try:
                answer = parse_answer(capture.answer, capture.answered)
            except NotAMessage as error:
                if capture.status is not None and capture.status < 400 and not capture.is_cut:
                    notes.append(f"recorded without usage: {error}")
        if body is None:
            body = json.dumps({"model": (answer.message or {}).get("model") or UNKNOWN, "messages": []}).encode()
        secrets = secrets_of(capture.secrets, body)
        fields = redact_value(_fields(capture, answer), secrets)
        notes = [redact_text(note, secrets) for note in notes]
        body = remove_secrets(body, secrets)
        fault = self._fault(fields, body)
        if fault and (fields.pop("response", None), fields.pop("usage", None)) != (None, None):
            notes.append(f"its answer is omitted: {fault}")
            fault = self._fault(fields, body)
        if fault:
            raise NotRecorded(fault)
        return LogLine(fields, body, tuple(notes))

    def _fault(self, fields: Mapping[str, Any], body: bytes) -> str | None:
        """Why a reader rejects the line; None: it can be read."""
        self._seen += len(body)
        if self._seen > 256 << 20:  # bytes of bodies after which the reader is replaced, to bound its memory
            self._seen = len(body)
            self._reader = LineReader(Path(), Intake(keep_content=True))
        head = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        try:
            self._reader.call(b'%b,"request":%b}' % (head[:-1], body))
        except NotAMessage as fault:
            return str(fault)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return "it is not JSON"
        return None


def _fields(capture: Capture, answer: ParsedAnswer) -> dict[str, Any]:
    retry, is_cut = capture.asked.get(RETRY, ""), capture.is_cut
    is_count = retry.isascii() and retry.isdecimal() and len(retry) < 10  # a longer one is not plausible
    first = answer.first_content_at
    is_fine = capture.status is not None and capture.status < 400
    if is_fine and capture.answer.is_whole and "event-stream" in capture.answered.get("content-type", ""):
        is_cut = not answer.is_whole
    fields = {
        "timestamp": moment(capture.start),
        "first_token_s": None if first is None else round(first - capture.start, 6),
        "duration_s": round(capture.end - capture.start, 6),
        "workspace": workspace_of(capture.asked) or None,
        "status": answer.status if is_fine and answer.status else capture.status,
        "retry": int(retry) or None if is_count else None,
        "error": answer.error,
        "cut": is_cut or None,
        "usage": answer.usage,
        "response": answer.message,
    }
    return {name: value for name, value in fields.items() if value is not None}


WAITS, WAIT_S = 100, 0.01


class DigestFile:
    """The recording at `path`, under a random key that is not stored, so no later process can continue it.

    Later lines refer to earlier ones, so what the disk rejects is kept and written before the next call.
    `unwritten` are the numbers of its calls. One that `follows` makes the lines that another process writes, and can
    finish the file. The tokenizers are loaded before the first call.
    """

    def __init__(self, path: Path, key: bytes, follows: bool = False) -> None:
        self._path = path
        self._file = None if follows else LineFile(path)
        self._calls: deque[Call] = deque()
        count_content(text_block("user", "a"))
        table = BlockWriter(ContentFree(key), count_content)
        self._records = records(Title(path.stem), iter(self._calls.popleft, None), table)
        self._lines, self._size = b"", 0
        self.unwritten: list[int] = []

    def add(self, number: int, call: Call) -> bytes:
        """Make the lines of a call, for `write`; returns them."""
        self._calls.append(call)
        made, is_whole = b"", False
        while not is_whole:
            record = next(self._records)
            made += encode_record(record)
            is_whole = "call" in record
        self._lines += made
        self.unwritten.append(number)
        return made

    def forget(self, size: int) -> None:
        """The other process has written so many bytes of the file."""
        self._lines, self._size = self._lines[size - self._size :], size

    def take_over(self) -> None:
        """Write what the other process has not; nothing into a file that was moved or cut. Raises OSError, InUse."""
        if self._path.stat().st_size < self._size:
            return
        for left in reversed(range(WAITS)):
            try:
                self._file = LineFile(self._path)
            except InUse:  # a process that was killed holds its files a moment longer than its pipes
                if not left:
                    raise
                time.sleep(WAIT_S)
            else:
                self.forget(self._file.size)
                self.write()
                return

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def waiting(self) -> int:
        return len(self._lines)

    def write(self) -> int:
        """Write pending lines and return the size of the file. Raises OSError; the lines are then kept."""
        assert self._file is not None
        if self._lines:
            self._file.append_lines(self._lines)
        self.unwritten, self._lines = [], b""
        return self._file.size


def free_place(path: Path) -> Path:
    """`path`, or NAME-2, NAME-3 … in its folder if it exists."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return place


class _LineTime(msgspec.Struct):
    timestamp: str | None = None


def put_in_order(path: Path) -> bool:
    """Sort the lines of a log by time; returns whether anything moved.

    A log with a line without a time stays unchanged. Raises OSError.
    """
    with path.open("rb") as stream:
        places: list[tuple[float | None, int, int]] = []
        offset = 0
        for line in stream:
            if line.strip():
                at = None
                with suppress(msgspec.DecodeError, NotAMessage):
                    stamp = msgspec.json.decode(line, type=_LineTime).timestamp
                    at = None if stamp is None else parse_time(stamp)
                places.append((at, offset, len(line)))
            offset += len(line)
        times = [at for at, _, _ in places]
        if None in times or all(one <= other for one, other in pairwise(times)):  # type: ignore[operator]
            return False
        with open_replacement(path, _mode(path)) as sorted_:
            for _, offset, length in sorted(places):  # of equal times, the first one written
                stream.seek(offset)
                sorted_.write(stream.read(length).rstrip(b"\r\n") + b"\n")
    return True


def put_recording_in_order(path: Path) -> bool:
    """As `put_in_order`, for a recording without content. Raises OSError, InputError."""
    calls = list(recording.calls(path))
    if all(one.start <= other.start for one, other in pairwise(calls)):
        return False
    lines = records(recording.title(path), sorted(calls, key=lambda call: call.start), BlockWriter())
    with open_replacement(path, _mode(path)) as stream:
        stream.write(encode_record({**next(lines), "content": "digest"}))
        stream.writelines(map(encode_record, lines))
    return True


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


MOST_WAITING, CATCH_UP_S = 8, 0.005
"""With more ended calls that are not written, each further one holds up forwarding for so long: hundreds of calls a
second would end faster than they are written, and be lost with this process.
"""


class Sink:
    """The destination of lines. The helper, if there is one, is told of every call."""

    def __init__(self, helper: RecorderHelper | None) -> None:
        self._helper = helper

    def tell(self, message: bytes) -> None:
        if self._helper:
            self._helper.tell(message)

    def write(self, number: int, line: LogLine) -> None:
        """Raises OSError where it cannot be written."""
        raise NotImplementedError


class LogSink(Sink):
    def __init__(self, log: CallLog, helper: RecorderHelper | None) -> None:
        super().__init__(helper)
        self._log = log

    def write(self, number: int, line: LogLine) -> None:
        self.tell(b"end %d %d\n" % (number, self._log.append(line.fields, line.request)))


class DigestSink(Sink):
    """Writes calls without content: content never reaches a disk.

    The helper makes the same lines under the same key, and writes those that this process could not, if it is killed.
    What a full disk rejects is kept in memory.
    """

    def __init__(self, path: Path, helper: RecorderHelper, say: Say) -> None:
        super().__init__(helper)
        self._say, self._path, self._is_full = say, path, False
        self._reader = LineReader(path, Intake(keep_content=True))
        key = os.urandom(32)
        self.tell(b"key %b\n" % key.hex().encode())
        self._file = DigestFile(path, key)

    def write(self, number: int, line: LogLine) -> None:
        if self._file.waiting > ROOM:
            raise NotRecorded(f"more than {ROOM >> 20} MiB are waiting to be written")
        text = call_line(line.fields, line.request)
        self.tell(b"line %d %b" % (number, text))
        self._file.add(number, self._reader.call(text))
        self._write()

    def close(self) -> int:
        """Write what is left, if there is room now; how many calls could not be written."""
        self._write()
        if left := len(self._file.unwritten):
            self._say(f"{left:,} {'call is' if left == 1 else 'calls are'} not recorded: the file cannot be written")
        self._file.close()
        return left

    def _write(self) -> None:
        try:
            self.tell(b"wrote %d\n" % self._file.write())
            self._is_full = False
        except OSError as error:
            if not self._is_full:
                why = f"{self._path} cannot be written: {error.strerror}"
                self._say(f"{why}; ended calls are kept in memory until it can be")
            self._is_full = True


class CallWriter:
    """Is notified of calls by the event loop (`proxy.Listener`) and writes each one when it has ended.

    `taken` calls were passed to the sink; `lost` ones were not, each with a diagnostic.
    """

    def __init__(self, sink: Sink, say: Say) -> None:
        self.taken = self.lost = 0
        self._sink, self._say = sink, say
        self._lines = LogLineBuilder()
        self._ended: SimpleQueue[Capture | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def on_start(self, number: int) -> None:
        self._sink.tell(b"begin %d\n" % number)

    def on_end(self, capture: Capture) -> None:
        self._ended.put(capture)
        if self._ended.qsize() > MOST_WAITING:
            time.sleep(CATCH_UP_S)

    def close(self) -> None:
        self._ended.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (capture := self._ended.get()) is not None:
            try:
                line = self._lines.line(capture)
                self._sink.write(capture.number, line)
            except NotRecorded as why:
                status = "" if capture.status is None else f" (answered with status {capture.status})"
                self._lose(capture, f"{why}{status}")
            except OSError as error:
                self._lose(capture, f"the file cannot be written: {error.strerror}")
            except Exception as error:  # the next call is recorded in any case
                self._lose(capture, f"internal error: {type(error).__name__}")
            else:
                self.taken += 1
                for note in line.notes:
                    self._say(f"call {capture.number}: {note}")
            finally:
                capture.drop()

    def _lose(self, capture: Capture, why: str) -> None:
        self.lost += 1
        self._sink.tell(b"gone %d\n" % capture.number)
        self._say(f"call {capture.number} is not recorded: {why}")
