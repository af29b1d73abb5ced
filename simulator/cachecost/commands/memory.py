"""How commands that keep what they read use memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn the garbage collector off: a command that keeps all its objects to the end would find nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
