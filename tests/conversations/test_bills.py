"""What recorded calls cost by the usage that came back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cachecost.base.times import day_of, seconds
from cachecost.conversations.calls import BillTotal, Call, Iteration
from cachecost.prompts.intake import Intake
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage

DAY = "2026-03-07T10:00:00Z"
MILLION = Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000)
PRICES = PriceBook.load()
SIMPLE = {"opus": "claude-opus-4-6", "sonnet": "claude-sonnet-4-6"}


def call(billed: Usage | None, model: str = SIMPLE["opus"], params: Any = None, **fields: Any) -> Call:
    request = Intake().body({"model": model, "messages": [], **(params or {})})
    return Call(request, seconds(DAY), timestamp=DAY, billed=billed, line=1, **fields)


def bill(*calls: Call, **fields: Any) -> BillTotal:
    made = BillTotal(PRICES, **fields)
    for one in calls:
        made.add(one)
    return made


# Opus 4.6 per 10**6 tokens: input 5, read 0.5, write 6.25 and 10, output 25
@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(input_tokens=1_000), "0.005"),
        (Usage(read=1_000), "0.0005"),
        (Usage(write_5m=1_000), "0.00625"),
        (Usage(write_1h=1_000), "0.01"),
        (Usage(input_tokens=1_000, output_tokens=1_000), "0.03"),
        (Usage(1_000, 1_000, 1_000, 1_000, 1_000), "0.04675"),
    ],
)
def test_each_class_has_its_price(usage: Usage, dollars: str) -> None:
    made = bill(call(usage), call(usage))
    assert (made.calls, made.usage, made.dollars) == (2, usage + usage, 2 * Decimal(dollars))


SENT = Usage(input_tokens=5_000)


@pytest.mark.parametrize(
    ("fields", "dollars"),
    [
        ({"is_batch": True}, "0.0125"),
        ({"params": {"inference_geo": "us"}}, "0.0275"),
        ({"params": {"inference_geo": "global"}}, "0.025"),
        ({"model": "claude-sonnet-4-6"}, "0.015"),
        ({"status": 200}, "0.025"),
        ({"status": 529}, "0"),
        ({"iterations": (Iteration("message", SENT),)}, "0.025"),
        ({"iterations": (Iteration("compaction", SENT), Iteration("message", SENT))}, "0.05"),
        ({"iterations": (Iteration("advisor_message", SENT, SIMPLE["sonnet"]),)}, "0.04"),
    ],
)
def test_how_it_was_called_counts(fields: dict[str, Any], dollars: str) -> None:
    assert bill(call(SENT, **fields)).dollars == Decimal(dollars)


def test_the_usage_is_what_the_calls_say_it_is_and_the_passes_that_it_leaves_out() -> None:
    passes = (Iteration("compaction", MILLION), Iteration("message", SENT))
    made = bill(call(SENT, iterations=passes), call(None), call(SENT, status=500))
    assert (made.calls, made.usage) == (3, SENT + MILLION)


def test_what_has_no_price_is_told_and_the_rest_is_added_up() -> None:
    made = bill(call(SENT), call(SENT, "claude-opus-46"), call(SENT, "claude-opus-46"), call(SENT, host="moon"))
    assert (made.dollars, made.usage.input_tokens) == (Decimal("0.025"), 20_000)
    (model, two), (host, one) = made.unpriced.items()
    assert (two, one) == (2, 1)
    assert "claude-opus-46" in model and "did you mean 'claude-opus-4-6'?" in model and "'moon'" in host


def test_without_prices_there_are_no_dollars() -> None:
    made = BillTotal()
    made.add(call(SENT, "claude-opus-46"))
    assert (made.usage, made.dollars, dict(made.unpriced)) == (SENT, 0, {})


def test_the_host_of_calls_that_name_none_can_be_told() -> None:
    assert bill(call(SENT), host="moon").unpriced
    assert not bill(call(SENT, host="anthropic"), host="moon").unpriced


def test_a_days_end_is_midnight_utc() -> None:
    ends = [day_of(seconds(f"2026-03-07T{time}")).day for time in ("23:59:59Z", "23:59:59-01:00")]
    assert ends == [7, 8]
