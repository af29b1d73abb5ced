"""Words of a bill that text, page and JSON share: names of causes, sessions and projects, times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import PurePath

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.explain.codes import codes
from cachecost.base.formatting import duration
from cachecost.caches.causes import Cause

SHORT_ID = 8
PAUSES_SHOWN = 3
LIST_PRICES = "List prices of the API; a subscription is not billed by the token."


def cause_name(cause: Cause) -> str:
    """The name of a cause, as `explain` has it."""
    return codes()[cause].name if cause in codes() else cause.replace("_", " ")


def short_session(session: str) -> str:
    """The beginning of a session's id; the file name of a session without one."""
    return PurePath(session).stem[:SHORT_ID] if "/" in session else session[:SHORT_ID]


def short_project(project: str) -> str:
    """The last folder of a project's path."""
    return PurePath(project.replace("\\", "/")).name or project


def period(row: BillRow) -> str:
    """The days of the first and the last call: "8 Jan – 6 Feb 2026"."""
    if row.first is None or row.last is None:
        return ""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (row.first, row.last))
    end = f"{last.day} {last:%b %Y}"
    if first.date() == last.date():
        return end
    year = f" {first.year}" if first.year != last.year else ""
    return f"{first.day} {first:%b}{year} – {end}"


def clock(at: float | None) -> str:
    """A moment in UTC: "2026-02-09 07:10:31"; empty where it is unknown."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def pauses(rewrites: Sequence[BilledRewrite]) -> str:
    """The longest pauses among rewrites: "(9 h, 2 h, 41 min …)"; empty where none is known."""
    idle = sorted((one.idle_s for one in rewrites if one.idle_s is not None), reverse=True)
    if not idle:
        return ""
    more = " …" if len(idle) > PAUSES_SHOWN else ""
    return f"({', '.join(map(duration, idle[:PAUSES_SHOWN]))}{more})"
