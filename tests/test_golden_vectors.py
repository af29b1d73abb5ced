"""Usage that others recorded or published, re-derived: sizes go in, the same reads and writes come out."""

from __future__ import annotations

from bodies import (
    COUNTS_EVERY_BLOCK,
    RULES,
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

HOUR = 3600


def growing(first: int, *added: int, head: Body | None = None) -> list[Outcome]:
    """Calls with the breakpoint on the last block; each adds so many tokens in an assistant and a user message."""
    engine = Engine()
    messages = [user(text(first, "0"))]
    outcomes = [engine.call(breakpoint_last(body(*messages, **(head or {}))))]
    for number, size in enumerate(added, 1):
        messages += [assistant(text(60, f"a{number}")), user(text(size - 60, f"u{number}"))]
        outcomes.append(engine.call(breakpoint_last(body(*messages, **(head or {})))))
    return outcomes


def reads_and_writes(outcomes: list[Outcome]) -> list[tuple[int, int]]:
    return [(outcome.read, outcome.write_5m) for outcome in outcomes]


def test_langchain_26701_reads_what_was_read_and_written_before() -> None:
    assert reads_and_writes(growing(2634, 398, 861, 534)) == [(0, 2634), (2634, 398), (3032, 861), (3893, 534)]


def test_home_generative_agent_617() -> None:
    assert reads_and_writes(growing(4565, 167)) == [(0, 4565), (4565, 167)]


def test_adf_token_tracking_breakpoints_the_system_prompt_only() -> None:
    engine = Engine()
    head = {"tools": [tool(1469)], "system": [marked(text(1700)), marked(text(100))]}
    messages = [user(text(356))]
    calls = [engine.call(body(*messages, **head))]
    for number, size in enumerate((1081, 146, 854, 287)):
        messages += [assistant(text(60, f"a{number}")), user(text(size - 60, f"u{number}"))]
        calls.append(engine.call(body(*messages, **head)))
    table = [(call.uncached, call.write_5m, call.read) for call in calls]
    assert table == [(356, 3269, 0), (1437, 0, 3269), (1583, 0, 3269), (2437, 0, 3269), (2724, 0, 3269)]
    assert [sum(column) for column in zip(*table, strict=True)] == [8537, 3269, 13076]


def test_documented_thinking_budget_change_writes_again() -> None:
    engine = Engine()
    calls = [
        engine.call(breakpoint_last(body(user(text(1370)), thinking={"type": "enabled", "budget_tokens": budget})))
        for budget in (4000, 4000, 8000)
    ]
    assert reads_and_writes(calls) == [(0, 1370), (1370, 0), (0, 1370)]


def test_documented_mixed_lifetimes_split_at_the_last_hour_breakpoint() -> None:
    engine = Engine()
    engine.call(body(user(marked(text(1800, "a"), "1h"))))
    blocks = [marked(text(1800, "a"), "1h"), marked(text(100, "b"), "1h"), marked(text(148, "c")), text(2048, "d")]
    outcome = engine.call(body(user(*blocks)))
    assert (outcome.uncached, outcome.read, outcome.write_5m, outcome.write_1h) == (2048, 1800, 148, 100)


def test_zeroclaw_10786_the_first_human_messages_entry_survives_dropped_thinking() -> None:
    engine = Engine(STRIPS)
    engine.call(body(user(text(50)), tools=[marked(tool(22_126))]))
    first = [user(text(18_380, "task"))]
    loop = [assistant(thinking(1_003), tool_use(1_000, "t1")), user(tool_result(1_000, "t1"))]
    then = [assistant(thinking(800), text(8_000, "done")), user(text(4_458, "next"))]
    head = {"tools": [marked(tool(22_126))]}
    calls = [
        engine.call(breakpoint_last(body(*messages, **head)))
        for messages in (first, [*first, *loop], [*first, *loop, *then], [*first, *loop, *then])
    ]
    assert reads_and_writes(calls) == [(22_126, 18_380), (40_506, 3_003), (40_506, 14_458), (54_964, 0)]


def poll(every: float, until: float, ttl: str) -> list[Outcome]:
    engine = Engine()
    return [engine.call(body(user(marked(text(30_000), ttl))), at=at) for at in _times(every, until)]


def _times(every: float, until: float) -> list[float]:
    return [number * every for number in range(int(until // every) + 1)]


def test_tbd_310_polling_keeps_five_minutes_alive_for_an_hour() -> None:
    calls = poll(240, HOUR, "5m")
    assert [call.read for call in calls] == [0] + [30_000] * 15
    assert [call.read for call in poll(300, HOUR, "5m")] == [0] * 13, "at its TTL an entry has expired"


def test_swe_agent_1482_gaps_of_seven_minutes() -> None:
    engine = Engine()
    five = [engine.call(body(user(marked(text(16_442)))), at=at).read for at in (0, 420, 480, 900)]
    hour = [Engine().call(body(user(marked(text(16_442), "1h")))).read]
    assert five == [0, 0, 16_442, 0] and hour == [0]


def test_strands_3348_parallel_calls_past_the_window_miss_where_every_block_counts() -> None:
    for rules, hit in ((COUNTS_EVERY_BLOCK, False), (RULES, True)):
        engine = Engine(replace(rules))
        first = [user(text(2_000))]
        names = [f"t{number}" for number in range(18)]
        turn = [
            assistant(*[tool_use(80, name) for name in names]),
            user(*[tool_result(90, name) for name in names]),
        ]
        engine.call(breakpoint_last(body(*first)))
        assert (engine.call(breakpoint_last(body(*first, *turn))).read == 2_000) is hit
