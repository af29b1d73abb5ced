"""The findings' dollars are the difference between the bill and the bill without the causes, on whatever log."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import EPHEMERAL, Sending, explained, healthy, words

from cachecost.analysis.explain.explaining import explain_workload as explain_traffic
from cachecost.providers.hosts import hosts
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import read_workload
from slow_cases import examples

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
TRAFFIC = [path for path in sorted((RECORDINGS / "traffic").glob("*/*.jsonl")) if path.parent.name not in hosts()]
"""Of Claude, by project: those of other hosts are in folders with their names."""
SESSIONS = sorted((RECORDINGS / "sessions").glob("*.jsonl")) + TRAFFIC[::17]


@st.composite
def spoiled_logs(draw: st.DrawFn) -> list[Sending]:
    """One or two tool loops into which a few faults are planted at random calls."""
    sendings = healthy(draw(st.integers(1, 7)))
    if draw(st.booleans()):
        sendings += healthy(draw(st.integers(1, 4)), topic="two")
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(sendings) - 1))
        fault = draw(
            st.sampled_from(["pause", "system", "tools", "choice", "breakpoint", "short", "again", "model", "burst"])
        )
        _plant(sendings, first, fault)
    return sendings


def _burst(sending: Sending) -> None:
    sending.body["messages"][0]["content"] += [{"type": "text", "text": words(str(n), 2)} for n in range(25)]


def _breakpoint_the_first_message(sending: Sending) -> None:
    for block in sending.body["messages"][-1]["content"]:
        block.pop("cache_control", None)
    sending.body["messages"][0]["content"][0]["cache_control"] = EPHEMERAL


def _wait(sending: Sending) -> None:
    sending.start += 301


FAULTS: dict[str, Callable[[Sending], object]] = {
    "pause": _wait,
    "system": lambda one: one.body["system"][0].update(text=words("ruel", 400)),
    "tools": lambda one: one.body["tools"].reverse(),
    "choice": lambda one: one.body.update(tool_choice={"type": "any"}),
    "breakpoint": _breakpoint_the_first_message,
    "short": lambda one: one.body.update(system=one.body["system"][-1:]),
    "model": lambda one: one.body.update(model="claude-opus-4-1"),
    "burst": _burst,
}


def _plant(sendings: list[Sending], first: int, fault: str) -> None:
    """From the `first` call on, or a second copy of that call right after it."""
    if fault == "again":
        again = deepcopy(sendings[first])
        again.start += 0.1
        sendings.append(again)
        return
    for sending in sendings[first:]:
        FAULTS[fault](sending)


@given(spoiled_logs())
@settings(max_examples=examples(150))
def test_the_causes_add_up_exactly(sendings: list[Sending]) -> None:
    found = explained(sendings)
    assert found.avoidable == found.cost - found.without
    assert all(finding.cost > 0 for finding in found.findings), found.findings


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem[-40:])
def test_and_on_recorded_sessions(path: Path) -> None:
    found = explain_traffic(read_workload(path, ReplaySetup(RuleBook(), PriceBook.load(None, None))))
    assert found.avoidable == found.cost - found.without


def test_a_recorded_session_loses_to_its_pauses_only() -> None:
    """287 calls of Claude Code: three pauses of more than five minutes, sub-agents that began at once."""
    path = RECORDINGS / "sessions" / "claude-code.jsonl"
    found = explain_traffic(read_workload(path, ReplaySetup(RuleBook(), PriceBook.load(None, None))))
    assert [(finding.call, finding.code) for finding in found.findings] == [
        (29, "CC301"),
        (32, "CC301"),
        (39, "CC301"),
        (102, "CC305"),
        (103, "CC305"),
        (105, "CC305"),
    ]
