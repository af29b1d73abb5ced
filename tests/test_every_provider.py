"""The scenario `every-provider`: what its report says of each host, and the table of `best-per-provider` held to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from cachecost.prompts.blocks import NOTHING, Thread
from cachecost.prompts.output_format import host_cache_keys
from cachecost.prompts.request import Request
from cachecost.providers.assumptions import assumption_table, assumptions_from
from cachecost.providers.hosts import hosts
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.strategies.presets import best_table, find_best

REPORT = Path(__file__).parents[1] / "reports" / "every-provider" / "result.json"
CHOOSER = "best-per-provider"
FORMAT = {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}
NOT_IN_IT = {"vllm", "sglang", "groq", "cerebras"}
"""Hosts without prices, and such whose models' windows do not hold the first question of the session."""
Costs = dict[str, Decimal]


@cache
def readings() -> dict[tuple[str, str], list[Costs]]:
    """By host and model, the dollars of each strategy that was answered, under each reading in the report."""
    said = json.loads(REPORT.read_text(encoding="utf-8"))
    found: dict[tuple[str, str], list[Costs]] = {}
    for each in [said, *said["variants"]]:
        if each["rules"].get("schema_in_prompt") != "not_in_it":  # contradicts what was measured
            costs = {one["name"]: Decimal(one["cost_usd"]) for one in each["strategies"] if not one["errors"]}
            found.setdefault((each["host"], each["model"]), []).append(costs)
    return found


def rules(host: str, model: str, **assumptions: str) -> ModelRules:
    return RuleBook(assumptions_from(assumptions)).rules(host, model)


@pytest.mark.parametrize(("host", "model"), readings(), ids="/".join)
def test_each_row_is_the_way_whose_dearer_reading_costs_the_least(host: str, model: str) -> None:
    readings_of_model = readings()[host, model]
    worst = {name: max(costs[name] for costs in readings_of_model) for name in readings_of_model[0] if name != CHOOSER}
    assert find_best(rules(host, model)).strategy == min(worst, key=lambda name: worst[name])


@pytest.mark.parametrize(("host", "model"), readings(), ids="/".join)
def test_the_strategy_costs_what_the_way_that_it_takes_costs(host: str, model: str) -> None:
    chosen = find_best(rules(host, model)).strategy
    assert all(costs[CHOOSER] == costs[chosen] for costs in readings()[host, model])


def test_what_is_not_published_is_told_under_both_readings() -> None:
    both = {host for (host, _), costs in readings().items() if len(costs) == 2}
    assert both == {
        *("deepseek", "xai", "mistral", "qwen", "minimax", "moonshot", "zai", "together", "fireworks"),
    }


def test_every_host_has_a_row_and_every_row_a_host() -> None:
    assert {row.host for row in best_table()} == set(hosts())
    assert {host for host, _ in readings()} == set(hosts()) - NOT_IN_IT
    assert all(row.why for row in best_table())


def test_a_tool_is_never_far_from_the_best() -> None:
    """The sentence of the page: at most 4.4% more, whatever is true."""
    tools = ("answer_inquiry, forced", "answer tool, auto")
    dearer = [
        min(costs[name] for name in tools if name in costs) / min(costs.values()) - 1
        for listed in readings().values()
        for costs in listed
    ]
    assert Decimal("0.0435") <= max(dearer) < Decimal("0.0445")


def test_a_schema_breaks_the_cache_where_the_rows_say_so() -> None:
    """Dollars of the same question with a schema, over those with a forced tool."""
    ratios = {
        (host, model): costs[0]["structured output, same tools"] / costs[0]["answer_inquiry, forced"]
        for (host, model), costs in readings().items()
        if "answer_inquiry, forced" in costs[0] and host in ("openai", "gemini")
    }
    broken = {model for (_, model), ratio in ratios.items() if ratio > Decimal("1.5")}
    assert broken == {"gpt-6.1-sol", "gpt-5.4", "gemini-3.8-flash"}


def salted(host: str, model: str, reading: str) -> tuple[bool, ...]:
    """By layer, whether a response schema stands at its head."""
    found = rules(host, model, schema_in_prompt=reading)
    with_schema, without = (Request("m", Thread(), NOTHING, NOTHING, params=params) for params in (FORMAT, {}))
    assert found.keyed_by is not None
    pairs = zip(
        host_cache_keys(with_schema, found, found.keyed_by),
        host_cache_keys(without, found, found.keyed_by),
        strict=True,
    )
    return tuple(one != other for one, other in pairs)


NOWHERE, FIRST, AFTER_THE_OBJECT = (False, False, False), (True, False, False), (False, False, True)


@pytest.mark.parametrize(
    ("host", "model", "stated", "at_the_head"),
    [
        ("openai", "gpt-6.1-sol", FIRST, FIRST),
        ("openai", "gpt-5.4", FIRST, FIRST),
        ("gemini", "gemini-3.8-flash", FIRST, FIRST),
        ("gemini", "gemini-3.8-flash-explicit", NOWHERE, AFTER_THE_OBJECT),
        ("deepseek", "deepseek-flash", NOWHERE, FIRST),
        ("xai", "grok-4.7", NOWHERE, FIRST),
        ("mistral", "mistral-large-4", NOWHERE, FIRST),
        ("qwen", "qwen3.8-max", NOWHERE, FIRST),
        ("minimax", "MiniMax-M3", NOWHERE, FIRST),
        ("vllm", "x", NOWHERE, FIRST),
    ],
)
def test_where_a_schema_stands(host: str, model: str, stated: tuple[bool, ...], at_the_head: tuple[bool, ...]) -> None:
    assert salted(host, model, "as_stated") == stated
    assert salted(host, model, "at_the_head") == at_the_head
    assert salted(host, model, "not_in_it") == NOWHERE


def _unsalted() -> Iterator[str]:
    """The hosts that serve no Claude, whose assumptions say what is in its keys."""
    from cachecost.providers.hosts import catalogue

    rules = RuleBook()
    for host in hosts():
        models = [name.replace("*", "x") for name in catalogue(host).models]
        if all(rules.rules(host, name).keyed_by is not None for name in models):
            yield host


def test_the_switch_is_told_on_the_hosts_that_it_is_of_any_matter_on() -> None:
    switch = next(entry for entry in assumption_table()["assumption"] if entry["name"] == "schema_in_prompt")
    assert sorted(switch["only_on"]) == sorted(_unsalted())
