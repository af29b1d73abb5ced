"""Rows of the rule data for the commands `models` and `rules`, and how often recorded calls followed or contradicted
each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.assumptions import Assumptions, assumption_table, number_range, show_assumption
from cachecost.providers.hosts import Catalogue, DatedRow, catalogue, hosts
from cachecost.providers.rules import ModelRules, RuleBook

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
        book, day = catalogue(one.host), date.fromisoformat(one.day)
        try:
            model = book.under(book.model(one.model), Assumptions().on(one.host))
        except CannotEvaluate:  # the data no longer has the model
            continue
        rule = book.rules.get(one.rule)
        rows = model.rows.get(one.rule) or (rule.rows if rule else ())
        row = next((row for row in reversed(rows) if row.holds(day)), None)
        if row is not None:
            key = one.host, id(row)
            found[key] = found.get(key, RowSightings()) + RowSightings(one.held, one.failed)
    return found


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model as `cachecost models` shows it, with its rules on the book's day."""

    host: str
    id: str
    aliases: tuple[str, ...]
    generation: str
    released: date
    retired: date | None
    source: str
    source_date: date
    rules: ModelRules


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One dated row as `cachecost rules` shows it. `model` is "*" if it holds for all models.

    `end` is the first day it no longer holds (None: until a later row of the same rule and model). `refuted_by` is the
    source that contradicts a published value; such a row is never used. `as_on` is the host that the row is inherited
    from. `confidence` is documented, measured, assumed or unknown. `way` is the only endpoint where the row holds,
    `reading` the assumption under which it holds.
    """

    host: str
    rule: str
    meaning: str
    unit: str
    model: str
    value: Any
    start: date
    end: date | None
    source: str
    source_date: date
    refuted_by: str | None = None
    as_on: str | None = None
    confidence: str = "documented"
    way: str | None = None
    reading: str | None = None
    seen: RowSightings | None = None
    """In recorded calls; None where no bill tests the row."""


@dataclass(frozen=True, slots=True)
class AssumptionValue:
    """One value of an assumption as the user writes it, its meaning and its source."""

    value: str
    means: str
    source: str
    source_date: date


@dataclass(frozen=True, slots=True)
class HostDefault:
    """The default of an assumption on one host, and its source."""

    host: str
    value: str
    source: str
    source_date: date


@dataclass(frozen=True, slots=True)
class AssumptionRow:
    """An assumption as `cachecost rules --assumptions` shows it. The first value is the default.

    `number` describes the numbers it takes ("a number from 0 to 1"); None: only the listed values. It affects only the
    hosts in `only_on`, or all if that is empty.
    """

    name: str
    about: str
    readings: tuple[AssumptionValue, ...]
    number: str | None = None
    hosts: tuple[HostDefault, ...] = ()
    only_on: tuple[str, ...] = ()

    @property
    def default(self) -> str:
        return self.readings[0].value


def model_rows(book: RuleBook, host: str | None = None) -> Iterator[ModelRow]:
    """The models of `host` (None: of all) released by the book's day, newest first, once for each endpoint."""
    for name in (host,) if host else hosts():
        known = catalogue(name)
        out = (model for model in known.models.values() if model.released <= (book.as_of or known.data_date))
        for model in (each for one in out for each in (one, *known.other_ways(one))):
            yield ModelRow(
                name,
                model.id,
                model.aliases,
                model.generation,
                model.released,
                model.retired,
                model.source.title,
                model.source.date,
                book.rules(name, model.id),
            )


def rule_rows(host: str | None = None) -> Iterator[RuleRow]:
    """Every dated row of `host` (None: of all): those of all models, then model by model, then the refuted."""
    for name in (host,) if host else hosts():
        book = catalogue(name)
        inherited = frozenset(id(rows) for _, _, rows in _histories(catalogue(book.base))) if book.base else frozenset()
        for rule, model, rows in _histories(book):
            as_on = book.base if id(rows) in inherited else None
            yield from (_rule_row(book, rule, model, row, as_on=as_on) for row in rows)
        at_ways = [("*", way, rules) for way, rules in book.ways.items()]
        at_ways += [(model.id, way, rules) for model in book.models.values() for way, rules in model.own_ways.items()]
        for model, way, rules in at_ways:
            for rule, rows in rules.items():
                yield from (_rule_row(book, rule, model, row, way=way) for row in rows)
        for (switch, value), read in book.readings.items():
            for model in read.models:
                for rule, rows in read.rows.items():
                    yield from (_rule_row(book, rule, model, row, reading=f"{switch}={value}") for row in rows)
        for false in book.refuted:
            yield from (
                _rule_row(book, false.rule, model, false.row, refuted_by=false.by.title) for model in false.models
            )


def _histories(book: Catalogue) -> Iterator[tuple[str, str, tuple[DatedRow, ...]]]:
    yield from ((rule.name, "*", rule.rows) for rule in book.rules.values())
    for model in book.models.values():
        yield from ((rule, model.name, rows) for rule, rows in model.rows.items())


def assumption_rows(*hosts: str) -> Iterator[AssumptionRow]:
    """Every assumption that affects one of `hosts` (none: any host), with its values and sources, in the rulebook's
    order."""
    sources = assumption_table()["sources"]
    for entry in assumption_table()["assumption"]:
        only_on = tuple(entry.get("only_on", ()))
        if hosts and only_on and not {*hosts} & {*only_on}:
            continue
        on = []
        for row in entry.get("on", ()):
            source = sources[row["source"]]
            on.append(HostDefault(row["host"], show_assumption(row["value"]), source["title"], source["date"]))
        readings = []
        for row in entry["values"]:
            source, value = sources[row["source"]], show_assumption(row["value"])
            own = [f"; the default on {one.host}: {one.source} ({one.source_date})" for one in on if one.value == value]
            readings.append(AssumptionValue(value, "".join([row["means"], *own]), source["title"], source["date"]))
        number = number_range(entry["number"]) if "number" in entry else None
        yield AssumptionRow(entry["name"], entry["about"], tuple(readings), number, tuple(on), only_on)


def _rule_row(book: Catalogue, rule: str, model: str, row: DatedRow, **more: str | None) -> RuleRow:
    about = book.rules[rule]
    return RuleRow(
        book.host,
        rule,
        about.meaning,
        about.unit,
        model,
        row.value,
        row.start,
        row.end,
        row.source.title,
        row.source.date,
        confidence=row.confidence,
        seen=sightings_of_rows().get((book.host, id(row))),
        **more,
    )
