"""Every host answers for itself: evaluated, or told in words what is not known; never by another's rules or prices."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from host_logs import ask, body, every, write_log
from host_models import MODELS

from bodies import assistant, text, user
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.providers import prices as pricing
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.listing import model_rows, rule_rows
from cachecost.providers.pricerows import Sheet, load_shipped
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import RuleBook
from price_queries import prices_of

ASKED, ANSWERED, THEN = user(text(3_000, "a")), assistant(text(100, "b")), user(text(200, "c"))
CALLS = every(10, body(ASKED), body(ASKED, ANSWERED, THEN))
DAY = date(2026, 11, 21)
BASED = {
    **dict.fromkeys(("bedrock", "google-cloud", "foundry", "openrouter"), "anthropic"),
    "azure": "openai",
    "vertex": "gemini",
}
"""Hosts of another's models, and whose: what they do not say holds as there."""
OWN_SERVERS = {"vllm", "sglang"}


def test_every_host_is_in_the_table() -> None:
    assert {host for host, _ in MODELS} == set(hosts())


@pytest.mark.parametrize(("host", "model"), MODELS)
def test_a_small_log_is_evaluated_or_what_is_missing_is_named(tmp_path: Path, host: str, model: str) -> None:
    log = write_log(tmp_path / "log.jsonl", model, CALLS)
    result = ask("replay", log, "--host", host, "--tokens", "bytes", "--json")
    assert len(result.rows) == 2
    if host in OWN_SERVERS and result.code == 3:
        assert all(row["error"]["message"].startswith(f"no price known for {model} on") for row in result.rows)
        return
    assert result.code == 0, result
    assert all(row["usage"]["output_tokens"] == 0 for row in result.rows)


UNKNOWN = """
anthropic     claude-opus-5-6           claude-opus-5-5
bedrock       claude-opus-5-6           claude-opus-5-5
google-cloud  claude-opus-5-6           claude-opus-5-5
foundry       claude-opus-5-6           claude-opus-5-5
openrouter    anthropic/claude-opus-6   claude-opus-4-6
openrouter    openai/gpt-6.1-terra      openai/gpt-6.1-sol
openai        gpt-6.3-sol               gpt-6.2-sol
openai        claude-opus-5-5           -
openai        gpt-5.5-explicit          gpt-5.5-pro
gemini        gemini-3.9-flash          gemini-3.8-flash
gemini        gemini-4-argon-explicit   gemini-4-argon
deepseek      deepseek-flsh             deepseek-flash
xai           grok-4.8                  grok-4.7
mistral       mistral-large-5           mistral-large-4
qwen          qwen3.9-max               qwen3.8-max
minimax       MiniMax-M4                MiniMax-M3
minimax       MiniMax-M3-explicit       MiniMax-M3
azure         gpt-6.3-sol               gpt-6.2-sol
vertex        gemini-3.9-flash          gemini-3.8-flash
moonshot      kimi-k3.2-pro             kimi-k3.1-pro
zai           glm-5.4                   glm-5.3
groq          openai/gpt-oss-21b        openai/gpt-oss-20b
together      zai-org/GLM-5.4           zai-org/GLM-5.3
fireworks     kimi-k2p8                 kimi-k2p6
cerebras      gpt-oss-121b              gpt-oss-120b
xai           grok-5-fast               grok-3-fast
mistral       mistral-large-6           mistral-large-4
bedrock       amazon.nova-3-pro         nova-pro
qwen          qwen3-next-80b-a3b-base   qwen3-next-80b-a3b-instruct
"""


@pytest.mark.parametrize("line", UNKNOWN.strip().splitlines())
def test_an_unknown_model_is_told_with_the_nearest_and_exit_code_3(tmp_path: Path, line: str) -> None:
    host, model, near = line.split()
    log = write_log(tmp_path / "log.jsonl", model, CALLS)
    result = ask("replay", log, "--host", host, "--tokens", "bytes", "--json")
    guess = "" if near == "-" else f" (did you mean '{near}'?)"
    assert result.code == 3
    assert [row["error"]["message"] for row in result.rows] == [f"unknown model '{model}' on host {host}{guess}"] * 2


def test_only_hosts_of_anothers_models_take_rules_from_another() -> None:
    assert {host: catalogue(host).base for host in hosts() if catalogue(host).base} == BASED


@pytest.mark.parametrize("host", sorted(set(hosts()) - set(BASED)))
def test_every_rule_of_a_host_is_said_of_it_and_sourced(host: str) -> None:
    assert all(row.host == host and row.source and row.as_on is None for row in rule_rows(host))


def only(sheet: Sheet, kept: set[str]) -> Sheet:
    """The sheet without the prices of other hosts."""
    return replace(
        sheet,
        rows={key: rows for key, rows in sheet.rows.items() if key[0] in kept},
        modifiers=tuple(row for row in sheet.modifiers if kept.issuperset(row.hosts)),
        instead=tuple(row for row in sheet.instead if kept.issuperset(row.hosts)),
        storage=tuple(row for row in sheet.storage if kept.issuperset(row.hosts)),
        peaks=tuple(row for row in sheet.peaks if kept.issuperset(row.hosts)),
    )


def quoted(book: PriceBook, host: str, model: str) -> Prices | str:
    try:
        return prices_of(book, host, model, DAY, 250_000)
    except CannotEvaluate as error:
        return str(error)


@pytest.mark.parametrize("host", hosts())
def test_no_price_of_a_host_comes_from_another_but_by_a_sourced_row(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """All other hosts' prices taken away, but those that a `[[same]]` row names, nothing changes."""
    book = PriceBook()
    said = {row.base for sheet in load_shipped() for row in sheet.same if host in row.hosts}
    assert said <= {BASED.get(host)}
    sheets = tuple(only(sheet, {host} | said) for sheet in load_shipped())
    monkeypatch.setattr(pricing, "load_shipped", lambda: sheets)
    alone = PriceBook()
    models = [row.id for row in model_rows(RuleBook(as_of=DAY), host)]
    assert models
    assert [quoted(alone, host, model) for model in models] == [quoted(book, host, model) for model in models]


def test_a_price_from_another_host_says_so() -> None:
    """Foundry and Azure have no price list of their own; hosts of other makers take nothing from anywhere."""
    book = PriceBook()
    stated = {
        host: [quoted(book, host, row.id) for row in model_rows(RuleBook(as_of=DAY), host)]
        for host in sorted(set(hosts()) - (set(BASED) - {"foundry", "azure"}))
    }
    assert all("as on anthropic (" in str(one) for one in stated.pop("foundry"))
    unpriced = "no price known for gpt-6-astra-law"
    own = "Azure retail prices"
    assert all(
        "as on openai (" in str(one) or own in str(one) or str(one).startswith(unpriced) for one in stated.pop("azure")
    )
    assert not [one for prices in stated.values() for one in prices if "as on" in str(one)]


@pytest.mark.parametrize("host", sorted(BASED))
def test_a_rule_from_another_host_says_so(host: str) -> None:
    assert {row.as_on for row in rule_rows(host)} == {None, BASED[host]}
