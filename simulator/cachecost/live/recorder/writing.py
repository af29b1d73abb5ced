"""Writes calls while the event loop forwards bytes, and sorts them by their start at the end.

A recording without content is written call by call; a request log is appended to.
"""

from __future__ import annotations

import os
import time
from collections import deque
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec

from cachecost.base.atomic_files import InUse, open_replacement
from cachecost.conversations.call_recording import Title, records
from cachecost.conversations.calls import Call
from cachecost.conversations.model import BlockWriter, ContentFree, encode_record
from cachecost.conversations.readers import call_recording as recording
from cachecost.conversations.start_times import parse_time
from cachecost.live.clock import Say
from cachecost.live.recorder.helper import RecorderHelper
from cachecost.live.recorder.log_lines import ROOM, Capture, LineReader, LogLine, LogLineBuilder, NotRecorded
from cachecost.live.request_log import CallLog, LineFile, call_line, lines_in
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage, text_block
from cachecost.tokens.tokenizers import count_content

WAITS, WAIT_S = 100, 0.01
CALL = b'{"call":'
"""The start of a call's line; calls refer to the other lines of the file."""


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
        """Bytes that are not written."""
        return len(self._lines)

    def write(self) -> int:
        """Write pending lines and return the size of the file. Raises OSError; the lines are then kept."""
        assert self._file is not None
        if self._lines:
            self._file.append_lines(self._lines)
        self.unwritten, self._lines = [], b""
        return self._file.size


def calls_in(path: Path) -> int:
    """How many calls the recording has."""
    return lines_in(path, prefix=CALL)


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
                places.append((_time(line), offset, len(line)))
            offset += len(line)
        times = [at for at, _, _ in places]
        if None in times or all(one <= other for one, other in pairwise(times)):  # type: ignore[operator]
            return False
        with open_replacement(path, _mode(path)) as sorted_:
            for _, offset, length in sorted(places):  # of equal times, the first one written
                stream.seek(offset)
                sorted_.write(stream.read(length).rstrip(b"\r\n") + b"\n")
    return True


def _time(line: bytes) -> float | None:
    try:
        stamp = msgspec.json.decode(line, type=_LineTime).timestamp
        return None if stamp is None else parse_time(stamp)
    except (msgspec.DecodeError, NotAMessage):
        return None


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
        """Send a message to the helper."""
        if self._helper:
            self._helper.tell(message)

    def write(self, number: int, line: LogLine) -> None:
        """Raises OSError where it cannot be written."""
        raise NotImplementedError


class LogSink(Sink):
    """Writes to a request log, and sends the offset of each line to the helper."""

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
        self._say = say
        self._path = path
        self._is_full = False
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
        self.taken = 0
        self.lost = 0
        self._sink = sink
        self._say = say
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
        """Wait until everything is written."""
        self._ended.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (capture := self._ended.get()) is not None:
            try:
                self._write(capture)
            except Exception as error:  # the next call is recorded in any case
                self._lose(capture, f"internal error: {type(error).__name__}")
            finally:
                capture.drop()

    def _write(self, capture: Capture) -> None:
        try:
            line = self._lines.line(capture)
            self._sink.write(capture.number, line)
        except NotRecorded as why:
            status = "" if capture.status is None else f" (answered with status {capture.status})"
            self._lose(capture, f"{why}{status}")
            return
        except OSError as error:
            self._lose(capture, f"the file cannot be written: {error.strerror}")
            return
        self.taken += 1
        for note in line.notes:
            self._say(f"call {capture.number}: {note}")

    def _lose(self, capture: Capture, why: str) -> None:
        self.lost += 1
        self._sink.tell(b"gone %d\n" % capture.number)
        self._say(f"call {capture.number} is not recorded: {why}")
