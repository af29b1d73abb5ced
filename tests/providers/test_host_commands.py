"""`cachecost models` and `rules` on every host that has rules."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from cachecost.commands.listings import models, rules
from cachecost.providers.hosts import hosts

HOSTS = [host for host in hosts() if host in {"anthropic", "bedrock", "foundry", "google-cloud"}]


def printed(command: Any, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*options, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.mark.parametrize("host", HOSTS)
def test_models_with_rules_and_prices_each_with_its_source(host: str) -> None:
    rows = printed(models, "--host", host)["models"]
    assert len(rows) > 15
    assert all(row["host"] == host and row["source"] and row["prices"]["source"] for row in rows)


@pytest.mark.parametrize("host", HOSTS)
def test_rules_each_with_its_source(host: str) -> None:
    rows = printed(rules, "--host", host)["rules"]
    assert all(row["host"] == host and row["source"] and row["source_date"] for row in rows)
    inherited = [row for row in rows if row["as_on"]]
    assert {row["as_on"] for row in inherited} == (set() if host == "anthropic" else {"anthropic"})


def test_models_of_a_day_before_the_host_had_any() -> None:
    assert printed(models, "--host", "foundry", "--as-of", "2025-11-17")["models"] == []


def test_the_default_of_bedrock_is_told_among_the_switches() -> None:
    (row,) = (row for row in printed(rules, "--assumptions")["assumptions"] if row["name"] == "thinking_rendered_at")
    assert [(own["host"], own["value"]) for own in row["hosts"]] == [("bedrock", "tools")]
