"""Switches from what a user writes, and the table that tells what they mean."""

import dataclasses
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.providers.assumptions import Assumptions, assumptions_from, read_assumptions, show_assumption
from cachecost.providers.hosts import hosts
from cachecost.providers.listing import assumption_rows

GOOD = [
    ("lookback_runs", "counted", "counted"),
    ("ttl_in_key", "true", True),
    ("ttl_in_key", True, True),
    ("ttl_in_key", "false", False),
    ("visibility_lag_s", "1.5", 1.5),
    ("visibility_lag_s", 2, 2.0),
    ("visibility_lag_probability", "0.3", 0.3),
    ("visibility_lag_probability", "0", 0.0),
    ("early_eviction_probability", 1, 1.0),
    ("seed", "33", 33),
    ("seed", 2**70, 2**70),
]


@pytest.mark.parametrize(("name", "value", "meant"), GOOD)
def test_a_value_as_written(name: str, value: object, meant: object) -> None:
    found = getattr(assumptions_from({name: value}), name)
    assert found == meant
    assert type(found) is type(meant)


NAMES = (
    "tool_choice_invalidation, thinking_rendered_at, structured_output_at, lookback_runs, "
    "shallow_breakpoints, ttl_in_key, "
    "visibility_lag_s, visibility_lag_probability, visibility_lag_by_date, early_eviction_probability, warm_start, "
    "seed, "
    "openai_boundaries, openai_developer_end, openai_reads, deepseek_unit, schema_in_prompt, capacity_tokens, "
    "step_tokens"
)
BOTH = "expected one of false, true"
RUNS = "expected one of by_date, collapsed, counted"
SHARE = "expected a number from 0 to 1"
WHOLE = "expected a whole number from 0"
BAD = [
    ("lookback_run", "counted", f"unknown rule (did you mean 'lookback_runs'?); expected one of {NAMES}"),
    ("lookback_runs", "count", f"{RUNS}; got 'count' (did you mean 'counted'?)"),
    ("lookback_runs", 1, f"{RUNS}; got 1"),
    ("ttl_in_key", "yes", f"{BOTH}; got 'yes'"),
    ("ttl_in_key", 1, f"{BOTH}; got 1"),
    ("shallow_breakpoints", True, "expected one of rewrite, refresh, ignore; got True"),
    ("visibility_lag_probability", "1.01", f"{SHARE}; got '1.01'"),
    ("visibility_lag_probability", -0.01, f"{SHARE}; got -0.01"),
    ("visibility_lag_probability", "nan", f"{SHARE}; got 'nan'"),
    ("visibility_lag_probability", True, f"{SHARE}; got True"),
    ("visibility_lag_s", "inf", "expected a number from 0; got 'inf'"),
    ("visibility_lag_s", 10**400, f"expected a number from 0; got {10**400}"),
    ("seed", "1.5", f"{WHOLE}; got '1.5'"),
    ("seed", 1.5, f"{WHOLE}; got 1.5"),
    ("seed", -1, f"{WHOLE}; got -1"),
    ("seed", None, f"{WHOLE}; got None"),
]


@pytest.mark.parametrize(("name", "value", "text"), BAD)
def test_what_is_not_a_reading(name: str, value: object, text: str) -> None:
    assert read_assumptions({name: value}) == (Assumptions(), {name: f"{name}: {text}"})
    with pytest.raises(InputError) as caught:
        assumptions_from([(name, value)], "mine.yaml")
    assert list(map(str, caught.value.faults)) == [f"mine.yaml {name}: {text}"]


def test_all_faults_at_once() -> None:
    with pytest.raises(InputError) as caught:
        assumptions_from([("seed", "x"), ("ttl_in_keys", "true"), ("lookback_runs", "counted")])
    assert [fault.file for fault in caught.value.faults] == ["--rule", "--rule"]


def test_nothing_given_is_the_default() -> None:
    assert assumptions_from({}) == Assumptions()


def test_the_table_and_the_type_agree() -> None:
    """Names, order and defaults; the first reading of each is the default."""
    table = [(row.name, row.default) for row in assumption_rows()]
    fields = [field for field in dataclasses.fields(Assumptions) if field.name != "given"]
    assert table == [(field.name, show_assumption(field.default)) for field in fields]


def test_each_reading_is_accepted_and_sourced() -> None:
    for row in assumption_rows():
        for reading in row.readings:
            assert show_assumption(getattr(assumptions_from({row.name: reading.value}), row.name)) == reading.value
            assert reading.means and reading.source


RULEBOOK = {
    "tool_choice_invalidation": ["rendered_class", "any_change", "never"],
    "thinking_rendered_at": ["messages", "tools"],
    "structured_output_at": ["system", "tools"],
    "lookback_runs": ["by_date", "collapsed", "counted"],
    "shallow_breakpoints": ["rewrite", "refresh", "ignore"],
    "ttl_in_key": ["false", "true"],
}


@pytest.mark.parametrize(("name", "values"), RULEBOOK.items())
def test_the_closed_lists_of_the_rulebook(name: str, values: list[str]) -> None:
    (row,) = (row for row in assumption_rows() if row.name == name)
    assert [reading.value for reading in row.readings] == values
    assert row.number is None


@given(st.floats(0, 1) | st.decimals(0, 1, places=3).map(float))
def test_a_probability_survives_being_written(probability: float) -> None:
    assumptions = assumptions_from({"early_eviction_probability": str(probability)})
    assert Decimal(assumptions.early_eviction_probability) == Decimal(probability)


BY_HOST = [
    ({}, "anthropic", "messages"),
    ({}, "google-cloud", "messages"),
    ({}, "bedrock", "tools"),
    ({"thinking_rendered_at": "messages"}, "bedrock", "messages"),
    ({"thinking_rendered_at": "tools"}, "anthropic", "tools"),
    ({"lookback_runs": "counted"}, "bedrock", "tools"),
]


@pytest.mark.parametrize(("given", "host", "reading"), BY_HOST)
def test_a_host_has_defaults_of_its_own_where_the_user_asks_for_nothing(
    given: dict[str, str], host: str, reading: str
) -> None:
    on = assumptions_from(given).on(host)
    assert on.thinking_rendered_at == reading
    assert on.lookback_runs == given.get("lookback_runs", "by_date")


def test_switches_that_a_host_leaves_alone_are_the_same_object() -> None:
    assumptions = Assumptions(ttl_in_key=True)
    assert assumptions.on("anthropic") is assumptions


def test_asking_for_the_default_is_no_other_reading() -> None:
    asked = assumptions_from({"thinking_rendered_at": "messages"})
    assert asked == Assumptions()
    assert asked.given == {"thinking_rendered_at"}


def test_the_default_of_a_host_is_one_of_the_readings_and_says_who_says_so() -> None:
    (row,) = (row for row in assumption_rows() if row.name == "thinking_rendered_at")
    (own,) = row.hosts
    assert (own.host, own.value, own.source_date) == ("bedrock", "tools", date(2026, 10, 15))
    assert own.value in [reading.value for reading in row.readings]
    means = {reading.value: reading.means for reading in row.readings}
    assert means["tools"].endswith(f"; the default on bedrock: {own.source} (2026-10-15)")
    assert "bedrock" not in means["messages"]


def test_every_host_that_a_switch_names_has_rules() -> None:
    for row in assumption_rows():
        for own in row.hosts:
            assert own.host in hosts()
            assert own.value in [reading.value for reading in row.readings] and own.value != row.default
