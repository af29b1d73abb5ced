"""Laws and worked examples: the documentation's lookback, tool loops, stripped thinking in dollars."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest

from bodies import (
    COUNTS_EVERY_BLOCK,
    STRIPS,
    Body,
    Engine,
    assistant,
    body,
    breakpoint_last,
    marked,
    text,
    thinking,
    tool,
    tool_result,
    tool_use,
    user,
)
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome

BLOCK = 120


def blocks(count: int) -> list[Body]:
    return [text(BLOCK, str(number)) for number in range(count)]


def marked_at(count: int, *at: int) -> Body:
    """`count` blocks in one message, breakpoints on the given ones (from 1)."""
    return body(user(*[marked(block) if number in at else block for number, block in enumerate(blocks(count), 1)]))


def reads(*requests: Body) -> list[tuple[int, int]]:
    """(blocks read, blocks written) of each request."""
    engine = Engine(COUNTS_EVERY_BLOCK)
    outcomes = [engine.call(request) for request in requests]
    return [(outcome.read // BLOCK, outcome.write_5m // BLOCK) for outcome in outcomes]


def test_the_documentations_lookback_example() -> None:
    assert reads(marked_at(10, 10), marked_at(15, 15), marked_at(35, 35)) == [(0, 10), (10, 5), (0, 35)]


def test_a_second_breakpoint_in_reach_saves_it() -> None:
    assert reads(marked_at(10, 10), marked_at(15, 15), marked_at(35, 15, 35))[-1] == (15, 20)


@pytest.mark.parametrize(("added", "hit"), [(19, True), (20, False)])
def test_the_window_is_twenty_positions_with_the_breakpoint_itself_the_first(added: int, hit: bool) -> None:
    assert reads(marked_at(10, 10), marked_at(10 + added, 10 + added))[-1][0] == (10 if hit else 0)


def test_each_breakpoint_has_a_window_of_its_own() -> None:
    assert reads(marked_at(10, 10), marked_at(60, 12, 40, 60))[-1] == (10, 50)


def test_what_a_tool_loop_reads_is_what_was_read_and_written_before() -> None:
    engine = Engine()
    messages = [user(text(3000, "go"))]
    outcomes = []
    for number in range(12):
        outcomes.append(engine.call(breakpoint_last(body(*messages, tools=[tool(800)]))))
        messages += [assistant(tool_use(90 + number, f"t{number}")), user(tool_result(300 + 7 * number, f"t{number}"))]
    for before, now in pairwise(outcomes):
        assert now.read == before.read + before.write_5m
        assert now.uncached == 0


def agent(turns: int, calls: int, parallel: int, breakpoint_previous_human: bool = False) -> list[Outcome]:
    """Every call of an agent on a last-turn-only model: thinking, then tools, then an answer."""
    engine = Engine(replace(STRIPS, collapses_runs=False))
    head = {"tools": [tool(1469)], "system": [marked(text(1700, "system")), marked(text(100, "skills"))]}
    messages: list[Body] = []
    humans: list[int] = []
    outcomes = []
    for turn in range(turns):
        humans.append(len(messages))
        messages.append(user(text(60, f"turn {turn}")))
        for call in range(calls):
            sent = list(messages)
            if breakpoint_previous_human and len(humans) > 1:
                sent[humans[-2]] = user(marked(text(60, f"turn {turn - 1}")))
            outcomes.append(engine.call(breakpoint_last(body(*sent, **head))))
            names = [f"t{turn}.{call}.{number}" for number in range(parallel)]
            thought = thinking(300, f"{turn}.{call}")
            if call == calls - 1:
                messages.append(assistant(thought, text(250, f"answer {turn}")))
            else:
                messages.append(assistant(thought, *[tool_use(80, name) for name in names]))
                messages.append(user(*[tool_result(900, name) for name in names]))
    return outcomes


def first_writes(outcomes: list[Outcome]) -> list[int]:
    return [outcome.write_5m for outcome in outcomes[::5]]


def input_dollars(outcomes: list[Outcome]) -> Decimal:
    """At $3 a million: reads 0.1, writes 1.25, the rest 1."""
    tenths = sum(2 * one.read + 25 * one.write_5m + 20 * one.uncached for one in outcomes)
    return Decimal(3) * tenths / Decimal(20 * 10**6)


def test_stripped_thinking_rewrites_one_turn_when_it_is_within_lookback() -> None:
    assert first_writes(agent(4, 5, 1)) == [3329, 4230, 4230, 4230]


def test_stripped_thinking_rewrites_everything_when_the_turn_is_longer_than_the_lookback() -> None:
    assert first_writes(agent(4, 5, 3)) == [3329, 12130, 24200, 36270]


def test_one_more_breakpoint_on_the_previous_human_message_bounds_it() -> None:
    plain, with_breakpoint = agent(4, 5, 3), agent(4, 5, 3, breakpoint_previous_human=True)
    assert first_writes(with_breakpoint)[2:] == [12070, 12070]
    saved = 1 - input_dollars(with_breakpoint) / input_dollars(plain)
    assert round(saved * 100, 1) == Decimal("20.6")
