"""A recording from its start to its summary."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import httpx2

from cachecost.faults import Fault, InputError
from cachecost.live.log import CallLog
from cachecost.live.recorder.digest import free_place
from cachecost.live.recorder.serving import LOOPBACK, bound_to, serve
from cachecost.live.recorder.sorting import put_in_order
from cachecost.live.recorder.watcher import Watcher, Wishes
from cachecost.live.recorder.writing import Say, ToDigest, ToLog, Writer

Content = Literal["keep", "digest"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of it: the file, how many calls this recorder wrote into it, and how many it could not record."""

    path: Path
    calls: int
    lost: int


def record(upstream: httpx2.URL, port: int, wishes: Wishes, say: Say) -> Recorded:
    """Pass calls on and record them, until a signal comes. Raises InputError."""
    with _bound(port) as bound:
        recording = _digest if wishes.digest else _kept
        return recording(wishes, say, lambda writer, path: _run(upstream, bound, writer, path, say))


Run = Callable[[Writer, Path], None]


def _kept(wishes: Wishes, say: Say, run: Run) -> Recorded:
    path = Path(wishes.path)
    with _alone(path), CallLog(path) as log:
        if log.cut:
            say(f"{path}: {log.cut:,} bytes of a call that was not written to its end are taken away")
        size = path.stat().st_size
        if size:
            say(f"{path}: going on with it")
        watcher = Watcher(replace(wishes, earlier_bytes=size)) if wishes.prints else None
        writer = Writer(ToLog(log, watcher), say)
        _watched(watcher, writer, lambda: run(writer, path), say)
        if put_in_order(path):
            say(f"{path}: calls are now in the order in which they started")
    return Recorded(path, writer.recorded, writer.lost)


def _digest(wishes: Wishes, say: Say, run: Run) -> Recorded:
    path = free_place(Path(wishes.path))
    if str(path) != wishes.path:
        say(f"{wishes.path} is there already; without content it cannot be gone on with, so this goes to {path}")
    _claimed(path).close()
    watcher = Watcher(replace(wishes, path=str(path)))
    writer = Writer(ToDigest(watcher), say)
    _watched(watcher, writer, lambda: run(writer, path), say)
    return Recorded(path, writer.recorded, writer.lost)


def _watched(watcher: Watcher | None, writer: Writer, run: Callable[[], None], say: Say) -> None:
    """Run; whatever happens, what has ended is written."""
    try:
        run()
    finally:
        writer.close()
        if watcher and (code := watcher.close()):
            say(f"the process that predicts ended early (exit code {code})")


def _run(upstream: httpx2.URL, bound: Any, writer: Writer, path: Path, say: Say) -> None:
    port = bound.getsockname()[1]
    words = f"recording what goes to {upstream} into {path}; set ANTHROPIC_BASE_URL=http://{LOOPBACK}:{port}"
    asyncio.run(serve(upstream, bound, writer, lambda: say(f"{words}; Ctrl-C ends")))


@contextmanager
def _bound(port: int) -> Iterator[Any]:
    try:
        bound = bound_to(port)
    except OSError as error:
        words = f"{port} cannot be used: {error.strerror} (0 is any that is free)"
        raise InputError([Fault("--port", words)]) from None
    with bound:
        yield bound


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else records into the file; a lock goes with its holder, however that ends. Raises InputError."""
    with _claimed(path) as held:
        if sys.platform != "win32":  # where there is no such lock
            import fcntl

            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError([Fault(str(path), "another recorder is writing it")]) from None
        yield


def _claimed(path: Path) -> Any:
    """The file, made if it is not there, for nobody else to read. Raises InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600), "rb")
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror}")]) from None
