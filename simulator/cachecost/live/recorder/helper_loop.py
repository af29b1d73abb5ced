"""What the helper process does: it prints predicted against billed, call by call, in the order calls started.

Messages are `begin NUMBER`, `end NUMBER OFFSET` (the offset of its line in the log), `line NUMBER {…}` (the line
itself) and `gone NUMBER` (not recorded). Of a recording without content, `key HEX` is the first message, and `wrote
SIZE` says how long the file is: where the recorder was killed, this process writes the rest.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING

import msgspec

from cachecost.base.file_locks import InUse
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.call_recording.reader import RecordingLines
from cachecost.live.recorder.digest import DigestFile
from cachecost.live.recorder.helper import NO_PAGE, HelperOptions
from cachecost.live.recorder.log_lines import LineReader
from cachecost.live.recorder.prediction import Predictor
from cachecost.live.recorder.start_order import StartOrder
from cachecost.prompts.intake import Intake
from cachecost.prompts.wire import NotAMessage

if TYPE_CHECKING:
    from cachecost.live.recorder.live_page import RecorderPage

LOOKS_EVERY_S = 1.0
"""How often it checks whether a call has waited long enough for an earlier one."""


class HelperLoop:
    """Handles messages until there are no more."""

    def __init__(self, options: HelperOptions) -> None:
        self._options = options
        self._path = Path(options.path)
        self._reader = LineReader(self._path, Intake(keep_content=True))
        self._file: DigestFile | None = None
        self._predicts = options.prints
        self._predictor: Predictor | None = None
        self._page: RecorderPage | None = None
        self._bare = RecordingLines(self._path) if options.digest and options.page != NO_PAGE else None
        self._without_content: dict[int, RecordedCall] = {}
        self._order: StartOrder[tuple[int, RecordedCall]] = StartOrder()
        self._ready: deque[tuple[int, RecordedCall]] = deque()
        self._is_over = False

    def run(self, inbox: Queue[bytes | None]) -> None:
        """Handle messages. All that are there are handled before the next prediction."""
        self._open_page()
        while not self._is_over or self._ready:
            with suppress(Empty):
                self._take(inbox.get(timeout=self._patience()))
                while True:
                    self._take(inbox.get_nowait())
            self._ready += self._order.rest() if self._is_over else self._order.ready(time.monotonic())
            if self._ready:
                self._show(*self._ready[0])
                self._predict(*self._ready.popleft())

    def _open_page(self) -> None:
        if self._options.page != NO_PAGE:
            from cachecost.live.recorder.live_page import RecorderPage

            self._page = RecorderPage(self._options.page, self._options.setup(), self._earlier_calls(), say)

    def _patience(self) -> float | None:
        """Seconds to wait for the next message; None: no limit."""
        if self._ready or self._is_over:
            return 0.0
        return LOOKS_EVERY_S if self._order.is_waiting else None

    def _take(self, message: bytes | None) -> None:
        if message is None:
            self._is_over = True
            if self._file is not None:
                with suppress(OSError, InUse):  # the recorder, if it is there, says what is missing
                    self._file.take_over()
            return
        word, told, *rest = message.rstrip(b"\n").split(b" ", 2)
        if word == b"key":
            self._file = DigestFile(self._path, bytes.fromhex(told.decode()), follows=True)
            return
        if word == b"wrote":
            if self._file is not None:
                self._file.forget(int(told))
            return
        number = int(told)
        if word == b"begin":
            self._order.begin(number)
            return
        call = self._call(number, word, rest)
        self._order.end(number, None if call is None else (number, call), time.monotonic())
        if call is not None and self._file is not None:
            lines = self._file.add(number, call)
            if self._bare is not None:
                self._without_content[number] = self._bare.read(lines)[-1]

    def _call(self, number: int, word: bytes, rest: list[bytes]) -> RecordedCall | None:
        """The call of a message; None if nothing is recorded, or it is unreadable."""
        with suppress(NotAMessage, msgspec.DecodeError, ValueError, OSError):
            if word == b"end":
                with self._path.open("rb") as log:
                    log.seek(int(rest[0]))
                    return self._reader.call(log.readline())
            if word == b"line":
                return self._reader.call(rest[0])
        return None

    def _show(self, number: int, call: RecordedCall) -> None:
        """Show a call on the page, as the recording has it: without content where that has none."""
        if self._page is not None:
            self._page.add(self._without_content.pop(number, call))

    def _predict(self, number: int, call: RecordedCall) -> None:
        """An error ends the predictions only, because this process may be writing the recording."""
        if not self._predicts:
            return
        try:
            lines = list(self._prediction().describe(number, call))
        except Exception as error:
            self._predicts = False
            lines = [f"call {number}: internal error, nothing more is predicted: {type(error).__name__}: {error}"]
        for line in lines:
            say(line)

    def _prediction(self) -> Predictor:
        if self._predictor is None:
            self._predictor = Predictor(self._options.setup())
            for before in self._earlier_calls():
                self._predictor.remember(before)
        return self._predictor

    def _earlier_calls(self) -> Iterator[RecordedCall]:
        return _earlier(self._path, self._options.earlier_bytes, self._reader)


def say(line: str) -> None:
    with suppress(OSError):  # stderr may be a file on a full disk
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this process is there to print


def _earlier(path: Path, size: int, reader: LineReader) -> Iterator[RecordedCall]:
    """Calls that an earlier recorder wrote, which affect the cache. Unreadable lines are skipped."""
    if size:
        with path.open("rb") as stream:
            while stream.tell() < size and (line := stream.readline()):
                with suppress(NotAMessage, msgspec.DecodeError, UnicodeDecodeError):
                    yield reader.call(line)
