"""What a rule file is made of: sources, dated rows, rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from cachecost.facts import fact


@fact
class Source:
    """Where a row comes from: a title and the day it was read."""

    title: str
    date: date


@fact
class Row:
    """One value of a rule: holds from `start` until the day before `end` (None: until a later row)."""

    value: Any
    start: date
    end: date | None
    source: Source

    def holds(self, day: date) -> bool:
        return self.start <= day and (self.end is None or day < self.end)


@fact
class Rule:
    """What a rule of the file means, its unit ("" for none), and the rows that hold for all models."""

    name: str
    meaning: str
    unit: str
    rows: tuple[Row, ...]


@fact
class Model:
    """A model of a host: its ids, its days, and the rows that are its own or its generation's.

    `name` is what its host calls it in the rule file; `id` tells the endpoint too, where it is not the
    host's default. `modifiers` are the price modifiers that the endpoint brings.
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


@fact
class Refuted:
    """A published value that recordings of the same days contradict. Shown, never used."""

    rule: str
    models: tuple[str, ...]
    row: Row
    by: Source
