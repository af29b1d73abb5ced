"""What is cached after a call, by its bill, and what caching saved."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.analysis.test_bill_account import prices

from cachecost.analysis.bill.call_prices import CachedPrefix, state_after
from cachecost.analysis.bill.summary import BillRow
from cachecost.conversations.input_files import BilledCall

MODEL = "claude-opus-4-5"
TTLS = {"5m": 300.0, "1h": 3600.0}


def call(uncached: int = 0, read: int = 0, five: int = 0, hour: int = 0, output: int = 0) -> BilledCall:
    return BilledCall(1, 1, MODEL, (uncached, read, five, hour, output), 1_790_000_000.0)


def before(tokens: int, hour: int) -> CachedPrefix:
    return CachedPrefix(tokens, "5m", hour, 0.0, TTLS)


@pytest.mark.parametrize(
    ("billed", "earlier", "tokens", "hour"),
    [
        (call(read=1_000, five=200), before(1_000, 400), 1_200, 400),  # the part with 1h is read whole
        (call(read=300, five=900), before(1_000, 400), 1_200, 300),  # only what was read of it is still that part
        (call(read=0, five=1_200), before(1_000, 400), 1_200, 0),
        (call(read=300, hour=900), before(1_000, 400), 1_200, 1_200),
        (call(read=300, five=100), None, 400, 0),
    ],
)
def test_the_part_with_one_hour(billed: BilledCall, earlier: CachedPrefix | None, tokens: int, hour: int) -> None:
    found = state_after(billed, earlier, prices().rules_of(billed))
    assert (found.tokens, found.hour_tokens) == (tokens, hour)


@pytest.mark.parametrize(
    ("billed", "saved"),
    [
        # USD per million tokens: input 5, read 0.5, write 6.25 for 5m and 10 for 1h
        (call(read=1_000_000), "4.5"),
        (call(five=1_000_000), "-1.25"),
        (call(hour=1_000_000), "-5"),
        (call(uncached=1_000_000, output=1_000), "0"),
        (call(100, 2_000_000, 1_000_000, 0, 500), "7.75"),
    ],
)
def test_saved_is_the_cost_without_caching_less_the_cost(billed: BilledCall, saved: str) -> None:
    row = BillRow("all")
    row.add(billed, prices().prices(billed), prices())
    assert row.saved_by_caching == Decimal(saved)
