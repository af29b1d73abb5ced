"""The thread that writes calls while the event loop forwards bytes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from cachecost.live.callbacks import Say
from cachecost.live.log import CallLog, call_line
from cachecost.live.recorder.capture import ROOM, Capture
from cachecost.live.recorder.digest import KEY_BYTES, DigestFile
from cachecost.live.recorder.helper import RecorderHelper
from cachecost.live.recorder.log_lines import LineReader, LogLine, LogLineBuilder, NotRecorded
from cachecost.prompts.intake import Intake

MOST_WAITING, CATCH_UP_S = 8, 0.005
"""With more ended calls that are not written, each further one holds up forwarding for so long: hundreds of calls a
second would end faster than they are written, and be lost with this process.
"""


class Sink(Protocol):
    """The destination of lines."""

    def on_start(self, number: int) -> None: ...

    def take(self, number: int, line: LogLine) -> None:
        """Raises OSError where it cannot be written."""
        ...

    def nothing(self, number: int) -> None:
        """The call is not recorded."""
        ...


class LogSink:
    """Writes to a request log, and sends the offset of each line to the helper, if there is one."""

    def __init__(self, log: CallLog, watcher: RecorderHelper | None) -> None:
        self._log = log
        self._watcher = watcher

    def on_start(self, number: int) -> None:
        if self._watcher:
            self._watcher.tell(b"begin %d\n" % number)

    def take(self, number: int, line: LogLine) -> None:
        at = self._log.append(line.fields, line.request)
        if self._watcher:
            self._watcher.tell(b"end %d %d\n" % (number, at))

    def nothing(self, number: int) -> None:
        if self._watcher:
            self._watcher.tell(b"gone %d\n" % number)


class DigestSink:
    """Writes calls without content: content never reaches a disk.

    The helper makes the same lines under the same key, and writes those that this process could not, if it is killed.
    What a full disk rejects is kept in memory.
    """

    def __init__(self, path: Path, helper: RecorderHelper, say: Say) -> None:
        self._helper = helper
        self._say = say
        self._path = path
        self._is_full = False
        self._reader = LineReader(path, Intake(keep_content=True))
        key = os.urandom(KEY_BYTES)
        helper.tell(b"key %b\n" % key.hex().encode())
        self._file = DigestFile(path, key)

    def on_start(self, number: int) -> None:
        self._helper.tell(b"begin %d\n" % number)

    def take(self, number: int, line: LogLine) -> None:
        if self._file.waiting > ROOM:
            raise NotRecorded(f"more than {ROOM >> 20} MiB are waiting to be written")
        told = call_line(line.fields, line.request)
        self._helper.tell(b"line %d %b" % (number, told))
        self._file.add(number, self._reader.call(told))
        self._write()

    def nothing(self, number: int) -> None:
        self._helper.tell(b"gone %d\n" % number)

    def close(self) -> int:
        """Write what is left, if there is room now; how many calls could not be written."""
        self._write()
        if left := len(self._file.unwritten):
            self._say(f"{left:,} {'call is' if left == 1 else 'calls are'} not recorded: the file cannot be written")
        self._file.close()
        return left

    def _write(self) -> None:
        try:
            self._helper.tell(b"wrote %d\n" % self._file.write())
            self._is_full = False
        except OSError as error:
            if not self._is_full:
                why = f"{self._path} cannot be written: {error.strerror}"
                self._say(f"{why}; ended calls are kept in memory until it can be")
            self._is_full = True


class CallWriter:
    """Is notified of calls by the event loop (proxy.Listener) and writes each one when it has ended.

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
        self._sink.on_start(number)

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
            self._sink.take(capture.number, line)
        except NotRecorded as why:
            self._lose(capture, f"{why}{_status_note(capture)}")
            return
        except OSError as error:
            self._lose(capture, f"the file cannot be written: {error.strerror}")
            return
        self.taken += 1
        for note in line.notes:
            self._say(f"call {capture.number}: {note}")

    def _lose(self, capture: Capture, why: str) -> None:
        self.lost += 1
        self._sink.nothing(capture.number)
        self._say(f"call {capture.number} is not recorded: {why}")


def _status_note(capture: Capture) -> str:
    return "" if capture.status is None else f" (answered with status {capture.status})"
