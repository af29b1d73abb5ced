"""Whole units: what DeepSeek's guide shows, and what it means for answers, TTLs and calls side by side."""

from __future__ import annotations

import pytest
from trees import Tree, rules

from cachecost.caches.fixed_units import FixedUnitCache

DEEPSEEK = rules(host="deepseek", minimum_tokens=64, reported_step_tokens=64, keeps_answers=True)


def reads(*sent: str, apart: float = 10, first_token: float = 0.0, stated: object = None) -> list[int]:
    """Reads of prompts one after another, each written as "A:100 B:20"."""
    tree, units, chosen = Tree(), FixedUnitCache(), stated or rules(keeps_answers=True)
    return [
        units.call(tree.prompt(*one.split()), chosen, number * apart, first_token).read  # type: ignore[arg-type]
        for number, one in enumerate(sent)
    ]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (["A:100 B:50", "A:100 B:50 C:9"], [0, 150]),
        (["A:100 B:50", "A:100 C:9", "A:100 D:9"], [0, 0, 100]),
        (["A:100 B:50", "A:100 B:50"], [0, 150]),
        (["A:100 B:50", "A:100"], [0, 0]),
        (["A:100 B:50", "A:100", "A:100 D:9"], [0, 0, 100]),
        (["A:100 B:50 C:9", "A:100 B:50 D:9", "A:100 E:9", "A:100 B:50 F:9", "A:100 G:9"], [0, 0, 0, 150, 100]),
        (["A:100", "X:100 B:9"], [0, 0]),
        # where a layer ends is no other place than after its last block: the third prompt has one more tool
        (["A:100 / ~s:0 B:50", "A:100 / ~s:0 C:9", "A:100 T:5 / ~s:0 B:50"], [0, 0, 100]),
        (["A:100 / ~s:7 B:50", "A:100 / ~s:7 C:9", "A:100 T:5 / ~s:7 B:50"], [0, 0, 0]),
        (["A:100 / ~s:7 B:50", "A:100 / ~s:7 C:9", "A:100 / ~s:7 D:50"], [0, 0, 107]),
    ],
)
def test_a_hit_matches_a_unit_fully(sent: list[str], expected: list[int]) -> None:
    assert reads(*sent) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (["Q:100", "Q:100 >a:20 R:7"], [0, 120]),
        (["Q:100", "Q:100 >a:20 >t:30 R:7", "Q:100 >a:20 >t:30 R:7 >b:5 S:1"], [0, 150, 162]),
        (["Q:100", "Q:100 >a:20 R:7", "Q:100 >b:20 R:7"], [0, 120, 100]),
        (["Q:100", "Q:100", "Q:100 >a:20 R:7", "Q:100 >b:20 R:7"], [0, 100, 120, 120]),
        (["Q:100", "Q:100 >a:20 R:7", "Q:100 >a:20 S:7"], [0, 120, 120]),
        (["Q:100 >p:5", "Q:100 R:7 >a:20 S:1"], [0, 0]),
        (["Q:100", "Q:100 R:7 >a:20 S:1"], [0, 100]),
    ],
)
def test_an_answer_is_a_unit_when_it_comes_back(sent: list[str], expected: list[int]) -> None:
    assert reads(*sent) == expected


@pytest.mark.parametrize(("tokens", "read"), [(63, 0), (64, 64), (127, 64), (128, 128)])
def test_reads_are_told_in_whole_steps_from_the_minimum(tokens: int, read: int) -> None:
    assert reads(f"A:{tokens}", f"A:{tokens} B:500", stated=DEEPSEEK) == [0, read]


def test_what_is_not_read_is_uncached_and_nothing_is_written() -> None:
    tree, units = Tree(), FixedUnitCache()
    units.call(tree.prompt("A:100", tail=3), DEEPSEEK, 0)
    outcome = units.call(tree.prompt("A:100", "B:50", tail=3), DEEPSEEK, 1)
    assert (outcome.read, outcome.uncached, outcome.write_5m, outcome.write_1h) == (64, 89, 0, 0)
    assert outcome.hit is tree.end("A:100")


def test_a_unit_is_readable_from_the_first_token_of_whichever_call_is_first() -> None:
    same = "A:100 B:1"
    assert reads("A:100", same, apart=5, first_token=5.0) == [0, 100]
    assert reads("A:100", same, apart=5, first_token=5.1) == [0, 0]
    assert reads("A:100", same, apart=0) == [0, 0]
    tree, units = Tree(), FixedUnitCache()
    calls = [(0, 50.0), (1, 2.0), (2, 90.0), (3, 0.0)]
    found = [units.call(tree.prompt("A:100"), rules(), start, wait).read for start, wait in calls]
    assert found == [0, 0, 0, 100]


def test_a_read_refreshes_its_unit_and_no_other() -> None:
    tree, units, lives = Tree(), FixedUnitCache(), rules(ttl_s={"5m": 300.0})
    calls = [("A:100", 0), ("A:100 B:50", 200), ("A:100 B:50 C:9", 400), ("A:100 D:9", 499), ("A:100 B:50 E:9", 699)]
    found = [units.call(tree.prompt(*sent.split()), lives, start).read for sent, start in calls]
    assert found == [0, 100, 150, 100, 150]
    assert units.state(tree.end("A:100"), "5m", lives, 798.9) == "live"
    assert units.state(tree.end("A:100"), "5m", lives, 799) == "expired"
    assert units.state(tree.end("D:100"), "5m", lives, 799) == "absent"
    assert units.call(tree.prompt("A:100"), lives, 799).read == 0
    assert units.call(tree.prompt("A:100"), lives, 800).read == 100


def test_an_answer_that_is_read_is_refreshed() -> None:
    tree, units, lives = Tree(), FixedUnitCache(), rules(ttl_s={"5m": 300.0}, keeps_answers=True)
    calls = [("Q:100", 0), ("Q:100 >a:20 R:7", 200), ("Q:100 >a:20 S:7", 499.9), ("Q:100 >a:20 T:7", 799.9)]
    found = [units.call(tree.prompt(*sent.split()), lives, start).read for sent, start in calls]
    assert found == [0, 120, 120, 0]


def test_an_empty_prompt_makes_no_unit() -> None:
    assert reads("A:0", "A:0 >a:5 R:7", "A:0 >a:5 S:1", "A:0 >a:5 S:1") == [0, 0, 0, 6]
