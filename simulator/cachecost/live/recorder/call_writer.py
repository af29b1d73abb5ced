"""The thread that writes calls while the event loop forwards bytes."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from cachecost.live.callbacks import Say
from cachecost.live.log import CallLog
from cachecost.live.recorder.capture import Capture
from cachecost.live.recorder.helper import RecorderHelper
from cachecost.live.recorder.log_lines import LogLine, LogLineBuilder, NotRecorded


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
