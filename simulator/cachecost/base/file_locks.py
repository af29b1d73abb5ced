"""Locks on files: one process at a time writes a recording, a journal, or a sweep."""

from __future__ import annotations

import sys


class InUse(Exception):
    """Another process writes the file."""


def lock_file(file: int) -> None:
    """Lock the file of a descriptor until this process closes it or ends. Raises InUse."""
    if sys.platform != "win32":  # where there is no such lock
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse from None
