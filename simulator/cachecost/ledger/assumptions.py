"""What an answer takes for granted, and what becomes of it at other values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class TriedValue:
    """The answer at another value: the cheapest strategy, and what the strategies cost that the assumption is about.

    Costs are what strategies are ranked by (USD; without prices, tokens to compute) by name, `questions` USD of one
    side question.
    """

    value: Any
    best: str
    costs: dict[str, Decimal]
    questions: dict[str, Decimal]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where an answer changes: it holds as far as `holds_to`, and is another one from `changes_at` on.

    `claim` is what holds, `instead` what comes in its place.
    """

    claim: str
    instead: str
    holds_to: Any
    changes_at: Any


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that an answer takes for granted.

    `changes` says whether it would change the answer within the values tried; None: it was not tried. `effect` is what
    was found, in a sentence.
    """

    name: str
    why: str = ""
    source: str = ""
    value: Any = None
    changes: bool | None = None
    effect: str = ""
    tried: tuple[TriedValue, ...] = ()
    impact: Decimal = Decimal(0)
    """How much the cost of the cheapest strategy changes at the values tried, at most, as a ratio."""
    break_evens: tuple[BreakEven, ...] = ()
