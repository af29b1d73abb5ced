"""The parts of a rule file: sources, dated rows, rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from cachecost.base.structs import value

CONFIDENCES = ("documented", "measured", "assumed", "unknown")
"""Confidence of a row: documented by the provider, measured, assumed by analogy, or a guess."""


@value
class Source:
    """The source of a row: title, the day it was read, and its confidence (one of CONFIDENCES)."""

    title: str
    date: date
    confidence: str


@value
class DatedRow:
    """One value of a rule: holds from `start` until the day before `end` (None: until a later row)."""

    value: Any
    start: date
    end: date | None
    source: Source
    confidence: str

    def holds(self, day: date) -> bool:
        return self.start <= day and (self.end is None or day < self.end)


@value
class Rule:
    """A rule's meaning, its unit ("" for none), and the rows that hold for all models."""

    name: str
    meaning: str
    unit: str
    rows: tuple[DatedRow, ...]


@value
class Model:
    """A model of a host: its ids, dates, and the rows of its own or its generation.

    `name` is its name in the rule file; `id` includes the endpoint where that is not the host's default.
    `modifiers` are the price modifiers of the endpoint. `ways` are the endpoints with their own rules that serve it,
    `own_ways` its rows at one of them; where `id` names one of these, `is_other_way` is set and it may have its own
    prices.
    """

    id: str
    aliases: tuple[str, ...]
    generation: str
    released: date
    retired: date | None
    source: Source
    rows: Mapping[str, tuple[DatedRow, ...]]
    name: str
    endpoint: str = ""
    modifiers: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    is_other_way: bool = False
    own_ways: Mapping[str, Mapping[str, tuple[DatedRow, ...]]] = field(default_factory=dict)
    price: Mapping[str, Any] = field(default_factory=dict)
    """USD per 10**6 tokens by class, of `source`, from `released` on, until a price file says otherwise."""
    is_priced: bool = True
    """False: no price of it was found (`unpriced = true`); its calls need one with --prices."""

    @property
    def price_names(self) -> tuple[str, ...]:
        """The names under which prices may be listed; the last that has one wins."""
        return (self.name, self.id) if self.is_other_way else (self.name,)


@value
class AliasRow:
    """What an alias means from `start` on, until the day before `end` (None: until a later row of it)."""

    model: str
    start: date
    end: date | None
    source: Source


@value
class AssumptionRows:
    """Rows that hold under an assumption, for models whose id matches one of `models` (`*` matches any text)."""

    rows: Mapping[str, tuple[DatedRow, ...]]
    models: tuple[str, ...] = ("*",)

    def is_of(self, model: str) -> bool:
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@value
class RefutedRow:
    """A published value that recordings of the same days contradict: shown, never used."""

    rule: str
    models: tuple[str, ...]
    row: DatedRow
    by: Source
