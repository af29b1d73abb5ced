"""Session files and logs of commands that explain bills: which files, what is remembered, and their account."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cachecost.base.atomic_files import kept_folder
from cachecost.base.errors import Fault
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.conversations.readers.detect import UNRECOGNIZED

if TYPE_CHECKING:
    from cachecost.commands.options import WorkBar
    from cachecost.sessions.reading import SessionFiles, SessionStore
    from cachecost.sweep.workers import Workers

STORE = "sessions.sqlite"
NOT_REMEMBERED = "sessions are not remembered"


def read_session_files(
    paths: Sequence[Path], format_: str, bar: WorkBar, workers: Workers | None = None, command: str = ""
) -> SessionFiles:
    """The sessions in these files and folders, or in those of this machine; what was skipped goes to stderr.

    `workers` share the reading; then nothing is remembered. Where nothing is found, it is said how to call `command`;
    without one nothing is said of that.
    Raises CannotEvaluate where workers are lost.
    """
    folders = [path for path in paths if path.is_dir()]
    found = _read_shared(paths, format_, folders, workers) if workers else _read_here(paths, format_, folders, bar)
    if command and not (found.sessions or found.logs or found.skipped):
        from cachecost.sessions.locations import locations

        clients = dict.fromkeys(name for one in locations() for name in one.names)
        looked = ", ".join(map(str, paths)) or f"{Path.home()} ({', '.join(clients)})"
        example = "" if paths else "; a session to look at: cachecost demo"
        print_diagnostic(f"no sessions found in {looked}; name files or folders: cachecost {command} PATH{example}")
    if found.store_error:
        print_diagnostic(f"{kept_folder()}/{STORE}: {NOT_REMEMBERED}: {found.store_error}")
    for note in found.notes:
        print_diagnostic(note)
    for fault in found.skipped:
        print_diagnostic(_skip_text(fault))
    return found


def _read_here(paths: Sequence[Path], format_: str, folders: Sequence[Path], bar: WorkBar) -> SessionFiles:
    from cachecost.sessions.reading import SessionReading

    with _open_store() as store, bar.reading(list(_files(paths))) as files:
        return SessionReading(store, format_, folders=folders).read_all(files)


def _read_shared(paths: Sequence[Path], format_: str, folders: Sequence[Path], workers: Workers) -> SessionFiles:
    from cachecost.sessions.bundles import join_bundles, read_bundle, split_files, without_twins
    from cachecost.sweep.workers import share_items

    files = list(without_twins(_files(paths)))
    return join_bundles(share_items("bill", partial(split_files, files, format_, folders), read_bundle, workers))


def _skip_text(fault: Fault) -> str:
    """Why a file, or a line of one, does not count."""
    if fault.message.startswith(UNRECOGNIZED):
        return f"{fault.file}: {UNRECOGNIZED}, skipped{fault.message.removeprefix(UNRECOGNIZED)}"
    return str(fault)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    if paths:
        from cachecost.conversations.logs import expand_folders

        yield from expand_folders(paths)
        return
    from cachecost.sessions.locations import locations

    for location in locations():
        yield from location.find(Path.home(), os.environ)


@contextmanager
def _open_store() -> Iterator[SessionStore | None]:
    """The store; None where there is to be none, or it cannot be used."""
    from cachecost.sessions.reading import open_store

    folder = kept_folder()
    if folder is None:
        yield None
        return
    path = folder / STORE
    try:
        store = open_store(path)
    except (sqlite3.Error, OSError) as error:
        print_diagnostic(f"{path}: {NOT_REMEMBERED}: {error}")
        yield None
        return
    with store:
        yield store
