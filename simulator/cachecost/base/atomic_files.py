"""Files that are whole or not there: written beside their place, then put into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from cachecost.base.errors import Fault, InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write the file, with its folders, or leave what was there. Raises OSError."""
    with replacing(path) as stream:
        stream.write(content)


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A stream that becomes `path` when the block ends; if the block raises, `path` is unchanged. Raises OSError.

    `mode` are the permissions of the new file, before the umask.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(file, "wb") as stream:  # noqa: PTH123 - opened with the permissions asked for
            yield stream
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """As `write_whole`; nothing to write is no file, also where there was one. Raises InputError with the reason."""
    try:
        if text:
            write_whole(path, text.encode("utf-8"))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror or error}")]) from None


def safe_name(value: str) -> str:
    """A value as a file's name: letters, digits, `-`, `_` and `.`; of another one its digest, too."""
    cut = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in value)[:80]
    safe = cut if cut.strip(".") else "-"
    return safe if safe == value else f"{safe}-{blake2b(value.encode(), digest_size=4).hexdigest()}"
