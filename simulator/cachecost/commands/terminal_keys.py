"""Keys as they are pressed, on terminals that can say so; elsewhere there are none."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pressed_keys() -> Iterator[None]:
    """Keys arrive one by one and are not shown while the body runs. Ctrl-C still interrupts."""
    if not _has_keys():
        yield
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    kept = termios.tcgetattr(number)
    tty.setcbreak(number, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSANOW, kept)


def read_key(wait_s: float) -> str:
    """The key that is pressed within `wait_s` seconds; empty where none is."""
    if not _has_keys():
        time.sleep(wait_s)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], wait_s)
    if not ready:
        return ""
    found = os.read(sys.stdin.fileno(), 1)
    if not found:  # the terminal is gone
        time.sleep(wait_s)
    return found.decode("latin-1")


def _has_keys() -> bool:
    return os.name == "posix" and sys.stdin is not None and sys.stdin.isatty()
