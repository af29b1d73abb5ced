"""Dollars: the published table, its dates, tiers and modifiers, and vectors that others published."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.usage import Usage
from price_queries import prices_of

HOST = "anthropic"
BOOK = PriceBook.load()
CLASSES = ("input", "write_5m", "write_1h", "read", "output")


def priced(model: str, day: str | None = None, tokens: int = 1000, **ways: bool) -> Prices:
    return prices_of(BOOK, HOST, model, date.fromisoformat(day) if day else None, tokens, **ways)


def figures(prices: Prices) -> tuple[Decimal, ...]:
    return tuple(getattr(prices, name) for name in CLASSES)


def dollars(prices: Prices, usage: Usage) -> Decimal:
    return sum(prices.cost(usage).values(), Decimal(0))


# model, day, then USD per 10**6 tokens: input, 5m write, 1h write, read, output
TABLE = """
claude-fable-5-2       2026-11-21  8     10     16    0.20  40
claude-mythos-5-2      2026-11-21  8     10     16    0.20  40
claude-fable-5-1       2026-11-21  10    12.50  20    0.25  50
claude-mythos-5-1      2026-11-21  10    12.50  20    0.25  50
claude-fable-5         2026-11-21  10    12.50  20    1.00  50
claude-mythos-5        2026-11-21  10    12.50  20    1.00  50
claude-mythos-preview  2026-11-21  25    31.25  50    2.50  125
claude-opus-5-5        2026-11-21  4     5      8     0.20  20
claude-opus-5          2026-11-21  5     6.25   10    0.50  25
claude-opus-4-8        2026-11-21  5     6.25   10    0.50  25
claude-opus-4-7        2026-11-21  5     6.25   10    0.50  25
claude-opus-4-6        2026-11-21  5     6.25   10    0.50  25
claude-opus-4-6        2026-03-07  5     6.25   10    0.50  25
claude-opus-4-5        2026-11-21  5     6.25   10    0.50  25
claude-opus-4-1        2026-08-04  15    18.75  30    1.50  75
claude-opus-4          2026-06-14  15    18.75  30    1.50  75
claude-3-opus          2026-01-04  15    18.75  30    1.50  75
claude-sonnet-5-5      2026-11-21  2     2.50   4     0.10  10
claude-sonnet-5-5      2026-10-07  2     2.50   4     0.10  10
claude-sonnet-5-5      2026-10-06  2     2.50   4     0.20  10
claude-sonnet-5-5      2026-09-28  2     2.50   4     0.20  10
claude-sonnet-5        2026-11-21  2     2.50   4     0.20  10
claude-sonnet-4-6      2026-11-21  3     3.75   6     0.30  15
claude-sonnet-4-5      2026-11-21  3     3.75   6     0.30  15
claude-sonnet-4        2026-06-14  3     3.75   6     0.30  15
claude-3-7-sonnet      2026-02-18  3     3.75   6     0.30  15
claude-haiku-5-5       2026-11-21  0.10  0.125  0.20  0.01  0.50
claude-haiku-4-5       2026-11-21  1     1.25   2     0.10  5
claude-3-5-haiku       2026-02-18  0.80  1      1.60  0.08  4
claude-3-haiku         2026-04-19  0.25  0.30   0.50  0.03  1.25
"""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_the_published_price_table(line: str) -> None:
    model, day, *expected = line.split()
    assert figures(priced(model, day)) == tuple(map(Decimal, expected))


TIERS = """
claude-haiku-5-5   2026-11-21  100000   0.10  0.125  0.20  0.01  0.50
claude-haiku-5-5   2026-11-21  100001   0.50  0.625  1.00  0.05  2.50
claude-opus-4-6    2026-03-12  200000   5     6.25   10    0.50  25
claude-opus-4-6    2026-03-12  200001   10    12.50  20    1.00  37.50
claude-opus-4-6    2026-03-13  200001   5     6.25   10    0.50  25
claude-sonnet-4-6  2026-03-12  200001   6     7.50   12    0.60  22.50
claude-sonnet-4-6  2026-03-13  200001   3     3.75   6     0.30  15
claude-sonnet-4-5  2026-01-13  200000   3     3.75   6     0.30  15
claude-sonnet-4-5  2026-01-13  200001   6     7.50   12    0.60  22.50
claude-sonnet-4    2026-01-13  200000   3     3.75   6     0.30  15
claude-sonnet-4    2026-01-13  200001   6     7.50   12    0.60  22.50
claude-opus-5      2026-11-21  900000   5     6.25   10    0.50  25
"""


@pytest.mark.parametrize("line", TIERS.strip().splitlines())
def test_tiers_by_prompt_length(line: str) -> None:
    model, day, tokens, *expected = line.split()
    assert figures(priced(model, day, int(tokens))) == tuple(map(Decimal, expected))


FAST = """
claude-fable-5-2   2026-11-09  16  80
claude-opus-5-5    2026-10-01  8   40
claude-opus-5      2026-07-24  10  50
claude-opus-4-8    2026-11-29  10  50
claude-opus-4-6    2026-02-07  30  150
claude-opus-4-6    2026-06-28  30  150
claude-opus-4-6    2026-06-29  5   25
claude-opus-4-7    2026-05-12  30  150
claude-opus-4-7    2026-07-23  30  150
"""


@pytest.mark.parametrize("line", FAST.strip().splitlines())
def test_fast_mode_by_model_and_day(line: str) -> None:
    model, day, input_price, output = line.split()
    fast, standard = priced(model, day, fast=True), priced(model, day)
    assert (fast.input, fast.output) == (Decimal(input_price), Decimal(output))
    assert fast.read / fast.input == standard.read / standard.input


def test_fast_mode_of_opus_4_6_beyond_200_000_tokens() -> None:
    found = priced("claude-opus-4-6", "2026-02-20", 200_001, fast=True)
    assert (found.input, found.output) == (60, 225)


MODIFIERS = [
    ({"batch": True}, Decimal("0.5")),
    ({"us": True}, Decimal("1.1")),
    ({"fast": True}, Decimal(2)),
    ({"batch": True, "us": True}, Decimal("0.55")),
    ({"fast": True, "us": True}, Decimal("2.2")),
]


@pytest.mark.parametrize(("ways", "factor"), MODIFIERS)
def test_modifiers_multiply_every_class(ways: dict[str, bool], factor: Decimal) -> None:
    standard = priced("claude-opus-5-5")
    assert figures(priced("claude-opus-5-5", **ways)) == tuple(price * factor for price in figures(standard))


def test_us_multiplies_the_higher_tier_too() -> None:
    assert priced("claude-haiku-5-5", None, 100_001, us=True).output == Decimal("2.75")


NO_FAST = [
    ("claude-sonnet-5-5", "2026-11-21", ""),
    ("claude-opus-4-7", "2026-07-24", "from 2026-05-12 until 2026-07-24: --as-of 2026-07-23"),
    ("claude-opus-4-7", "2026-05-11", "from 2026-05-12 until 2026-07-24: --as-of 2026-07-23"),
    ("claude-opus-4-8", "2026-11-30", "from 2026-05-28 until 2026-11-30: --as-of 2026-11-29"),
    ("claude-opus-4-6", "2026-02-06", "from 2026-02-07 until 2026-06-29 and from 2026-06-29: --as-of 2026-06-29"),
]


@pytest.mark.parametrize(("model", "day", "spans"), NO_FAST)
def test_fast_mode_that_a_model_lacks(model: str, day: str, spans: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        priced(model, day, fast=True)
    assert str(caught.value) == f"{model} has no fast mode" + (f" on {day} (only {spans})" if spans else "")


REFUSED = [
    ("claude-opus-4-5", None, {"us": True}, "has no US-only inference"),
    ("claude-opus-5", None, {"fast": True, "batch": True}, "has no fast mode together with batch processing"),
    (
        "claude-opus-4-8",
        None,
        {"batch": True, "fast": True, "us": True},
        "has no fast mode together with batch processing",
    ),
]


@pytest.mark.parametrize(("model", "day", "ways", "text"), REFUSED)
def test_a_way_of_calling_that_a_model_lacks(model: str, day: str | None, ways: dict[str, bool], text: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        priced(model, day, **ways)
    assert str(caught.value) == f"{model} {text}"


UNKNOWN = [
    (
        HOST,
        "claude-opus-46",
        None,
        "unknown model 'claude-opus-46' on host anthropic (did you mean 'claude-opus-4-6'?)",
    ),
    (
        HOST,
        "claude-opus-5",
        date(2026, 7, 23),
        "claude-opus-5 has no price on 2026-07-23; known from 2026-07-24: --as-of 2026-07-24",
    ),
    (
        "antropic",
        "claude-opus-5",
        None,
        f"no prices for host 'antropic' (did you mean 'anthropic'?); known: {', '.join(hosts())}",
    ),
]


@pytest.mark.parametrize(("host", "model", "day", "text"), UNKNOWN)
def test_what_is_not_known_is_said(host: str, model: str, day: date | None, text: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        prices_of(BOOK, host, model, day, 1)
    assert str(caught.value) == text


def test_every_model_has_a_price_from_its_release_on() -> None:
    for model in catalogue(HOST).models.values():
        for day in (model.released, None):
            found = prices_of(BOOK, HOST, model.id, day, 1)
            assert found.read < found.input < found.write_5m < found.write_1h < found.output
            assert found.source


def test_read_multipliers_are_by_model() -> None:
    multiplier = {
        model: priced(model).read / priced(model).input for model in catalogue(HOST).models if model != "claude-3-haiku"
    }
    assert {model for model, share in multiplier.items() if share == Decimal("0.025")} == {
        "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2",
    }  # fmt: skip
    assert {model for model, share in multiplier.items() if share == Decimal("0.05")} == {
        "claude-opus-5-5", "claude-sonnet-5-5",
    }  # fmt: skip
    assert set(multiplier.values()) == {Decimal("0.1"), Decimal("0.05"), Decimal("0.025")}


def test_the_source_names_every_layer() -> None:
    assert priced("claude-opus-5").source == "genai-prices 0.2.3"
    assert priced("claude-opus-5", batch=True).source == (
        "genai-prices 0.2.3, batch processing × 0.5: Claude docs, Pricing (2026-10-10)"
    )
    assert priced("claude-sonnet-5-5", "2026-10-06").source == (
        "genai-prices 0.2.3, Claude Platform release notes (2026-11-09)"
    )


def test_as_of_wins_over_the_day_of_the_call() -> None:
    book = PriceBook.load(as_of=date(2026, 3, 7))
    assert prices_of(book, HOST, "claude-opus-4-6", date(2026, 11, 1), 200_001).input == 10


def test_an_alias_costs_what_its_model_costs() -> None:
    for model in catalogue(HOST).models.values():
        for alias in model.aliases:
            assert priced(alias) == priced(model.id)


def test_what_fixes_the_figures() -> None:
    assert BOOK.versions == "genai-prices 0.2.3 + price overlay 2026-11-27"


# ---- What others published, to the cent and beyond.


def test_the_case_of_rfd_033() -> None:
    prices = priced("claude-opus-4-6", "2026-03-07", 95_000)
    write, read = (dollars(prices, usage) for usage in (Usage(write_5m=95_000), Usage(read=95_000)))
    assert (write, read) == (Decimal("0.59375"), Decimal("0.0475"))
    assert write - read == Decimal("0.54625")
    assert 3 * (write - read) == Decimal("1.63875")
    assert dollars(prices, Usage(write_1h=95_000)) == Decimal("0.95")


def test_litellm_9812() -> None:
    usage = Usage(3, write_5m=12_304, output_tokens=550)
    assert dollars(priced("claude-3-7-sonnet-20250219", "2025-04-07"), usage) == Decimal("0.054399")


def test_litellm_11789() -> None:
    usage = Usage(4, read=2_455, output_tokens=23)
    assert dollars(priced("claude-3-5-haiku-20241022", "2025-06-16"), usage) == Decimal("0.0002916")


def test_agent_framework_112() -> None:
    usage = Usage(56_000, read=5_480_000, write_5m=3_490_000, output_tokens=36_000)
    prices = priced("claude-fable-5")
    assert round(dollars(prices, usage), 1) == Decimal("51.5")
    assert round(prices.cost(usage)["write_5m"] / dollars(prices, usage), 2) == Decimal("0.85")


def test_swe_agent_1482() -> None:
    prices, tokens = priced("claude-sonnet-4-5"), 16_442
    five = 3 * dollars(prices, Usage(write_5m=tokens)) + dollars(prices, Usage(read=tokens))
    hour = dollars(prices, Usage(write_1h=tokens)) + 3 * dollars(prices, Usage(read=tokens))
    assert round(five, 3) == Decimal("0.190")
    assert Decimal("0.113") <= hour <= Decimal("0.114")


def test_tbd_310() -> None:
    """30,000 tokens of Opus, kept alive for an hour: poll every 4 min at 5m, or every 10 min at 1h."""
    prices, tokens = priced("claude-opus-4-6", "2026-04-01"), 30_000
    read = dollars(prices, Usage(read=tokens))
    assert dollars(prices, Usage(write_5m=tokens)) + 15 * read == Decimal("0.4125")
    assert dollars(prices, Usage(write_1h=tokens)) + 6 * read == Decimal("0.3900")


TOKENS = st.integers(0, 2_000_000)


@given(TOKENS, TOKENS, TOKENS, TOKENS, TOKENS)
def test_the_cost_is_exact_and_adds_up(uncached: int, read: int, five: int, hour: int, output: int) -> None:
    usage = Usage(uncached, read, five, hour, output)
    prices = priced("claude-haiku-5-5", None, usage.total_input)
    parts = [
        prices.cost(Usage(uncached)),
        prices.cost(Usage(read=read, write_5m=five)),
        prices.cost(Usage(0, 0, 0, hour, output)),
    ]
    assert prices.cost(usage) == {name: sum(part[name] for part in parts) for name in parts[0]}
    assert prices.cost(usage)["read"] * 10**6 == read * prices.read
    assert min(prices.cost(usage).values()) >= 0


@given(TOKENS, st.sampled_from(sorted(catalogue(HOST).models)))
def test_a_longer_prompt_is_never_cheaper_a_token(tokens: int, model: str) -> None:
    shorter, longer = (figures(priced(model, None, length)) for length in (tokens, 2 * tokens))
    assert all(low <= high for low, high in zip(shorter, longer, strict=True))


@pytest.mark.parametrize(
    ("source", "model", "usage", "dollars"),
    [
        ("litellm#9812", "claude-3-7-sonnet", Usage(3, 0, 12_304, 0, 550), "0.054399"),
        ("litellm#11789", "claude-3-5-haiku", Usage(4, 2_455, 0, 0, 23), "0.0002916"),
        ("oh-my-pi#5992, at 5m", "claude-opus-4-5", Usage(0, 0, 136_238, 0, 0), "0.8514875"),
        ("oh-my-pi#5992, at 1h as it was called", "claude-opus-4-5", Usage(0, 0, 0, 136_238, 0), "1.36238"),
        ("RFD 033, one question", "claude-opus-4-6", Usage(0, 0, 95_000, 0, 0), "0.59375"),
        ("RFD 034, one question", "claude-opus-4-6", Usage(0, 0, 100_000, 0, 0), "0.625"),
    ],
)
def test_published_bills_to_the_last_digit(source: str, model: str, usage: Usage, dollars: str) -> None:
    """Those that counted cached tokens twice, or 1h writes at the 5m price, printed other figures."""
    prices = prices_of(PriceBook.load(None, None), "anthropic", model, None, usage.total_input)
    assert sum(prices.cost(usage).values()) == Decimal(dollars), source
