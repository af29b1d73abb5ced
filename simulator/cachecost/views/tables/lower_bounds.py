"""The lower bounds of strategies in words: one for all that send the same requests, so it is stated once."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.base.formatting import all_of, change, dollar_places, dollars, percent
from cachecost.ledger.results import Ledger


def lower_bounds(ledgers: Sequence[Ledger]) -> dict[Decimal, list[Ledger]]:
    """The strategies by their lower bound, in their order, without those that have none."""
    found: dict[Decimal, list[Ledger]] = {}
    for ledger in ledgers:
        if ledger.lower_bound is not None:
            found.setdefault(ledger.lower_bound, []).append(ledger)
    return found


def have_own_bounds(ledgers: Sequence[Ledger]) -> bool:
    """Whether strategies send different requests, so that each has to be compared with its own lower bound."""
    return len(lower_bounds(ledgers)) > 1


def lower_bound_sentence(ledgers: Sequence[Ledger]) -> str:
    """What no breakpoints and TTLs can go below, for a line under the table; "" where unknown, or a column."""
    bounds = lower_bounds(ledgers)
    if len(bounds) != 1:
        return ""
    [(usd, of)] = bounds.items()
    places = dollar_places([usd, *(ledger.cost.total for ledger in ledgers)])
    whose = "" if len(of) == len(ledgers) else f" for {_whose(of, ledgers)}"
    words = "no choice of breakpoints and TTLs makes these requests cheaper"
    above = change(min(ledger.cost.total for ledger in of), usd)
    return f"Lower bound{whose}: {dollars(usd, places)}; {words}{_distance(above)}."


def _distance(above: Decimal | None) -> str:
    if above is None:
        return ""
    return (
        f", and the cheapest strategy is {percent(above)} above it" if above else ", and the cheapest strategy is at it"
    )


def _whose(of: Sequence[Ledger], ledgers: Sequence[Ledger]) -> str:
    """Names, or where they are most, those of the others."""
    others = [ledger for ledger in ledgers if ledger not in of]
    return _names(of) if len(of) <= len(others) + 1 else f"all but {_names(others)}"


def _names(ledgers: Sequence[Ledger]) -> str:
    return all_of([ledger.strategy for ledger in ledgers])
