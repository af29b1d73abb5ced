"""Atomic writes: a file is written to a temporary name in the same folder, then renamed."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from cachecost.base.errors import Fault, InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write the file and create its folders, or leave the old file unchanged. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Like `write_whole`; an empty text deletes the file. Raises InputError with the reason."""
    try:
        if text:
            write_whole(path, text.encode("utf-8"))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror or error}")]) from None


def safe_name(value: str) -> str:
    """A value as a file's name: letters, digits, `-`, `_` and `.`; any other value also gets its digest."""
    cut = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in value)[:80]
    safe = cut if cut.strip(".") else "-"
    return safe if safe == value else f"{safe}-{blake2b(value.encode(), digest_size=4).hexdigest()}"
