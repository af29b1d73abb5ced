"""What changed in the prompts since an accepted recording: the place, the text, the calls and the dollars of each."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.budgets.prompt_changes import PromptChange, PromptComparison, find_prompt_changes
from cachecost.budgets.request_edits import EditedRequestBuilder, key_by_digest, pair_requests
from cachecost.budgets.strategy_replays import ReplayedStrategy, replay_strategies
from cachecost.conversations.readers.detect import read_calls
from cachecost.prompts.request import Request
from cachecost.scenario import load
from check_projects import (
    Body,
    Spoil,
    longer_system,
    modified_tool,
    moved_breakpoint,
    new_tool,
    other_model,
    project,
    reordered,
    shuffled_tools,
    thinking,
    timed_question,
    timestamp,
)
from command_runs import run_here
from conversations.session_stores import write_lines

ONLY_RECORDED = "  - {strategy: as recorded, max_regression: 5%}\n"
SPOILS = (
    longer_system,
    modified_tool,
    moved_breakpoint,
    new_tool,
    other_model,
    reordered,
    thinking,
    timed_question,
    timestamp,
)


def replayed(folder: Path, spoil: Spoil | None = None, calls: int = 6) -> ReplayedStrategy:
    """The recorded calls of a project."""
    return of_scenario(project(folder, spoil, ONLY_RECORDED, calls))


def of_scenario(scenario: Path) -> ReplayedStrategy:
    return next(one for one in replay_strategies(load(scenario), scenario.parent) if one.strategy == "as recorded")


def compared(folder: Path, spoil: Spoil | None, calls: int = 6) -> PromptComparison:
    """What `spoil` changes."""
    before = replayed(folder / "before", None, calls)
    return find_prompt_changes("mine", before, replayed(folder / "now", spoil, calls))


def the_change(folder: Path, spoil: Spoil) -> PromptChange:
    found = compared(folder, spoil)
    (change,) = found.changes
    assert (found.rest, change.cost) == (0, found.cost)
    return change


PLANTED: list[tuple[Spoil, tuple[Any, ...]]] = [
    (timestamp, ("system", "system.0.text", "changed", 1, 6, 0, (2, 3, 4, 5, 6), True, "0.58100125")),
    (longer_system, ("system", "system.0.text", "changed", 1, 6, 8400, (), False, "0.0123375")),
    (modified_tool, ("tools", "tools.1.description", "changed", 4, 3, 213, (4,), False, "0.11603275")),
    (new_tool, ("tools", "tools.3", "added", 1, 6, None, (), False, "0.02541")),
    (shuffled_tools, ("tools", "tools.0", "reordered", 1, 6, None, (), False, "0")),
    (reordered, ("tools", "tools.0", "reordered", 1, 4, None, (2, 3, 4, 5, 6), True, "0.2439265")),
    (other_model, ("model", "model", "model_changed", 1, 6, 7, (), False, "-0.0818045")),
    (thinking, ("parameters", "thinking", "parameter_changed", 1, 6, None, (), False, "0")),
    (
        timed_question,
        ("messages", "messages.0.content.0.text", "changed", 1, 6, 0, (2, 3, 4, 5, 6), False, "0.05286125"),
    ),
]


@pytest.mark.parametrize(("spoil", "expected"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_one_thing_in_every_call_is_one_change(tmp_path: Path, spoil: Spoil, expected: tuple[Any, ...]) -> None:
    one = the_change(tmp_path, spoil)
    *place, cost = expected
    found = [one.layer, one.path, one.kind, one.call, one.calls, one.character, one.rewritten, one.varies]
    assert (found, one.cost) == (place, Decimal(cost))


EXCERPTS: list[tuple[Spoil, str | None, str | None]] = [
    (
        timestamp,
        "You are an agent that works on a project. You ar…",
        "Current time: 2026-03-06T21:21. You are an agent…",
    ),
    (
        modified_tool,
        "…and writes files of the project. fs_modify_file reads and writes files of the…",
        "…and writes files of the projecarefully ct. fs_modify_file reads and writes fil…",
    ),
    (new_tool, None, "fs_move, fs_move reads and writes files of the project. fs_move reads and writes…"),
    (shuffled_tools, "fs_read_file, fs_modify_file, fs_list", "fs_modify_file, fs_list, fs_read_file"),
    (moved_breakpoint, "system.1 5m, messages.0.content.0 5m", "system.0 5m"),
    (other_model, "claude-opus-4-6", "claude-sonnet-4-6"),
    (thinking, None, '{"type": "enabled", "budget_tokens": 500}'),
]


@pytest.mark.parametrize(("spoil", "before", "after"), EXCERPTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_little_text_of_both_sides(tmp_path: Path, spoil: Spoil, before: str | None, after: str | None) -> None:
    one = the_change(tmp_path, spoil)
    assert (one.before_excerpt, one.after_excerpt) == (before, after)


def test_a_key_in_a_prompt_is_not_shown(tmp_path: Path) -> None:
    def leak(number: int, body: Body) -> None:
        body["system"][0]["text"] = "key sk-ant-REDACTED-TESTONLY-deadbeef0123 " + body["system"][0]["text"]

    shown = the_change(tmp_path, leak).after_excerpt
    assert shown is not None and shown.startswith("key ****") and "deadbeef" not in shown


def test_nothing_changed(tmp_path: Path) -> None:
    assert compared(tmp_path, None) == PromptComparison("mine", "as recorded", (), *[Decimal(0)] * 3)


def test_twenty_calls_with_three_changes(tmp_path: Path) -> None:
    def spoil(number: int, body: Body) -> None:
        for one in (timestamp, new_tool, thinking):
            one(number, body)

    found = compared(tmp_path, spoil, calls=20)
    assert [(one.path, one.calls) for one in found.changes] == [
        ("tools.3", 20),
        ("system.0.text", 20),
        ("thinking", 20),
    ]
    assert found.changes[1].rewritten == tuple(range(2, 21))


def test_calls_that_came_and_went(tmp_path: Path) -> None:
    fewer, more = replayed(tmp_path / "fewer", calls=4), replayed(tmp_path / "more", calls=6)
    for before, now, kind in ((fewer, more, "added"), (more, fewer, "removed")):
        (change,) = find_prompt_changes("mine", before, now).changes
        cost = now.ledger.cost.total - before.ledger.cost.total
        assert (change.layer, change.kind, change.call, change.calls) == ("calls", kind, 5, 2)
        assert change.cost == cost != 0


def test_what_is_not_in_the_prompts_is_the_rest(tmp_path: Path) -> None:
    before = replayed(tmp_path / "before")
    scenario = project(tmp_path / "now", None, ONLY_RECORDED)
    recording = scenario.with_name("calls.jsonl")
    recording.write_text(recording.read_text().replace('"output_tokens": 100', '"output_tokens": 300'))
    found = find_prompt_changes("mine", before, of_scenario(scenario))
    assert found.changes == () and found.rest == found.cost == found.answers == Decimal("0.03")
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    late = [{**row, "timestamp": f"2026-03-07T{number:02}:00:00Z"} for number, row in enumerate(rows, 10)]
    write_lines(recording, late)
    slow = find_prompt_changes("mine", before, of_scenario(scenario))
    assert slow.changes == () and slow.rest == slow.cost > slow.answers == Decimal("0.03")


def test_without_content_the_block_and_its_sizes_are_named(tmp_path: Path) -> None:
    """Under different keys no digest is found again: blocks are compared by their sizes."""
    found = []
    for name, spoil in (("before", None), ("now", longer_system)):
        scenario = project(tmp_path / name, spoil, ONLY_RECORDED)
        free = tmp_path / name / "free.jsonl"
        assert run_here("import", tmp_path / name / "calls.jsonl", "-o", free, "--content", "digest").returncode == 0
        scenario.write_text(scenario.read_text().replace("calls.jsonl", "free.jsonl").replace("bytes", "tiktoken"))
        found.append(of_scenario(scenario))
    comparison = find_prompt_changes("mine", *found)
    (one,) = comparison.changes
    assert (one.path, one.kind, one.calls, one.rewritten) == ("system.0", "changed", 6, ())
    assert (one.before_excerpt, one.after_excerpt, one.character, one.search) == (None, None, None, ())
    assert one.tokens_before and one.tokens_after and one.tokens_after > one.tokens_before
    assert one.cost == comparison.cost > 0 and comparison.rest == 0


# ----------------------------------------------------------------------------------------- properties

chosen = st.lists(st.sampled_from(SPOILS), max_size=5)
numbers = count()


@given(before=chosen, now=chosen, calls=st.tuples(st.integers(2, 5), st.integers(2, 5)))
@settings(max_examples=25, deadline=None)
def test_changes_and_the_rest_add_up_and_both_ends_are_exact(
    tmp_path_factory: pytest.TempPathFactory, before: list[Spoil], now: list[Spoil], calls: tuple[int, int]
) -> None:
    folder = tmp_path_factory.mktemp(f"changes{next(numbers)}")
    old = replayed(folder / "old", combined(before), calls[0])
    new = replayed(folder / "new", combined(now), calls[1])
    found = find_prompt_changes("mine", old, new)
    assert sum((one.cost for one in found.changes), found.rest) == found.cost
    assert found.cost == new.ledger.cost.total - old.ledger.cost.total
    assert found.rest == 0, "only the prompts differ"
    assert find_prompt_changes("mine", new, new).changes == ()


def combined(spoils: list[Spoil]) -> Spoil:
    def spoil(number: int, body: Body) -> None:
        for one in spoils:
            if one is not moved_breakpoint or "cache_control" in body["system"][1]:
                one(number, body)

    return spoil


@given(before=chosen, now=chosen)
@settings(max_examples=25, deadline=None)
def test_the_requests_at_both_ends_are_the_recorded_ones(
    tmp_path_factory: pytest.TempPathFactory, before: list[Spoil], now: list[Spoil]
) -> None:
    folder = tmp_path_factory.mktemp(f"edits{next(numbers)}")
    for name, spoils in (("old", before), ("new", now)):
        project(folder / name, combined(spoils), ONLY_RECORDED, 3)
    old, new = (list(read_calls(folder / name / "calls.jsonl")) for name in ("old", "new"))
    builder = EditedRequestBuilder()
    for one, other in zip(old, new, strict=True):
        pair = pair_requests(one.request, other.request, key_by_digest)
        edits = set(pair.edits())
        assert as_sent(builder.between(pair, set())) == as_sent(one.request)
        assert as_sent(builder.between(pair, edits)) == as_sent(other.request)
        assert bool(edits) is (as_sent(one.request) != as_sent(other.request))


def as_sent(request: Request) -> tuple[object, ...]:
    messages = [message.digest for message in request.thread.messages()]
    breakpoints = [(one.block_key, one.ttl) for one in request.breakpoints]
    return request.model, request.tools.digest, request.system.digest, messages, breakpoints, dict(request.params)
