"""Which format a file is in, and why we think so. One visible dict: to add a format, add its reader."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from cachecost.conversations import recording
from cachecost.conversations.checked import Warn, opened
from cachecost.conversations.model import Conversation
from cachecost.conversations.readers import jp
from cachecost.faults import Fault, InputError, nearest

HEAD_BYTES = 1 << 16


class Reader(Protocol):
    """A module that reads conversations of one format."""

    def sniff(self, head: bytes, /) -> str | None:
        """Why a file that begins with `head` is in this format; None if it is not."""
        ...

    def read(self, path: Path, warn: Warn = ..., /) -> Conversation:
        """The conversation; what could not be told goes to `warn`. Raises InputError with every fault."""
        ...


READERS: dict[str, Reader] = {"recording": recording, "jp": jp}


def detect(path: Path, format_: str = "auto") -> tuple[str, str]:
    """(name of the format, why). Raises InputError if no reader knows the file, or none has that name."""
    if format_ != "auto":
        return _named(path, format_), "as told"
    with opened(path) as stream:
        head = stream.read(HEAD_BYTES)
    for name, reader in READERS.items():
        if reason := reader.sniff(head):
            return name, reason
    found = "is empty" if not head.strip() else "begins like none of them"
    raise InputError([Fault(str(path), f"expected one of the formats {', '.join(READERS)}; the file {found}")])


def _named(path: Path, name: str) -> str:
    if name in READERS:
        return name
    known = ", ".join(["auto", *READERS])
    raise InputError([Fault(str(path), f"format: expected one of {known}; got {name!r}{nearest(name, READERS)}")])
