"""Grids: what is read of a prompt that was (partly) sent before, at every step, limit, TTL and capacity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree, rules

from cachecost.caches.fixed_blocks import FixedBlockCache
from cachecost.caches.reporting import reported_read
from cachecost.prompts.render import CountedSizes

VLLM = {"step_tokens": 16, "recomputed_tokens": 1}
MISTRAL = {"step_tokens": 64, "minimum_tokens": 64}
OPENAI = {"minimum_tokens": 1024, "reported_step_tokens": 128}


@pytest.mark.parametrize(
    ("stated", "tokens", "read"),
    [
        (VLLM, 16, 0),
        (VLLM, 17, 16),
        (VLLM, 32, 16),
        (VLLM, 33, 32),
        (MISTRAL, 63, 0),
        (MISTRAL, 64, 64),
        (MISTRAL, 200, 192),
        ({"step_tokens": 128}, 127, 0),
        ({"step_tokens": 128}, 300, 256),
        ({"step_tokens": 256}, 1000, 768),
        (OPENAI, 1023, 0),
        (OPENAI, 1024, 1024),
        (OPENAI, 1151, 1024),
        (OPENAI, 1152, 1152),
        ({"step_tokens": 2048, "reported_step_tokens": 128}, 4095, 2048),
        ({"step_tokens": 2048, "reported_step_tokens": 128, "grid_offset_tokens": 100}, 1947, 0),
        ({"step_tokens": 2048, "reported_step_tokens": 128, "grid_offset_tokens": 100}, 1948, 1920),
        ({"minimum_tokens": 10, "recomputed_tokens": 1}, 10, 9),
        ({"minimum_tokens": 10, "recomputed_tokens": 1}, 9, 0),
        ({"recomputed_tokens": 50}, 20, 0),
        ({"step_tokens": 16, "grid_offset_tokens": 40, "recomputed_tokens": 60}, 20, 0),
    ],
)
def test_a_prompt_sent_twice(stated: dict[str, Any], tokens: int, read: int) -> None:
    tree, grid = Tree(), FixedBlockCache()
    prompt = tree.prompt(f"A:{tokens}")
    first, second = (grid.call(prompt, rules(**stated), start) for start in (0, 1))
    assert (first.read, first.uncached, first.hit) == (0, tokens, None)
    assert (second.read, second.uncached, second.write_5m, second.write_1h) == (read, tokens - read, 0, 0)
    assert (second.hit is prompt.end) == (read > 0)


@given(
    *[st.integers(0, 5000)] * 2,
    *[st.sampled_from([1, 16, 64, 128, 2048])] * 2,
    *[st.sampled_from([0, 1, 100, 1024])] * 3,
)
def test_a_read_is_on_the_grid_within_its_limits_and_in_whole_steps(
    matched: int, after: int, step: int, told: int, offset: int, recomputed: int, minimum: int
) -> None:
    stated = rules(
        step_tokens=step,
        reported_step_tokens=told,
        grid_offset_tokens=offset,
        recomputed_tokens=recomputed,
        minimum_tokens=minimum,
    )
    total = matched + after
    points = [0, *(point - offset for point in range(0, matched + offset + 1, step) if point > offset)]
    longest = max(point for point in points if point <= max(0, total - recomputed))
    read = longest // told * told if points[-1] >= minimum else 0
    assert reported_read(matched, total, stated) == read


def test_the_grid_may_end_inside_a_block_and_the_tail_is_never_read() -> None:
    tree, grid = Tree(), FixedBlockCache()
    grid.call(tree.prompt("A:100", "B:30", tail=3), rules(**VLLM), 0)
    outcome = grid.call(tree.prompt("A:100", "B:30", "C:70", tail=3), rules(**VLLM), 1)
    assert (outcome.read, outcome.uncached) == (128, 75)
    assert outcome.hit is tree.end("A:100", "B:30")
    assert grid.call(tree.prompt("A:100", "B:30", tail=3), rules(), 2).read == 130


def test_prompts_that_part_share_the_blocks_before() -> None:
    tree, grid = Tree(), FixedBlockCache()
    calls = [
        grid.call(tree.prompt("A:100", *rest), rules(), start)
        for start, rest in enumerate([["B:30"], ["C:40"], ["B:30", "D:5"], ["C:40", "D:5"], []])
    ]
    assert [call.read for call in calls] == [0, 100, 130, 140, 100]
    assert grid.call(tree.prompt("X:100"), rules(), 9).read == 0


@pytest.mark.parametrize(
    ("wait", "read"), [([299.9], [True]), ([300], [False]), ([299, 299], [True, True]), ([150, 300], [True, False])]
)
def test_a_call_refreshes_all_it_sends(wait: list[float], read: list[bool]) -> None:
    tree, grid, now = Tree(), FixedBlockCache(), 0.0
    lives = rules(ttl_s={"5m": 300.0})
    found = [grid.call(tree.prompt("A:50"), lives, now)]
    for number, seconds in enumerate(wait):
        now += seconds
        found.append(grid.call(tree.prompt("A:50", f"B{number}:9"), lives, now))
    assert [call.read == 50 for call in found] == [False, *read]


def test_without_a_lifetime_it_stays() -> None:
    tree, grid = Tree(), FixedBlockCache()
    grid.call(tree.prompt("A:50"), rules(), 0)
    assert grid.call(tree.prompt("A:50"), rules(), 10**9).read == 50


def test_readable_from_the_first_token_of_the_earliest_call_and_never_at_its_own_start() -> None:
    tree, grid = Tree(), FixedBlockCache()
    sent = [(0, 10.0), (0, 0.0), (0, 1.0), (5, 9.0), (9.9, 0.0), (10, 0.0)]
    reads = [grid.call(tree.prompt("A:50", f"{at}-{ttft}:1"), rules(), at, ttft).read for at, ttft in sent]
    assert reads == [0, 0, 0, 50, 50, 50]
    slow = [grid.call(tree.prompt("S:50"), rules(), at, ttft).read for at, ttft in [(0, 10), (5, 100), (9.9, 0)]]
    assert slow == [0, 0, 0]
    assert grid.call(tree.prompt("S:50"), rules(), 9.9).read == 0
    assert grid.call(tree.prompt("S:50"), rules(), 10).read == 50


def test_what_dies_while_it_is_written_was_never_there() -> None:
    tree, grid = Tree(), FixedBlockCache()
    lives = rules(ttl_s={"5m": 300.0})
    grid.call(tree.prompt("A:50"), lives, 0, 400)
    assert grid.state(tree.end("A:50"), "5m", lives, 299) == "unreadable"
    assert grid.state(tree.end("A:50"), "5m", lives, 300) == "expired"
    assert grid.call(tree.prompt("A:50"), lives, 400).read == 0


def test_least_recently_used_goes_first_its_tail_before_its_head() -> None:
    tree, grid, holds = Tree(), FixedBlockCache(), rules(capacity_tokens=100)
    grid.call(tree.prompt("A:60"), holds, 0)
    grid.call(tree.prompt("B:60"), holds, 1)
    assert grid.state(tree.end("A:60"), "5m", holds, 2) == "absent"
    assert grid.call(tree.prompt("A:60"), holds, 2).read == 40  # 20 of A went, then 20 of B go
    assert grid.call(tree.prompt("B:60"), holds, 3).read == 40
    assert grid.call(tree.prompt("C:100"), holds, 4).read == 0
    assert grid.call(tree.prompt("B:60"), holds, 5).read == 0


def test_of_one_call_the_branch_goes_before_what_it_grew_from() -> None:
    tree, grid, holds = Tree(), FixedBlockCache(), rules(capacity_tokens=30)
    for start, sent in enumerate([["A:10", "B:10"], ["A:10", "C:10"], ["D:10"], ["E:10"]]):
        grid.call(tree.prompt(*sent), holds, start)
    states = [grid.state(tree.end(*sent), "5m", holds, 9) for sent in (["A:10"], ["A:10", "B:10"], ["A:10", "C:10"])]
    assert states == ["live", "absent", "absent"]


def test_a_prompt_longer_than_the_capacity_is_not_served() -> None:
    """It reads nothing, and what is cached stays."""
    tree, grid, holds = Tree(), FixedBlockCache(), rules(capacity_tokens=100, step_tokens=16)
    prompts = ["A:60"], ["A:60", "B:60"], ["A:60", "C:36"], ["A:60", "B:60"], ["A:60", "C:36"]
    assert [grid.call(tree.prompt(*one), holds, start).read for start, one in enumerate(prompts)] == [0, 0, 48, 0, 96]


def test_each_model_has_a_capacity_of_its_own() -> None:
    grid, trees = FixedBlockCache(), {"m": Tree(), "n": Tree()}
    for start in range(4):
        model = "mn"[start % 2]
        outcome = grid.call(trees[model].prompt("A:60"), rules(capacity_tokens=60, model=model), start)
    assert outcome.read == 60


def test_an_answer_is_read_when_it_first_comes_back_where_the_engine_keeps_it() -> None:
    conversation = [["Q:100"], ["Q:100", ">a:20", "R:7"], ["Q:100", ">b:20", "R:7"]]
    for keeps, reads in ((True, [0, 120, 100]), (False, [0, 100, 100])):
        tree, grid, holds = Tree(), FixedBlockCache(), rules(keeps_answers=keeps)
        assert [grid.call(tree.prompt(*sent), holds, at).read for at, sent in enumerate(conversation)] == reads
    tree, grid, holds = Tree(), FixedBlockCache(), rules(capacity_tokens=130, keeps_answers=True)
    assert [grid.call(tree.prompt(*sent), holds, at).read for at, sent in enumerate(conversation)] == [0, 120, 100]


class Doubled(CountedSizes):
    """As if a bill had told that all is twice as long."""

    def of(self, prefix: Any) -> int:
        return 2 * prefix.tokens

    def total(self, prompt: Any) -> int:
        return 2 * prompt.total_tokens

    def at(self, counted: int) -> int:
        return 2 * counted


def test_lengths_are_those_that_the_caller_knows() -> None:
    tree, grid = Tree(), FixedBlockCache()
    grid.call(tree.prompt("A:60"), rules(step_tokens=16), 0, sizes=Doubled())
    outcome = grid.call(tree.prompt("A:60", "B:5"), rules(step_tokens=16, capacity_tokens=80), 1, sizes=Doubled())
    assert (outcome.read, outcome.uncached) == (112, 18)
    assert grid.call(tree.prompt("A:60", "B:5"), rules(), 2, sizes=Doubled()).read == 130  # all was kept


def test_state_is_that_of_what_is_left() -> None:
    tree, grid, lives = Tree(), FixedBlockCache(), rules(ttl_s={"5m": 300.0})
    grid.call(tree.prompt("A:60", "B:60"), lives, 0, 2)
    states = [grid.state(tree.end("A:60"), "5m", lives, now) for now in (0, 1, 2, 299, 300)]
    assert states == ["unreadable", "unreadable", "live", "live", "expired"]
    grid.call(tree.prompt("A:60", "C:1"), lives, 250)
    assert grid.state(tree.end("A:60"), "5m", lives, 300) == "live"
    assert grid.state(tree.end("A:60", "C:1"), "5m", lives, 300) == "live"
    assert grid.state(tree.end("A:60", "B:60"), "5m", lives, 300) == "expired"
    assert grid.state(tree.end("D:60"), "5m", lives, 300) == "absent"


def test_best_effort_reads_the_most_it_could() -> None:
    tree, ideal = Tree(), FixedBlockCache()
    stated, sent = rules(minimum_tokens=4096), ["A:4095", "B:1", "C:1"]
    reads = [ideal.call(tree.prompt(*sent[:most]), stated, at).read for at, most in enumerate([1, 1, 2, 3])]
    assert reads == [0, 0, 0, 4096]
