"""The helper process: starting it, sending it messages, and ending it.

A content-free recording, written call by call.

Sorts the calls of a recording by start time; they were written as they ended.

Predicted against billed, one line per call; token counts come from the bills of earlier calls (rule 17).

Puts calls that end in any order into the order they started.

The thread that writes calls while the event loop forwards bytes.

What the helper process does: it prints predicted against billed, call by call, in the order calls started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from decimal import Decimal
from itertools import pairwise
from json import dumps
from pathlib import Path
from queue import Empty, Queue, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO, Generic, Protocol, TypeVar

import msgspec

from cachecost.base.atomic_files import InUse, open_replacement
from cachecost.base.formatting import dollars
from cachecost.conversations.call_recording import Title, records
from cachecost.conversations.calls import BillTotal, RecordedCall
from cachecost.conversations.model import BlockWriter, ContentFree, encode_record
from cachecost.conversations.readers import call_recording as recording
from cachecost.conversations.readers.call_recording import RecordingLines
from cachecost.conversations.start_times import parse_time
from cachecost.ledger.rows import NOT_EVALUATED, CallRow
from cachecost.live.clock import CallLog, LineFile, Say, call_line, ignore, lines_in
from cachecost.live.recorder.log_lines import ROOM, Capture, LineReader, LogLine, LogLineBuilder, NotRecorded
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage, text_block
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, RuleBook, own_rules
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import AUTO
from cachecost.tokens.raw import count_content

if TYPE_CHECKING:
    from cachecost.live.recorder.live_page import RecorderPage


MODULE = "cachecost.live.recorder.helper_main"
NO_PAGE = -1
PIPE_BYTES = 1 << 20
"""The largest pipe that Linux gives every user (/proc/sys/fs/pipe-max-size)."""


@dataclass(frozen=True, slots=True)
class HelperOptions:
    """Options of the helper process: rules, prices, the file, and whether it prints.

    `rules` are assumptions by name, `own` is a rules file, `prices` a price file, `as_of` a day in ISO 8601.
    `earlier_bytes` is how much of the file an earlier recorder wrote. With `digest` the file is without
    content. `page` is the descriptor of a socket that listens for its page.
    """

    path: str
    rules: dict[str, str] = field(default_factory=dict)
    own: str | None = None
    prices: str | None = None
    as_of: str | None = None
    host: str = AUTO_HOST
    earlier_bytes: int = 0
    prints: bool = True
    digest: bool = False
    page: int = NO_PAGE

    @property
    def needs_helper(self) -> bool:
        """Whether there is anything to do for a helper besides writing."""
        return self.prints or self.page != NO_PAGE

    def setup(self) -> ReplaySetup:
        """The setup of predictions; tokens without a bill are counted as well as they can be. Raises InputError."""
        day = date.fromisoformat(self.as_of) if self.as_of else None
        prices = PriceBook.load(Path(self.prices) if self.prices else None, day)
        own = own_rules(Path(self.own)) if self.own else NO_OWN_RULES
        rules = RuleBook(assumptions_from({**own.assumptions, **self.rules}), day, own)
        return ReplaySetup(rules, prices, self.host, AUTO)


class RecorderHelper:
    """A process that predicts calls while they are recorded.

    `tell` never blocks: a thread writes the message. The process has its own session, so that Ctrl-C does not reach it;
    it exits when its input is closed. Another thread passes its exit code to `ended`, in any case.
    """

    def __init__(self, options: HelperOptions, ended: Callable[[int], None] = ignore) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, dumps(asdict(options))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if options.page == NO_PAGE else (options.page,),
        )
        if sys.platform == "linux" and self._process.stdin is not None:
            import fcntl

            with suppress(OSError):
                fcntl.fcntl(self._process.stdin.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._ended = ended
        self._told: SimpleQueue[bytes | None] = SimpleQueue()
        self._telling = Thread(target=self._hand_over, name="watcher", daemon=True)
        self._waiting = Thread(target=self._wait, name="watcher end", daemon=True)
        self._telling.start()
        self._waiting.start()

    def tell(self, message: bytes) -> None:
        self._told.put(message)

    def close(self) -> int:
        """Wait until it has handled all messages; returns its exit code. Ctrl-C and SIGTERM kill it: the caller still
        has a summary to print.
        """
        self._told.put(None)
        try:
            self._join()
        except KeyboardInterrupt:
            self._ended = ignore
            self._process.kill()
            self._join()
        return self._process.wait()

    def _join(self) -> None:
        self._telling.join()
        self._waiting.join()

    def _wait(self) -> None:
        self._ended(self._process.wait())

    def _hand_over(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        with suppress(BrokenPipeError):
            while (message := self._told.get()) is not None:
                stream.write(message)
                stream.flush()
        with suppress(BrokenPipeError):
            stream.close()
        while message is not None:  # it has exited: drop further messages
            message = self._told.get()


KEY_BYTES = 32
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
        self._calls: deque[RecordedCall] = deque()
        count_content(text_block("user", "a"))
        table = BlockWriter(ContentFree(key), count_content)
        self._records = records(Title(path.stem), iter(self._calls.popleft, None), table)
        self._lines, self._size = b"", 0
        self.unwritten: list[int] = []

    def add(self, number: int, call: RecordedCall) -> bytes:
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
        """Write what the other process has not, be it from within a line; nothing into a file that was moved or cut.
        Raises OSError, InUse.
        """
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
            self._file.append(self._lines)
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
        places = list(_places(stream))
        times = [at for at, _, _ in places]
        if None in times or all(one <= other for one, other in pairwise(times)):  # type: ignore[operator]
            return False
        _rewrite(path, stream, sorted(places))  # of equal times, the first one written
    return True


def _places(stream: BinaryIO) -> Iterator[tuple[float | None, int, int]]:
    offset = 0
    for line in stream:
        if line.strip():
            yield _time(line), offset, len(line)
        offset += len(line)


def _time(line: bytes) -> float | None:
    try:
        stamp = msgspec.json.decode(line, type=_LineTime).timestamp
        return None if stamp is None else parse_time(stamp)
    except (msgspec.DecodeError, NotAMessage):
        return None


def _rewrite(path: Path, stream: BinaryIO, places: list[tuple[float | None, int, int]]) -> None:
    with open_replacement(path, _mode(path)) as sorted_:
        for _, offset, length in places:
            stream.seek(offset)
            sorted_.write(stream.read(length).rstrip(b"\r\n") + b"\n")


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


class Predictor:
    """Takes calls in the order they started. `total` is what described calls were billed, in USD."""

    def __init__(self, setup: ReplaySetup) -> None:
        self.total = Decimal(0)
        self._setup = setup
        self._simulation = Simulation(setup)
        self._taken = 0
        self._said: set[str] = set()

    def remember(self, call: RecordedCall) -> CallRow:
        """Predict a call, then learn from its bill."""
        self._taken += 1
        row = self._simulation.row(call)
        if call.billed:
            self._simulation.learn(self._taken, call, call.billed)
        return row

    def describe(self, number: int, call: RecordedCall) -> Iterator[str]:
        """The line of a call, and once each why calls cannot be predicted or priced."""
        row = self.remember(call)
        bill = BillTotal(self._setup.prices, self._setup.host)
        bill.add(call)
        self.total += bill.dollars
        cost = None if bill.unpriced else bill.dollars
        parts = (_prediction_text(row), _bill_text(call), dollars(cost), f"total {dollars(self.total)}")
        yield f"call {number}  {call.request.model}  " + " · ".join(filter(None, parts))
        whys = [row.error] if row.error_type == NOT_EVALUATED else []
        for why in dict.fromkeys([*whys, *bill.unpriced]):
            if why and why not in self._said:
                self._said.add(why)
                yield f"call {number}: {why}; reported once"


def _prediction_text(row: CallRow) -> str:
    if row.error_type == NOT_EVALUATED:
        return "not predicted"
    if row.error:
        return f"predicted: refused ({row.error})"
    return "" if row.cause == "unknown" and not row.usage.total_input else f"predicted {_tokens(row.usage)}"


def _bill_text(call: RecordedCall) -> str:
    if call.has_failed:
        return f"failed with status {call.status}"
    return f"billed {_tokens(call.billed)}" if call.billed else "bill unknown"


def _tokens(usage: Usage) -> str:
    return f"read {usage.read:,} write {usage.write:,}"


Item = TypeVar("Item")
PATIENCE_S = 60.0
"""How long an ended call waits for one that started earlier."""


@dataclass(slots=True)
class StartOrder(Generic[Item]):
    """Items by call number. `now` is in seconds, of any monotonic clock."""

    patience_s: float = PATIENCE_S
    _running: set[int] = field(default_factory=set)
    _ended: dict[int, tuple[float, Item | None]] = field(default_factory=dict)

    def begin(self, number: int) -> None:
        """A call has started. Numbers follow the order of starts."""
        self._running.add(number)

    def end(self, number: int, item: Item | None, now: float) -> None:
        """A call has ended; `item` is what to return for it (None: nothing)."""
        self._running.discard(number)
        self._ended[number] = (now, item)

    def ready(self, now: float) -> list[Item]:
        """The items that are ready, in order."""
        oldest = min(self._running, default=None)
        late = [number for number, (at, _) in self._ended.items() if now - at >= self.patience_s]
        last = max(late, default=0)
        told = sorted(number for number in self._ended if oldest is None or number < max(oldest, last + 1))
        return self._take(told)

    def rest(self) -> list[Item]:
        """All items of ended calls, in order."""
        return self._take(sorted(self._ended))

    @property
    def is_waiting(self) -> bool:
        return bool(self._ended)

    def _take(self, numbers: list[int]) -> list[Item]:
        items = (self._ended.pop(number)[1] for number in numbers)
        return [item for item in items if item is not None]


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
        if self._options.page != NO_PAGE:
            from cachecost.live.recorder.live_page import RecorderPage

            self._page = RecorderPage(self._options.page, self._options.setup(), self._earlier_calls(), say)
        while not self._is_over or self._ready:
            with suppress(Empty):
                self._take(inbox.get(timeout=self._patience()))
                while True:
                    self._take(inbox.get_nowait())
            self._ready += self._order.rest() if self._is_over else self._order.ready(time.monotonic())
            if self._ready:
                self._show(*self._ready[0])
                self._predict(*self._ready.popleft())

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
        if self._page is not None:
            self._page.add(self._without_content.pop(number, call))

    def _predict(self, number: int, call: RecordedCall) -> None:
        """An error ends the predictions only, because this process may be writing the recording."""
        if not self._predicts:
            return
        try:
            if self._predictor is None:
                self._predictor = Predictor(self._options.setup())
                for before in self._earlier_calls():
                    self._predictor.remember(before)
            lines = list(self._predictor.describe(number, call))
        except Exception as error:
            self._predicts = False
            lines = [f"call {number}: internal error, nothing more is predicted: {type(error).__name__}: {error}"]
        for line in lines:
            say(line)

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
