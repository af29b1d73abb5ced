"""Bodies of HTTP messages, and a request log that can be read while it is written, after a kill and on a full disk."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from cachecost.base.atomic_files import InUse, lock_file
from cachecost.base.errors import Fault, InputError
from cachecost.conversations.readers.apis.formats import join_message
from cachecost.conversations.readers.request_log import sniff

COMPRESSIONS = ("gzip", "x-gzip", "deflate")


def decompressor(compression: str, head: bytes) -> zlib._Decompress:
    """What decompresses a body in one of COMPRESSIONS that begins with `head`. Some clients send deflate without its
    header, which gives the method 8 in its low bits (RFC 1950, 2.2).
    """
    is_raw = compression == "deflate" and head[:1] != b"" and head[0] & 15 != 8
    return zlib.decompressobj(-zlib.MAX_WBITS if is_raw else 32 + zlib.MAX_WBITS)


def message_of_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The Messages answer that a stream makes, with the fields of its last events (`stop_reason` …)."""
    message = join_message(events)
    for event in events:
        if event.get("type") == "message_delta" and isinstance(event.get("delta"), Mapping):
            message |= event["delta"]
    return message


CHUNK = 1 << 16


class LineFile:
    """The file at `path`, opened for appending and locked; created if missing, readable by the user only.

    `begin` is its size when it was opened. Raises OSError, InUse.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        self._torn_at: int | None = None
        try:
            lock_file(self._file)
        except BaseException:
            os.close(self._file)
            raise
        self.begin = self.size

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def append_lines(self, lines: bytes) -> int:
        """Write whole lines and return their offset. Raises OSError; the file is then unchanged."""
        self._cut_torn()
        begin = self.size
        try:
            view = memoryview(lines)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            error.filename = str(self.path)
            self._torn_at = begin
            with suppress(OSError):
                self._cut_torn()
            raise
        return begin

    def truncate(self, size: int) -> None:
        os.ftruncate(self._file, size)

    def _cut_torn(self) -> None:
        if self._torn_at is not None:
            self.truncate(self._torn_at)
            self._torn_at = None

    def close(self) -> None:
        with suppress(OSError):
            self._cut_torn()
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def input_errors(path: Path, in_use: str) -> Iterator[None]:
    """Raises InputError instead of OSError and InUse; `in_use` says who else writes the file."""
    try:
        yield
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror}")]) from None
    except InUse:
        raise InputError([Fault(str(path), in_use)]) from None


def lines_in(path: Path, begin: int = 0, prefix: bytes = b"") -> int:
    """How many complete lines after offset `begin` start with `prefix`; 0 without a file."""
    try:
        with path.open("rb") as stream:
            stream.seek(begin)
            return sum(line.startswith(prefix) and line.endswith(b"\n") for line in stream)
    except OSError:
        return 0


def last_line_end(stream: BinaryIO, size: int) -> int:
    """The offset after the last complete line; 0 if there is none."""
    end = size
    while end > 0:
        begin = max(0, end - CHUNK)
        stream.seek(begin)
        found = stream.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


HEAD = 1 << 20


class CallLog(LineFile):
    """Appends to the request log at `path` (docs/reference/formats.md), or creates it.

    `cut` is how many bytes of an incomplete last line, left by a killed writer, were removed on opening. Raises
    InputError if `path` cannot be written, is not a request log, or is being written by another process.
    """

    def __init__(self, path: Path) -> None:
        with input_errors(path, "another process is recording to it"):
            path.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(path)
            try:
                self.cut = _mend_last_line(path)
            except BaseException:
                self.close()
                raise
        self.begin = self.size

    def append(self, fields: Mapping[str, Any], request: bytes) -> int:
        """Write one call and return the offset of its line. Fields that are None are omitted.

        A body that is one line of JSON is kept byte for byte. Raises OSError if the disk is full; the file is then
        unchanged.
        """
        return self.append_lines(call_line(fields, request))

    def count_recorded(self) -> int:
        """How many calls written since opening are in the file at `path` now."""
        with suppress(OSError):
            os.fsync(self._file)
        return lines_in(self.path, self.begin)


def call_line(fields: Mapping[str, Any], request: bytes) -> bytes:
    present = {name: value for name, value in fields.items() if value is not None}
    head = json.dumps(present, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    comma = b"," if present else b""
    return b'%b%b"request":%b}\n' % (head[:-1], comma, request.replace(b"\r", b" ").replace(b"\n", b" ").strip())


def _mend_last_line(path: Path) -> int:
    """Cut off an incomplete last line and return its size in bytes; complete JSON gets its line break instead."""
    if not path.exists() or not (size := path.stat().st_size):
        return 0
    with path.open("rb+") as stream:
        if not sniff(stream.read(HEAD)):
            message = "expected a request log to continue, or a new file; got another format"
            raise InputError([Fault(str(path), message)])
        end = last_line_end(stream, size)
        if end == size:
            return 0
        stream.seek(end)
        try:
            json.loads(stream.read())
        except (ValueError, RecursionError):
            stream.truncate(end)
            return size - end
        stream.write(b"\n")
    return 0
