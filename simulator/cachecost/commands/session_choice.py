"""Finds the session that `--session` names, by the beginning of its id."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import PurePath

import click

LISTED = 3
FULL_SIMILARITY = 0.5


def choose_session(named: str, sessions: Sequence[str]) -> str:
    """The session whose id, or the name of whose file, begins so. `sessions` are in order, the most recent first.

    Raises UsageError where there is none, or more than one.
    """
    if not sessions:
        raise click.UsageError(f"--session: no sessions here, so none is '{named}'")
    names = {key: PurePath(key).name if "/" in key else key for key in sessions}
    found = [key for key in sessions if named in (key, names[key])]
    found = found or [key for key in sessions if key.startswith(named) or names[key].startswith(named)]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"--session: {len(found)} sessions begin with '{named}': {_list(found, names)}")
    near = get_close_matches(named, [name[: max(len(named), 1)] for name in names.values()], 1, FULL_SIMILARITY)
    nearest = [key for key in sessions if near and names[key].startswith(near[0])]
    what = "the nearest" if nearest else "the most recent"
    raise click.UsageError(f"--session: no session begins with '{named}'; {what}: {_list(nearest or sessions, names)}")


def _list(keys: Sequence[str], names: dict[str, str]) -> str:
    more = f" and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return ", ".join(names[key] for key in keys[:LISTED]) + more
