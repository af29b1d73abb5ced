"""A content-free recording, written call by call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cachecost.conversations.block_table import BlockWriter
from cachecost.conversations.call_recording import Title, records
from cachecost.conversations.content_free import ContentFree
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.conversations.recording import encoded
from cachecost.tokens.raw import count_content

KEY_BYTES = 32


def write_digest(path: Path, calls: Iterable[LoggedCall]) -> None:
    """Write the recording of calls as they come, each with one write, under a random key that nobody keeps.

    Such a file cannot be gone on with: the key is gone when its writer is.
    """
    table = BlockWriter(ContentFree(os.urandom(KEY_BYTES)), count_content)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(file, "wb", buffering=0) as stream:  # noqa: PTH123 - it was opened as nobody else may read it
        waiting = b""
        for record in records(Title(path.stem), calls, table):
            waiting += encoded(record)
            if "call" in record:
                stream.write(waiting)
                waiting = b""


def free_place(path: Path) -> Path:
    """`path`, or NAME-2, NAME-3 … beside it where there is a file already."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return place
