"""Session files and logs that commands read, what is remembered of them, and which session is meant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from cachecost.base.store import open_store
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.conversations.readers.detect import UNRECOGNIZED

if TYPE_CHECKING:
    from cachecost.commands.options import WorkBar
    from cachecost.sessions.reading import SessionFiles
    from cachecost.sweep.workers import Workers

LISTED = 3


def read_session_files(
    paths: Sequence[Path], format_: str, bar: WorkBar, workers: Workers | None = None, command: str = ""
) -> SessionFiles:
    """The sessions in these files and folders, or in those of this machine; what was skipped goes to stderr, as does
    how to call `command` where nothing is found. `workers` share the reading; then nothing is remembered. Raises
    CannotEvaluate where workers are lost."""
    from cachecost.sessions.reading import FILES, STATES, SessionReading

    folders = [path for path in paths if path.is_dir()]
    if workers:
        from cachecost.sessions.bundles import join_bundles, read_bundle, split_files, without_twins
        from cachecost.sweep.workers import share_items

        shared = list(without_twins(session_files(paths)))
        split = partial(split_files, shared, format_, folders)
        found = join_bundles(share_items("bill", split, read_bundle, workers))
    else:
        with open_store(FILES, STATES) or nullcontext() as store, bar.reading(list(session_files(paths))) as files:
            found = SessionReading(store, format_, folders=folders).read_all(files)
    if command and not (found.sessions or found.logs or found.skipped):
        from cachecost.sessions.locations import locations

        clients = dict.fromkeys(name for one in locations() for name in one.names)
        looked = ", ".join(map(str, paths)) or f"{Path.home()} ({', '.join(clients)})"
        example = "" if paths else "; a session to look at: cachecost demo"
        print_diagnostic(f"no sessions found in {looked}; name files or folders: cachecost {command} PATH{example}")
    if found.store_error:
        print_diagnostic(found.store_error)
    for note in found.notes:
        print_diagnostic(note)
    for fault in found.skipped:
        is_unknown, hint = fault.message.startswith(UNRECOGNIZED), fault.message.removeprefix(UNRECOGNIZED)
        print_diagnostic(f"{fault.file}: {UNRECOGNIZED}, skipped{hint}" if is_unknown else str(fault))
    return found


def session_files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files in these files and folders; without any, the session files of the agents on this machine."""
    if paths:
        from cachecost.conversations.logs import expand_folders

        yield from expand_folders(paths)
        return
    from cachecost.sessions.locations import locations

    for location in locations():
        yield from location.find(Path.home(), os.environ)


def choose_session(named: str, sessions: Sequence[str], option: str = "--session") -> str:
    """The session whose id, or the name of whose file, begins so; `sessions` begin with the most recent, `option` is
    what named it. Raises UsageError where there is none, or more than one."""
    from difflib import get_close_matches  # only for what is wrong already

    if not sessions:
        raise click.UsageError(f"{option}: no sessions here, so none is '{named}'")
    names = {key: PurePath(key).name if "/" in key else key for key in sessions}
    found = [key for key in sessions if named in (key, names[key])]
    found = found or [key for key in sessions if key.startswith(named) or names[key].startswith(named)]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"{option}: {len(found)} sessions begin with '{named}': {_list(found, names)}")
    near = get_close_matches(named, [name[: max(len(named), 1)] for name in names.values()], 1, 0.5)
    nearest = [key for key in sessions if near and names[key].startswith(near[0])]
    what = "the nearest" if nearest else "the most recent"
    raise click.UsageError(f"{option}: no session begins with '{named}'; {what}: {_list(nearest or sessions, names)}")


def _list(keys: Sequence[str], names: dict[str, str]) -> str:
    more = f" and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return ", ".join(names[key] for key in keys[:LISTED]) + more
