"""The list of sessions, and what a page begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.viewing.listing import SessionListing, session_id
from cachecost.base.errors import Fault
from cachecost.base.formatting import exact
from cachecost.base.times import iso
from cachecost.base.version import __version__
from cachecost.views.bill.json_output import hit_rate
from cachecost.views.bill.words import cause_name, session_names
from cachecost.views.charts.palette import DARK_COLOURS, PAGE_COLOURS

FORMAT = 1
NO_TITLES: Mapping[str, str] = {}


def start_object(kind: str, title: str, command: str) -> dict[str, Any]:
    """What the page begins with; `command` is what was typed."""
    colours = {"light": PAGE_COLOURS, "dark": {**PAGE_COLOURS, **DARK_COLOURS}}
    names = {"kind": kind, "title": title, "version": __version__, "command": command}
    return {"format": FORMAT, **names, "colours": colours}


def sessions_object(listing: SessionListing, titles: Mapping[str, str] = NO_TITLES) -> dict[str, Any]:
    """All sessions, the most expensive first, and their total. `titles` are those of sessions that have one."""
    total, threads = listing.summary.total, listing.count_threads()
    names = session_names(listing.keys)
    return {
        "total": {
            "cost_usd": exact(total.cost),
            "rewritten_usd": exact(total.rewritten),
            "necessary_usd": exact(total.necessary),
            "calls": total.calls,
            "sessions": listing.summary.sessions,
            "hit_rate": hit_rate(total),
            "saved_by_caching_usd": exact(total.saved_by_caching),
            "first": _time(total.first),
            "last": _time(total.last),
        },
        "sessions": [
            {**_row(row, names[row.key], threads[row.key]), "title": titles.get(row.key, "")}
            for row in listing.summary.rows
        ],
        "skipped": skipped_objects(listing.skipped),
    }


def skipped_objects(skipped: Sequence[Fault]) -> list[dict[str, Any]]:
    """Files and lines that could not be read."""
    return [{"file": one.file, "line": one.line, "reason": one.message} for one in skipped]


def _row(row: BillRow, name: str, threads: int) -> dict[str, Any]:
    most = next((one for one in row.ranked_causes if one.cost), None)
    return {
        "id": session_id(row.key),
        "name": name,
        "session": row.session,
        "project": row.project,
        "client": row.client,
        "models": row.models,
        "agents": threads,
        "first": _time(row.first),
        "last": _time(row.last),
        "calls": row.calls,
        "hit_rate": hit_rate(row),
        "cost_usd": exact(row.cost),
        "rewritten_usd": exact(row.rewritten),
        "most": f"{cause_name(most.cause)} {most.times:,} ×" if most else "",
    }


def _time(at: float | None) -> str | None:
    return None if at is None else iso(at)
