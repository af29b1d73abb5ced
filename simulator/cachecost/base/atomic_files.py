"""Atomic writes: a file is written to a temporary name in the same folder, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from filecmp import cmp
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from cachecost.base.errors import Fault, InputError
from cachecost.base.inert import inert_text

_unfinished: set[Path] = set()
"""The temporary files and folders of this process."""


class CannotWrite(InputError):
    """A file cannot be written at its place."""


@contextmanager
def replace_when_done(path: Path) -> Iterator[Path]:
    """A path in the same folder, for a file or a folder that becomes `path` when all went well. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    _unfinished.add(part)
    try:
        yield part
        part.replace(path)
    finally:
        _remove(part)
        _unfinished.discard(part)


def remove_unfinished() -> None:
    """Remove what this process has not finished writing, before it ends without unwinding every block."""
    while _unfinished:
        _remove(_unfinished.pop())


def _remove(part: Path) -> None:
    """Remove a temporary file or folder. If its folder is out of reach, that error is on its way."""
    with suppress(OSError):
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)


@contextmanager
def open_whole(path: Path, overwrite: bool = True) -> Iterator[BinaryIO]:
    """A stream that becomes `path` when all is written, and nothing before. Raises CannotWrite.

    Without `overwrite`, InputError if there is a file with other content.
    """
    try:
        with replace_when_done(path) as part:
            with part.open("wb") as stream:
                yield stream
            if not overwrite and path.is_file() and not cmp(part, path, shallow=False):
                raise InputError([Fault(str(path), "exists with other content: --force overwrites it")])
    except OSError as error:
        raise CannotWrite([Fault(str(path), f"cannot be written: {error.strerror}")]) from error


def write_lines(lines: Iterable[bytes], target: str | Path | BinaryIO, overwrite: bool = True) -> None:
    """Write to a path (whole or not at all) or to an open binary stream.

    Raises as `open_whole`, and what iterating over `lines` raises.
    """
    if isinstance(target, (str, Path)):
        with open_whole(Path(target), overwrite) as stream:
            stream.writelines(lines)
    else:
        target.writelines(lines)


@contextmanager
def open_replacement(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A stream that becomes `path` when the block ends; if the block raises, `path` is unchanged. Raises OSError.

    `mode` are the permissions of the new file, before the umask.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with replace_when_done(path) as part, os.fdopen(os.open(part, flags, mode), "wb") as stream:
        yield stream


def write_whole(path: Path, content: bytes) -> None:
    """Write the file, with its folders, or leave what was there. Raises OSError."""
    with open_replacement(path) as stream:
        stream.write(content)


def write_text(path: Path, text: str) -> None:
    """Like `write_whole`; foreign text in it is inert. Raises InputError with the reason."""
    try:
        write_whole(path, inert_text(text).encode("utf-8"))
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror or error}")]) from None


def remove_file(path: Path) -> None:
    """Remove a file that may not be there. Raises InputError with the reason."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be removed: {error.strerror or error}")]) from None


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write the files, with their folders: none of them before all are complete. Raises InputError with the reason."""
    place = None
    try:
        with ExitStack() as renames:
            for place, content in files.items():
                place.parent.mkdir(parents=True, exist_ok=True)
                renames.enter_context(replace_when_done(place)).write_bytes(content)
    except OSError as error:
        fault = Fault(str(error.filename2 or place), f"cannot be written: {error.strerror or error}")
        raise InputError([fault]) from None


def safe_name(value: str) -> str:
    """A value as a file's name: letters, digits, `-`, `_` and `.`; any other value also gets its digest."""
    cut = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in value)[:80]
    safe = cut if cut.strip(".") else "-"
    return safe if safe == value else f"{safe}-{blake2b(value.encode(), digest_size=4).hexdigest()}"
