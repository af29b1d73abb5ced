"""No host is priced by another's rules: each result comes from its own file and from the base that it names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.providers import hosts as rulefile
from cachecost.providers.hosts import FOLDER, Catalogue, catalogue, hosts
from cachecost.providers.rules import ModelRules, RuleBook
from price_queries import prices_of

ALL_HOSTS = hosts()
BASES = {host: catalogue(host).base for host in ALL_HOSTS}
OF_THE_CACHE = (
    *("minimum_tokens", "ttl_s", "accepted_ttls", "breakpoint_layers", "lookback_positions", "maximum_breakpoints"),
    *("scope", "visibility_lag", "collapses_runs"),
)
"""Rules that decide what is read and written."""


@pytest.fixture(autouse=True)
def _shipped_files() -> Iterator[None]:
    yield
    _forget()


def _forget() -> None:
    for known in (rulefile.catalogue, rulefile.hosts, rulefile.near_model):
        known.cache_clear()


def edges(book: Catalogue) -> list[date]:
    """Each day on which a row of the host begins, and the day before."""
    rows = [row for rule in book.rules.values() for row in rule.rows]
    rows += [row for model in book.models.values() for history in model.rows.values() for row in history]
    starts = {row.start for row in rows} | {row.start for each in book.aliases.values() for row in each}
    return sorted({day for start in starts for day in (start, start - timedelta(days=1))})


def found(host: str, days: list[date]) -> dict[tuple[str, date], ModelRules | str]:
    book, rules = catalogue(host), RuleBook()
    names = [*book.models, *book.aliases]
    return {(name, day): _one(rules, host, name.replace("*", "x"), day) for name in names for day in days}


def _one(rules: RuleBook, host: str, name: str, day: date) -> ModelRules | str:
    try:
        return rules.rules(host, name, day)
    except CannotEvaluate as error:
        return str(error)


@pytest.mark.parametrize("host", ALL_HOSTS)
def test_the_rules_of_a_host_need_no_file_but_its_own_and_its_bases(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All other hosts taken away, every model has the same rules on every day on which one of its rows begins."""
    days = edges(catalogue(host))[-24:]
    before = found(host, days)
    kept = [name for name in (host, BASES[host]) if name]
    for name in kept:
        shutil.copy(FOLDER / f"{name}.toml", tmp_path)
    monkeypatch.setattr(rulefile, "FOLDER", tmp_path)
    _forget()
    assert hosts() == tuple(sorted(kept))
    assert found(host, days) == before


@pytest.mark.parametrize(("host", "base"), [(host, base) for host, base in BASES.items() if base])
def test_a_model_that_the_base_has_not_takes_no_rule_of_the_cache_from_it(host: str, base: str) -> None:
    """Amazon's models on Bedrock are not cached by Anthropic's rules."""
    book, of_base = catalogue(host), catalogue(base)
    for model in book.models.values():
        if model.name not in of_base.models:
            for rule in (name for name in OF_THE_CACHE if name in of_base.rules):
                rows = model.rows.get(rule) or book.rules[rule].rows
                assert rows is not of_base.rules[rule].rows, (model.id, rule)


ALIASES = """
mistral   mistral-medium-latest    2025-12-01  -
mistral   mistral-medium-latest    2025-12-02  mistral-medium-2508
mistral   mistral-medium-latest    2026-06-15  mistral-medium-2508
mistral   mistral-medium-latest    2026-06-16  mistral-medium-3-5
mistral   mistral-small-latest     2026-03-15  mistral-small-2506
mistral   mistral-small-latest     2026-03-16  mistral-small-2603
mistral   magistral-medium-latest  2026-11-11  magistral-medium-2509
mistral   magistral-medium-latest  2026-11-12  mistral-medium-3-5
mistral   devstral-medium-latest   2025-12-08  devstral-medium-2507
mistral   devstral-medium-latest   2025-12-09  devstral-2512
mistral   mistral-large-latest     2026-06-17  mistral-large-2512
deepseek  deepseek-chat            2026-04-23  deepseek-chat
deepseek  deepseek-chat            2026-04-24  deepseek-v4-flash
deepseek  deepseek-reasoner        2026-04-23  deepseek-reasoner
deepseek  deepseek-reasoner        2026-04-24  deepseek-v4-flash
"""


@pytest.mark.parametrize("line", ALIASES.strip().splitlines())
def test_an_alias_means_what_it_meant_on_the_day_of_the_call(line: str) -> None:
    host, name, day, model = line.split()
    if model == "-":
        with pytest.raises(
            CannotEvaluate, match=f"what '{name}' meant on host {host} on {day} is not known; known from"
        ):
            catalogue(host).model(name, date.fromisoformat(day))
    else:
        assert catalogue(host).model(name, date.fromisoformat(day)).name == model


ENDED = """
deepseek  deepseek-chat         2026-07-25
deepseek  deepseek-reasoner     2026-07-25
xai       grok-4                2026-05-15
xai       grok-4-fast           2026-05-15
xai       grok-4.1-fast         2026-05-15
xai       grok-3                2026-05-15
xai       grok-3-mini           None
moonshot  kimi-k2-0905-preview  2026-05-25
mistral   mistral-large-2411    2026-05-31
mistral   mistral-large-latest  None
"""


@pytest.mark.parametrize("line", ENDED.strip().splitlines())
def test_a_name_ends_on_its_day(line: str) -> None:
    host, name, day = line.split()
    assert str(RuleBook().rules(host, name).retired) == day


def test_every_alias_has_its_periods_in_order_and_a_model_that_is_out() -> None:
    for host in ALL_HOSTS:
        book = catalogue(host)
        for name, rows in book.aliases.items():
            assert all(one.start < other.start for one, other in pairwise(rows)), name
            assert all(row.end is None or row.start < row.end for row in rows), name
            assert all(book.models[row.model].released <= row.start for row in rows), (host, name)


STANDING = """
openai    gpt-5-codex                     grid
openai    gpt-6.2-sol                     breakpoint
xai       grok-4-fast-reasoning           grid
qwen      qwen3-max                       best_effort
qwen      qwen3-next-80b-a3b-instruct     none
bedrock   us.amazon.nova-pro-v1:0         breakpoint
bedrock   us.anthropic.claude-3-opus-20240229-v1:0  none
azure     gpt-5-mini                      grid
vertex    locations/us-central1/publishers/google/models/gemini-2.5-flash  best_effort
moonshot  kimi-k2-0711-preview            grid
groq      llama-3.3-70b-versatile         none
groq      kimi-k2-instruct-0905           best_effort
together  Kimi-K2-Instruct                none
fireworks accounts/fireworks/models/kimi-k2p5  best_effort
minimax   minimax-m2                      best_effort
"""


@pytest.mark.parametrize("line", STANDING.strip().splitlines())
def test_how_the_new_models_are_cached(line: str) -> None:
    host, name, matching = line.split()
    assert RuleBook().rules(host, name).matching == matching


def test_a_model_whose_cache_writes_have_no_price_has_rules_and_no_price() -> None:
    from cachecost.providers.prices import PriceBook

    with pytest.raises(CannotEvaluate) as caught:
        prices_of(PriceBook.load(), "openai", "gpt-6-astra-law", None, 1)
    assert str(caught.value) == "no price known for gpt-6-astra-law on host openai; give one with --prices"
