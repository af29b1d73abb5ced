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
from cachecost.base.formatting import count_text
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
BOM = b"\xef\xbb\xbf"
"""A byte order mark, which some editors put at the start of a file; not part of the first line."""
COMMENT = b"//"


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
    """The lines of a file, numbered from 1, unpacked if it is gzip, without a byte order mark and without comments
    before the first record. Raises InputError where it cannot be read."""
    watch, most, is_head = WATCH.get(), limits.LINE.value(), True
    with open_input(path) as stream:
        for number, line in enumerate(iter(partial(stream.readline, most + 1), b""), 1):
            if len(line) > most:
                raise too_long(path, number)
            watch(len(line))
            if is_head:
                line = line.removeprefix(BOM)
                if line.lstrip().startswith(COMMENT):
                    continue
                is_head = line.isspace()
            yield number, line


def skip_comments(head: bytes) -> tuple[bytes, int]:
    """The beginning of a file from its first record on, and how many comment lines are before that.

    No JSON begins as they do (`//`); blank lines may be among them. A byte order mark goes, too.
    """
    comments = 0
    text = head.removeprefix(BOM).lstrip()
    if not text.startswith(COMMENT) and not head.startswith(BOM):
        return head, 0
    while text.startswith(COMMENT):
        text = text.partition(b"\n")[2].lstrip()
        comments += 1
    return text, comments


def first_line(path: Path) -> bytes:
    """The first line that is neither blank nor a comment, as far as it is short. Raises InputError."""
    with open_input(path) as stream:
        texts = (piece.removeprefix(BOM).strip() for piece in iter(partial(stream.readline, BUFFER), b""))
        return next((text for text in texts if text and not text.startswith(COMMENT)), b"")


def comment_note(path: Path) -> str:
    """That a file begins with comments, in words; "" where it does not."""
    if not path.is_file():
        return ""
    with open_input(path) as stream:
        _, comments = skip_comments(stream.read(BUFFER))
    return f"{count_text(comments, 'comment line')} before the first record: skipped" if comments else ""


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
