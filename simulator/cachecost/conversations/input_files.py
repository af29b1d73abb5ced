"""Input files, local or at a URL, read as bytes and unpacked if they are gzip or zstd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.reading_roots import check_readable, check_url

Warn = Callable[[str], None]
WATCH: ContextVar[Callable[[int], None]] = ContextVar("watch", default=lambda size: None)
"""Gets the bytes of each line that is read, for a progress bar."""
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
"""Codex CLI packs sessions of more than a week with it."""
BUFFER = 1 << 16
"""Bytes that are read at once: lines of logs are longer than the buffer that Python uses."""
PIECE = 1 << 20


def quiet(_: str) -> None:
    """A `Warn` that drops the notes."""


def is_url(name: str | Path) -> bool:
    """Whether a name is a URL, to be read by `remote_files`, and no path on a disk."""
    return "://" in str(name)


def shown_name(name: str) -> str:
    """A name as errors and reports show it: a URL without password and query."""
    if not is_url(name):
        return name
    from cachecost.conversations.remote_files import without_secrets

    return without_secrets(name)


def input_path(name: str | Path, folder: Path | None = None) -> Path:
    """The path of an input, which starts at `folder`.

    Raises NotInstalled and InputError for a URL that cannot be read; any other path is not looked at.
    """
    if isinstance(name, str) and is_url(name):
        from cachecost.conversations.remote_files import remote_path

        check_url(shown_name(name))
        return remote_path(name)
    if folder is not None:
        return folder / name
    return name if isinstance(name, Path) else Path(name)


def byte_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, numbered from 1, unpacked if it is gzip. Raises InputError where it cannot be read."""
    watch, most = WATCH.get(), limits.LINE.value()
    with open_input(path) as stream:
        for number, line in enumerate(iter(partial(stream.readline, most + 1), b""), 1):
            if len(line) > most:
                raise too_long(path, number)
            watch(len(line))
            yield number, line


def too_long(path: Path, line: int) -> InputError:
    """A line that is longer than lines may be."""
    return InputError([Fault(str(path), str(limits.LINE.error()), line)])


def read_input(path: Path) -> bytes:
    """All bytes of a file, unpacked if it is gzip. Raises InputError where it cannot be read or is too large."""
    most, pieces, size = limits.FILE.value(), list[bytes](), 0
    watch = WATCH.get()
    with open_input(path) as stream:
        while piece := stream.read(PIECE):
            watch(len(piece))
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise InputError([Fault(str(path), str(limits.FILE.error()))])
    return b"".join(pieces)


def open_input(path: Path) -> Any:
    """`path`, open for reading bytes, unpacked if it is gzip or zstd. Raises InputError if it cannot or may not be."""
    if not is_url(path):
        check_readable(path)
    try:
        if not path.is_file():
            return _endless(path)
        stream: Any = path.open("rb", buffering=BUFFER)
        head = stream.peek(4)[:4]
        if head[:2] != GZIP and head != ZSTD:
            return stream
        stream.close()
        from cachecost.conversations.packed_files import GzipInput, open_zstd

        return GzipInput(path) if head != ZSTD else open_zstd(path)
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be read: {error.strerror}")]) from error


def _endless(path: Path) -> Any:
    """A pipe or a device, which may never end. Raises OSError."""
    from cachecost.conversations.packed_files import EndlessInput

    return BufferedReader(EndlessInput(path))
