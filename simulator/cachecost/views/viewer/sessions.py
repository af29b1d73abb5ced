"""What the page begins with: the list of sessions, or a scenario's report; as JSON whose texts are safe to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import DictReader
from decimal import Decimal
from io import StringIO
from itertools import accumulate
from json import loads
from typing import Any, NamedTuple

import msgspec

from cachecost.analysis.viewing.listing import SessionListing, session_id
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import exact, inert_cell, inert_text
from cachecost.base.times import iso_or_none, seconds
from cachecost.base.version import __version__
from cachecost.views.bill.json_output import hit_rate
from cachecost.views.bill.words import cause_name, session_names
from cachecost.views.charts.palette import DARK_COLOURS, PAGE_COLOURS
from cachecost.views.tables.output import pick, pick_usd
from cachecost.views.viewer.call import UNKNOWN, NameList, cause_objects

_encode = msgspec.json.Encoder().encode
TOKENS = ("read", "write_5m", "write_1h", "input", "output")
MAIN = "main"
NEEDED = ("scenario", "question", "verdict", "compare_to", "strategies")

Row = Mapping[str, str]
NO_TITLES: Mapping[str, str] = {}


def inert_object(value: Any) -> Any:
    """The value with every text in it made inert; line ends and tabs stay."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else inert_text(value)
    if isinstance(value, Mapping):
        return {inert_object(key): inert_object(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [inert_object(one) for one in value]
    return value


def inert_json(value: Any) -> bytes:
    return _encode(inert_object(value))


class Report(NamedTuple):
    """The result of a run, and the rows of its calls by strategy."""

    result: Mapping[str, Any]
    rows: Mapping[str, Sequence[Row]]


def parse_report(name: str, result: str, calls: str) -> Report:
    """The texts of a report's files. Raises InputError where they are not those of a scenario's run."""
    try:
        found = loads(result)
        missing = [key for key in NEEDED if key not in found]
        rows: dict[str, list[Row]] = {}
        for row in DictReader(StringIO(calls)):
            rows.setdefault(row["strategy"], []).append(row)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError([Fault(name, f"expected the report of a run; {error}")]) from None
    if missing:
        raise InputError([Fault(name, f"expected the report of a run; {missing[0]} is missing")])
    return Report(found, rows)


def run_page_object(report: Report, other: Report | None = None, other_title: str = "") -> dict[str, Any]:
    """The strategies of a report; beside them those of `other`, the same report of another revision."""
    result = report.result
    return {
        "name": result["scenario"],
        "question": result["question"],
        "about": result.get("about", ""),
        "answer": result["verdict"],
        "compare_to": result["compare_to"],
        **_strategies(report),
        "other": {"title": other_title, **_strategies(other)} if other else None,
    }


def _strategies(report: Report) -> dict[str, Any]:
    causes, models = NameList(), NameList()
    strategies = report.result["strategies"]
    base = next((one["cost_usd"] for one in strategies if one["name"] == report.result["compare_to"]), None)
    made = []
    for one in strategies:
        cost, rows = one["cost_usd"], report.rows.get(inert_cell(one["name"]), ())
        refusals = [f"{refusal['calls']:,} × refused: {refusal['message']}" for refusal in one.get("refusals", ())]
        made.append(
            {
                "name": one["name"],
                "cost_usd": cost,
                "difference_usd": None if cost is None or base is None else exact(Decimal(cost) - Decimal(base)),
                "calls": _columns(rows, causes, models) if rows else None,
                "refused": one["errors"],
                "findings": [*refusals, *one.get("notes", ())],
            }
        )
    return {"strategies": made, "causes": cause_objects(causes), "models": models.names}


def _columns(rows: Sequence[Row], causes: NameList, models: NameList) -> dict[str, list[Any]]:
    """The columns of a strategy's calls. Those of the conversation are numbered, so that those of strategies
    correspond; questions, pings and the like have the number 0."""
    is_main = [int(row["purpose"] == MAIN) for row in rows]
    return {
        "number": [number if is_own else 0 for number, is_own in zip(accumulate(is_main), is_main, strict=True)],
        "start": [_start(row["timestamp"]) for row in rows],
        "model": [models.place(row["model"]) for row in rows],
        **{name: [int(row[name] or 0) for row in rows] for name in TOKENS},
        "cost_usd": [row["cost_usd"] or None for row in rows],
        "cause": [causes.place(row["cause"] or UNKNOWN) for row in rows],
        "event": ["" if row["purpose"] == MAIN else row["purpose"] for row in rows],
    }


def _start(timestamp: str) -> float | None:
    try:
        return seconds(timestamp) if timestamp else None
    except ValueError:
        return None


def start_object(kind: str, title: str, command: str) -> dict[str, Any]:
    """What the page begins with; `command` is what was typed."""
    colours = {"light": PAGE_COLOURS, "dark": {**PAGE_COLOURS, **DARK_COLOURS}}
    names = {"kind": kind, "title": title, "version": __version__, "command": command}
    return {"format": 1, **names, "colours": colours}


def sessions_object(listing: SessionListing, titles: Mapping[str, str] = NO_TITLES) -> dict[str, Any]:
    """All sessions, the most expensive first, and their total. `titles` are those of sessions that have one."""
    total, threads = listing.summary.total, listing.count_threads()
    names = session_names(listing.keys)
    sessions = []
    for row in listing.summary.rows:
        most = next((one for one in row.ranked_causes if one.cost), None)
        sessions.append(
            {
                "id": session_id(row.key),
                "name": names[row.key],
                **pick(row, "session", "project", "client", "models"),
                "agents": threads[row.key],
                "first": iso_or_none(row.first),
                "last": iso_or_none(row.last),
                "calls": row.calls,
                "hit_rate": hit_rate(row),
                **pick_usd(row, "cost", "rewritten"),
                "most": f"{cause_name(most.cause)} {most.times:,} ×" if most else "",
                "title": titles.get(row.key, ""),
            }
        )
    return {
        "total": {
            **pick_usd(total, "cost", "rewritten", "necessary"),
            "calls": total.calls,
            "sessions": listing.summary.sessions,
            "hit_rate": hit_rate(total),
            "saved_by_caching_usd": exact(total.saved_by_caching),
            "first": iso_or_none(total.first),
            "last": iso_or_none(total.last),
        },
        "sessions": sessions,
        "skipped": skipped_objects(listing.skipped),
    }


def skipped_objects(skipped: Sequence[Fault]) -> list[dict[str, Any]]:
    return [{"file": one.file, "line": one.line, "reason": one.message} for one in skipped]
