"""How commands that keep what they read use memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn the garbage collector off: a command that keeps all its objects to the end would find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def open_unnamed_file() -> BinaryIO:
    """A file for the content of blocks where it takes much memory (base/kept_bytes.py). It is gone with the process."""
    from tempfile import TemporaryFile

    return cast("BinaryIO", TemporaryFile(buffering=0))
