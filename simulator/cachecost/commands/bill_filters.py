"""What `cachecost bill` says where no call is in the period or the projects that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cachecost.base.formatting import count_text
from cachecost.base.inert import inert
from cachecost.base.times import iso
from cachecost.conversations.billed_calls import SessionFile

PROJECTS_NAMED = 8
DATE_LENGTH = len("2026-03-07")
SECOND_LENGTH = len("2026-03-07T10:00:00")


def no_match_words(files: Sequence[SessionFile], filters: Mapping[str, str | float | None]) -> str:
    """Which filters no call matches, and what was found; `filters` are values by option, times in seconds.

    Empty where there is no filter, or no session that it could leave out.
    """
    asked = [f"{name} {_value(value)}" for name, value in filters.items() if value is not None]
    if not asked or not files:
        return ""
    return inert(f"no call matches {' '.join(asked)}; found: {', '.join(filter(None, _found(files)))}")


def _value(value: str | float) -> str:
    return f"{iso(value)[:SECOND_LENGTH]}Z" if isinstance(value, float) else value


def _found(files: Sequence[SessionFile]) -> tuple[str, str, str]:
    """How many sessions, of which days, in which projects."""
    from cachecost.views.bill.words import project_names

    starts = [call.start for file in files for call in file.calls if call.start is not None]
    days = f"{iso(min(starts))[:DATE_LENGTH]} to {iso(max(starts))[:DATE_LENGTH]}" if starts else ""
    names = sorted(filter(None, project_names(file.project for file in files).values()))
    more = " …" if len(names) > PROJECTS_NAMED else ""
    projects = f"projects {', '.join(names[:PROJECTS_NAMED])}{more}" if names else ""
    return count_text(len(files), "session file"), days, projects
