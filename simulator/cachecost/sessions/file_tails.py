"""The end of a file, by which one that has only grown is known."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.digests import blake2b

TAIL_BYTES = 1024
"""A file has only grown if the bytes before its old end are the same. A change before them that kept their place is
not seen if the file grew, too; a change that kept size and time is never seen."""


def tail_digest(path: Path, size: int) -> bytes:
    """The digest of the bytes before `size`. Raises OSError."""
    with path.open("rb") as stream:
        stream.seek(max(0, size - TAIL_BYTES))
        return blake2b(stream.read(min(size, TAIL_BYTES)), digest_size=16).digest()
