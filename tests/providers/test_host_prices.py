"""Dollars on other hosts: those of genai-prices where it has the host, else those of Anthropic, each with source."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices import Usage as TheirUsage
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.hosts import catalogue
from cachecost.providers.pricerows import HOSTS, OVERLAY, load_shipped
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from price_queries import prices_of

BOOK = PriceBook.load()
BOOK_OF_RULES = RuleBook()
TODAY = date(2026, 11, 21)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLASSES = ("input", "write_5m", "write_1h", "read", "output")
TABLE, OVERLAID = load_shipped()


def figures(prices: Prices) -> tuple[Decimal, ...]:
    return tuple(getattr(prices, name) for name in CLASSES)


def priced(host: str, model: str, tokens: int = 1000, day: date | None = None, **ways: bool) -> Prices:
    return prices_of(BOOK, host, model, day, tokens, **ways)


# host, id, then USD per 10**6 tokens: input, 5m write, 1h write, read, output
PUBLISHED = """
bedrock       global.anthropic.claude-opus-4-6-v1                       5     6.25    10    0.50   25
bedrock       us.anthropic.claude-opus-4-6-v1                           5.5   6.875   11    0.55   27.5
bedrock       anthropic.claude-opus-4-6-v1                              5.5   6.875   11    0.55   27.5
bedrock       claude-opus-4-6                                           5.5   6.875   11    0.55   27.5
bedrock       us.anthropic.claude-sonnet-5-5                            2.2   2.75    4.4   0.11   11
bedrock       us.anthropic.claude-opus-4-1-20250805-v1:0                15    18.75   30    1.50   75
bedrock       us.anthropic.claude-sonnet-4-20250514-v1:0                3     3.75    6     0.30   15
bedrock       us.anthropic.claude-mythos-5-1                            11    13.75   22    0.275  55
bedrock       global.anthropic.claude-mythos-5                          10    12.50   20    1.00   50
bedrock       anthropic.claude-mythos-preview                           25    31.25   50    2.50   125
google-cloud  claude-opus-4-5@20251101                                  5     6.25    10    0.50   25
google-cloud  locations/us-east5/claude-opus-4-5@20251101               5.5   6.875   11    0.55   27.5
google-cloud  locations/eu/publishers/anthropic/models/claude-sonnet-5  2.2   2.75    4.4   0.22   11
google-cloud  claude-sonnet-5                                           2     2.50    4     0.20   10
google-cloud  locations/us-east5/claude-opus-4-1@20250805               15    18.75   30    1.50   75
foundry       claude-opus-4-8                                           5     6.25    10    0.50   25
foundry       claude-opus-5-5-fast                                      8     10      16    0.40   40
"""


@pytest.mark.parametrize("line", PUBLISHED.strip().splitlines())
def test_published_prices(line: str) -> None:
    host, model, *expected = line.split()
    assert figures(priced(host, model)) == tuple(map(Decimal, expected))


def test_tiers_by_prompt_length_hold_at_regional_endpoints_too() -> None:
    below, above = (priced("bedrock", "us.anthropic.claude-haiku-5-5", tokens) for tokens in (100_000, 100_001))
    assert (below.input, above.input, above.output) == (Decimal("0.11"), Decimal("0.55"), Decimal("2.75"))


def theirs(provider: str, model: str, usage: Usage) -> Decimal:
    their_usage = TheirUsage(
        input_tokens=usage.total_input,
        cache_read_tokens=usage.read,
        cache_write_tokens=usage.write,
        cache_write_5m_tokens=usage.write_5m,
        cache_write_1h_tokens=usage.write_1h,
        output_tokens=usage.output_tokens,
    )
    return genai_prices.calc_price(their_usage, model, provider_id=provider, genai_request_timestamp=NOON).total_price


def spelled(host: str) -> list[str]:
    """The ids of this host's models that genai-prices has, at the endpoints that it knows."""
    written = {
        "bedrock": ("global.anthropic.{}", "us.anthropic.{}", "anthropic.{}"),
        "google-cloud": ("{}",),
    }[host]
    (provider,) = (found for found in get_snapshot().providers if found.id == PROVIDERS[host])
    names = [
        name for model in catalogue(host).models.values() for name in (model.id, *model.aliases) if "." not in name
    ]
    ids = [spelling.format(name) for name in names for spelling in written]
    return [name for name in ids if provider.find_model(name)]


PROVIDERS = {"bedrock": "aws", "google-cloud": "google"}
THEIR_IDS = [(host, name) for host in PROVIDERS for name in spelled(host)]
TOKENS = st.integers(0, 300_000) | st.sampled_from([0, 1, 100_000, 100_001, 200_000, 200_001])


def test_there_is_much_to_compare() -> None:
    assert len([name for host, name in THEIR_IDS if host == "bedrock"]) > 45
    assert len([name for host, name in THEIR_IDS if host == "google-cloud"]) >= 20


@given(st.sampled_from(THEIR_IDS), TOKENS, TOKENS, TOKENS, TOKENS, st.booleans())
def test_our_dollars_are_those_of_genai_prices_on_each_host(
    spelling: tuple[str, str], uncached: int, read: int, written: int, output: int, is_hour: bool
) -> None:
    host, model = spelling
    has_hour = any("write_1h" in row.prices for row in TABLE.rows[host, catalogue(host).model(model).name])
    hour = written if is_hour and has_hour else 0
    usage = Usage(uncached, read, written - hour, hour, output)
    mine = priced(host, model, usage.total_input, TODAY).cost(usage)
    assert sum(mine.values(), Decimal(0)) == theirs(PROVIDERS[host], model, usage)


@pytest.mark.parametrize("host", ["bedrock", "google-cloud", "foundry"])
def test_every_model_has_a_price_from_its_first_day_there_on(host: str) -> None:
    for model in catalogue(host).models.values():
        for day in (model.released, TODAY):
            found = priced(host, model.id, 1, day)
            if BOOK_OF_RULES.rules(host, model.id, day).matching != "breakpoint":
                assert found.read <= found.input < found.output
            elif model.generation == "open":
                assert found.read < found.input == found.write_5m < found.output
            else:
                assert found.read < found.input < found.write_5m < found.write_1h < found.output
            assert found.source


def test_foundry_charges_what_anthropic_charges() -> None:
    for model in catalogue("foundry").models.values():
        for day in (model.released, date(2026, 10, 1), TODAY):
            if day >= model.released:
                for tokens in (1, 100_001, 200_001):
                    assert figures(priced("foundry", model.id, tokens, day)) == figures(
                        priced("anthropic", model.id, tokens, day)
                    )


def test_the_source_tells_whose_price_it_is() -> None:
    assert priced("foundry", "claude-opus-5").source == (
        "as on anthropic (Claude docs, Pricing: Claude in Microsoft Foundry (2026-09-02)): genai-prices 0.2.3"
    )
    assert priced("bedrock", "us.anthropic.claude-opus-5").source == (
        "genai-prices 0.2.3, regional endpoint × 1.1: "
        "Claude docs, Pricing: regional and multi-region endpoints, Claude 4.5 and later (2026-09-02)"
    )
    assert priced("bedrock", "global.anthropic.claude-opus-5").source == "genai-prices 0.2.3"


def test_the_regional_endpoint_can_be_switched() -> None:
    listed, dearer = (figures(priced("google-cloud", name)) for name in ("claude-opus-5", "locations/eu/claude-opus-5"))
    assert figures(priced("google-cloud", "claude-opus-5", regional=True)) == dearer
    assert figures(priced("google-cloud", "locations/eu/claude-opus-5", regional=False)) == listed
    assert figures(priced("bedrock", "us.anthropic.claude-opus-5", regional=False)) == listed
    assert dearer == tuple(price * Decimal("1.1") for price in listed)


@pytest.mark.parametrize("model", ["claude-opus-4-1", "claude-sonnet-4", "claude-3-7-sonnet"])
def test_models_before_4_5_cost_the_same_everywhere(model: str) -> None:
    for host in ("bedrock", "google-cloud"):
        assert figures(priced(host, model, regional=True)) == figures(priced(host, model, regional=False))


WAYS = [
    ("google-cloud", "claude-opus-5", {"batch": True}, Decimal("0.5")),
    ("google-cloud", "claude-fable-5-2", {"fast": True}, Decimal(2)),
    ("google-cloud", "locations/us/claude-fable-5-2", {"fast": True}, Decimal("2.2")),
    ("foundry", "claude-opus-4-8", {"us": True}, Decimal("1.1")),
    ("foundry", "claude-opus-5-5-fast", {"fast": True}, Decimal(2)),
    ("foundry", "claude-opus-5-5-fast", {"us": True}, Decimal("2.2")),
]


@pytest.mark.parametrize(("host", "model", "ways", "factor"), WAYS)
def test_ways_of_calling(host: str, model: str, ways: dict[str, bool], factor: Decimal) -> None:
    listed = figures(priced("anthropic", catalogue(host).model(model).name))
    assert figures(priced(host, model, **ways)) == tuple(price * factor for price in listed)


LACKING = [
    ("bedrock", "claude-opus-4-6", {"batch": True}, "claude-opus-4-6 has no batch processing on host bedrock"),
    ("bedrock", "us.anthropic.claude-opus-5", {"us": True}, "claude-opus-5 has no US-only inference on host bedrock"),
    ("google-cloud", "claude-opus-5", {"fast": True}, "claude-opus-5 has no fast mode on host google-cloud"),
    ("foundry", "claude-opus-4-8-fast", {}, "claude-opus-4-8 has no fast mode on host foundry"),
    ("foundry", "claude-opus-4-5", {"us": True}, "claude-opus-4-5 has no US-only inference on host foundry"),
    (
        "google-cloud",
        "claude-fable-5-2",
        {"fast": True, "batch": True},
        "claude-fable-5-2 has no fast mode together with batch processing",
    ),
]


@pytest.mark.parametrize(("host", "model", "ways", "text"), LACKING)
def test_a_way_of_calling_without_a_price_is_no_guess(host: str, model: str, ways: dict[str, bool], text: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        priced(host, model, **ways)
    assert str(caught.value) == text


def test_own_prices_at_anthropic_are_not_those_of_foundry(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[price]]\nmodel = "claude-opus-5"\ninput = 1\n'
        '[[price]]\nhost = "bedrock"\nmodel = "us.anthropic.claude-opus-5"\ninput = 4\n'
        '[[modifier]]\nname = "regional"\nhost = "bedrock"\nmodels = ["*"]\nmultiplier = 1\n',
        encoding="utf-8",
    )
    book = PriceBook.load(path)
    assert prices_of(book, "anthropic", "claude-opus-5", None, 1).input == 1
    assert prices_of(book, "foundry", "claude-opus-5", None, 1).input == 5
    assert prices_of(book, "bedrock", "eu.anthropic.claude-opus-5", None, 1).input == 4
    assert prices_of(book, "bedrock", "eu.anthropic.claude-opus-4-6", None, 1).input == 5


def test_the_public_rows_name_models_of_their_host() -> None:
    """The overlay is read without the rule files: nothing else would find a slip in it."""
    named = [(host, model) for host, model in OVERLAID.rows]
    named += [
        (host, model) for row in OVERLAID.modifiers for host in row.hosts for model in (*row.models, *row.exceptions)
    ]
    named += [(host, model) for row in OVERLAID.same for host in (*row.hosts, row.base) for model in row.models]
    charged = (*OVERLAID.instead, *OVERLAID.storage, *OVERLAID.peaks)
    named += [(host, model) for row in charged for host in row.hosts for model in row.models]
    assert all(
        model == "*" or model in catalogue(host).models or catalogue(host).model(model).price_names[-1] == model
        for host, model in named
    )
    assert HOSTS.parent == OVERLAY.parent
    dated = (*OVERLAID.same, *OVERLAID.instead, *OVERLAID.storage, *OVERLAID.peaks, *OVERLAID.holidays)
    assert all(row.start and row.source for row in dated)
