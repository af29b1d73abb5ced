"""Rule files: the dated, sourced rows of a host, and the look-up of a model's row on a day."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate, nearest, nearest_name
from cachecost.base.structs import value
from cachecost.providers.hosts import own_name
from cachecost.providers.naming import Naming
from cachecost.providers.ruleparse import NO_ALIASES, NO_READINGS, NO_ROWS, ParsedRules, Rows, parse
from cachecost.providers.rulerows import AliasRow, AssumptionRows, DatedRow, Model, RefutedRow, Rule, Source

__all__ = ["Catalogue", "DatedRow", "Model", "RefutedRow", "Rule", "Source", "catalogue", "hosts"]

FOLDER = Path(__file__).with_name("rules")
NO_HOST = frozenset({"assumptions"})
ANY = "*"
"""Stands for any text in the id of a model that its user names."""


@value
class Catalogue:
    """One host's rule file. `data_date` is that of the shipped data.

    `base` is the host whose rows are inherited where this file has none. `ways` are the rows of an endpoint, `readings`
    those of an assumption (name, value); both replace the model's own. A host that `is_priced` has public prices in
    dollars.
    """

    host: str
    data_date: date
    rules: Mapping[str, Rule]
    models: Mapping[str, Model]
    names: Mapping[str, Model]
    """Models by id and by alias."""
    refuted: tuple[RefutedRow, ...]
    base: str | None = None
    naming: Naming | None = None
    ways: Mapping[str, Rows] = NO_ROWS
    readings: Mapping[tuple[str, str], AssumptionRows] = NO_READINGS
    is_priced: bool = True
    aliases: Mapping[str, tuple[AliasRow, ...]] = NO_ALIASES
    """Aliases whose meaning changed, in the order of the days."""

    def model(self, name: str, day: date | None = None) -> Model:
        """The model of an alias, or of an id as this host writes it, on `day` (None: that of the shipped data).

        Raises CannotEvaluate naming the nearest.
        """
        found = self._known(name, day) or self._spelt(name, day) or self._named_by_user(name)
        if found is None and (own := own_name(name)) != name:
            found = self._known(own, day) or self._spelt(own, day)
        if found is None:
            raise CannotEvaluate(f"unknown model '{name}' on host {self.host}{near_model(self.host, name)}")
        return found

    def inherits(self, name: str) -> bool:
        """Whether the model is its base's: a host may serve other makers' models beside those."""
        return self.base is not None and name in catalogue(self.base).models

    def _known(self, name: str, day: date | None) -> Model | None:
        """The model of an id or alias. After the last day of an alias its last meaning is kept, as a retired model."""
        when = day or self.data_date
        rows = self.aliases.get(name, ())
        begun = [row for row in rows if row.start <= when]
        if not begun:
            if rows and name not in self.names:
                known = f"known from {rows[0].start}: --as-of {rows[0].start}"
                raise CannotEvaluate(f"what '{name}' meant on host {self.host} on {when} is not known; {known}")
            return self.names.get(name)
        meant = self.names[begun[-1].model]
        ends = [end for end in (meant.retired, begun[-1].end) if end]
        return replace(meant, retired=min(ends, default=None))

    def _spelt(self, name: str, day: date | None) -> Model | None:
        """The model of an id in this host's own spelling, at the endpoint that the id names."""
        read = self.naming.read(name) if self.naming else None
        known = self._known(read[0], day) if read else None
        if self.naming is None or read is None or known is None:
            return None
        endpoint = read[1]
        found = replace(
            known,
            id=self.naming.write(known.name, endpoint),
            endpoint=endpoint,
            modifiers=self.naming.modifiers(endpoint),
        )
        if endpoint not in self.ways:
            return found
        rows = {**known.rows, **self.ways[endpoint], **known.own_ways.get(endpoint, {})}
        return replace(found, rows=rows, is_other_way=True) if endpoint in known.ways else None

    def _named_by_user(self, name: str) -> Model | None:
        """A self-hosted model: the first of the file whose id, with `*` for any text, fits the name."""
        open_ids = (model for key, model in self.models.items() if ANY in key and fnmatchcase(name, key))
        found = next(open_ids, None)
        return replace(found, id=name, name=name) if found else None

    def other_ways(self, model: Model) -> Iterator[Model]:
        """The model under each id that selects another way of caching."""
        if self.naming:
            yield from (self.model(self.naming.write(model.name, way)) for way in model.ways)

    def under(self, model: Model, assumptions: object) -> Model:
        """The model with the rows of the current assumptions."""
        read = [one for (name, value), one in self.readings.items() if getattr(assumptions, name) == value]
        rows = (one.rows.items() for one in read if one.is_of(model.name))
        return replace(model, rows={**model.rows, **{key: row for items in rows for key, row in items}})

    def states(self, model: Model, rule: str) -> bool:
        """Whether the host has the rule, and says it of all models or of this one."""
        return rule in self.rules and bool(model.rows.get(rule) or self.rules[rule].rows)

    def value(self, model: Model, rule: str, day: date) -> Any:
        """The value of `rule` for `model` on `day`. Raises CannotEvaluate if no row matches."""
        rows = model.rows.get(rule) or self.rules[rule].rows
        for row in reversed(rows):
            if row.holds(day):
                return row.value
        known = f"known from {rows[0].start} on: --as-of {rows[0].start}" if rows else "not known"
        raise CannotEvaluate(f"{model.id} on host {self.host} has no rule {rule} for {day}: it is {known}")


@lru_cache(maxsize=1024)
def near_model(host: str, name: str) -> str:
    """ " (did you mean 'x'?)" for the nearest model, with the day it was retired on; "" where none is near.

    Cached, as every call of a log may name the same unknown model.
    """
    book = catalogue(host)
    found = nearest_name(name, book.models) or nearest_name(name, (*book.names, *book.aliases))
    if not found:
        return ""
    retired = book.model(found).retired
    ended = f" It was retired on {retired}." if retired and retired <= book.data_date else ""
    return f" (did you mean '{found}'?{ended})"


@cache
def hosts() -> tuple[str, ...]:
    """Every host that has a rule file, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem not in NO_HOST))


def unknown_host(what: str, host: str) -> CannotEvaluate:
    """That nothing is known of a host: a name that is mistyped, or the machine of a recording."""
    if "." in host:
        return CannotEvaluate(f"no {what} for host '{host}': name the host behind it with --host")
    return CannotEvaluate(f"no {what} for host '{host}'{nearest(host, hosts())}; known: {', '.join(hosts())}")


def catalogue(host: str) -> Catalogue:
    """The rule file of `host`, read once. Raises CannotEvaluate for a host that has none."""
    if host not in hosts():
        raise unknown_host("rules", host)
    return _load(host)


@cache
def _load(host: str) -> Catalogue:
    data = tomllib.loads((FOLDER / f"{host}.toml").read_text(encoding="utf-8"))
    head = data["data"]
    base = catalogue(head["base"]) if "base" in head else None
    read = parse(data, ParsedRules(base.rules, base.models) if base else None)
    return Catalogue(
        head["host"],
        head["date"],
        read.rules,
        read.models,
        {name: model for model in read.models.values() for name in (model.id, *model.aliases)},
        read.refuted,
        head.get("base"),
        read.naming,
        read.ways,
        read.readings,
        head.get("is_priced", True),
        read.aliases,
    )
