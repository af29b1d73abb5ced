"""Rules of the hosts that serve another's models: what they say themselves, by day, and what holds as on their base."""

from datetime import date, timedelta

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.hosts import FOLDER, catalogue, hosts
from cachecost.providers.listing import rule_rows
from cachecost.providers.rules import ModelRules, RuleBook

BASE = "anthropic"
OTHERS = [host for host in hosts() if catalogue(host).base == BASE]
BOOK = RuleBook()


def models_of_base(host: str) -> list[str]:
    """The models of the host that its base has too: Bedrock also serves Amazon's own."""
    return [name for name in catalogue(host).models if name in catalogue(BASE).models]


def rules(host: str, model: str, day: str | None = None) -> ModelRules:
    return BOOK.rules(host, model, date.fromisoformat(day) if day else None)


def test_the_hosts_over_anthropic() -> None:
    assert {"bedrock", "foundry", "google-cloud"} <= set(OTHERS)


BEDROCK_MINIMUMS = """
claude-haiku-5-5       2026-10-07  512
claude-opus-5-5        2026-09-22  512
claude-fable-5-1       2026-09-01  512
claude-opus-5          2026-07-24  512
claude-fable-5         2026-06-09  1024
claude-fable-5         2026-07-25  1024
claude-fable-5         2026-07-26  512
claude-mythos-5        2026-07-25  1024
claude-mythos-5        2026-07-26  512
claude-sonnet-5        2026-06-30  1024
claude-opus-4-8        2026-11-21  1024
claude-opus-4-7        2026-06-09  4096
claude-opus-4-7        2026-06-10  4096
claude-opus-4-7        2026-11-21  4096
claude-mythos-preview  2026-11-21  4096
claude-sonnet-4-6      2026-02-26  1024
claude-sonnet-4-6      2026-04-29  2048
claude-sonnet-4-6      2026-05-14  1024
claude-sonnet-4-5      2026-08-11  1024
claude-opus-4-6        2026-03-07  4096
claude-haiku-4-5       2026-01-13  4096
claude-opus-4-1        2025-12-30  1024
claude-3-5-haiku       2025-04-07  2048
"""


@pytest.mark.parametrize("line", BEDROCK_MINIMUMS.strip().splitlines())
def test_the_minimum_on_bedrock_is_amazons(line: str) -> None:
    model, day, minimum = line.split()
    assert rules("bedrock", model, day).minimum_tokens == int(minimum)


def test_every_minimum_on_bedrock_but_the_newest_is_stated_for_bedrock() -> None:
    inherited = {row.model for row in rule_rows("bedrock") if row.rule == "minimum_tokens" and row.as_on}
    assert inherited == {"claude-fable-5-2", "claude-mythos-5-2", "claude-3-opus", "claude-3-haiku"}


@pytest.mark.parametrize("host", ["google-cloud", "foundry"])
def test_the_minimum_on_google_cloud_and_foundry_is_anthropics(host: str) -> None:
    for model in catalogue(host).models:
        start = catalogue(host).models[model].released
        for day in (start, date(2026, 3, 1), date(2026, 6, 9), date(2026, 6, 10), date(2026, 11, 21)):
            if day >= start:
                assert BOOK.rules(host, model, day).minimum_tokens == BOOK.rules(BASE, model, day).minimum_tokens


BY_HOST = """
anthropic     workspace     20  True   messages
foundry       workspace     20  False  messages
google-cloud  organization  20  False  messages
bedrock       organization  22  False  tools
"""


@pytest.mark.parametrize("line", BY_HOST.strip().splitlines())
def test_what_holds_for_every_model_of_a_host(line: str) -> None:
    host, scope, positions, collapses, thinking_at = line.split()
    for model in models_of_base(host):
        found = rules(host, model)
        assert (found.scope, found.lookback_positions) == (scope, int(positions))
        assert str(found.collapses_runs) == collapses
        assert found.assumptions.thinking_rendered_at == thinking_at


def test_runs_stay_uncollapsed_off_the_claude_api_on_both_sides_of_its_day() -> None:
    for day in ("2026-08-31", "2026-09-01"):
        assert not rules("bedrock", "claude-opus-4-8", day).collapses_runs
        assert not rules("google-cloud", "claude-opus-4-8", day).collapses_runs
        assert not rules("foundry", "claude-opus-4-8", day).collapses_runs
        assert not rules("openrouter", "claude-opus-4-8", day).collapses_runs
    assert rules("anthropic", "claude-opus-4-8", "2026-09-01").collapses_runs


AUTOMATIC = """
anthropic     claude-opus-4-6   2026-11-21  True
foundry       claude-opus-4-6   2026-11-21  True
google-cloud  claude-opus-4-6   2026-07-06  False
google-cloud  claude-opus-4-6   2026-07-07  True
bedrock       claude-opus-4-6   2026-11-21  False
bedrock       claude-sonnet-4-6 2026-11-21  False
bedrock       claude-haiku-4-5  2026-11-21  False
bedrock       claude-opus-4-7   2026-08-06  False
bedrock       claude-opus-4-7   2026-08-07  True
bedrock       claude-sonnet-5-5 2026-11-21  True
"""


@pytest.mark.parametrize("line", AUTOMATIC.strip().splitlines())
def test_where_automatic_caching_is_answered(line: str) -> None:
    host, model, day, accepted = line.split()
    assert str(rules(host, model, day).accepts_automatic) == accepted


HOURS = """
bedrock       claude-sonnet-4-5  2026-01-25  5m
bedrock       claude-sonnet-4-5  2026-01-26  5m,1h
bedrock       claude-opus-4-6    2026-03-10  5m,1h
bedrock       claude-opus-4-1    2026-11-21  5m
bedrock       claude-sonnet-4    2026-02-20  5m
bedrock       claude-3-7-sonnet  2026-02-20  5m
google-cloud  claude-sonnet-4    2026-02-20  5m,1h
foundry       claude-opus-4-1    2026-02-20  5m,1h
anthropic     claude-opus-4-1    2026-02-20  5m,1h
"""


@pytest.mark.parametrize("line", HOURS.strip().splitlines())
def test_which_lifetimes_a_breakpoint_may_ask_for(line: str) -> None:
    host, model, day, ttls = line.split()
    assert rules(host, model, day).accepted_ttls == tuple(ttls.split(","))


PARAMETERS = (
    "accepts_system_messages",
    "accepted_efforts",
    "accepted_thinking",
    "efforts_without_thinking",
    "accepts_fast",
    "accepts_inference_geo",
    "prewarming_excludes",
    "fast_excludes",
    "format_excludes",
)
"""What OpenRouter drops where a model does not take it."""


@pytest.mark.parametrize("host", OTHERS)
def test_what_a_host_does_not_say_holds_as_on_its_base(host: str) -> None:
    """Every other field is the base's, for each model on each day of the year."""
    own = {"host", "minimum_tokens", "collapses_runs", "scope", "lookback_positions", "assumptions", "retired", "day",
           "accepts_automatic", "accepted_ttls", "accepts_threads", "accepts_compaction", "endpoint",
           "accepts_message_effort", *(["effort_layer", "accepts_fast"] if host == "bedrock" else []),
           *(PARAMETERS if host == "openrouter" else [])}  # fmt: skip
    uncached = {"claude-3-opus", "claude-3-haiku"} if host == "bedrock" else set()
    for model in set(models_of_base(host)) - uncached:
        for day in (date(2026, 3, 7), date(2026, 11, 21)):
            if catalogue(host).models[model].released <= day:
                there, here = BOOK.rules(BASE, model, day), BOOK.rules(host, model, day)
                assert all(
                    getattr(there, name) == getattr(here, name) for name in ModelRules.__slots__ if name not in own
                )


@pytest.mark.parametrize("host", OTHERS)
def test_an_inherited_row_tells_whose_it_is(host: str) -> None:
    base = {(row.rule, row.model, str(row.value), row.start) for row in rule_rows(BASE) if not row.refuted_by}
    for row in rule_rows(host):
        key = (row.rule, row.model, str(row.value), row.start)
        assert row.host == host and row.source and row.source_date <= date(2026, 11, 28) and row.meaning
        assert row.as_on in (None, BASE)
        assert row.as_on is None or key in base
    assert {row.rule for row in rule_rows(host) if row.as_on} >= {"ttl_s", "maximum_breakpoints", "tool_prompt"}


def histories(host: str) -> dict[tuple[str, str], list[tuple[str, date, str]]]:
    """The rows that a host states itself, by rule and model."""
    found: dict[tuple[str, str], list[tuple[str, date, str]]] = {}
    for row in rule_rows(host):
        if not row.as_on and not row.refuted_by:
            found.setdefault((row.rule, row.model), []).append((str(row.value), row.start, row.source))
    return found


@pytest.mark.parametrize("host", OTHERS)
def test_no_host_file_copies_its_base(host: str) -> None:
    """A history that says what the base says, from the same sources, is one too many."""
    base, mine = histories(BASE), histories(host)
    assert not [key for key, rows in mine.items() if rows == base.get(key)]
    ours, _, _ = (FOLDER / f"{host}.toml").read_text(encoding="utf-8").partition("# ---- Other makers' models")
    assert len(ours.splitlines()) < (480 if host == "bedrock" else 270)


@pytest.mark.parametrize("host", OTHERS)
def test_every_model_has_every_rule_from_its_first_day_there_on(host: str) -> None:
    for model in catalogue(host).models.values():
        for day in (model.released, date(2026, 11, 21)):
            assert BOOK.rules(host, model.id, day).model == model.id
        with pytest.raises(
            CannotEvaluate,
            match=f"{model.id} has no rules on .*; known from {model.released}: --as-of ",
        ):
            BOOK.rules(host, model.id, model.released - timedelta(days=1))


STARTS = [
    ("bedrock", "claude-opus-4", date(2025, 5, 22)),
    ("bedrock", "claude-opus-4-1", date(2025, 8, 5)),
    ("google-cloud", "claude-3-opus", date(2025, 1, 12)),
    ("foundry", "claude-sonnet-4-5", date(2025, 11, 18)),
    ("foundry", "claude-opus-4-5", date(2025, 11, 24)),
]


@pytest.mark.parametrize(("host", "model", "day"), STARTS)
def test_a_host_starts_with_its_first_day_of_prompt_caching(host: str, model: str, day: date) -> None:
    assert catalogue(host).models[model].released == day


LACKING = [
    ("foundry", "claude-3-haiku", "unknown model 'claude-3-haiku' on host foundry"),
    ("foundry", "claude-sonnet-4", "unknown model 'claude-sonnet-4' on host foundry"),
    ("foundry", "claude-mythos-5-1", "unknown model 'claude-mythos-5-1' on host foundry"),
]


@pytest.mark.parametrize(("host", "model", "text"), LACKING)
def test_a_model_that_a_host_lacks(host: str, model: str, text: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        rules(host, model)
    assert str(caught.value).startswith(text)


UNCACHED = [
    ("claude-3-opus", "2024-04-16", "none"),
    ("claude-3-opus", "2026-11-21", "none"),
    ("claude-3-5-sonnet", "2024-06-20", "none"),
    ("claude-3-5-sonnet", "2025-04-06", "none"),
    ("claude-3-5-sonnet", "2025-04-07", "breakpoint"),
    ("claude-3-5-haiku", "2025-04-06", "none"),
    ("claude-3-5-haiku", "2025-04-07", "breakpoint"),
    ("claude-3-7-sonnet", "2025-04-06", "none"),
    ("claude-3-7-sonnet", "2025-04-07", "breakpoint"),
]


@pytest.mark.parametrize(("model", "day", "matching"), UNCACHED)
def test_bedrock_served_models_before_it_cached_prompts(model: str, day: str, matching: str) -> None:
    assert rules("bedrock", model, day).matching == matching


RETIRED = [
    ("anthropic", "claude-sonnet-4", date(2026, 6, 15)),
    ("bedrock", "claude-sonnet-4", date(2026, 10, 14)),
    ("bedrock", "claude-opus-4-1", date(2027, 1, 8)),
    ("bedrock", "claude-3-5-sonnet", None),
    ("google-cloud", "claude-sonnet-4", None),
    ("foundry", "claude-opus-4-1", date(2026, 8, 5)),
]


@pytest.mark.parametrize(("host", "model", "day"), RETIRED)
def test_each_host_retires_for_itself(host: str, model: str, day: date | None) -> None:
    assert rules(host, model).retired == day


POOLS = [
    ("anthropic", "2026-11-21", "a", "anthropic/a"),
    ("anthropic", "2026-02-05", "a", "anthropic/a"),
    ("anthropic", "2026-02-04", "a", "anthropic/"),
    ("foundry", "2026-11-21", "a", "foundry/a"),
    ("google-cloud", "2026-11-21", "a", "google-cloud/"),
    ("bedrock", "2026-11-21", "b", "bedrock/"),
]


@pytest.mark.parametrize(("host", "day", "workspace", "pool"), POOLS)
def test_who_shares_entries_by_host_and_day(host: str, day: str, workspace: str, pool: str) -> None:
    assert rules(host, "claude-opus-4-5", day).pool(workspace) == pool


def test_what_was_published_and_refuted_on_bedrock() -> None:
    refuted = {(row.rule, row.model): row for row in rule_rows("bedrock") if row.refuted_by}
    assert {key: row.value for key, row in refuted.items()} == {
        ("lookback_positions", "*"): 20,
        ("minimum_tokens", "claude-sonnet-4-5"): 4096,
        ("minimum_tokens", "claude-sonnet-4-6"): 2048,
        ("accepted_ttls", "claude-opus-4-6"): ["5m"],
    }
    for (rule, model), row in refuted.items():
        used = rules("bedrock", "claude-opus-5" if model == "*" else model, str(row.end))
        assert getattr(used, rule) not in (row.value, tuple(row.value) if isinstance(row.value, list) else row.value)
