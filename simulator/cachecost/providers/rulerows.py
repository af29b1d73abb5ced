"""What a rule file is made of: sources, dated rows, rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from cachecost.base.structs import value

CONFIDENCES = ("documented", "measured", "assumed", "unknown")
"""How sure a row is: the maker says so; somebody measured it; it is taken over from something near; a bare guess."""


@value
class Source:
    """Where a row comes from: a title, the day it was read, and how sure what it says is (one of CONFIDENCES)."""

    title: str
    date: date
    confidence: str


@value
class Row:
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
    """What a rule of the file means, its unit ("" for none), and the rows that hold for all models."""

    name: str
    meaning: str
    unit: str
    rows: tuple[Row, ...]


@value
class Model:
    """A model of a host: its ids, its days, and the rows that are its own or its generation's.

    `name` is what its host calls it in the rule file; `id` tells the endpoint too, where it is not the
    host's default. `modifiers` are the price modifiers that the endpoint brings. `ways` are the endpoints with
    rules of their own that serve it, `own_ways` rows that it has at one of them; where `id` names one of these,
    `is_other_way` and prices may be its own too.
    """

    id: str
    aliases: tuple[str, ...]
    generation: str
    released: date
    retired: date | None
    source: Source
    rows: Mapping[str, tuple[Row, ...]]
    name: str
    endpoint: str = ""
    modifiers: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    is_other_way: bool = False
    own_ways: Mapping[str, Mapping[str, tuple[Row, ...]]] = field(default_factory=dict)

    @property
    def price_names(self) -> tuple[str, ...]:
        """The names under which its prices stand, the last that has one decides."""
        return (self.name, self.id) if self.is_other_way else (self.name,)


@value
class Read:
    """Rows that hold under a reading of a switch, for the models whose id fits one of `models` (`*` for any text)."""

    rows: Mapping[str, tuple[Row, ...]]
    models: tuple[str, ...] = ("*",)

    def is_of(self, model: str) -> bool:
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@value
class Refuted:
    """A published value that recordings of the same days contradict. Shown, never used."""

    rule: str
    models: tuple[str, ...]
    row: Row
    by: Source
