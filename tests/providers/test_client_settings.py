"""What a person can set in Claude Code: each step of the order that decides the TTL, the values that count, and the
files that win.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.providers.clients.settings import (
    client_settings,
    effective_ttl,
    key_value,
    merge_environment,
    messages_ttl,
    row_at,
    variable_value,
    version_key,
)

TABLE = client_settings()
FORCE = {"FORCE_PROMPT_CACHING_5M": "1"}
MAIN_1H = {"CLAUDE_CODE_PROMPT_CACHE_TTL": "1h"}
SIDE_1H = {"CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL": "1h"}
ENABLE = {"ENABLE_PROMPT_CACHING_1H": "1"}
BEDROCK = {"ENABLE_PROMPT_CACHING_1H_BEDROCK": "true"}


@pytest.mark.parametrize(
    ("settings", "environment", "more", "main", "side"),
    [
        ({}, {}, {}, ("5m", "default"), ("5m", "default")),
        ({}, ENABLE, {}, ("1h", "enable_1h_env"), ("1h", "enable_1h_env")),
        ({}, BEDROCK, {}, ("5m", "default"), ("5m", "default")),
        ({}, BEDROCK, {"host": "bedrock"}, ("1h", "enable_1h_env"), ("1h", "enable_1h_env")),
        ({}, ENABLE, {"agent_ttl": "5m"}, ("5m", "agent_frontmatter"), ("5m", "agent_frontmatter")),
        ({"promptCacheTtl": "1h"}, {}, {"agent_ttl": "5m"}, ("1h", "setting"), ("5m", "agent_frontmatter")),
        ({"subagentPromptCacheTtl": "1h"}, {}, {"agent_ttl": "5m"}, ("5m", "agent_frontmatter"), ("1h", "setting")),
        ({"promptCacheTtl": "5m"}, MAIN_1H, {}, ("1h", "env"), ("5m", "default")),
        ({"subagentPromptCacheTtl": "5m"}, SIDE_1H, {}, ("5m", "default"), ("1h", "env")),
        ({"promptCacheTtl": "1h"}, FORCE | MAIN_1H | ENABLE, {}, ("5m", "force_5m_env"), ("5m", "force_5m_env")),
        ({}, FORCE | {"DISABLE_PROMPT_CACHING": "1"}, {}, (None, "disabled"), (None, "disabled")),
    ],
)
def test_the_first_step_that_decides(
    settings: dict[str, Any], environment: dict[str, str], more: dict[str, Any], main: tuple[str], side: tuple[str]
) -> None:
    assert effective_ttl(settings, environment, is_main=True, is_subscription=False, **more) == main
    assert effective_ttl(settings, environment, is_main=False, is_subscription=False, **more) == side


@pytest.mark.parametrize(
    ("version", "main", "side"),
    [
        (None, ("1h", "subscriber"), ("5m", "default")),
        ("2.1.330", ("1h", "subscriber"), ("5m", "default")),
        ("2.1.44", ("1h", "subscriber"), ("5m", "default")),
        ("2.1.43", ("1h", "subscriber"), ("1h", "subscriber")),
        ("2.0.31", ("5m", "default"), ("5m", "default")),
    ],
)
def test_a_subscription_by_version(version: str | None, main: tuple[str], side: tuple[str]) -> None:
    assert effective_ttl({}, {}, True, True, version) == main
    assert effective_ttl({}, {}, False, True, version) == side


def test_extra_usage_is_paid_like_an_api_key() -> None:
    assert effective_ttl({}, {}, True, True, has_extra_usage=True) == ("5m", "default")
    assert effective_ttl({}, {}, False, True, agent_ttl="1h", has_extra_usage=True) == ("5m", "default")
    assert effective_ttl({}, {}, False, False, agent_ttl="1h", has_extra_usage=True) == ("1h", "agent_frontmatter")
    assert effective_ttl({}, ENABLE, True, True, has_extra_usage=True) == ("1h", "enable_1h_env")


@pytest.mark.parametrize(
    ("name", "environment", "settings"),
    [
        ("force_5m", FORCE | ENABLE, {}),
        ("enable_1h", ENABLE, {}),
        ("main_ttl", MAIN_1H, {}),
        ("main_ttl", {}, {"promptCacheTtl": "1h"}),
        ("disable_caching_fable", {"DISABLE_PROMPT_CACHING_FABLE": "1"}, {}),
    ],
)
def test_an_older_client_does_not_know_it(name: str, environment: dict[str, str], settings: dict[str, Any]) -> None:
    *first, last = version_key(TABLE.settings[name].since)
    since, before = (".".join(map(str, [*first, number])) for number in (last, last - 1))
    newest = effective_ttl(settings, environment, True, False, since, model="claude-fable-5")
    assert newest == effective_ttl(settings, environment, True, False, model="claude-fable-5")
    assert newest != effective_ttl(settings, environment, True, False, before, model="claude-fable-5")


@pytest.mark.parametrize("text", ["1", "true", " YES ", "on"])
def test_a_flag_is_set(text: str) -> None:
    assert effective_ttl({}, {"FORCE_PROMPT_CACHING_5M": text}, True, True).ttl == "5m"


@pytest.mark.parametrize("text", ["", "0", "false", "2", "5m"])
def test_a_flag_is_not_set(text: str) -> None:
    assert effective_ttl({}, {"FORCE_PROMPT_CACHING_5M": text}, True, True).ttl == "1h"


@pytest.mark.parametrize("wrong", ["2h", "1H", "", 60, True, None, ["1h"]])
def test_a_value_that_the_client_ignores(wrong: object) -> None:
    assert effective_ttl({"promptCacheTtl": wrong}, {}, True, False, agent_ttl=wrong) == ("5m", "default")
    assert effective_ttl({}, {"CLAUDE_CODE_PROMPT_CACHE_TTL": str(wrong)}, True, False) == ("5m", "default")


def test_caching_is_off_for_one_family() -> None:
    off = {"DISABLE_PROMPT_CACHING_OPUS": "1"}
    assert effective_ttl({}, off, True, False, model="claude-opus-5-5") == (None, "disabled")
    assert effective_ttl({}, off, True, False, model="claude-sonnet-5-5") == ("5m", "default")
    assert effective_ttl({}, off, True, False) == ("5m", "default")


def test_messages_may_expire_earlier() -> None:
    lower = {"CLAUDE_CODE_MESSAGES_PROMPT_CACHE_TTL": "5m"}
    assert messages_ttl("1h", lower) == "5m"
    assert messages_ttl("1h", lower, "2.1.282") == "1h"
    assert messages_ttl("1h", {"CLAUDE_CODE_MESSAGES_PROMPT_CACHE_TTL": "1h"}) == "1h"
    assert messages_ttl("5m", {}) == "5m"


def test_the_order_of_settings_files() -> None:
    assert [file.scope for file in TABLE.files] == ["managed", "flag", "local", "project", "user"]


def test_the_environment_of_the_settings_wins() -> None:
    assert merge_environment({"env": {"A": 1, "B": True}}, {"A": "0", "C": "c"}) == {"A": "1", "B": "true", "C": "c"}
    assert merge_environment({"env": "wrong"}, {"A": "0"}) == {"A": "0"}
    assert effective_ttl({"env": FORCE}, {"FORCE_PROMPT_CACHING_5M": "0"}, True, True).reason == "force_5m_env"


def test_what_is_set() -> None:
    window, compact = TABLE.settings["auto_compact_window"], TABLE.settings["auto_compact"]
    variable = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
    assert key_value(window, {"autoCompactWindow": 150_000}) == 150_000
    assert key_value(window, {"autoCompactWindow": "auto"}) == "auto"
    assert key_value(window, {"autoCompactWindow": True}) is None
    assert variable_value(window, {variable: "200k"}) == 200_000
    assert variable_value(window, {variable: "much"}) is None
    assert variable_value(window, {variable: "1M"}) == 1_000_000
    assert key_value(compact, {"autoCompactEnabled": False}) is False
    assert key_value(compact, {"autoCompactEnabled": "false"}) is None
    assert variable_value(compact, {}) is None


def test_every_row_has_a_source_and_a_place() -> None:
    for row in TABLE.settings.values():
        assert row.key or row.variable or row.frontmatter
        assert row.type in ("flag", "choice", "number", "text")
        assert bool(row.values) or row.type != "choice"
    sourced = [*TABLE.settings.values(), *TABLE.files, *TABLE.subscription_ttls]
    assert {row.source for row in sourced} <= set(TABLE.sources)
    for step in TABLE.ttl_steps:
        assert {step.main, step.side} <= set(TABLE.settings)
        assert step.origin in ("environment", "settings", "frontmatter")


def test_versions_are_compared_by_number() -> None:
    assert version_key("2.1.9") < version_key("2.1.10") < version_key("2.2") < version_key(None)
    assert version_key("2.1.9-beta.3") == (2, 1, 9)
    assert version_key("unknown") == version_key("")
    assert row_at([], "2.1.9") is None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), min_size=1),
    st.tuples(st.integers(0, 3), st.integers(0, 20)),
)
def test_the_row_that_holds_is_the_latest_that_began(versions: list[tuple[int, int]], at: tuple[int, int]) -> None:
    class Since:
        def __init__(self, version: tuple[int, int]) -> None:
            self.since = ".".join(map(str, version))

    found = row_at([Since(version) for version in versions], ".".join(map(str, at)))
    begun = [version for version in versions if version <= at]
    assert (found.since if found else None) == (".".join(map(str, max(begun))) if begun else None)
