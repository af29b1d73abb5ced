"""The lower bound is stated once for strategies that send the same requests; others are compared with their own."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import CallRow, Cost
from cachecost.providers.usage import Usage
from cachecost.views.tables.output import have_own_bounds, lower_bound_sentence

WORDS = "no choice of breakpoints and TTLs makes these requests cheaper"

FIFTY, AT_IT = ", and the cheapest strategy is 50% above it.", ", and the cheapest strategy is at it."


def ledger(name: str, cost: str, bound: str | None) -> Ledger:
    row = CallRow(1, 0.0, None, name, "m", Usage(), Cost(input=Decimal(cost)), None, {}, {})
    return Ledger(name, [row], lower_bound=None if bound is None else Decimal(bound))


@pytest.mark.parametrize(
    ("strategies", "own", "sentence"),
    [
        ([], False, ""),
        ([("a", "2", None)], False, ""),
        ([("a", "3", "2"), ("b", "4", "2")], False, f"Lower bound: $2.00; {WORDS}{FIFTY}"),
        ([("a", "2", "2"), ("b", "4", "2")], False, f"Lower bound: $2.00; {WORDS}{AT_IT}"),
        ([("a", "3", "2"), ("b", "1", None)], False, f"Lower bound for a: $2.00; {WORDS}{FIFTY}"),
        ([("a", "0", "0")], False, f"Lower bound: $0.00; {WORDS}."),
        (
            [("a", "3", "2"), ("b", "3", "1"), ("c", "3", "2")],
            True,
            "",
        ),
    ],
)
def test_it_is_stated_once_for_the_same_requests(
    strategies: list[tuple[str, str, str | None]], own: bool, sentence: str
) -> None:
    ledgers = [ledger(*one) for one in strategies]
    assert (have_own_bounds(ledgers), lower_bound_sentence(ledgers)) == (own, sentence)
