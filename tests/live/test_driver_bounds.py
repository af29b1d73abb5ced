"""What a call can cost at most, when it is sent again, and what nobody can bound."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from cachecost.live.driver.budget import CallPricing, from_bytes, from_count, unbounded_reason
from cachecost.live.driver.sending import AttemptFailed, RetryPolicy, asked_for
from cachecost.providers.prices import PriceBook

PRICING = CallPricing(PriceBook.load())
DAY = date(2026, 11, 20)
BREAKPOINTS: dict[str, Any] = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}


def body(ttl: str | None = None, model: str = "claude-sonnet-4-5", **more: Any) -> dict[str, Any]:
    breakpoint = {"cache_control": BREAKPOINTS[ttl]} if ttl else {}
    content = [{"type": "text", "text": "hello", **breakpoint}]
    return {"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": content}], **more}


@pytest.mark.parametrize(("ttl", "price"), [(None, "3"), ("5m", "3.75"), ("1h", "6")])
def test_the_worst_case_is_the_dearest_class_that_can_be_charged(ttl: str | None, price: str) -> None:
    worst = PRICING.worst(body(ttl), 1_000, DAY)
    assert worst == (1_000 * Decimal(price) + 10 * 15) / 10**6


def test_an_automatic_breakpoint_is_a_breakpoint() -> None:
    assert PRICING.worst(body(cache_control=BREAKPOINTS["1h"]), 1_000, DAY) == PRICING.worst(body("1h"), 1_000, DAY)


def test_a_breakpoint_inside_a_result_is_one() -> None:
    inner = [{"type": "tool_result", "tool_use_id": "a", "content": body("5m")["messages"][0]["content"]}]
    nested = {**body(), "messages": [{"role": "user", "content": inner}]}
    assert PRICING.worst(nested, 1_000, DAY) == PRICING.worst(body("5m"), 1_000, DAY)


def test_prices_are_those_of_the_length() -> None:
    """Haiku 5.5 costs five times as much above 100,000 tokens."""
    below, above = (PRICING.worst(body(model="claude-haiku-5-5"), tokens, DAY) for tokens in (100_000, 100_001))
    assert above > 4 * below


def test_the_margin_over_a_count() -> None:
    assert from_count(0) == 200 and from_count(10_000) == 10_700


def test_bytes_bound_texts_and_not_images() -> None:
    assert from_bytes(body()) is not None
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert from_bytes({**body(), "messages": [{"role": "user", "content": [image]}]}) is None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            "the tool 'web_search' (web_search_20250305) runs in",
        ),
        ({"mcp_servers": [{"name": "a"}]}, "the API calls MCP servers"),
        (
            {"context_management": {"edits": [{"type": "compact_20260112"}]}},
            "compaction by the API is billed separately",
        ),
    ],
)
def test_what_has_no_bound_is_not_sent(more: dict[str, Any], why: str) -> None:
    assert (unbounded_reason(body(**more)) or "").startswith(why)


def test_tools_of_the_client_have_a_bound() -> None:
    tools = [{"name": "a", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    assert unbounded_reason(body(tools=tools, context_management=edits)) is None


def fault(status: int | None = None, **headers: str) -> AttemptFailed:
    return AttemptFailed("x", status, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("status", "again"),
    [
        (400, False),
        (401, False),
        (404, False),
        (408, True),
        (409, True),
        (429, True),
        (499, False),
        (500, True),
        (529, True),
        (None, True),
    ],
)
def test_which_answers_are_worth_a_retry(status: int | None, again: bool) -> None:
    assert (RetryPolicy(4).wait(fault(status), 1, "a", 0.0) is not None) == again


def test_the_server_may_say_whether_to_try_again() -> None:
    assert RetryPolicy(4).wait(fault(400, x_should_retry="true"), 1, "a", 0.0) is not None
    assert RetryPolicy(4).wait(fault(529, x_should_retry="false"), 1, "a", 0.0) is None


def test_waits_double_and_are_drawn_from_the_run() -> None:
    retries = RetryPolicy(20, "cafe")
    waits = [retries.wait(fault(529), number, "a", 0.0) or 0 for number in range(1, 10)]
    for number, wait in enumerate(waits):
        whole = min(0.5 * 2**number, 60)
        assert 0.75 * whole < wait <= whole
    assert waits[0] == retries.wait(fault(529), 1, "a", 0.0) != RetryPolicy(20, "beef").wait(fault(529), 1, "a", 0.0)


def test_the_last_retry_is_the_last() -> None:
    assert RetryPolicy(2).wait(fault(529), 2, "a", 0.0) is not None
    assert RetryPolicy(2).wait(fault(529), 3, "a", 0.0) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "Sun, 22 Nov 2026 06:00:10 GMT"}, 10.0),
        ({"retry-after": "Sun, 22 Nov 2026 05:59:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_what_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_for(headers, 1_795_327_200.0) == seconds


def test_a_quarter_of_an_hour_is_waited_for_and_no_more() -> None:
    assert RetryPolicy(4).wait(fault(429, retry_after="900"), 1, "a", 0.0) == 900
    assert RetryPolicy(4).wait(fault(429, retry_after="901"), 1, "a", 0.0) is None
