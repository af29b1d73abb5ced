"""A scenario's report as a page shows it: its strategies side by side, of `result.json` and `calls.csv`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from csv import DictReader
from decimal import Decimal
from io import StringIO
from json import loads
from typing import Any, NamedTuple

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import exact
from cachecost.base.inert import inert_cell
from cachecost.base.times import seconds
from cachecost.views.viewer.columns import UNKNOWN, NameList, cause_objects

TOKENS = ("read", "write_5m", "write_1h", "input", "output")
MAIN = "main"
NEEDED = ("scenario", "question", "verdict", "compare_to", "strategies")

Row = Mapping[str, str]


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
    made = [_strategy(one, report.rows.get(inert_cell(one["name"]), ()), base, causes, models) for one in strategies]
    return {"strategies": made, "causes": cause_objects(causes), "models": models.names}


def _strategy(
    line: Mapping[str, Any], rows: Sequence[Row], base: str | None, causes: NameList, models: NameList
) -> dict[str, Any]:
    cost = line["cost_usd"]
    difference = None if cost is None or base is None else exact(Decimal(cost) - Decimal(base))
    return {
        "name": line["name"],
        "cost_usd": cost,
        "difference_usd": difference,
        "calls": _columns(rows, causes, models) if rows else None,
        "refused": line["errors"],
        "findings": list(_findings(line)),
    }


def _findings(line: Mapping[str, Any]) -> Iterator[str]:
    """Refused calls, and what the run notes."""
    for refusal in line.get("refusals", ()):
        yield f"{refusal['calls']:,} × refused: {refusal['message']}"
    yield from line.get("notes", ())


def _columns(rows: Sequence[Row], causes: NameList, models: NameList) -> dict[str, list[Any]]:
    """The columns of a strategy's calls. Calls of the conversation are numbered, so that those of strategies
    correspond; questions, pings and the like have the number 0.
    """
    return {
        "number": list(_numbers(rows)),
        "start": [_start(row["timestamp"]) for row in rows],
        "model": [models.place(row["model"]) for row in rows],
        **{name: [int(row[name] or 0) for row in rows] for name in TOKENS},
        "cost_usd": [row["cost_usd"] or None for row in rows],
        "cause": [causes.place(row["cause"] or UNKNOWN) for row in rows],
        "event": ["" if row["purpose"] == MAIN else row["purpose"] for row in rows],
    }


def _numbers(rows: Sequence[Row]) -> Iterator[int]:
    number = 0
    for row in rows:
        number += row["purpose"] == MAIN
        yield number if row["purpose"] == MAIN else 0


def _start(timestamp: str) -> float | None:
    try:
        return seconds(timestamp) if timestamp else None
    except ValueError:
        return None
