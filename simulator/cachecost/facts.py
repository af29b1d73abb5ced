"""`@fact`: a frozen dataclass with slots, for values that are made by the ten thousand.

mypy holds it to be frozen; while it runs nothing checks, because a check at every field of every new object is what a
replay of a long log would spend most of its time on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True)
def fact(kind: type[Kind]) -> type[Kind]:
    """A value: equal to another with equal fields."""
    return dataclass(slots=True, unsafe_hash=True)(kind)


@dataclass_transform(frozen_default=True, eq_default=False)
def thing(kind: type[Kind]) -> type[Kind]:
    """One of its own: equal to itself alone."""
    return dataclass(slots=True, eq=False)(kind)
