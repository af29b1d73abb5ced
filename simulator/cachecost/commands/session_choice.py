"""Which sessions a command shows: the one that `--session` names, and what is said where no call matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from cachecost.base.formatting import count_text, inert
from cachecost.base.times import iso
from cachecost.commands.catalogue import is_from_file
from cachecost.conversations.input_files import SessionFile

if TYPE_CHECKING:
    from cachecost.analysis.bill.account import BillAccount
    from cachecost.analysis.bill.timeline import TimelineCall


PROJECTS_NAMED = 8
DATE_LENGTH = len("2026-03-07")
SECOND_LENGTH = len("2026-03-07T10:00:00")


def no_match_words(files: Sequence[SessionFile], filters: Mapping[str, str | float | None]) -> str:
    """Which filters no call matches, and what was found; `filters` are values by option, times in seconds.

    Empty where there is no filter, or no session that it could leave out.
    """
    from cachecost.views.bill.words import project_names

    words = [
        f"{name} {f'{iso(value)[:SECOND_LENGTH]}Z' if isinstance(value, float) else value}"
        for name, value in filters.items()
        if value is not None
    ]
    if not words or not files:
        return ""
    starts = [call.start for file in files for call in file.calls if call.start is not None]
    days = f"{iso(min(starts))[:DATE_LENGTH]} to {iso(max(starts))[:DATE_LENGTH]}" if starts else ""
    names = sorted(filter(None, project_names(file.project for file in files).values()))
    more = " …" if len(names) > PROJECTS_NAMED else ""
    projects = f"projects {', '.join(names[:PROJECTS_NAMED])}{more}" if names else ""
    found = ", ".join(filter(None, (count_text(len(files), "session file"), days, projects)))
    return inert(f"no call matches {' '.join(words)}; found: {found}")


LISTED = 3
FULL_SIMILARITY = 0.5


def choose_session(named: str, sessions: Sequence[str], option: str = "--session") -> str:
    """The session whose id, or the name of whose file, begins so. `sessions` are in order, the most recent first.
    `option` is what named it.

    Raises UsageError where there is none, or more than one.
    """
    if not sessions:
        raise click.UsageError(f"{option}: no sessions here, so none is '{named}'")
    names = {key: PurePath(key).name if "/" in key else key for key in sessions}
    found = [key for key in sessions if named in (key, names[key])]
    found = found or [key for key in sessions if key.startswith(named) or names[key].startswith(named)]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"{option}: {len(found)} sessions begin with '{named}': {_list(found, names)}")
    near = get_close_matches(named, [name[: max(len(named), 1)] for name in names.values()], 1, FULL_SIMILARITY)
    nearest = [key for key in sessions if near and names[key].startswith(near[0])]
    what = "the nearest" if nearest else "the most recent"
    raise click.UsageError(f"{option}: no session begins with '{named}'; {what}: {_list(nearest or sessions, names)}")


def _list(keys: Sequence[str], names: dict[str, str]) -> str:
    more = f" and {len(keys) - LISTED:,} more" if len(keys) > LISTED else ""
    return ", ".join(names[key] for key in keys[:LISTED]) + more


def choose_account(account: BillAccount, named: str) -> tuple[BillAccount, Sequence[TimelineCall]]:
    """The account of the session that `--session` names, and its calls. Raises UsageError."""
    from cachecost.analysis.bill.timeline import session_account, session_timelines, sessions_by_time

    key = choose_session(named, sessions_by_time(account))
    alone = session_account(account, key)
    return alone, session_timelines(alone, [key])[key]


def session_options(session: str | None, by: str | None, all_calls: bool) -> tuple[str | None, bool]:
    """`by` and `all_calls` as they go with `session`: those of the settings file give way.

    Raises UsageError for options of the command line that do not go together.
    """
    by = None if session is not None and is_from_file("by") else by
    all_calls = all_calls and not (session is None and is_from_file("all_calls"))
    if session is not None and by is not None:
        raise click.UsageError("--by: not with --session, which shows one session call by call")
    if session is None and all_calls:
        raise click.UsageError("--all-calls: only with --session")
    return by, all_calls


def find_first_words(calls: Sequence[TimelineCall]) -> Mapping[int, str]:
    """The beginning of the person's message before each call, by its number; read again from the session's files."""
    from cachecost.sessions.locations import first_words

    lines: dict[str, dict[int, int]] = {}
    for one in calls:
        if "human" in one.call.events:
            lines.setdefault(one.file.path, {})[one.call.line] = one.number
    files = {one.file.path: one.file for one in calls}
    return {
        numbers[line]: words
        for path, numbers in lines.items()
        for line, words in first_words(files[path], numbers).items()
    }
