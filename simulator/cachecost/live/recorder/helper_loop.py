"""What the helper process does: predicted against billed, one line per call, in the order calls started.

Token counts come from the bills of earlier calls (rule 17). Calls that end in any order are put into that of their
starts.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from cachecost.base.atomic_files import InUse
from cachecost.base.formatting import dollars
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.readers.call_recording import RecordingLines
from cachecost.ledger.rows import NOT_EVALUATED, CallRow
from cachecost.live.recorder.helper import NO_PAGE, HelperOptions
from cachecost.live.recorder.writing import DigestFile, LineReader
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup

if TYPE_CHECKING:
    from cachecost.live.viewer.source import CallList


class Predictor:
    """Takes calls in the order they started. `total` is what described calls were billed, in USD."""

    def __init__(self, setup: ReplaySetup) -> None:
        self.total = Decimal(0)
        self._setup = setup
        self._simulation = Simulation(setup)
        self._taken = 0
        self._said: set[str] = set()

    def remember(self, call: Call) -> CallRow:
        self._taken += 1
        row = self._simulation.row(call)
        if call.billed:
            self._simulation.learn(self._taken, call, call.billed)
        return row

    def describe(self, number: int, call: Call) -> Iterator[str]:
        """The line of a call, and once each why calls cannot be predicted or priced."""
        row = self.remember(call)
        bill = BillTotal(self._setup.prices, self._setup.host)
        bill.add(call)
        self.total += bill.dollars
        cost = None if bill.unpriced else bill.dollars
        billed = f"billed {_tokens(call.billed)}" if call.billed else "bill unknown"
        billed = f"failed with status {call.status}" if call.has_failed else billed
        predicted = f"predicted {_tokens(row.usage)}"
        if row.error:
            predicted = f"predicted: refused ({row.error})"
        elif row.cause == "unknown" and not row.usage.total_input:
            predicted = ""
        if row.error_type == NOT_EVALUATED:
            predicted = "not predicted"
        parts = (predicted, billed, dollars(cost), f"total {dollars(self.total)}")
        yield f"call {number}  {call.request.model}  " + " · ".join(filter(None, parts))
        whys = [row.error] if row.error_type == NOT_EVALUATED else []
        for why in dict.fromkeys([*whys, *bill.unpriced]):
            if why and why not in self._said:
                self._said.add(why)
                yield f"call {number}: {why}; reported once"


def _tokens(usage: Usage) -> str:
    return f"read {usage.read:,} write {usage.write:,}"


Item = TypeVar("Item")


@dataclass(slots=True)
class StartOrder(Generic[Item]):
    """Items by call number. `now` is in seconds, of any monotonic clock."""

    patience_s: float = 60.0
    """How long an ended call waits for one that started earlier."""
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
        oldest = min(self._running, default=None)
        late = [number for number, (at, _) in self._ended.items() if now - at >= self.patience_s]
        last = max(late, default=0)
        numbers = sorted(number for number in self._ended if oldest is None or number < max(oldest, last + 1))
        items = (self._ended.pop(number)[1] for number in numbers)
        return [item for item in items if item is not None]

    @property
    def is_waiting(self) -> bool:
        return bool(self._ended)


TOKEN_BYTES = 16


def serve_page(options: HelperOptions, earlier: Iterable[Call]) -> CallList:
    """The calls of a page, in the order they started: it is served in a thread that ends with the process, on a socket
    that is listened on already.

    The token is made here: the options of a process are seen by all users of a machine.
    """
    from cachecost.live.loopback import address_of
    from cachecost.live.viewer.app import page_server, read_static_files, viewer_app
    from cachecost.live.viewer.sessions_source import LiveSource
    from cachecost.live.viewer.source import CallList, CallSignal

    signal = CallSignal()
    calls = CallList(signal)
    for call in earlier:
        calls.add(call)
    listener = socket.socket(fileno=options.page)
    token, port = secrets.token_urlsafe(TOKEN_BYTES), listener.getsockname()[1]
    source = LiveSource(calls, signal, options.setup(), "cachecost record")
    app = viewer_app(source, read_static_files(), token, port, say)
    server = page_server(app, lambda: say(f"the calls so far: {address_of(listener)}/{token}/"))
    Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), name="page", daemon=True).start()
    return calls


class HelperLoop:
    def __init__(self, options: HelperOptions) -> None:
        self._options = options
        self._path = Path(options.path)
        self._reader = LineReader(self._path, Intake(keep_content=True))
        self._file: DigestFile | None = None
        self._predicts = options.prints
        self._predictor: Predictor | None = None
        self._page: CallList | None = None
        self._bare = RecordingLines(self._path) if options.digest and options.page != NO_PAGE else None
        self._without_content: dict[int, Call] = {}
        self._order: StartOrder[tuple[int, Call]] = StartOrder()
        self._ready: deque[tuple[int, Call]] = deque()
        self._is_over = False

    def run(self, inbox: Queue[bytes | None]) -> None:
        """Handle messages. All that are there are handled before the next prediction."""
        if self._options.page != NO_PAGE:
            self._page = serve_page(self._options, self._earlier_calls())
        while not self._is_over or self._ready:
            # how often it checks whether a call has waited long enough for an earlier one
            wait_s = 1.0 if self._order.is_waiting else None
            with suppress(Empty):
                self._handle(inbox.get(timeout=0.0 if self._ready or self._is_over else wait_s))
                while True:
                    self._handle(inbox.get_nowait())
            self._ready += self._order.ready(float("inf") if self._is_over else time.monotonic())
            if self._ready:
                number, call = self._ready.popleft()
                if self._page is not None:
                    self._page.add(self._without_content.pop(number, call))
                self._predict(number, call)

    def _handle(self, message: bytes | None) -> None:
        if message is None:
            self._is_over = True
            if self._file is not None:
                with suppress(OSError, InUse):  # the recorder, if it is there, says what is missing
                    self._file.take_over()
            return
        word, value, *rest = message.rstrip(b"\n").split(b" ", 2)
        if word == b"key":
            self._file = DigestFile(self._path, bytes.fromhex(value.decode()), follows=True)
            return
        if word == b"wrote":
            if self._file is not None:
                self._file.forget(int(value))
            return
        number = int(value)
        if word == b"begin":
            self._order.begin(number)
            return
        call = self._call(number, word, rest)
        self._order.end(number, None if call is None else (number, call), time.monotonic())
        if call is not None and self._file is not None:
            lines = self._file.add(number, call)
            if self._bare is not None:
                self._without_content[number] = self._bare.read(lines)[-1]

    def _call(self, number: int, word: bytes, rest: list[bytes]) -> Call | None:
        """The call of a message; None if nothing is recorded, or it is unreadable."""
        with suppress(NotAMessage, msgspec.DecodeError, ValueError, OSError):
            if word == b"end":
                with self._path.open("rb") as log:
                    log.seek(int(rest[0]))
                    return self._reader.call(log.readline())
            if word == b"line":
                return self._reader.call(rest[0])
        return None

    def _predict(self, number: int, call: Call) -> None:
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

    def _earlier_calls(self) -> Iterator[Call]:
        """Calls that an earlier recorder wrote, which affect the cache. Unreadable lines are skipped."""
        if size := self._options.earlier_bytes:
            with self._path.open("rb") as stream:
                while stream.tell() < size and (line := stream.readline()):
                    with suppress(NotAMessage, msgspec.DecodeError, UnicodeDecodeError):
                        yield self._reader.call(line)


def say(line: str) -> None:
    with suppress(OSError):  # stderr may be a file on a full disk
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this process is there to print
