"""Faults planted into healthy logs, alone and in pairs: found with code, calls, place and dollars, and nothing else.

What a fix nets is the price of the faulty log less that of the fixed one, both by the naive replay in `planted/`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cachecost.analysis.comparison.run import run
from cachecost.scenario import load
from cachecost.views.run.report import calls_csv
from planted.catalogue import FAULTS, base_of
from planted.check import Found, asked, causes_replayed, explained, problems, written
from planted.fault import Fault, as_is, expected, sent
from planted.healthy import SHAPES
from planted.logs import Log, loop
from planted.pairs import INTERLACED, PAIRS
from planted.prices import cost
from planted.time_faults import paused
from slow_cases import mostly_slow

AFTERWARDS = {"written_never_read", "hour_unused"}
"""Causes that only later calls show: no replay knows them at the call."""
ALIKE_IN_WORDS = {"tools without a breakpoint", "system edited + no message breakpoint"}
"""Words show whether a system prompt is another version of one, and `replay --tokens bytes` keeps none."""
NAMED = {
    " + ".join(fault.name for fault in faults): faults for faults in [*((one,) for one in FAULTS.values()), *PAIRS]
}
ALONE, TOGETHER = ([name for name in NAMED if (len(NAMED[name]) == 1) is is_alone] for is_alone in (True, False))
CASES = [*ALONE, *mostly_slow(TOGETHER, 20)]
SCENARIO = """\
format: 1
name: causes
as_of: 2026-03-07
model: claude-opus-4-6
tokens: tiktoken
conversation:
  recording: {recording}
  head: {{tools: {{count: 14, tokens: 8_000}}, system: {{tokens: 5_000}}}}
strategies:
  - {{name: summary, preset: base, changes: [{{compaction: {{at: 0.2, window_tokens: 200_000}}}}]}}
  - {{name: pruned, preset: base, changes: [{{prune: {{keep_results: 3, every_turns: 0}}}}]}}
  - name: forced
    breakpoints: [last_tool, last_system, automatic]
    inquiry: {{through: answer_tool, tool_choice: forced}}
"""


def is_interlaced(faults: Sequence[Fault]) -> bool:
    return frozenset(fault.name for fault in faults) in INTERLACED


def is_sendable(fault: Fault) -> bool:
    """Whether its fix sends something else, and no call is only priced as if another model had cached it."""
    return fault.fix is not as_is and not any(call.cached_as for call in fault.fix(base_of(fault.base)))


def test_there_are_enough_of_them() -> None:
    assert len({fault.name.split(",")[0] for fault in FAULTS.values()}) >= 60
    assert len(PAIRS) >= 60
    assert sum("recorded" in fault.base for fault in FAULTS.values()) >= 30


@dataclass(frozen=True)
class Account:
    """A log, and what explain and replay say of it."""

    log: Log
    found: Found
    causes: list[str]


@cache
def account(name: str) -> Account:
    faults = NAMED[name]
    log = sent(base_of(faults[0].base), [(fault, "planted") for fault in faults])
    return told(log)


def told(log: Log) -> Account:
    with TemporaryDirectory() as folder:
        path = written(Path(folder, "log.jsonl"), log)
        return Account(log, explained(path), causes_replayed(path))


@pytest.mark.parametrize("name", mostly_slow(CASES, 50))
def test_planted_faults_are_found_and_nothing_else(name: str) -> None:
    made, faults = account(name), NAMED[name]
    assert Decimal(made.found["cost_usd"]) == cost(made.log)
    assert not problems(made.found, faults, expected(base_of(faults[0].base), faults, is_interlaced(faults)))


@pytest.mark.parametrize("name", [*SHAPES, *sorted({fault.base for fault in FAULTS.values()})])
def test_healthy_shapes_have_no_finding(name: str) -> None:
    made = told(SHAPES[name]() if name in SHAPES else base_of(name))
    assert Decimal(made.found["cost_usd"]) == cost(made.log)
    assert not made.found["findings"]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if is_sendable(fault)])
def test_a_fixed_log_has_no_such_fault(name: str) -> None:
    """What the tests price as fixed is healthy for explain, too."""
    fault = FAULTS[name]
    made = told(sent(base_of(fault.base), [(fault, "fixed")]))
    assert fault.codes[0] not in {finding["code"] for finding in made.found["findings"]}


@pytest.mark.parametrize("name", mostly_slow(CASES, 50))
def test_replay_names_the_cause_that_explain_names(name: str) -> None:
    if name in ALIKE_IN_WORDS:
        return
    made = account(name)
    assert not [
        (finding["call"], finding["cause"], made.causes[finding["call"] - 1])
        for finding in made.found["findings"]
        if finding["cause"] not in AFTERWARDS
        and not finding["behind"]
        and not is_named(made.causes[finding["call"] - 1], finding["call"], made.found)
    ]


def is_named(cause: str, call: int, found: dict[str, list[dict[str, object]]]) -> bool:
    """Whether explain names the cause at the call, as a finding or as a note."""
    return cause in {one["cause"] for one in [*found["findings"], *found.get("notes", [])] if one["call"] == call}


@pytest.mark.parametrize("strategies", ["all"])
def test_run_names_the_causes_that_explain_names(strategies: str, tmp_path: Path) -> None:
    recording = Path(__file__).parents[2] / "scenarios" / "recordings" / "jp-17727391057.jsonl"
    scenario = tmp_path / "causes.yaml"
    scenario.write_text(SCENARIO.format(recording=recording), encoding="utf-8")
    table = calls_csv(run(load(scenario), tmp_path)).splitlines()
    causes = {(row["strategy"], int(row["call"])): row["cause"] for row in csv.DictReader(table)}
    explained = [json.loads(line) for line in asked("explain", scenario, tokens=None).splitlines()]
    assert not [
        (one["strategy"], finding["call"], finding["cause"], causes[one["strategy"], finding["call"]])
        for one in explained
        for finding in one["findings"]
        if not is_named(causes[one["strategy"], finding["call"]], finding["call"], one)
    ]


@pytest.mark.parametrize("name", ["20 hours", "9 hours, twice"])
def test_a_pause_that_no_policy_bridges_is_a_note(name: str) -> None:
    found = told(paused(20 * 60, 6)(loop()) if name == "20 hours" else paused(9 * 60, 4, 8)(loop())).found
    assert (found["findings"], Decimal(found["avoidable_usd"])) == ([], Decimal())
    assert {(note["code"], note["call"]) for note in found["notes"]} == (
        {("CC301", 6)} if name == "20 hours" else {("CC301", 4), ("CC301", 8)}
    )
