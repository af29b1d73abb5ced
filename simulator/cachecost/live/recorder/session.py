"""A recording from its start to its summary."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import httpx2

from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.live.clock import Say
from cachecost.live.loopback import PortTaken, address_of, listen
from cachecost.live.recorder.helper import NO_PAGE, HelperOptions, RecorderHelper
from cachecost.live.recorder.proxy import LOOP, is_itself, serve
from cachecost.live.recorder.writing import (
    CallWriter,
    DigestSink,
    LogSink,
    calls_in,
    free_place,
    put_in_order,
    put_recording_in_order,
)
from cachecost.live.request_log import CallLog, input_errors


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """The file, how many calls of this recorder are in it, and how many are missing."""

    path: Path
    calls: int
    lost: int


def record(
    upstream: httpx2.URL, port: int, options: HelperOptions, say: Say, page_port: int | None = None
) -> RecordingResult:
    """Forward calls and record them until a signal comes; `page_port` is that of the page (None: there is none).

    Raises InputError.
    """
    with _listen(port) as bound, nullcontext() if page_port is None else _listen(page_port, "--page") as page:
        options = options if page is None else replace(options, page=page.fileno())
        if is_itself(upstream, bound.getsockname()[1]):
            raise InputError([Fault("--upstream", f"{upstream}: {LOOP.partition(': ')[2]}; got this recorder itself")])

        def run(writer: CallWriter, path: Path) -> None:
            # With Python's 5 ms between threads, the writing of a busy recorder falls behind forwarding.
            sys.setswitchinterval(0.0005)
            words = f"recording calls to {upstream} in {path}; set ANTHROPIC_BASE_URL={address_of(bound)}"
            asyncio.run(serve(upstream, bound, writer, lambda: say(f"{words}; Ctrl-C stops"), say))

        return (_record_digest if options.digest else _record_log)(options, say, run)


Run = Callable[[CallWriter, Path], None]


def _record_log(options: HelperOptions, say: Say, run: Run) -> RecordingResult:
    path = Path(options.path)
    with CallLog(path) as log:
        if log.cut:
            say(f"{path}: {log.cut:,} bytes of an incomplete call removed")
        size = path.stat().st_size
        if size:
            say(f"{path}: appending to it")
        is_watched = options.prints or options.page != NO_PAGE
        watcher = _predicting(replace(options, earlier_bytes=size), say) if is_watched else None
        writer = CallWriter(LogSink(log, watcher), say)
        try:
            run(writer, path)
        finally:  # in any case, finished calls are written
            writer.close()
            if watcher:
                watcher.close()
        recorded = _count_result(path, log.count_recorded(), writer, say)
        _in_order(path, say)
    return recorded


def _predicting(options: HelperOptions, say: Say) -> RecorderHelper:
    def ended(code: int) -> None:
        if code:
            say(f"the prediction process exited early (exit code {code}); calls are recorded without predictions")

    return RecorderHelper(options, ended=ended)


def _record_digest(options: HelperOptions, say: Say, run: Run) -> RecordingResult:
    path = free_place(Path(options.path))
    if str(path) != options.path:
        say(f"{options.path} exists, and a recording without content cannot be continued; writing to {path}")
    with input_errors(path, ""):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT, 0o600))
    helper = _predicting(replace(options, path=str(path)), say)
    sink = DigestSink(path, helper, say)
    writer, left = CallWriter(sink, say), 0
    try:
        run(writer, path)
    finally:
        writer.close()
        left = sink.close()
        helper.close()
    recorded = _count_result(path, calls_in(path), writer, say, left)
    if recorded.calls:
        _in_order(path, say, put_recording_in_order)
    return recorded


def _count_result(path: Path, calls: int, writer: CallWriter, say: Say, unwritten: int = 0) -> RecordingResult:
    """Count the calls that are in the files now, and report those that are missing."""
    lost = max(0, writer.taken + writer.lost - calls)
    if gone := max(0, lost - writer.lost - unwritten):
        were = "call was" if gone == 1 else "calls were"
        say(f"{gone:,} {were} written but missing from {path}: the file was moved, removed or changed")
    return RecordingResult(path, calls, lost)


def _in_order(path: Path, say: Say, put: Callable[[Path], bool] = put_in_order) -> None:
    try:
        if put(path):
            say(f"{path}: calls sorted by start time")
    except (OSError, InputError):
        say(f"{path}: calls are in the order they ended; `cachecost recording concat` sorts them")


def _listen(port: int, option: str = "--port") -> socket.socket:
    try:
        return listen(port)
    except PortTaken as error:
        raise InputError([Fault(option, str(error).removeprefix("--port "))]) from None
