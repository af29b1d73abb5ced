"""Rule files: every dated row of a host, with its source, and the way from a model to its row of a day.

Records are named tuples, not dataclasses: each of those costs a millisecond of every start.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.faults import CannotEvaluate, nearest

FOLDER = Path(__file__).with_name("rules")
NO_HOST = frozenset({"switches"})


class Source(NamedTuple):
    """Where a row comes from: a title and the day it was read."""

    title: str
    date: date


class Row(NamedTuple):
    """One value of a rule: holds from `start` until the day before `end` (None: until a later row)."""

    value: Any
    start: date
    end: date | None
    source: Source

    def holds(self, day: date) -> bool:
        return self.start <= day and (self.end is None or day < self.end)


class Rule(NamedTuple):
    """What a rule of the file means, its unit ("" for none), and the rows that hold for all models."""

    name: str
    meaning: str
    unit: str
    rows: tuple[Row, ...]


class Model(NamedTuple):
    """A model of a host: its ids, its days, and the rows that are its own or its generation's."""

    id: str
    aliases: tuple[str, ...]
    generation: str
    released: date
    retired: date | None
    source: Source
    rows: Mapping[str, tuple[Row, ...]]


class Refuted(NamedTuple):
    """A published value that recordings of the same days contradict. Shown, never used."""

    rule: str
    models: tuple[str, ...]
    row: Row
    by: Source


class Catalogue(NamedTuple):
    """One host's rule file. `data_date` is that of the shipped data."""

    host: str
    data_date: date
    rules: Mapping[str, Rule]
    models: Mapping[str, Model]
    names: Mapping[str, Model]
    """Models by id and by alias."""
    refuted: tuple[Refuted, ...]

    def model(self, name: str) -> Model:
        """The model of an id or alias. Raises CannotEvaluate naming the nearest."""
        found = self.names.get(name)
        if found is None:
            raise CannotEvaluate(f"unknown model '{name}' on host {self.host}{_near(self.host, name)}")
        return found

    def value(self, model: Model, rule: str, day: date) -> Any:
        """The value of `rule` for `model` on `day`. Raises CannotEvaluate if no row says."""
        rows = model.rows.get(rule) or self.rules[rule].rows
        for row in reversed(rows):
            if row.holds(day):
                return row.value
        known = f"known from {rows[0].start} on" if rows else "not known"
        raise CannotEvaluate(f"{model.id} on host {self.host} has no rule {rule} for {day}: it is {known}")


@lru_cache(maxsize=1024)
def _near(host: str, name: str) -> str:
    """Kept, as a whole log may be of one unknown model."""
    book = catalogue(host)
    return nearest(name, book.models) or nearest(name, book.names)


@cache
def hosts() -> tuple[str, ...]:
    """Every host that has a rule file, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem not in NO_HOST))


def catalogue(host: str) -> Catalogue:
    """The rule file of `host`, read once. Raises CannotEvaluate for a host that has none."""
    if host not in hosts():
        raise CannotEvaluate(f"no rules for host '{host}'{nearest(host, hosts())}; known: {', '.join(hosts())}")
    return _load(host)


@cache
def _load(host: str) -> Catalogue:
    text = (FOLDER / f"{host}.toml").read_text(encoding="utf-8")
    return _File(tomllib.loads(text)).catalogue()


class _File:
    """A parsed rule file on its way to a Catalogue."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        self._sources = {key: Source(**source) for key, source in data["sources"].items()}
        self._defaults = {name: rule["source"] for name, rule in data["rules"].items()}

    def catalogue(self) -> Catalogue:
        head = self._data["data"]
        models = {entry["id"]: self._model(entry) for entry in self._data["model"]}
        names = {name: model for model in models.values() for name in (model.id, *model.aliases)}
        refuted = tuple(self._refuted(self._data.get("refuted", [])))
        return Catalogue(head["host"], head["date"], self._rules(), models, names, refuted)

    def _rules(self) -> dict[str, Rule]:
        return {
            name: Rule(name, rule["meaning"], rule.get("unit", ""), self._rows(name, rule.get("default", ()), None))
            for name, rule in self._data["rules"].items()
        }

    def _model(self, entry: dict[str, Any]) -> Model:
        generation = self._data["generations"][entry["generation"]]
        own = {name: entry[name] for name in self._data["rules"] if name in entry}
        rows = {name: self._rows(name, value, entry["released"]) for name, value in {**generation, **own}.items()}
        return Model(
            entry["id"],
            tuple(entry.get("aliases", ())),
            entry["generation"],
            entry["released"],
            entry.get("retired"),
            self._sources[entry["source"]],
            rows,
        )

    def _rows(self, rule: str, value: Any, released: date | None) -> tuple[Row, ...]:
        """The three ways to write a value, as rows."""
        if not isinstance(value, list | tuple):
            value = [value]
        entries = [item if isinstance(item, dict) and "value" in item else {"value": item} for item in value]
        return tuple(self._row(rule, entry, released) for entry in entries)

    def _row(self, rule: str, entry: dict[str, Any], released: date | None) -> Row:
        start = entry.get("from", released)
        if start is None:
            raise ValueError(f"rule {rule}: a row that holds for all models needs a 'from'")
        source = self._sources[entry.get("source", self._defaults[rule])]
        return Row(entry["value"], start, entry.get("to"), source)

    def _refuted(self, entries: Iterable[dict[str, Any]]) -> Iterator[Refuted]:
        for entry in entries:
            row = Row(entry["value"], entry["from"], entry["to"], self._sources[entry["source"]])
            yield Refuted(entry["rule"], tuple(entry["models"]), row, self._sources[entry["by"]])
