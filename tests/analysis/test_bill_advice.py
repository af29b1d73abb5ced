"""Changes of billed calls by hand, and together."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.random_bills import START
from tests.analysis.test_bill_account import prices

from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.analysis.bill.advice import best_advice, saved_together
from cachecost.analysis.bill.savings import CompactionSize, compact_calls
from cachecost.analysis.bill.summary import summarize
from cachecost.conversations.input_files import BilledCall, SessionFile
from slow_cases import examples

MODEL = "claude-opus-4-5"
SIZE = CompactionSize(20_000, 3_000)


def account_of(*calls: BilledCall) -> BillAccount:
    return account_for([SessionFile("a.jsonl", "claude-code", "x", list(calls))], prices())


def call(number: int, read: int, written: int, at: float | None = None, **fields: object) -> BilledCall:
    start = START + (number * 10 if at is None else at)
    known = {"before": number - 1, "session": "s", "id": f"m{number}", "version": "2.1.330", **fields}
    return BilledCall(number, number, MODEL, (0, read, written, 0, 100), start, **known)  # type: ignore[arg-type]


def test_a_compaction_by_hand() -> None:
    """At 0.5, 6.25 and 25: the second call is above 87k, so what the first had shrinks to 20k + 3k before it.

    The summary's call reads 50k and writes 3k tokens of output; the second call then reads 20k and writes 3k + 40k
    instead of reading 50k; the third reads 27k tokens less.
    """
    calls = [call(1, 0, 50_000), call(2, 50_000, 40_000), call(3, 90_000, 5_000)]
    found = compact_calls(account_of(*calls), 87_000, SIZE, lambda _: True)
    assert found.tokens == {
        id(calls[1]): (0, 20_000, 43_000, 0, 100),
        id(calls[2]): (0, 63_000, 5_000, 0, 100),
    }
    summary = 50_000 * Decimal("0.5") + 3_000 * 25
    second = 30_000 * Decimal("0.5") - 3_000 * Decimal("6.25")
    assert found.saved == (second - summary + 27_000 * Decimal("0.5")) / 10**6


@pytest.mark.parametrize("limit", [95_000, 200_000])
def test_a_prompt_that_stays_below_is_not_compacted(limit: int) -> None:
    calls = [call(1, 0, 50_000), call(2, 50_000, 40_000), call(3, 90_000, 5_000)]
    assert compact_calls(account_of(*calls), limit, SIZE, lambda _: True).tokens == {}


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**9))
def test_all_changes_together_save_no_more_than_the_bill(seed: int) -> None:
    """And more than the best alone, as none is shown that saves nothing more."""
    random = Random(seed)
    calls, cached, at = [call(1, 0, 25_000, 0.0)], 25_000, 0.0
    for number in range(2, 60):
        pause = random.choice((20, 20, 20, 900, 4_000))
        at += pause
        lost = pause >= 300 or random.random() < 0.05
        events = ("effort",) if lost and pause < 300 else ("compaction",) if number == 59 else ("human",)
        read = 20_000 if number == 59 else 0 if lost else cached
        new = random.choice((500, 6_000))
        calls.append(call(number, read, (3_000 if number == 59 else cached + new - read), at, events=events))
        cached = calls[-1].cached
    account = account_of(*calls)
    advice = best_advice(account)
    together, cost = saved_together(account, advice), summarize(account).total.cost
    assert together < cost
    assert together > advice[0].saved if len(advice) > 1 else together == sum(one.saved for one in advice)
