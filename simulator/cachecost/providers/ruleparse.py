"""Parses a rule file into rules and models, on their own or over those of its base host.

The ways to write a value, and what a file with a base may contain, are described at the head of
`rules/anthropic.toml` and of `rules/bedrock.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from cachecost.base.structs import value
from cachecost.providers.naming import Naming, naming_of
from cachecost.providers.rulerows import (
    CONFIDENCES,
    AliasRow,
    AssumptionRows,
    DatedRow,
    Model,
    RefutedRow,
    Rule,
    Source,
)
from cachecost.providers.usage import TOKEN_CLASSES

Rows = Mapping[str, tuple[DatedRow, ...]]
FACTS = frozenset(
    {"id", "aliases", "released", "retired", "source", "generation", "family", "ways", "at", "price", "unpriced"}
)
"""Keys of a [[model]] other than rules."""
NO_ROWS: Mapping[Any, Rows] = {}
NO_ALIASES: Mapping[str, tuple[AliasRow, ...]] = {}
NO_READINGS: Mapping[tuple[str, str], AssumptionRows] = {}


@value
class ParsedRules:
    """The parsed content of a rule file."""

    rules: Mapping[str, Rule]
    models: Mapping[str, Model]
    refuted: tuple[RefutedRow, ...] = ()
    naming: Naming | None = None
    ways: Mapping[str, Rows] = NO_ROWS
    readings: Mapping[tuple[str, str], AssumptionRows] = NO_READINGS
    aliases: Mapping[str, tuple[AliasRow, ...]] = NO_ALIASES


def parse(data: Mapping[str, Any], base: ParsedRules | None = None) -> ParsedRules:
    """Parse the tables of a rule file. Raises ValueError or KeyError if it is malformed."""
    return _File(data, base or ParsedRules({}, {})).parsed()


class _File:
    """The tables of a rule file, and the parsed base."""

    def __init__(self, data: Mapping[str, Any], base: ParsedRules) -> None:
        self._data = data
        self._base = base
        self._naming = naming_of(data["naming"]) if "naming" in data else None
        self._sources = {key: _source(key, source) for key, source in data.get("sources", {}).items()}
        self._said: Mapping[str, Any] = data.get("rules", {})
        self._rules = {**base.rules, **{name: self._rule(name, rule) for name, rule in self._said.items()}}

    def parsed(self) -> ParsedRules:
        models = self._models()
        return ParsedRules(
            self._rules,
            models,
            tuple(self._refuted()),
            self._naming,
            self._ways(),
            dict(self._readings()),
            self._aliases(models),
        )

    def _aliases(self, models: Mapping[str, Model]) -> dict[str, tuple[AliasRow, ...]]:
        """By alias, what it means, in the order of the days. Raises ValueError for a model that is not here."""
        found: dict[str, tuple[AliasRow, ...]] = {}
        for entry in sorted(self._data.get("alias", []), key=lambda entry: entry["from"]):
            if entry["model"] not in models:
                raise ValueError(f"alias {entry['name']}: no model is called {entry['model']}")
            row = AliasRow(entry["model"], entry["from"], entry.get("to"), self._sources[entry["source"]])
            found[entry["name"]] = (*found.get(entry["name"], ()), row)
        return found

    def _ways(self) -> dict[str, Rows]:
        """By endpoint, the rows that replace the model's."""
        return {name: self._stated(f"way {name}", said, None) for name, said in self._data.get("ways", {}).items()}

    def _readings(self) -> Iterator[tuple[tuple[str, str], AssumptionRows]]:
        """By assumption (name, value), the rows that hold under it."""
        for entry in self._data.get("assumption", []):
            said = {name: value for name, value in entry.items() if name not in ("name", "value", "models")}
            rows = self._stated(f"assumption {entry['name']}", said, None)
            yield (entry["name"], entry["value"]), AssumptionRows(rows, tuple(entry.get("models", "*")))

    def _rule(self, name: str, said: Mapping[str, Any]) -> Rule:
        """A rule with its rows for all models; its meaning may come from the base."""
        known = self._base.rules.get(name)
        meaning = said["meaning"] if known is None else said.get("meaning", known.meaning)
        unit = said.get("unit", known.unit if known else "")
        rows = self._rows(name, said["default"], None) if "default" in said else (known.rows if known else ())
        return Rule(name, meaning, unit, rows)

    def _models(self) -> dict[str, Model]:
        """The models of this file over those of its base, newest first."""
        said = {entry["id"]: entry for entry in self._data.get("model", [])}
        inherited = {name: model for name, model in self._base.models.items() if name not in self._lacks()}
        models = {name: self._over(model, said.pop(name, {"id": name})) for name, model in inherited.items()}
        models |= {name: self._new(entry) for name, entry in said.items()}
        return dict(sorted(models.items(), key=lambda item: item[1].released, reverse=True))

    def _lacks(self) -> frozenset[str]:
        """Models of the base that this host does not serve."""
        lacks = frozenset(self._data["data"].get("lacks", ()))
        if unknown := lacks - set(self._base.models):
            raise ValueError(f"lacks: its base has no {', '.join(sorted(unknown))}")
        return lacks

    def _new(self, entry: Mapping[str, Any]) -> Model:
        """A model of this file: its own rows win over those of its family, these over its generation's."""
        released = entry["released"]
        group = {**self._data["generations"][entry["generation"]], **self._family(entry)}
        return self._at_default(
            Model(
                entry["id"],
                tuple(entry.get("aliases", ())),
                entry["generation"],
                entry["released"],
                entry.get("retired"),
                self._sources[entry["source"]],
                {**self._stated(f"model {entry['id']}", group, released), **self._own(entry, released)},
                entry["id"],
                ways=tuple(entry.get("ways", self._data.get("ways", {}))),
                own_ways=self._own_ways(entry, released),
                price=_price(entry),
                is_priced=not entry.get("unpriced", False),
            )
        )

    def _family(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._data["families"][entry["family"]] if "family" in entry else {}
        return found

    def _over(self, model: Model, entry: Mapping[str, Any]) -> Model:
        """A model of the base with the changes of this file. Retirements are not inherited."""
        head = self._data["data"]
        released = entry["released"] if "released" in entry else max(model.released, head["since"])
        kept = model.retired if head.get("retires_with_base") else None
        return self._at_default(
            replace(
                model,
                aliases=(*model.aliases, *entry.get("aliases", ())),
                released=released,
                retired=entry.get("retired", kept),
                source=self._sources[entry["source"]] if "source" in entry else model.source,
                ways=tuple(way for way in model.ways if way in self._data.get("ways", {})),
                rows={**self._kept(model.rows), **self._own(entry, released)},
            )
        )

    def _kept(self, rows: Rows) -> Rows:
        """Rows of a base model, without rules that this file states for all models."""
        return {name: row for name, row in rows.items() if not self._said.get(name, {}).get("over_models")}

    def _at_default(self, model: Model) -> Model:
        naming = self._naming
        return replace(model, endpoint=naming.default, modifiers=naming.modifiers(naming.default)) if naming else model

    def _own(self, entry: Mapping[str, Any], released: date) -> Rows:
        said = {name: value for name, value in entry.items() if name not in FACTS}
        return self._stated(f"model {entry['id']}", said, released)

    def _own_ways(self, entry: Mapping[str, Any], released: date) -> Mapping[str, Rows]:
        """The rows of a model under `at`: its own rows at an endpoint."""
        at: Mapping[str, Any] = entry.get("at", {})
        return {way: self._stated(f"model {entry['id']} at {way}", said, released) for way, said in at.items()}

    def _stated(self, what: str, said: Mapping[str, Any], released: date | None) -> Rows:
        if unknown := [name for name in said if name not in self._rules]:
            raise ValueError(f"{what}: no rule is called {', '.join(unknown)}")
        return {name: self._rows(name, value, released) for name, value in said.items()}

    def _rows(self, rule: str, value: Any, released: date | None) -> tuple[DatedRow, ...]:
        """The three ways to write a value, as rows. A list without rows in it is a value."""
        is_history = isinstance(value, list) and value and all(_is_row(item) for item in value)
        return tuple(self._row(rule, _entry(item), released) for item in (value if is_history else [value]))

    def _row(self, rule: str, entry: Mapping[str, Any], released: date | None) -> DatedRow:
        start = entry.get("from", released)
        source = entry.get("source") or self._said.get(rule, {}).get("source")
        if start is None:
            raise ValueError(f"rule {rule}: a row that holds for all models needs a 'from'")
        if source is None:
            raise ValueError(f"rule {rule}: a row of it needs a 'source', as the rule names none here")
        read = self._sources[source]
        sure = _known_confidence(f"rule {rule}", entry.get("confidence", read.confidence))
        return DatedRow(entry["value"], start, entry.get("to"), read, sure)

    def _refuted(self) -> Iterator[RefutedRow]:
        for entry in self._data.get("refuted", []):
            source = self._sources[entry["source"]]
            row = DatedRow(entry["value"], entry["from"], entry["to"], source, source.confidence)
            yield RefutedRow(entry["rule"], tuple(entry["models"]), row, self._sources[entry["by"]])


def _source(key: str, said: Mapping[str, Any]) -> Source:
    """Raises ValueError for a source without a confidence."""
    return Source(said["title"], said["date"], _known_confidence(f"source {key}", said.get("confidence")))


def _known_confidence(what: str, said: str | None) -> str:
    if said not in CONFIDENCES:
        raise ValueError(f"{what}: confidence is one of {', '.join(CONFIDENCES)}; got {said!r}")
    return said


def _price(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The price of a model by class. Raises ValueError for a class that is unknown."""
    price: Mapping[str, Any] = entry.get("price", {})
    if unknown := set(price) - set(TOKEN_CLASSES):
        raise ValueError(f"model {entry['id']}: price: no token class is called {', '.join(sorted(unknown))}")
    return price


def _is_row(item: Any) -> bool:
    return isinstance(item, dict) and "value" in item


def _entry(item: Any) -> Mapping[str, Any]:
    return item if _is_row(item) else {"value": item}
