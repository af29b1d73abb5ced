"""Under every reading of every switch, the probe finds that reading; where it cannot, it says why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from probe_bench import tried

from cachecost.prompts import blocks, render
from cachecost.prompts.request import Request
from cachecost.providers.assumptions import assumption_table
from cachecost.providers.rules import ModelRules

FORCES = "claude-sonnet-4-6"
FORCES_NOT = "claude-opus-5-5"
REFUSED = ("tool_choice_invalidation", "thinking_rendered_at")
"""What `FORCES_NOT` cannot be asked: it refuses forced choices, and every change of thinking."""
PROBED = (
    "tool_choice_invalidation",
    "thinking_rendered_at",
    "structured_output_at",
    "lookback_runs",
    "shallow_breakpoints",
    "ttl_in_key",
)
READINGS = [
    (entry["name"], reading["value"])
    for entry in assumption_table()["assumption"]
    for reading in entry["values"]
    if entry["name"] in PROBED and reading["value"] != "by_date"
]


def test_every_switch_that_has_readings_is_probed() -> None:
    """Those of other makers' hosts are not: the probes are calls of Claude. Nor is what recordings leave out."""
    asked = (entry for entry in assumption_table()["assumption"] if "number" not in entry and "only_on" not in entry)
    assert {entry["name"] for entry in asked} - {"warm_start"} == set(PROBED)


@pytest.mark.parametrize("counter", ["bytes", "tiktoken"])
@pytest.mark.parametrize(("switch", "value"), READINGS)
def test_the_reading_that_holds_is_found(switch: str, value: object, counter: str) -> None:
    found = tried(switch, model=FORCES, tokens=counter, assumptions={switch: value})[switch]
    assert (found.value, found.agreed, found.rounds) == (value, 2, 2)


@pytest.mark.parametrize(("switch", "value"), [one for one in READINGS if one[0] not in REFUSED])
def test_so_it_is_on_a_model_that_refuses_forced_choices(switch: str, value: object) -> None:
    assert tried(switch, model=FORCES_NOT, assumptions={switch: value})[switch].value == value


@pytest.mark.parametrize(("switch", "value"), READINGS)
def test_a_reading_is_found_whatever_the_others_are(switch: str, value: object) -> None:
    others: dict[str, object] = {
        "tool_choice_invalidation": "never",
        "thinking_rendered_at": "tools",
        "structured_output_at": "tools",
        "lookback_runs": "counted",
        "shallow_breakpoints": "ignore",
        "ttl_in_key": True,
    }
    assert tried(switch, assumptions={**others, switch: value})[switch].value == value


@pytest.mark.parametrize(("switch", "value"), READINGS)
def test_a_lag_does_not_mislead(switch: str, value: object) -> None:
    lag = {"visibility_lag_s": 3.0, "visibility_lag_probability": 1.0}
    assert tried(switch, assumptions={**lag, switch: value})[switch].value == value


def test_runs_are_found_by_date_too() -> None:
    assert tried("lookback_runs", assumptions={"lookback_runs": "by_date"})["lookback_runs"].value == "collapsed"
    assert tried("lookback_runs", collapses_runs=False)["lookback_runs"].value == "counted"


def test_a_model_that_refuses_forced_choices_tells_any_change_only() -> None:
    probe = "tool_choice_invalidation"
    found = {
        value: tried(probe, model=FORCES_NOT, assumptions={probe: value})[probe]
        for value in ("any_change", "rendered_class", "never")
    }
    assert found["any_change"].value == "any_change"
    assert found["any_change"].explanation == "auto to none reads system; claude-opus-5-5 refuses a forced choice"
    assert found["rendered_class"].value is None
    assert found["never"].explanation == found["rendered_class"].explanation
    assert found["never"].explanation == (
        "claude-opus-5-5 refuses a forced choice, and auto to none reads messages, which fits rendered_class as well "
        "as never: use a model that accepts any"
    )


def test_a_refused_forced_choice_is_not_asked_for_again() -> None:
    run = tried("tool_choice_invalidation", model=FORCES_NOT)
    assert [body["tool_choice"]["type"] for body in run.sender.bodies if len(run.sender.bodies)].count("any") == 1


def _has(body: Mapping[str, Any], kind: str) -> bool:
    return (body.get("thinking") or {}).get("type") == kind


def test_thinking_is_changed_in_the_way_that_the_model_takes() -> None:
    run = tried("thinking_rendered_at", model="claude-sonnet-4-5", refuses=lambda body: _has(body, "adaptive"))
    found = run["thinking_rendered_at"]
    assert found.value == "messages"
    assert (
        found.explanation
        == "adaptive is refused, from unset to disabled reads messages, from unset to a budget reads system"
    )


def test_a_model_whose_thinking_cannot_be_changed_is_told_of() -> None:
    found = tried("thinking_rendered_at", refuses=lambda body: "thinking" in body)["thinking_rendered_at"]
    assert found.value is None
    assert found.explanation == (
        "no change of thinking affects the cache: adaptive is refused, disabled is refused, a budget is refused"
    )


@pytest.mark.parametrize(("probe", "field"), [("structured_output_at", "format"), ("effort", "effort")])
def test_a_parameter_that_the_model_refuses_is_told_of(probe: str, field: str) -> None:
    found = tried(probe, refuses=lambda body: field in (body.get("output_config") or {}))[probe]
    assert (found.value, found.explanation) == (None, f"claude-sonnet-4-6 refuses output_config.{field}")


@pytest.mark.parametrize(
    ("model", "at", "told"),
    [
        ("claude-opus-4-6", "messages", "default high, changes at messages"),
        ("claude-opus-4-6", "tools", "default high, changes at tools"),
        ("claude-sonnet-4-6", "messages", "default high, changes at tools"),
        ("claude-opus-5-5", "messages", "default medium, changes at messages"),
    ],
)
def test_the_effort_that_equals_none_is_found(model: str, at: str, told: str) -> None:
    assert tried("effort", model=model, assumptions={"thinking_rendered_at": at})["effort"].value == told


@pytest.mark.parametrize("effort", ["low", "max"])
def test_an_effort_that_is_not_the_default_that_we_know_is_found(effort: str) -> None:
    found = tried("effort", default_effort=effort)["effort"].value
    assert found == {"low": "default low, changes at tools"}.get(
        effort, "default none of low, medium, high, changes at tools"
    )


def test_a_layer_that_no_reading_knows_is_told_and_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = render.cache_keys_of

    def at_the_system_prompt(request: Request, rules: ModelRules) -> render.CacheKeys:
        tools, system, messages = plain(request, rules)
        return tools, system + str(request.params.get("thinking")), messages

    monkeypatch.setattr(render, "cache_keys_of", at_the_system_prompt)
    found = tried("thinking_rendered_at")["thinking_rendered_at"]
    assert (found.value, found.explanation, len(found.calls)) == (None, "from unset to adaptive reads tools", 10)


@pytest.mark.parametrize("kind", ["tool_use", "tool_result"])
def test_runs_of_one_kind_only_are_told_and_not_settled(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "TOOL_RUNS", frozenset({kind}))
    found = tried("lookback_runs")["lookback_runs"]
    assert (found.value, found.explanation) == (
        None,
        "over 22 parallel calls and their results it reads nothing, over 11 it reads: "
        "only one of the two kinds of runs counts as one position",
    )


@pytest.mark.parametrize("switch", PROBED)
@pytest.mark.parametrize("seconds", [0.1, 6.0])
def test_slow_calls_find_the_same(switch: str, seconds: float) -> None:
    assert tried(switch, seconds=seconds)[switch].value == tried(switch)[switch].value


@pytest.mark.parametrize("window", [2, 5, 19, 20, 21, 30, 39])
def test_the_window_is_found_whatever_it_is(window: int) -> None:
    found = tried("lookback", lookback_positions=window)["lookback"]
    assert (found.value, found.agreed) == (window, 2)
    assert found.explanation == (
        f"a breakpoint {window - 1} blocks after an entry reads it, one {window} blocks after it does not"
    )


def test_a_window_beyond_all_tries_is_not_settled() -> None:
    found = tried("lookback", lookback_positions=60)["lookback"]
    assert (found.value, found.explanation) == (
        None,
        "a breakpoint 39 blocks after an entry reads it; longer distances were not tried",
    )


@pytest.mark.parametrize("runs", ["collapsed", "counted"])
def test_runs_need_a_window_no_larger_than_believed(runs: str) -> None:
    assumptions = {"lookback_runs": runs}
    assert tried("lookback_runs", assumptions=assumptions, lookback_positions=22)["lookback_runs"].value == runs
    found = tried("lookback_runs", assumptions=assumptions, lookback_positions=23)["lookback_runs"]
    assert found.value is None
    assert found.explanation == "a breakpoint 22 text blocks after an entry reads it: the window is larger than 20"


@pytest.mark.parametrize(
    ("ttl_s", "verdict"),
    [
        (300.0, "between 290 and 310 s"),
        (311.0, "between 310 and 330 s"),
        (331.0, "between 330 and 390 s"),
        (289.0, "not settled"),
        (600.0, "not settled"),
    ],
)
def test_the_lifetime_is_bracketed(ttl_s: float, verdict: str) -> None:
    found = tried("ttl", ttl_s={"5m": ttl_s, "1h": 3600.0})["ttl"]
    assert found.verdict == verdict
    assert re.match(r"at 290\.0-290\.0 s [02] of 2 read; at 310\.0-310\.0 s [02] of 2 read; ", found.explanation)


def test_a_shallow_entry_that_lives_unmarked_settles_nothing() -> None:
    found = tried("shallow_breakpoints", ttl_s={"5m": 600.0, "1h": 3600.0})["shallow_breakpoints"]
    assert found.value is None
    assert "alive if only the deep breakpoint was" in found.explanation


@pytest.mark.parametrize(
    ("lag_s", "share"),
    [
        (0.0, "5 of 5 at once, 5 of 5 after 3 s"),
        (2.0, "0 of 5 at once, 5 of 5 after 3 s"),
        (9.0, "0 of 5 at once, 0 of 5 after 3 s"),
    ],
)
def test_the_lag_is_a_share(lag_s: float, share: str) -> None:
    lag = {"visibility_lag_s": lag_s, "visibility_lag_probability": 1.0}
    found = tried("visibility_lag_s", assumptions=lag)["visibility_lag_s"]
    assert (found.value, found.switch) == (share, None)
    assert found.explanation.startswith(f"{share[:6]} read at once, 0.8 to 0.8 s after the first token; ")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("switch", "value"), READINGS)
def test_entries_that_go_early_settle_nothing_wrong(switch: str, value: object, seed: int) -> None:
    noise = {"early_eviction_probability": 0.1, "seed": seed}
    assert tried(switch, assumptions={**noise, switch: value})[switch].value in (value, None)
