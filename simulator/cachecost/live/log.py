"""A request log that is written while calls go on, and that can be read at any moment.

A line is one write to a file opened for appending: whoever kills the writer loses at most the line being written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from cachecost.conversations.readers.request_log import sniff
from cachecost.faults import Fault, InputError

CHUNK = 1 << 16
HEAD = 1 << 20


class CallLog:
    """Appends to the request log at `path` (contract, Request log); begins it where there is none.

    `cut` is how many bytes of a torn last line were taken away when the file was opened: what a killed writer left
    behind. Raises InputError where `path` cannot be written or is something other than JSON Lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.cut = _mended(path)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError([Fault(str(path), f"cannot be written: {error.strerror}")]) from None

    def append(self, fields: Mapping[str, Any], request: bytes) -> None:
        """Write one call: its `fields` (those that are None are left out), and the body as it was sent.

        A body that is one line of JSON is kept byte for byte. Raises OSError where the disk is full.
        """
        told = {name: value for name, value in fields.items() if value is not None}
        head = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        body = request.strip() if b"\n" not in request and b"\r" not in request else _on_one_line(request)
        comma = b"," if told else b""
        line = b'%b%b"request":%b}\n' % (head[:-1], comma, body)
        _write(self._file, line)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def moment(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601, to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def _on_one_line(body: bytes) -> bytes:
    """JSON that was sent over several lines. Between values a line's end means nothing; inside, JSON forbids it."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ").strip()


def _write(file: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(file, view) :]


def _mended(path: Path) -> int:
    """Cut off a last line that was torn; how many bytes that were. One that is whole gets its end."""
    if not path.exists() or not (size := path.stat().st_size):
        return 0
    with path.open("rb+") as stream:
        _check(path, stream.read(HEAD))
        end = _last_line_end(stream, size)
        stream.seek(end)
        if end == size or _is_json(stream.read()):
            stream.write(b"" if end == size else b"\n")
            return 0
        stream.truncate(end)
    return size - end


def _check(path: Path, head: bytes) -> None:
    """Nothing is ever cut from, or added to, a file that is no request log."""
    if not sniff(head):
        raise InputError([Fault(str(path), "expected a request log to go on with, or no file; got another file")])


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _last_line_end(stream: Any, size: int) -> int:
    """Where the last whole line ends, from the file's start; 0 if there is none."""
    end = size
    while end > 0:
        begin = max(0, end - CHUNK)
        stream.seek(begin)
        found = stream.read(end - begin).rfind(b"\n")
        if found >= 0:
            return int(begin + found + 1)
        end = begin
    return 0
