"""Why a call paid again for what was cached: each cause, and both sides of every edge."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.random_bills import START
from tests.analysis.test_bill_account import prices

from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.conversations.input_files import BilledCall, SessionFile

OPUS, SONNET, GPT = "claude-opus-4-5", "claude-sonnet-4-5", "gpt-4o"
STATIC, CACHED = 20_000, 50_000
FIVE = (3, STATIC, CACHED - STATIC, 0, 9)
HOUR = (3, STATIC, 0, CACHED - STATIC, 9)
LOST = (3, STATIC, CACHED - STATIC + 500, 0, 9)
"""Reads the static prefix only."""
ALL_LOST = (3, 0, CACHED + 500, 0, 9)


def call(number: int, tokens: Any, at: float | None, **fields: Any) -> BilledCall:
    """A call of the main thread of session "s", `at` seconds after the start, answered after 5 seconds."""
    start = None if at is None else START + at
    answered = None if start is None else start + 5
    known = {"before": number - 1, "session": "s", "version": "2.1.0", "answered": answered, "model": OPUS}
    return BilledCall(number=number, line=number, tokens=tokens, start=start, **{**known, **fields})


def account(*files: list[BilledCall]) -> BillAccount:
    sessions = [SessionFile(f"{number}.jsonl", "claude-code", "shop", calls) for number, calls in enumerate(files)]
    return account_for(sessions, prices())


def cause(*calls: BilledCall) -> str:
    """The cause of the only rewrite, which is of the last call; "" for none."""
    rewrites = account(list(calls)).rewrites
    assert [one.call for one in rewrites] == [calls[-1]][: len(rewrites)]
    return rewrites[0].cause if rewrites else ""


def cause_between(
    first: Any = FIVE, second: Any = LOST, idle: float | None = 20.0, before: Any = None, **fields: Any
) -> str:
    return cause(call(1, first, 0, **(before or {})), call(2, second, idle, **fields))


@pytest.mark.parametrize(
    ("idle", "first", "expected"),
    [
        (299.9, FIVE, "billed_not_explained"),
        (300.0, FIVE, "ttl_expired"),
        (300.0, HOUR, "billed_not_explained"),
        (3599.9, HOUR, "billed_not_explained"),
        (3600.0, HOUR, "ttl_expired"),
        (None, FIVE, "billed_not_explained"),
        (-5.0, FIVE, "concurrent_write"),
    ],
)
def test_the_ttl(idle: float | None, first: Any, expected: str) -> None:
    fields = {} if idle is None else {"answered": START + idle}
    assert cause_between(first, idle=idle, **fields) == expected


@pytest.mark.parametrize(("answered", "expected"), [(299.9, "billed_not_explained"), (300.0, "ttl_expired")])
def test_a_request_may_have_begun_later_than_it_seems(answered: float, expected: str) -> None:
    """Where nothing else explains it, at its answer at the latest."""
    assert cause_between(idle=20, answered=START + answered) == expected
    assert cause_between(idle=20, answered=START + answered, events=("effort",)) == "effort_changed"


@pytest.mark.parametrize(
    ("idle", "read", "tokens"),
    [(299.9, 50_000, 0), (300.0, 30_000, 20_000), (3599.9, 30_000, 20_000), (3600.0, 0, 50_000)],
)
def test_the_part_with_1h_survives(idle: float, read: int, tokens: int) -> None:
    """20,000 read, 10,000 written with 1h, 20,000 with 5m."""
    second = (3, read, 50_500 - read, 0, 9)
    found = account([call(1, (3, 20_000, 20_000, 10_000, 9), 0), call(2, second, idle)]).rewrites
    assert [(one.cause, one.tokens) for one in found] == ([("ttl_expired", tokens)] if tokens else [])


def test_a_call_that_only_reads_keeps_the_ttl_of_what_it_reads() -> None:
    middle = (3, CACHED, 0, 0, 9)
    calls = [call(1, HOUR, 0), call(2, middle, 100)]
    assert cause(*calls, call(3, LOST, 100 + 3594.9)) == "billed_not_explained"
    assert cause(*calls, call(3, LOST, 100 + 3600)) == "ttl_expired"
    assert cause(call(1, FIVE, 0), call(2, middle, 100), call(3, LOST, 100 + 300)) == "ttl_expired"


@pytest.mark.parametrize(
    ("event", "static_lost", "messages_lost"),
    [
        ("compaction", "compaction", "compaction"),
        ("edit", "content_changed", "content_changed"),
        ("tools", "tools_changed", "billed_not_explained"),
        ("system", "system_changed", "billed_not_explained"),
        ("history", "content_changed", "content_changed"),
        ("thinking", "thinking_changed", "thinking_changed"),
        ("effort", "effort_changed", "effort_changed"),
        ("images", "images_changed", "images_changed"),
        ("client", "system_changed", "billed_not_explained"),
        ("agents", "tools_changed", "billed_not_explained"),
        ("date", "system_changed", "billed_not_explained"),
        ("resume", "billed_not_explained", "billed_not_explained"),
        ("fork", "fork", "fork"),
        ("human", "billed_not_explained", "billed_not_explained"),
        ("error", "billed_not_explained", "billed_not_explained"),
    ],
)
def test_events(event: str, static_lost: str, messages_lost: str) -> None:
    assert cause_between(second=ALL_LOST, events=(event,)) == static_lost
    assert cause_between(second=LOST, events=(event,)) == messages_lost


def test_tools_may_have_changed_where_the_static_prefix_is_not_known() -> None:
    first = call(1, (3, 0, 50_000, 0, 9), 0)
    assert cause(first, call(2, LOST, 20, events=("tools",))) == "tools_changed"
    assert cause(first, call(2, LOST, 20, events=("client",))) == "billed_not_explained"


def test_after_clear_nothing_continues() -> None:
    assert cause_between(second=ALL_LOST, events=("clear",)) == ""


@pytest.mark.parametrize(
    ("fields", "idle", "expected"),
    [
        ({"events": ("compaction", "edit", "model"), "model": SONNET}, 400, "compaction"),
        ({"events": ("edit", "model"), "model": SONNET}, 400, "content_changed"),
        ({"events": ("model",), "model": SONNET, "modes": ("fast",)}, 400, "model_changed"),
        ({"events": ("tools",), "modes": ("fast",)}, 400, "speed_changed"),
        ({"events": ("tools", "fork")}, 400, "ttl_expired"),
        ({"events": ("tools", "fork"), "miss_reason": "system_changed"}, 4, "concurrent_write"),
        ({"events": ("tools", "fork"), "miss_reason": "system_changed"}, 5, "system_changed"),
        ({"events": ("effort", "fork"), "miss_reason": "unavailable"}, 5, "effort_changed"),
        ({"events": ("tools", "fork"), "miss_reason": "unavailable"}, 5, "fork"),
        ({"events": ("fork",), "blocks": 30}, 5, "fork"),
    ],
)
def test_the_first_that_holds_decides(fields: dict[str, Any], idle: float, expected: str) -> None:
    assert cause_between(idle=idle, **fields) == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("model_changed", "model_changed"),
        ("tools_changed", "tools_changed"),
        ("system_changed", "system_changed"),
        ("messages_changed", "content_changed"),
        ("previous_message_not_found", "billed_not_explained"),
        ("unavailable", "billed_not_explained"),
        ("", "billed_not_explained"),
    ],
)
def test_the_reason_of_the_api(reason: str, expected: str) -> None:
    assert cause_between(miss_reason=reason) == expected


@pytest.mark.parametrize(("read", "tokens"), [(CACHED, 0), (CACHED - 2, 0), (CACHED - 3, 3), (0, CACHED)])
def test_two_tokens_are_the_tolerance(read: int, tokens: int) -> None:
    found = account([call(1, FIVE, 0), call(2, (3, read, 60_000, 0, 9), 20)]).rewrites
    assert [one.tokens for one in found] == [tokens] * bool(tokens)


@pytest.mark.parametrize(("paid", "tokens"), [((2, 0), 0), ((0, 2), 0), ((1, 2), 3), ((3, 0), 3)])
def test_a_shorter_prompt_is_no_rewrite(paid: tuple[int, int], tokens: int) -> None:
    """Of a prompt that was cut, only what was paid can have been written again."""
    uncached, five = paid
    found = account([call(1, FIVE, 0), call(2, (uncached, STATIC, five, 0, 9), 20, events=("fork",))]).rewrites
    assert [one.tokens for one in found] == [tokens] * bool(tokens)


@pytest.mark.parametrize(
    ("blocks", "events", "second", "expected"),
    [
        (20, (), LOST, "billed_not_explained"),
        (21, (), LOST, "lookback_exceeded"),
        (21, ("human", "error"), LOST, "lookback_exceeded"),
        (21, ("date",), LOST, "billed_not_explained"),
        (21, (), ALL_LOST, "billed_not_explained"),
    ],
)
def test_the_lookback(blocks: int, events: tuple[str, ...], second: Any, expected: str) -> None:
    assert cause_between(second=second, blocks=blocks, events=events) == expected


@pytest.mark.parametrize(
    ("model", "thinking", "events", "expected"),
    [
        (SONNET, True, ("human",), "thinking_stripped"),
        (OPUS, True, ("human",), "billed_not_explained"),
        (SONNET, False, ("human",), "billed_not_explained"),
        (SONNET, True, (), "billed_not_explained"),
    ],
)
def test_thinking_of_earlier_turns(model: str, thinking: bool, events: tuple[str, ...], expected: str) -> None:
    before = {"model": model, "has_thinking": thinking}
    assert cause_between(before=before, model=model, events=events) == expected


def test_thinking_stays_until_a_person_writes() -> None:
    read_all = (3, CACHED, 0, 0, 9)
    calls = [call(1, FIVE, 0, model=SONNET, has_thinking=True), call(2, read_all, 10, model=SONNET)]
    assert cause(*calls, call(3, LOST, 20, model=SONNET, events=("human",))) == "thinking_stripped"
    calls[1].events = ("human",)
    assert cause(*calls, call(3, LOST, 20, model=SONNET, events=("human",))) == "billed_not_explained"


def test_what_is_static() -> None:
    """Below what the first call read; where it read nothing, only nothing."""
    second = (3, STATIC - 1, 40_000, 0, 9)
    assert cause_between(second=second, events=("client",)) == "system_changed"
    cold = (3, 0, CACHED, 0, 9)
    assert cause_between(cold, (3, 1, CACHED, 0, 9), events=("client",)) == "billed_not_explained"
    assert cause_between(cold, ALL_LOST, events=("client",)) == "system_changed"


def test_calls_that_sum_several_passes_imply_no_prefix() -> None:
    """They are no rewrites, what follows them is none, and the static prefix is that of the first call still."""
    summed = call(2, (3, 90_000, 30_000, 0, 9), 10, is_summed=True)
    assert cause(call(1, FIVE, 0), summed) == ""
    assert cause(call(1, FIVE, 0), summed, call(3, ALL_LOST, 20)) == ""
    lost = call(4, (3, STATIC, CACHED, 0, 9), 30, events=("client",))
    calls = [call(1, FIVE, 0), summed, call(3, (3, CACHED, 900, 0, 9), 20)]
    assert cause(*calls, lost) == "billed_not_explained"
    lost.tokens = (3, STATIC - 1, CACHED, 0, 9)
    assert cause(*calls, lost) == "system_changed"


def test_a_fork_keeps_the_prefix_alive() -> None:
    calls = [call(1, FIVE, 0), call(2, (3, CACHED - 1, 900, 0, 9), 290)]
    assert cause(*calls, call(3, LOST, 580, before=1)) == "billed_not_explained"
    assert cause(calls[0], call(3, LOST, 580, before=1)) == "ttl_expired"


@pytest.mark.parametrize(("read", "tokens"), [(50_000 - 256, 0), (50_000 - 257, 257), (50_000 - 384, 384)])
def test_automatic_hosts_round_to_their_blocks(read: int, tokens: int) -> None:
    """They write nothing that is billed: the whole prompt is cached, in blocks of 128."""
    fields = {"host": "openai", "model": GPT}
    first = call(1, (50_000, 0, 0, 0, 9), 0, **fields)
    found = account([first, call(2, (60_000 - read, read, 0, 0, 9), 20, **fields)]).rewrites
    assert [one.tokens for one in found] == [tokens] * bool(tokens)
    assert all(one.cost and one.cost > 0 for one in found)


# ---------------------------------------------------------------------- sessions in several files


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "billed_not_explained"),
        ({"version": "2.1.1"}, "system_changed"),
        ({"version": ""}, "billed_not_explained"),
        ({"model": SONNET}, "model_changed"),
        ({"session": "t"}, None),
        ({"agent": "a1"}, None),
        ({"events": ("clear",)}, None),
    ],
)
def test_a_session_that_continues_in_another_file(fields: dict[str, Any], expected: str | None) -> None:
    later = call(1, ALL_LOST, 60, **fields)
    found = account([later], [call(1, FIVE, 0)]).rewrites
    assert [(one.call is later, one.cause) for one in found] == ([(True, expected)] if expected else [])


def test_a_file_that_ends_with_several_passes_is_continued_by_none() -> None:
    """What is cached after them is not known, nor for how long."""
    summed = call(2, (3, 90_000, 30_000, 0, 9), 290, is_summed=True)
    assert account([call(1, FIVE, 0), summed], [call(1, ALL_LOST, 400)]).rewrites == []


# ------------------------------------------------------------------------------- shared prefixes


def first(at: float, tokens: Any, **fields: Any) -> BilledCall:
    return call(1, tokens, at, **{"session": f"s{at}", **fields})


def shared(*calls: BilledCall) -> list[tuple[str, int]]:
    """(cause, tokens) of the rewrites; each call is the first of a file of its own."""
    return [(one.cause, one.tokens) for one in account(*[[one] for one in calls]).rewrites]


WRITER, READER, COLD = (3, 0, 25_000, 0, 9), (3, 22_000, 900, 0, 9), (3, 0, 24_000, 0, 9)


@pytest.mark.parametrize(
    ("at", "expected"), [(399.9, []), (400.0, [("cold_start", 22_000)]), (9_000.0, [("cold_start", 22_000)])]
)
def test_a_new_session_after_the_prefix_expired(at: float, expected: list[Any]) -> None:
    """The last that touched it was the reader, at 100 seconds, with a 5m write."""
    assert shared(first(0, WRITER), first(100, READER), first(at, COLD)) == expected


@pytest.mark.parametrize(("at", "expected"), [(3699.9, []), (3700.0, [("cold_start", 22_000)])])
def test_a_new_session_after_an_hour(at: float, expected: list[Any]) -> None:
    hour = (3, 22_000, 0, 900, 9)
    assert shared(first(0, WRITER), first(100, hour), first(at, COLD)) == expected


@pytest.mark.parametrize(
    "fields", [{"model": SONNET}, {"version": "2.1.1"}, {"agent": "a1"}, {"agent": "a1", "agent_type": "Explore"}]
)
def test_others_share_nothing(fields: dict[str, Any]) -> None:
    assert shared(first(0, WRITER), first(100, READER), first(400, COLD, **fields)) == []


def test_only_what_was_read_is_known_to_be_shared() -> None:
    assert shared(first(0, WRITER), first(9_000, COLD)) == []
    summed = first(100, READER, is_summed=True)
    assert shared(first(0, WRITER), summed, first(9_000, COLD)) == []


@pytest.mark.parametrize(("at", "expected"), [(4.9, [("concurrent_write", 22_000)]), (5.0, [])])
def test_a_session_that_begins_before_the_writer_answers(at: float, expected: list[Any]) -> None:
    """The writer began to answer after 5 seconds; the size is known from one that read it."""
    assert shared(first(0, WRITER), first(at, COLD), first(50, READER)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [("concurrent_write", 23_000)]),
        ({"new_chars": 4_400}, [("concurrent_write", 22_900)]),
        ({"new_chars": 8_000}, []),
        ({"tokens": (3, 0, 26_263, 0, 9)}, [("concurrent_write", 24_000)]),
        ({"tokens": (3, 0, 26_264, 0, 9)}, []),
        ({"tokens": (3, 0, 26_600, 0, 9)}, []),
        ({"tokens": (3, 0, 26_600, 0, 9), "agent_type": "Explore"}, [("concurrent_write", 24_000)]),
        ({"session": "t"}, []),
        ({"start": START + 5}, []),
    ],
)
def test_sub_agents_that_start_together(fields: dict[str, Any], expected: list[Any]) -> None:
    """The size is estimated: what each wrote, less its first message (4 characters a token)."""
    kind = {"agent_type": fields.get("agent_type", "")}
    writer = first(0, WRITER, agent="a1", session="s", new_chars=4_000, **kind)
    second = first(1, COLD, agent="a2", session="s", new_chars=4_000, **kind)
    for name, value in fields.items():
        setattr(second, name, value)
    assert shared(writer, second) == expected


def test_a_first_call_that_reads_is_no_loss() -> None:
    found = account([first(0, WRITER)], [first(100, READER)])
    assert (found.warm_calls, found.warm_tokens, found.rewrites) == (1, 22_000, [])
