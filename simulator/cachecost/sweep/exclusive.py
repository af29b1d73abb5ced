"""One sweep at a time writes to an `--out`: the folder of its parts holds a lock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.file_locks import InUse, lock_file
from cachecost.sweep.store import Store, open_store, parts_folder
from cachecost.sweep.tables import suffix_of

LOCK = "lock"


@contextmanager
def exclusive_store(out: Path, axes: Sequence[str], about: dict[str, Any], resume: bool) -> Iterator[Store]:
    """What `open_store` opens, while no other process has it. Raises InputError where one does, and as `open_store`."""
    suffix_of(out)  # what cannot be written leaves no folder
    with _locked(parts_folder(out), f"--out {out}:"):
        yield open_store(out, axes, about, resume)


@contextmanager
def _locked(folder: Path, place: str) -> Iterator[None]:
    """Holds the lock in the folder, which is made. Raises InputError where another process holds it."""
    try:
        file = _lock(folder)
    except InUse:
        raise InputError([Fault(place, "another sweep is writing it; wait for its end, or choose another")]) from None
    except OSError as error:
        raise InputError([Fault(place, f"cannot be written: {error.strerror or error}")]) from None
    try:
        yield
    finally:
        os.close(file)


def _lock(folder: Path) -> int:
    """A descriptor of the lock file, locked. A sweep that ends removes the folder: then it is made again.

    Raises InUse, OSError.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        try:
            lock_file(file)
            if _is_at(folder / LOCK, file):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
