"""Prices at the hosts of other makers: published figures, days, hours, lengths, and what genai-prices still lacks."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import data_units

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.providers.hosts import catalogue
from cachecost.providers.pricerows import load_shipped
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.usage import Usage
from price_queries import prices_of
from tools.refresh_prices import LEFT_OUT, PROVIDERS, SPELLINGS

BOOK = PriceBook.load()
TABLE, OVERLAID = load_shipped()
TODAY = date(2026, 11, 21)
OTHERS = (
    *("cerebras", "deepseek", "fireworks", "gemini", "groq", "minimax", "mistral", "moonshot", "openai", "together"),
    *("vertex", "xai", "zai"),
)


def priced(host: str, model: str, day: str = "2026-11-21", tokens: int = 1, **ways: bool) -> Prices:
    return prices_of(BOOK, host, model, date.fromisoformat(day), tokens, **ways)


def figures(prices: Prices) -> tuple[Decimal, ...]:
    return prices.input, prices.read, prices.write_5m, prices.write_1h, prices.output


PUBLISHED = """
openai    gpt-6-astra             2026-11-21  1        10    1      12.5   25    50
openai    gpt-6.1-sol             2026-11-21  1        2     0.1    2.5    5     10
openai    gpt-6.1-sol-explicit    2026-11-21  1        2     0.1    2.5    5     10
openai    gpt-6.1-sol             2026-11-21  272000   2     0.1    2.5    5     10
openai    gpt-6.1-sol             2026-11-21  272001   4     0.2    5      10    15
openai    gpt-6.1-terra           2026-11-21  1        1     0.05   1.25   2.5   5
openai    gpt-6-sol               2026-11-21  1        2     0.2    2.5    5     10
openai    gpt-6-luna              2026-11-21  1        0.1   0.01   0.125  0.25  0.5
openai    gpt-5.6-sol             2026-08-20  1        5     0.5    6.25   12.5  30
openai    gpt-5.6-sol             2026-08-21  1        4     0.4    5      10    20
openai    gpt-5.6-terra           2026-11-21  1        2     0.2    2.5    5     12
openai    gpt-5.6-luna            2026-11-21  1        0.2   0.02   0.25   0.5   1.2
openai    gpt-5.5                 2026-11-21  1        5     0.5    5      5     30
openai    gpt-5.5-pro             2026-11-21  1        30    30     30     30    180
openai    gpt-5.4                 2026-11-21  1        2.5   0.25   2.5    2.5   15
openai    gpt-4.1                 2026-11-21  1        2     0.5    2      2     8
openai    gpt-4o                  2026-11-21  1        2.5   1.25   2.5    2.5   10
gemini    gemini-3.8-flash        2026-12-31  1        0.75  0.075  0.75   0.75  3.75
gemini    gemini-3.8-flash        2027-01-01  1        1.50  0.150  1.50   1.50  7.50
gemini    gemini-4-argon          2026-11-30  1        2     0.1    2      2     10
gemini    gemini-4-argon          2026-12-01  1        4     0.2    4      4     20
gemini    gemini-2.5-pro          2026-11-21  200000   1.25  0.125  1.25   1.25  10
gemini    gemini-2.5-pro          2026-11-21  200001   2.5   0.25   2.5    2.5   15
deepseek  deepseek-flash          2026-11-21  1        0.15  0.003  0.15   0.15  0.6
deepseek  deepseek-v4-pro         2026-11-21  1        0.66  0.022  0.66   0.66  1.98
xai       grok-4.7                2026-11-21  199999   2     0.5    2      2     6
xai       grok-4.7                2026-11-21  200000   4     1      4      4     12
xai       grok-4.5                2026-11-21  1        2     0.3    2      2     6
mistral   mistral-large-4         2026-10-28  1        1.36  0.14   1.36   1.36  4.18
mistral   mistral-large-4         2026-10-29  1        0.7   0.07   0.7    0.7   2.1
minimax   MiniMax-M2.7            2026-11-21  1        0.3   0.06   0.3    0.3   1.2
minimax   MiniMax-M2.7-explicit   2026-11-21  1        0.3   0.06   0.375  0.375 1.2
minimax   MiniMax-M3              2026-11-21  512001   0.6   0.12   0.6    0.6   2.4
qwen      qwen3.8-max             2026-11-21  1        2     0.25   2      2     6
qwen      qwen3.8-max-explicit    2026-11-21  1        2     0.20   2.50   2.50  6
qwen      qwen3.7-plus            2026-11-21  256000   0.4   0.08   0.4    0.4   1.6
qwen      qwen3.7-plus-explicit   2026-11-21  256001   1.2   0.12   1.5    1.5   4.8
openrouter anthropic/claude-sonnet-5.5 2026-11-21 1     2     0.1    2.5    4     10
openrouter anthropic/claude-opus-5-fast 2026-11-21 1    10    1      12.5   20    50
openrouter anthropic/claude-haiku-5.5 2026-11-21 100001 0.5  0.05   0.625  1     2.5
"""


@pytest.mark.parametrize("line", PUBLISHED.strip().splitlines())
def test_published_prices(line: str) -> None:
    """input, read, short write, long write, output."""
    host, model, day, tokens, *expected = line.split()
    assert figures(priced(host, model, day, int(tokens))) == tuple(map(Decimal, expected))


def test_the_figures_that_were_read_from_genai_prices() -> None:
    """100,000 tokens of gpt-6.1-sol written and read, 300,000 written."""
    small, large = priced("openai", "gpt-6.1-sol", tokens=100_000), priced("openai", "gpt-6.1-sol", tokens=300_000)
    assert sum(small.cost(Usage(write_5m=100_000)).values()) == Decimal("0.25")
    assert sum(small.cost(Usage(read=100_000)).values()) == Decimal("0.01")
    assert sum(large.cost(Usage(write_5m=300_000)).values()) == Decimal("1.50")
    assert priced("openai", "gpt-6.1-sol", batch=True).read == Decimal("0.05")


STORED = """
gemini-3.8-flash-explicit        2026-12-31  0.866667  1.325
gemini-3.8-flash-explicit        2027-01-01  1.733334  2.65
gemini-3.1-pro-preview-explicit  2026-11-21  2.575     6.7
gemini-2.5-flash-explicit        2026-11-21  0.413334  1.33
"""


@pytest.mark.parametrize("line", STORED.strip().splitlines())
def test_a_write_of_a_named_object_is_its_making_its_first_reading_and_its_keeping(line: str) -> None:
    model, day, short, long = line.split()
    found = priced("gemini", model, day)
    assert (found.write_5m, found.write_1h) == (Decimal(short), Decimal(long))


def test_keeping_is_not_guessed(tmp_path: Path) -> None:
    text = "no price of 5m cache writes known for gemini-3.5-flash-explicit on host gemini; give one with --prices"
    with pytest.raises(CannotEvaluate, match=f"^{re.escape(text)}$"):
        priced("gemini", "gemini-3.5-flash-explicit")
    own = tmp_path / "own.toml"
    own.write_text(
        '[[price]]\nhost = "gemini"\nmodel = "gemini-3.5-flash-explicit"\nwrite_5m = 0.42\nwrite_1h = 1.33\n',
        encoding="utf-8",
    )
    book = PriceBook.load(own)
    assert prices_of(book, "gemini", "gemini-3.5-flash-explicit", TODAY, 1).write_1h == Decimal("1.33")
    assert prices_of(book, "gemini", "gemini-2.5-flash", TODAY, 1).write_1h == Decimal("0.3")


PEAK = """
2026-11-17T00:59:59  1  Tuesday
2026-11-17T01:00:00  2
2026-11-17T02:00:00  2
2026-11-17T03:59:59  2
2026-11-17T04:00:00  1
2026-11-17T06:00:00  2
2026-11-17T09:59:59  2
2026-11-17T10:00:00  1
2026-11-21T02:00:00  1  Saturday
2026-11-22T02:00:00  1  Sunday
2026-11-23T02:00:00  2
2026-09-25T02:00:00  1  Mid-Autumn Festival
2026-09-28T02:00:00  2
2026-10-01T02:00:00  1  National Day
2026-10-07T02:00:00  1
2026-10-08T02:00:00  2
"""


@pytest.mark.parametrize("line", PEAK.strip().splitlines())
def test_hours_of_deepseek(line: str) -> None:
    when, factor = line.split()[:2]
    moment = datetime.fromisoformat(when).replace(tzinfo=UTC)
    found = prices_of(BOOK, "deepseek", "deepseek-flash", moment.date(), 1, moment=moment)
    assert found.input == Decimal("0.15") * int(factor)
    assert found.read == Decimal("0.003") * int(factor)
    assert ("peak hours × 2" in found.source) is (factor == "2")


def test_peak_hours_are_of_utc_whatever_zone_tells_them() -> None:
    in_beijing = datetime(2026, 11, 17, 10, tzinfo=timezone(timedelta(hours=8)))
    prices = [
        prices_of(BOOK, "deepseek", "deepseek-flash", TODAY, 1, moment=moment).input
        for moment in (in_beijing, in_beijing.astimezone(UTC), in_beijing.astimezone(UTC).replace(tzinfo=None))
    ]
    assert prices == [Decimal("0.30")] * 3


def test_the_weekend_was_at_peak_too_for_a_week_and_nothing_before() -> None:
    def at(day: str) -> Decimal:
        moment = datetime.fromisoformat(f"{day}T02:00:00+00:00")
        return prices_of(BOOK, "deepseek", "deepseek-v4-pro", moment.date(), 1, moment=moment).input

    assert at("2026-08-14") == Decimal("0.435")
    assert [at(day) for day in ("2026-08-17", "2026-08-22", "2026-08-23", "2026-08-24")] == [
        Decimal(text) for text in ("1.32", "1.32", "0.66", "1.32")
    ]


def test_the_hour_is_of_no_matter_elsewhere() -> None:
    at_peak = datetime(2026, 11, 17, 2, tzinfo=UTC)
    assert prices_of(BOOK, "openai", "gpt-6.1-sol", TODAY, 1, moment=at_peak) == priced("openai", "gpt-6.1-sol")


def in_both() -> list[tuple[str, str]]:
    return [(host, model) for host in OTHERS for known, model in TABLE.rows if known == host]


@pytest.mark.parametrize(("host", "model"), in_both())
def test_our_dollars_are_those_of_genai_prices(host: str, model: str) -> None:
    """At noon of a Saturday, when nobody has a peak. Where they have no cached price, ours is the host's own."""
    has_read = any("read" in row.prices for row in TABLE.rows[host, model])
    when = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for usage in (Usage(1_000, 500, 0, 0, 300), Usage(150_000, 100_000, 0, 0, 300), Usage(0, 600_000, 0, 0, 5)):
        if not has_read:
            usage = Usage(usage.total_input, 0, 0, 0, usage.output_tokens)
        theirs = genai_prices.calc_price(
            TheirUsage(input_tokens=usage.total_input, cache_read_tokens=usage.read, output_tokens=usage.output_tokens),
            SPELLINGS.get(host, ("{}",))[0].format(model),
            provider_id=PROVIDERS[host],
            genai_request_timestamp=when,
        )
        prices = prices_of(BOOK, host, model, TODAY, usage.total_input, moment=when)
        assert sum(prices.cost(usage).values()) == theirs.total_price


def test_only_models_that_the_rules_know_are_shipped() -> None:
    known = {(host, model) for host in PROVIDERS for model in catalogue(host).models}
    assert set(TABLE.rows) <= known


def test_every_price_of_a_way_of_calling_is_that_of_genai_prices() -> None:
    from genai_prices.data_snapshot import get_snapshot

    providers = {provider.id: provider for provider in get_snapshot().providers}
    words = {"batch": {"batch"}, "fast": {"fast", "priority"}, "flex": {"flex"}}
    rows = (row for row in OVERLAID.modifiers if row.source.startswith("genai-prices"))
    for row in (row for row in rows if set(row.hosts) <= set(OTHERS)):
        (host,) = row.hosts
        for name in row.models:
            model = providers[PROVIDERS[host]].find_model(name)
            assert model is not None
            told = [
                one.prices.input_mtok
                for one in model.price_variants or ()
                if set(one.when.values()) & words[row.name] and not isinstance(one.prices, list)
            ]
            ours = priced(host, name, str(max(TODAY, catalogue(host).model(name).released)), **{row.name: True})
            assert any(ours.input in (price, getattr(price, "base", None)) for price in told), name


def test_what_the_hosts_file_supplies_is_still_lacking() -> None:
    """Fails when genai-prices grows a unit of its own: then the rows of `prices/hosts.toml` have to go."""
    text = Path(data_units.__file__).read_text(encoding="utf-8")
    assert "cache_write_1h" in text
    assert "12h" not in text and "12_h" not in text
    assert all("search" in unit for unit in re.findall(r"\w*storage\w*", text))


GPU = '[[gpu]]\nhost = "vllm"\nusd_per_hour = 2.50\nprefill_tokens_per_s = 8_000\n'


def own(tmp_path: Path, text: str) -> PriceBook:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return PriceBook.load(path)


def test_a_server_of_ones_own_costs_its_time(tmp_path: Path) -> None:
    book = own(tmp_path, GPU)
    prices = prices_of(book, "vllm", "Qwen/Qwen3-8B", TODAY, 1)
    assert figures(prices) == (Decimal("0.086806"), 0, Decimal("0.086806"), Decimal("0.086806"), 0)
    assert prices_of(own(tmp_path, GPU + "output = 1.5\n"), "vllm", "x", TODAY, 1).output == Decimal("1.5")
    with pytest.raises(CannotEvaluate, match=r"no price known for x on host sglang; it is a self-hosted server"):
        prices_of(book, "sglang", "x", TODAY, 1)


def test_a_model_of_ones_own_server_may_have_a_price_or_a_server_of_its_own(tmp_path: Path) -> None:
    more = '[[gpu]]\nhost = "vllm"\nmodel = "big"\nusd_per_hour = 3.6\nprefill_tokens_per_s = 1_000\n'
    book = own(tmp_path, GPU + more + '[[price]]\nhost = "vllm"\nmodel = "small"\noutput = 0.2\n')
    assert prices_of(book, "vllm", "big", TODAY, 1).input == 1
    assert prices_of(book, "vllm", "small", TODAY, 1).output == Decimal("0.2")
    assert prices_of(book, "vllm", "small", TODAY, 1).input == Decimal("0.086806")
    assert prices_of(book, "vllm", "other", TODAY, 1).output == 0


FAULTS = [
    ('[[gpu]]\nhost = "vllm"\n', ["1 gpu[0]: usd_per_hour is missing", "1 gpu[0]: prefill_tokens_per_s is missing"]),
    (
        GPU.replace("vllm", "openai"),
        ["2 gpu[0].host: openai is not a self-hosted server; expected one of sglang, vllm"],
    ),
    (GPU.replace("2.50", "-1"), ["3 gpu[0].usd_per_hour: expected USD, a number from 0; got -1"]),
    (
        GPU.replace("8_000", "0"),
        ["4 gpu[0].prefill_tokens_per_s: expected tokens a second, a number above 0; got 0"],
    ),
    (
        GPU.replace("8_000", '"fast"'),
        ["4 gpu[0].prefill_tokens_per_s: expected tokens a second, a number above 0; got 'fast'"],
    ),
    (GPU + "usd_per_huor = 3\n", ["5 gpu[0].usd_per_huor: unknown key (did you mean 'usd_per_hour'?)"]),
    (GPU + 'output = "1"\n', ["5 gpu[0].output: expected USD, a number from 0; got '1'"]),
    (
        GPU + "from = 2026-01-02\nto = 2026-01-02\n",
        ["6 gpu[0].to: expected a day after from = 2026-01-02; got 2026-01-02"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), FAULTS)
def test_faults_of_a_server(tmp_path: Path, text: str, expected: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        own(tmp_path, text)
    assert [str(fault).removeprefix(f"{tmp_path / 'mine.toml'}:") for fault in caught.value.faults] == expected


def test_what_is_left_out_of_the_table_is_still_wrong_there() -> None:
    """Fails when genai-prices gets the days of these prices: then `LEFT_OUT` and rows of the overlay have to go."""
    when = datetime(2025, 12, 15, 12, tzinfo=UTC)
    for host, model in LEFT_OUT:
        theirs = genai_prices.calc_price(
            TheirUsage(input_tokens=1_000_000, output_tokens=0),
            model,
            provider_id=PROVIDERS[host],
            genai_request_timestamp=when,
        )
        assert theirs.total_price != Decimal("0.28") == priced(host, model, "2025-12-15").input


NAMES_OF_DEEPSEEK = """
deepseek-chat      2025-02-08T12:00  0.14   0.014   0.28
deepseek-chat      2025-02-09T12:00  0.27   0.07    1.10
deepseek-chat      2025-02-27T16:29  0.27   0.07    1.10
deepseek-chat      2025-02-27T16:30  0.135  0.035   0.55
deepseek-chat      2025-02-28T00:29  0.135  0.035   0.55
deepseek-chat      2025-02-28T00:30  0.27   0.07    1.10
deepseek-chat      2025-09-05T12:00  0.27   0.07    1.10
deepseek-reasoner  2025-09-05T12:00  0.55   0.14    2.19
deepseek-chat      2025-09-06T20:00  0.56   0.07    1.68
deepseek-reasoner  2025-09-06T20:00  0.56   0.07    1.68
deepseek-chat      2025-09-28T12:00  0.56   0.07    1.68
deepseek-chat      2025-09-29T12:00  0.28   0.028   0.42
deepseek-reasoner  2026-04-23T12:00  0.28   0.028   0.42
deepseek-reasoner  2026-04-24T12:00  0.14   0.0028  0.28
deepseek-chat      2026-04-24T12:00  0.14   0.0028  0.28
"""


@pytest.mark.parametrize("line", NAMES_OF_DEEPSEEK.strip().splitlines())
def test_what_the_names_of_deepseek_cost(line: str) -> None:
    model, when, *expected = line.split()
    moment = datetime.fromisoformat(f"{when}:00+00:00")
    found = prices_of(BOOK, "deepseek", model, moment.date(), 1, moment=moment)
    assert [found.input, found.read, found.output] == [Decimal(text) for text in expected]
