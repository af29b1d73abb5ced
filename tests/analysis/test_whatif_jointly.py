"""Promises together: never the sum of the parts, never worse than the best of them without saying why."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest
from whatif_logs import Row, told, traffic, two_calls

from bodies import assistant, body, marked, text, tool, user
from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.analysis.whatif.report import what_if
from cachecost.analysis.whatif.results import WhatifReport
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.structs import replace
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.steps import Replays, cost
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, read_workload

ROOT = Path(__file__).parents[2]
SESSIONS = ROOT / "scenarios" / "recordings" / "sessions"
SAME_BYTES = {"ttl", "breakpoints", "keep-alive", "tools", "batch", "us", "host"}
"""Kinds of promises that send the same tokens."""


def session(name: str) -> Workload:
    return read_workload(SESSIONS / name, ReplaySetup(RuleBook(), PriceBook()))


@pytest.fixture(scope="module")
def claude_code() -> Iterator[WhatifReport]:
    yield what_if(session("claude-code.jsonl"), ["ttl=1h", "keep-alive=295s:1"], tries_assumptions=False)


def several() -> list[Row]:
    """Three pauses, and tools in two orders."""
    rows: list[Row] = []
    messages = [user(marked(text(3_000, "a")))]
    for number, at in enumerate((0, 30, 430, 460, 900)):
        tools = [tool(1_300, "a"), tool(1_200, "b")]
        rows.append((at, body(*messages, tools=tools[::-1] if number % 2 else tools)))
        bare = [{**block} for block in messages[-1]["content"]]
        bare[-1].pop("cache_control", None)
        messages = [*messages[:-1], user(*bare), assistant(text(150, f"r{number}"))]
        messages.append(user(marked(text(250, f"q{number}"))))
    return rows


def test_the_best_together_are_at_least_as_good_as_the_best_alone(tmp_path: Path) -> None:
    found = told(tmp_path, several())
    joint = found.jointly
    assert joint is not None and joint.saving is not None and joint.cost is not None
    best = max(one.saving or Decimal(0) for one in found.alternatives if one.is_gain and one.keeps_answers)
    assert "tools=sorted" in joint.names
    assert len(joint.names) > 1
    assert joint.saving >= joint.best_part
    assert joint.saving >= best
    assert joint.saving != joint.sum_of_parts
    assert joint.cost == found.cost - joint.saving
    assert joint.why == ""


def test_two_that_mend_the_same_thing_say_so(tmp_path: Path) -> None:
    joint = told(tmp_path, two_calls(400), "ttl=1h", "keep-alive=295s:1").asked
    assert joint is not None and joint.saving is not None
    assert joint.saving < joint.best_part
    assert joint.why == "they avoid the same cost, so one pays for what the other makes unnecessary"


def test_one_that_costs_is_named(tmp_path: Path) -> None:
    joint = told(tmp_path, several(), "tools=sorted", "host=bedrock").asked
    assert joint is not None and joint.saving is not None
    assert joint.saving < joint.best_part
    assert joint.why == "host=bedrock costs more than it saves, also on its own"


def test_two_of_one_kind_and_unknown_names_are_refused_all_at_once(tmp_path: Path) -> None:
    names = "--jointly expected the name of an alternative from the table; got"
    with pytest.raises(InputError) as refused:
        told(tmp_path, two_calls(400), "ttl=1h", "ttl=5m", "tools=sort", "keep-alive=soon")
    assert [str(fault) for fault in refused.value.faults] == [
        f"{names} 'tools=sort' (did you mean 'tools=sorted'?)",
        f"{names} 'keep-alive=soon' (did you mean 'keep-alive=295s'?)",
        "--jointly 'ttl=1h' and 'ttl=5m' cannot be combined",
    ]


def test_promises_send_the_tokens_that_they_say(tmp_path: Path) -> None:
    """Those that change breakpoints, times or the order alone send what was sent, and all get the answers that
    there were.
    """
    for ground in (traffic(tmp_path, several()), session("claude-code-56-minutes.jsonl")):
        replays = Replays(ground)
        pricing = AlternativePricing(replays, Decimal(1))
        sent = {row.call: row.usage for row in pricing.base}
        seen = set()
        for option in RecordingProfile.of(ground, pricing.base).options():
            if option.kind not in SAME_BYTES:
                continue
            made = pricing.replay([option])
            for number, row in replays.by_call(made.steps, made.rows).items():
                if row.error is None:
                    assert row.usage.total_input == sent[number].total_input, (option.name, number)
                    assert row.usage.output_tokens == sent[number].output_tokens
            seen.add(option.kind)
        assert {"ttl", "breakpoints", "keep-alive", "tools", "batch", "us", "host"} <= seen


def test_both_sides_are_simulated_and_only_the_difference_is_believed(claude_code: WhatifReport) -> None:
    assert claude_code.billed is not None
    assert claude_code.cost == claude_code.billed
    assert claude_code.simulated == claude_code.billed  # each billed read gives the length of what was read
    for one in claude_code.alternatives:
        if one.cost is not None and one.saving is not None:
            assert one.cost + one.saving == claude_code.billed


def test_the_recorded_session_keeps_its_figures(claude_code: WhatifReport) -> None:
    known = {one.name: one for one in claude_code.alternatives}
    savings = {
        name: round(known[name].saving or Decimal(0), 4) for name in ("ttl=1h", "breakpoints=none", "compaction=50k")
    }
    assert round(claude_code.cost, 4) == Decimal("5.1737")
    assert savings == {
        "ttl=1h": Decimal("-0.4615"),
        "breakpoints=none": Decimal("-22.3161"),
        "compaction=50k": Decimal("0.2575"),
    }
    assert claude_code.break_even is not None
    assert claude_code.break_even.pauses == (271, 3, 0)
    assert known["us"].supported == "not evaluated: claude-sonnet-4 has no US-only inference"


def test_another_model_of_the_same_tokenizer_has_the_billed_lengths(claude_code: WhatifReport) -> None:
    """Opus 4 costs five times as much as Sonnet 4 in every class, so the bills' lengths give five times the dollars."""
    found = claude_code.find("model=claude-opus-4")
    cold = what_if(session("claude-code.jsonl").with_assumptions({"warm_start": "cold"}), tries_assumptions=False)
    assert found.saving == -4 * cold.simulated
    assert claude_code.find("host=google-cloud").supported == "no change: no call changes in cost"


def test_another_tokenizer_is_an_error_of_its_own() -> None:
    ground = session("claude-code.jsonl")
    day = RuleBook().rules("anthropic", "claude-opus-5-5").day
    later = replace(ground, setup=replace(ground.setup, rules=RuleBook(as_of=day), prices=PriceBook(as_of=day)))
    replays = Replays(later)
    base = replays.rows(replays.recorded)
    study = RecordingProfile.of(later, base)
    pricing = AlternativePricing(replays, cost(base), base)
    options = {option.name: option for option in study.options()}
    other = pricing.price_option(options["model=claude-opus-5-5"])
    assert options["model=claude-opus-5-5"].counts_anew
    assert other.cost is not None
    assert other.error > Decimal("0.02") * other.cost
    scaled = pricing.replay([options["model=claude-opus-5-5"]])
    longer = sum(row.usage.total_input for row in scaled.rows) / sum(row.usage.total_input for row in base)
    assert 1.05 < longer < 1.6


def test_a_log_of_models_that_nobody_knows_is_not_answered(tmp_path: Path) -> None:
    rows: list[Row] = [(0, {**body(user(text(2_000, "a"))), "model": "claude-nobody"})]
    with pytest.raises(CannotEvaluate, match="whatif cannot evaluate any call: unknown model 'claude-nobody' on host"):
        told(tmp_path, rows)


def _growing_log() -> ModuleType:
    path = ROOT / "benchmarks" / "growing_log.py"
    spec = importlib.util.spec_from_file_location("growing_log_for_whatif", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.mark.slow
def test_an_hour_saves_on_the_benchmark_log_what_it_saves_on_others(tmp_path: Path) -> None:
    """On another log of 2,000 requests with such pauses an hour for everything was 0.91 of the rolling last block."""
    module = _growing_log()
    log = tmp_path / "log.jsonl"
    module.write_log(log, module.Shape())
    ground = read_workload(log, ReplaySetup(RuleBook(), PriceBook()), "bytes")
    pricing = AlternativePricing(Replays(ground), Decimal(1))
    options = {option.name: option for option in RecordingProfile.of(ground, pricing.base).options()}
    then = pricing.replay([options["ttl=1h"]]).cost
    assert Decimal("0.90") < then / cost(pricing.base) < Decimal("0.92")
    breakpoints = pricing.replay([options["breakpoints=none"]]).cost
    assert Decimal("7.2") < breakpoints / cost(pricing.base) < Decimal("7.5")
