"""Columns of calls: one array each, names as indices into lists that stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from cachecost.base.formatting import exact
from cachecost.caches.causes import Cause
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import SimulatedCall
from cachecost.views.bill.words import cause_name

UNKNOWN: Cause = "unknown"


class NameList:
    """Names in the order in which they first occur, each once."""

    def __init__(self, first: Sequence[str] = ()) -> None:
        self._places: dict[str, int] = {name: place for place, name in enumerate(first)}

    def place(self, name: str) -> int:
        """The index of a name; a new one is added."""
        return self._places.setdefault(name, len(self._places))

    @property
    def names(self) -> list[str]:
        return list(self._places)


def cause_objects(causes: NameList) -> list[dict[str, str]]:
    """The causes with their names for people."""
    return [{"cause": cause, "name": name_of_cause(cause)} for cause in causes.names]


def name_of_cause(cause: str) -> str:
    """The name of a cause for people."""
    known: Any = cause
    return cause_name(known)


def usd(amount: Decimal | None) -> str | None:
    """A decimal string of all digits; None where the amount is unknown."""
    return None if amount is None else exact(amount)


def usage_columns(usages: Iterable[Usage]) -> dict[str, list[int]]:
    """The tokens of prompts by class."""
    listed = list(usages)
    return {
        "read": [usage.read for usage in listed],
        "write_5m": [usage.write_5m for usage in listed],
        "write_1h": [usage.write_1h for usage in listed],
        "input": [usage.input_tokens for usage in listed],
    }


def simulated_columns(made: Sequence[SimulatedCall | None], causes: NameList) -> dict[str, list[Any]]:
    """What a replay says of calls; None is a call that it cannot make."""
    rows = [one.row if one else None for one in made]
    known = [row if row is not None and row.error is None else None for row in rows]
    return {
        **usage_columns(row.usage if row else Usage() for row in known),
        "cost_usd": [exact(row.cost.total) if row and row.is_priced else None for row in known],
        "cause": [causes.place((row.cause if row else None) or UNKNOWN) for row in known],
        "breakpoints": [_breakpoints(one) for one in made],
    }


def _breakpoints(one: SimulatedCall | None) -> list[tuple[int, str]]:
    """Tokens and TTL of each breakpoint of the first pass. A whole timeline would read the prompt of every call."""
    first = one.passes[0] if one and one.passes else None
    return [(first.sizes.of(at.prefix), at.ttl) for at in first.outcome.breakpoints] if first else []
