"""How often recorded calls were seen to follow each dated row of the rules, and to contradict it.

`sightings.json` is written by `make evidence`; `date` is the day of the rule data that it was made with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from datetime import date
from functools import cache
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rulefile import DatedRow, catalogue

DATA = Path(__file__).with_name("sightings.json")
COLUMNS = ("host", "model", "day", "rule", "held", "failed")


@dataclass(frozen=True, slots=True)
class Sighting:
    """How many calls of a model followed, or contradicted, a rule as it was on `day` (YYYY-MM-DD)."""

    host: str
    model: str
    day: str
    rule: str
    held: int
    failed: int


@dataclass(frozen=True, slots=True)
class RowSightings:
    """How many recorded calls followed a row of the rules, and how many contradicted it."""

    held: int = 0
    failed: int = 0

    def __add__(self, other: RowSightings) -> RowSightings:
        return RowSightings(self.held + other.held, self.failed + other.failed)


def sightings_text(sightings: Iterable[Sighting], day: date) -> str:
    """The data file: a line a row, so that differences can be read."""
    rows = ",\n".join(json.dumps(astuple(one)) for one in sightings)
    head = f'"format": 1, "date": "{day}", "columns": {json.dumps(COLUMNS)}'
    return f'{{{head}, "rows": [\n{rows}\n]}}\n'


@cache
def sightings_of_rows() -> Mapping[tuple[str, int], RowSightings]:
    """The sightings of each dated row that was in force, by host and the row's identity."""
    found: dict[tuple[str, int], RowSightings] = {}
    for values in json.loads(DATA.read_text(encoding="utf-8"))["rows"]:
        one = Sighting(*values)
        row = _row_in_force(one)
        if row is not None:
            key = one.host, id(row)
            found[key] = found.get(key, RowSightings()) + RowSightings(one.held, one.failed)
    return found


def _row_in_force(one: Sighting) -> DatedRow | None:
    """The row that gave the rule's value; None where the data no longer has the host's rule, or the model."""
    book, day = catalogue(one.host), date.fromisoformat(one.day)
    try:
        model = book.under(book.model(one.model), Assumptions().on(one.host))
    except CannotEvaluate:
        return None
    rule = book.rules.get(one.rule)
    rows = model.rows.get(one.rule) or (rule.rows if rule else ())
    return next((row for row in reversed(rows) if row.holds(day)), None)
