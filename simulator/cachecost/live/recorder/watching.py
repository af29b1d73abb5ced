"""What runs in the other process: predicted against billed, call by call, in the order in which calls started.

It is started by watcher.py with its wishes as JSON, and is told on stdin, a line each: `begin NUMBER`, `end NUMBER
OFFSET` (where in the log its line begins), `line NUMBER {…}` (the line itself), `gone NUMBER` (nothing is recorded).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from json import loads
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO

import msgspec

from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.live.recorder.digest import write_digest
from cachecost.live.recorder.lines import LineReader
from cachecost.live.recorder.order import InOrder
from cachecost.live.recorder.predicting import Predictor
from cachecost.live.recorder.watcher import Wishes
from cachecost.prompts.intake import Intake
from cachecost.prompts.wire import NotAMessage

LOOKS_EVERY_S = 1.0
"""How often it looks whether a call has waited long enough for one that started before it."""


def main(wishes: Wishes, stream: BinaryIO) -> None:
    """Take in everything that is told, until the stream ends."""
    path = Path(wishes.path)
    reader = LineReader(path, Intake(keep_content=True))
    calls = _predicted(wishes, reader, _told(stream, path, reader))
    if wishes.digest:
        write_digest(path, calls)
    else:
        for _ in calls:
            pass


def _predicted(wishes: Wishes, reader: LineReader, told: Iterator[tuple[int, LoggedCall]]) -> Iterator[LoggedCall]:
    """The calls as they are told, each given on before it is predicted: what is to be written does not wait."""
    predictor = Predictor(wishes.terms()) if wishes.prints else None
    if predictor:
        for call in _earlier(Path(wishes.path), wishes.earlier_bytes, reader):
            predictor.remember(call)
    for number, call in told:
        yield call
        if predictor:
            for line in predictor.told(number, call):
                print(line, file=sys.stderr, flush=True)  # noqa: T201 - this process is there to print


def _earlier(path: Path, size: int, reader: LineReader) -> Iterator[LoggedCall]:
    """What an earlier recorder left in the file: it takes part in the cache. What does not read is left out here."""
    if size:
        with path.open("rb") as stream:
            while stream.tell() < size and (line := stream.readline()):
                with suppress(NotAMessage, msgspec.DecodeError, UnicodeDecodeError):
                    yield reader.call(line)


def _told(stream: BinaryIO, path: Path, reader: LineReader) -> Iterator[tuple[int, LoggedCall]]:
    """(number, call) in the order of starts."""
    messages: Queue[bytes | None] = Queue()
    Thread(target=_listen, args=(stream, messages), daemon=True).start()
    order: InOrder[tuple[int, bytes]] = InOrder()
    is_over = False
    while not is_over:
        with suppress(Empty):
            message = messages.get(timeout=LOOKS_EVERY_S if order.is_waiting else None)
            is_over = message is None
            if message is not None:
                _take(message, order, path)
        for number, line in order.rest() if is_over else order.ready(time.monotonic()):
            yield number, reader.call(line)


def _listen(stream: BinaryIO, messages: Queue[bytes | None]) -> None:
    for message in stream:
        if message.endswith(b"\n"):
            messages.put(message)
    messages.put(None)


def _take(message: bytes, order: InOrder[tuple[int, bytes]], path: Path) -> None:
    word, number, *rest = message.rstrip(b"\n").split(b" ", 2)
    if word == b"begin":
        order.begin(int(number))
    elif word == b"end":
        with path.open("rb") as log:
            log.seek(int(rest[0]))
            order.end(int(number), (int(number), log.readline()), time.monotonic())
    elif word == b"line":
        order.end(int(number), (int(number), rest[0]), time.monotonic())
    else:
        order.end(int(number), None, time.monotonic())


if __name__ == "__main__":
    main(Wishes(**loads(sys.argv[1])), sys.stdin.buffer)
