"""Rule files: every dated row of a host, with its source, and the way from a model to its row of a day."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.faults import CannotEvaluate, nearest
from cachecost.providers.naming import Naming
from cachecost.providers.ruleparse import Parsed, parse
from cachecost.providers.rulerows import Model, Refuted, Row, Rule, Source

__all__ = ["Catalogue", "Model", "Refuted", "Row", "Rule", "Source", "catalogue", "hosts"]

FOLDER = Path(__file__).with_name("rules")
NO_HOST = frozenset({"switches"})


class Catalogue(NamedTuple):
    """One host's rule file. `data_date` is that of the shipped data.

    `base` is the host on which all holds that this one's file does not say; its rows are among these.
    """

    host: str
    data_date: date
    rules: Mapping[str, Rule]
    models: Mapping[str, Model]
    names: Mapping[str, Model]
    """Models by id and by alias."""
    refuted: tuple[Refuted, ...]
    base: str | None = None
    naming: Naming | None = None

    def model(self, name: str) -> Model:
        """The model of an alias, or of an id as this host writes it. Raises CannotEvaluate naming the nearest."""
        found = self.names.get(name) or self._spelt(name)
        if found is None:
            raise CannotEvaluate(f"unknown model '{name}' on host {self.host}{_near(self.host, name)}")
        return found

    def _spelt(self, name: str) -> Model | None:
        """The model of an id that only this host writes so, at the endpoint that the id names."""
        read = self.naming.read(name) if self.naming else None
        known = self.names.get(read[0]) if read else None
        if self.naming is None or read is None or known is None:
            return None
        endpoint = read[1]
        at = self.naming.write(known.name, endpoint)
        return replace(known, id=at, endpoint=endpoint, modifiers=self.naming.modifiers(endpoint))

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
    data = tomllib.loads((FOLDER / f"{host}.toml").read_text(encoding="utf-8"))
    head = data["data"]
    base = catalogue(head["base"]) if "base" in head else None
    rules, models, refuted, naming = parse(data, Parsed(base.rules, base.models) if base else None)
    names = {name: model for model in models.values() for name in (model.id, *model.aliases)}
    return Catalogue(head["host"], head["date"], rules, models, names, refuted, head.get("base"), naming)
