"""A request log that can be read while it is written; line_file.py covers kills and full disks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.readers.request_log.reader import sniff
from cachecost.live.line_file import LineFile, input_errors, last_line_end, lines_in

HEAD = 1 << 20


class CallLog:
    """Appends to the request log at `path` (docs/reference/formats.md), or creates it.

    `cut` is how many bytes of an incomplete last line, left by a killed writer, were removed on opening. Raises
    InputError if `path` cannot be written, is not a request log, or is being written by another process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with input_errors(path, "another process is recording to it"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LineFile(path)
            try:
                self.cut = _mend_last_line(path)
            except BaseException:
                self._file.close()
                raise
        self._file.begin = self._file.size

    def append(self, fields: Mapping[str, Any], request: bytes) -> int:
        """Write one call and return the offset of its line. Fields that are None are omitted.

        A body that is one line of JSON is kept byte for byte. Raises OSError if the disk is full; the file is then
        unchanged.
        """
        return self._file.append(call_line(fields, request))

    def count_recorded(self) -> int:
        """How many calls written since opening are in the file at `path` now."""
        with suppress(OSError):
            self._file.sync()
        return lines_in(self.path, self._file.begin)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> CallLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def call_line(fields: Mapping[str, Any], request: bytes) -> bytes:
    """The line of a call, as `CallLog.append` writes it."""
    present = {name: value for name, value in fields.items() if value is not None}
    head = json.dumps(present, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    comma = b"," if present else b""
    return b'%b%b"request":%b}\n' % (head[:-1], comma, _on_one_line(request))


def moment(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601, to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def _on_one_line(body: bytes) -> bytes:
    """JSON on one line. A line break means nothing between values, and JSON forbids it inside one."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ").strip()


def _mend_last_line(path: Path) -> int:
    """Cut off an incomplete last line and return its size in bytes; complete JSON gets its line break instead."""
    if not path.exists() or not (size := path.stat().st_size):
        return 0
    with path.open("rb+") as stream:
        _check(path, stream.read(HEAD))
        end = last_line_end(stream, size)
        stream.seek(end)
        if end == size or _is_json(stream.read()):
            stream.write(b"" if end == size else b"\n")
            return 0
        stream.truncate(end)
    return size - end


def _check(path: Path, head: bytes) -> None:
    """Only request logs may be changed. Raises InputError."""
    if not sniff(head):
        raise InputError([Fault(str(path), "expected a request log to continue, or a new file; got another format")])


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
