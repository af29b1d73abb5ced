"""The shipped table is what the installed genai-prices says, and our dollars are its dollars."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices import Usage as TheirUsage
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from cachecost.providers.hosts import catalogue
from cachecost.providers.pricerows import OVERLAY, SHIPPED_TABLE, load_shipped
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage
from price_queries import prices_of
from slow_cases import mostly_slow
from tools.refresh_prices import render, table

HOST = "anthropic"
BOOK = PriceBook.load()
TABLE, OVERLAID = load_shipped()
BOTH_KNOW = sorted(name for host, name in TABLE.rows if host == HOST and name in catalogue(HOST).models)
LACKING = {"claude-mythos-5", "claude-mythos-5-1", "claude-mythos-preview"}


def test_the_shipped_table_is_what_genai_prices_says() -> None:
    """If this fails after a new genai-prices: run `make prices` and read the diff."""
    assert json.loads(SHIPPED_TABLE.read_text(encoding="utf-8")) == table()


def test_the_table_is_written_the_same_each_time() -> None:
    assert SHIPPED_TABLE.read_bytes() == render(table()).encode()


def test_what_genai_prices_lacks() -> None:
    """A model that it grows moves from the overlay to the table."""
    assert set(catalogue(HOST).models) - set(BOTH_KNOW) == LACKING
    assert {model for host, model in OVERLAID.rows if host == HOST} == LACKING | {
        "claude-sonnet-5-5",
        "claude-sonnet-4",
    }


def test_our_ids_are_their_models() -> None:
    (provider,) = (provider for provider in get_snapshot().providers if provider.id == HOST)
    for model in (catalogue(HOST).models[name] for name in BOTH_KNOW):
        theirs = provider.find_model(model.id)
        others = {found.id for alias in model.aliases if (found := provider.find_model(alias))}
        assert theirs is not None
        assert others <= {theirs.id}


def theirs(model: str, usage: Usage, when: datetime, context: dict[str, str]) -> Decimal:
    their_usage = TheirUsage(
        input_tokens=usage.total_input,
        cache_read_tokens=usage.read,
        cache_write_tokens=usage.write,
        cache_write_5m_tokens=usage.write_5m,
        cache_write_1h_tokens=usage.write_1h,
        output_tokens=usage.output_tokens,
    )
    found = genai_prices.calc_price(
        their_usage, model, provider_id=HOST, genai_request_timestamp=when, price_context=context or None
    )
    return found.total_price


def ours(model: str, usage: Usage, day: date, **ways: bool) -> Decimal:
    prices = prices_of(BOOK, HOST, model, day, usage.total_input, **ways)
    return sum(prices.cost(usage).values(), Decimal(0))


def is_overlaid(model: str, day: date) -> bool:
    return any(row.holds(day) for row in OVERLAID.rows.get((HOST, model), ()))


TOKENS = st.integers(0, 300_000) | st.sampled_from([0, 1, 50_000, 99_999, 100_000, 100_001, 200_000, 200_001])
USAGES = st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS)


@given(st.sampled_from(BOTH_KNOW), USAGES, st.integers(0, 300))
def test_our_dollars_are_those_of_genai_prices(model: str, usage: Usage, days: int) -> None:
    day = max(date(2026, 11, 21) - timedelta(days=days), catalogue(HOST).models[model].released)
    if not is_overlaid(model, day):
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        assert ours(model, usage, day) == theirs(model, usage, noon, {})


def variants() -> list[tuple[str, str, str]]:
    (provider,) = (provider for provider in get_snapshot().providers if provider.id == HOST)
    found: list[tuple[str, str, str]] = []
    for name in BOTH_KNOW:
        model = provider.find_model(name)
        for variant in (model.price_variants or ()) if model else ():
            ((key, value),) = variant.when.items()
            found.append((name, key, value))
    return found


WAYS = {("processing", "batch"): "batch", ("speed", "fast"): "fast"}


@pytest.mark.parametrize(("model", "key", "value"), mostly_slow(variants(), 5))
@given(usage=USAGES)
def test_batch_and_fast_are_those_of_genai_prices(model: str, key: str, value: str, usage: Usage) -> None:
    ways: dict[str, Any] = {WAYS[key, value]: True}
    when = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert ours(model, usage, when.date(), **ways) == theirs(model, usage, when, {key: value})


def test_a_row_of_the_overlay_says_something_new() -> None:
    """A row that genai-prices came to say by itself has to go."""
    for (host, model), rows in OVERLAID.rows.items():
        for row in rows:
            day = row.start or date(2026, 11, 21)
            public = [base for base in TABLE.rows.get((host, model), ()) if base.holds(day) and base.above == row.above]
            assert not any(row.prices.items() <= base.prices.items() for base in public)


@pytest.mark.parametrize("provider", ["openai", "google", "mistral", "x-ai", "deepseek", "openrouter"])
def test_the_table_can_be_made_for_other_providers(provider: str) -> None:
    models = table({"elsewhere": provider})["hosts"]["elsewhere"]
    assert models
    assert all(not row["from"] or not row["to"] or row["from"] < row["to"] for rows in models.values() for row in rows)
    text = render({"hosts": {"elsewhere": models}})
    assert json.loads(text)["hosts"]["elsewhere"] == models


def test_every_row_of_the_overlay_is_dated_and_sourced() -> None:
    text = OVERLAY.read_text(encoding="utf-8")
    assert all(row.start and row.source for rows in OVERLAID.rows.values() for row in rows)
    assert all(row.start and row.source for row in OVERLAID.modifiers)
    assert text.count("\nsource = ") == sum(map(len, OVERLAID.rows.values())) + len(OVERLAID.modifiers)
