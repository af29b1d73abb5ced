"""OpenAI's caching as published and measured, through the whole simulation: a log goes in, the usage comes out.

Sources: OpenAI's guide to prompt caching (2026-10-02), openai 3.54.0, BerriAI/litellm pull request 37628.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from host_logs import Sent, ask, body, causes, every, reads, replay, usages, write_log

from bodies import BREAKPOINT, HOUR, Body, assistant, marked, text, tool, user
from cachecost.prompts.intake import Intake
from cachecost.tokens.factory import make_counter

SOL, EXPLICIT = "gpt-6.1-sol", "gpt-6.1-sol-explicit"
HEAD: Body = {"tools": [tool(2_000)], "system": [text(8_000, "developer")]}
FIRST, MORE = user(text(2_000, "u")), user(text(3_000, "v"))
MARKED_FIRST = user(marked(text(2_000, "u")))


def on(model: str, request: Body) -> Body:
    return {**request, "model": model}


def test_the_example_of_the_guide(tmp_path: Path) -> None:
    rows = replay(tmp_path, "openai", SOL, *every(10, body(FIRST, **HEAD), body(FIRST, MORE, **HEAD)))
    assert usages(rows) == [(0, 12_000, 0), (12_000, 3_000, 0)]
    assert [row["cost_usd"] for row in rows] == ["0.03", "0.0087"]  # 12,000 × 2.5; 12,000 × 0.1 + 3,000 × 2.5


def words_of(tokens: int, word: str) -> Body:
    """A text block of `tokens` by the counter that replay takes for the model, the frame of a turn not counted."""
    counter, intake = make_counter("tiktoken", "o200k"), Intake(keep_content=True)
    for number in range(tokens, tokens + 100):
        block = {"type": "text", "text": f"{word} " * number}
        if counter.block(intake.body(body(user(block))).thread.messages()[0].blocks[0]) == tokens:
            return block
    raise AssertionError(f"no text of {tokens} tokens")


@pytest.mark.parametrize(("reading", "second"), [("readable", (6_002, 1_479, 3)), ("not", (0, 7_481, 3))])
def test_litellm_37628_another_user_message_reads_the_developer_messages(
    tmp_path: Path, reading: str, second: tuple[int, int, int]
) -> None:
    """The three tokens that open the answer are neither read nor written."""
    system, turn = 3, 4  # the token that closes a message comes after its last block
    head = {"system": [words_of(6_002 - system, "developer")]}
    asked = [words_of(tokens - turn, word) for tokens, word in ((1_493, "one"), (1_479, "two"))]
    calls = every(10, *[body(user(block), **head) for block in asked])
    log = write_log(tmp_path / "log.jsonl", "gpt-5.6-sol", calls)
    result = ask("replay", log, "--host", "openai", "--json", "--rule", f"openai_developer_end={reading}")
    assert usages(result.rows) == [(0, 7_495, 3), second]


def test_explicit_mode_without_breakpoints_caches_nothing(tmp_path: Path) -> None:
    rows = replay(tmp_path, "openai", EXPLICIT, *every(10, body(FIRST, **HEAD), body(FIRST, MORE, **HEAD)))
    assert usages(rows) == [(0, 0, 12_000), (0, 0, 15_000)]
    assert causes(rows) == ["no_breakpoint", "no_breakpoint"]


@pytest.mark.parametrize(
    ("then", "second", "cause"),
    [
        (body(MARKED_FIRST, MORE, **HEAD), (12_000, 0, 3_000), "hit"),
        (body(FIRST, user(marked(text(3_000, "v"))), **HEAD), (0, 15_000, 0), "breakpoint_misplaced"),
        (body(MARKED_FIRST, user(marked(text(3_000, "v"))), **HEAD), (12_000, 3_000, 0), "hit"),
        (body(FIRST, MORE, **HEAD, cache_control=BREAKPOINT), (0, 15_000, 0), "breakpoint_misplaced"),
        (body(FIRST, MORE, **HEAD), (0, 0, 15_000), "no_breakpoint"),
    ],
    ids=["a breakpoint at the same spot", "another spot", "both", "the tail", "no breakpoint"],
)
def test_from_implicit_to_explicit_only_a_breakpoint_finds_what_was_written(
    tmp_path: Path, then: Body, second: tuple[int, int, int], cause: str
) -> None:
    rows = replay(tmp_path, "openai", SOL, *every(10, body(FIRST, **HEAD), on(EXPLICIT, then)))
    assert usages(rows)[1] == second
    assert causes(rows)[1] == cause


def test_from_explicit_to_implicit_the_end_of_a_user_message_is_found(tmp_path: Path) -> None:
    calls = every(10, on(EXPLICIT, body(MARKED_FIRST, **HEAD)), body(FIRST, MORE, **HEAD))
    assert usages(replay(tmp_path, "openai", SOL, *calls)) == [(0, 12_000, 0), (12_000, 3_000, 0)]


def test_a_longer_user_message_loses_the_end_of_the_shorter(tmp_path: Path) -> None:
    longer = user(text(2_000, "u"), text(500, "more"))
    rows = replay(tmp_path, "openai", SOL, *every(10, body(FIRST), body(longer)))
    assert usages(rows) == [(0, 2_000, 0), (0, 2_500, 0)]


def test_a_breakpoint_within_the_last_message_stays_where_it_is(tmp_path: Path) -> None:
    asked = [body(user(marked(text(5_000, "document")), text(100, name))) for name in "ab"]
    assert usages(replay(tmp_path, "openai", SOL, *every(10, *asked))) == [(0, 5_000, 100), (5_000, 0, 100)]


@pytest.mark.parametrize(
    ("model", "breakpoints", "found"),
    [(EXPLICIT, 5, [0, 2, 3, 4, 5]), (EXPLICIT, 4, [1, 2, 3, 4]), (SOL, 5, [0, 0, 3, 4, 5])],
    ids=["explicit, one too many", "explicit, as many as may be", "the implicit one takes a place"],
)
def test_surplus_breakpoints_are_dropped_the_oldest_first(
    tmp_path: Path, model: str, breakpoints: int, found: list[int]
) -> None:
    """Each prefix is then asked for alone, with a breakpoint at its end: was it written?"""
    blocks = [text(1_100, str(number)) for number in range(breakpoints)]
    last = user(text(1_100, "last") if model == EXPLICIT else marked(text(1_100, "last")))
    first = body(user(*map(marked, blocks)), assistant(text(100, "a")), last)
    asked = [on(EXPLICIT, body(user(*blocks[:upto], marked(blocks[upto])))) for upto in range(breakpoints)]
    for number, one in enumerate(asked):
        rows = replay(tmp_path, "openai", model, *every(10, first, one))
        assert reads(rows)[1] == found[number] * 1_100, number


def test_breakpoints_in_tools_are_left_out(tmp_path: Path) -> None:
    """What is left has no breakpoint: implicit mode."""
    asked = body(FIRST, tools=[marked(tool(2_000))])
    assert usages(replay(tmp_path, "openai", SOL, Sent(0, asked))) == [(0, 4_000, 0)]
    assert usages(replay(tmp_path, "openai", EXPLICIT, Sent(0, asked))) == [(0, 0, 4_000)]


def turns(number: int) -> list[Body]:
    """User messages of 60 tokens, answered with as many."""
    return [(user if turn % 2 == 0 else assistant)(text(60, str(turn))) for turn in range(2 * number - 1)]


@pytest.mark.parametrize(("between", "read", "cause"), [(20, 2_060, "hit"), (21, 0, "lookback_exceeded")])
def test_implicit_mode_looks_at_twenty_earlier_ends(tmp_path: Path, between: int, read: int, cause: str) -> None:
    head = {"system": [text(2_000, "developer")]}
    calls = every(10, body(*turns(1), **head), body(*turns(1 + between), **head))
    rows = replay(tmp_path, "openai", SOL, *calls, words=("--rule", "openai_developer_end=not"))
    assert (reads(rows)[1], causes(rows)[1]) == (read, cause)


def with_breakpoints(first: int, last: int, number: int) -> Body:
    """A message of `number` blocks, marked from the `first` to the `last`, under a head that is long enough."""
    blocks = [text(60, str(block)) for block in range(number)]
    chosen = [marked(block) if first <= place <= last else block for place, block in enumerate(blocks)]
    return body(user(*chosen), system=[text(2_000, "developer")])


@pytest.mark.parametrize(
    ("written_at", "breakpoints", "guide", "sdk"),
    [(1, 90, True, False), (9, 90, False, False), (10, 90, False, True), (39, 90, False, True), (40, 90, True, True)],
    ids=["among the first 2", "neither", "among the latest 80", "80, not 50", "among the latest 50"],
)
def test_which_breakpoints_are_looked_at_is_a_switch(
    tmp_path: Path, written_at: int, breakpoints: int, guide: bool, sdk: bool
) -> None:
    """The guide: the first 2 and the latest 50; the SDK's docstring: the latest 80."""
    calls = every(
        10, with_breakpoints(written_at, written_at, written_at + 1), with_breakpoints(0, breakpoints - 1, breakpoints)
    )
    for reading, is_found in (("guide", guide), ("sdk", sdk)):
        rows = replay(tmp_path, "openai", EXPLICIT, *calls, words=("--rule", f"openai_boundaries={reading}"))
        assert reads(rows)[1] == (2_000 + 60 * (written_at + 1) if is_found else 0), reading


@pytest.mark.parametrize(("ttl", "lives_s", "price"), [(BREAKPOINT, 1_800, "2.5"), (HOUR, 43_200, "5")])
def test_a_lifetime_is_counted_from_the_last_write_or_read(tmp_path: Path, ttl: Body, lives_s: int, price: str) -> None:
    times = (0, lives_s - 1, 2 * lives_s - 2, 3 * lives_s - 2)
    calls = [Sent(at, body(FIRST, **HEAD, cache_control=ttl)) for at in times]
    rows = replay(tmp_path, "openai", SOL, *calls)
    assert reads(rows) == [0, 12_000, 12_000, 0]
    keyed = replay(tmp_path, "openai", SOL, *calls, words=("--rule", "ttl_in_key=true"))
    assert reads(keyed) == reads(rows)
    assert causes(rows) == ["cold_start", "hit", "hit", "ttl_expired"]
    assert Decimal(rows[0]["cost_usd"]) == 12_000 * Decimal(price) / 10**6


def test_a_long_prompt_doubles_the_price_of_a_write(tmp_path: Path) -> None:
    rows = replay(tmp_path, "openai", SOL, *every(10, body(user(text(272_000))), body(user(text(272_001, "x")))))
    assert [row["cost_usd"] for row in rows] == ["0.68", "1.360005"]


def dollars(folder: Path, model: str, size: int, calls: int) -> Decimal:
    """What the input of `calls` calls with the same prompt of `size` tokens costs."""
    rows = replay(folder, "openai", model, *every(10, *[body(user(text(size)))] * calls))
    return sum((Decimal(row["cost_usd"]) for row in rows), Decimal(0))


@pytest.mark.parametrize(("calls", "times"), [(2, "1.35"), (10, "2.15")])
def test_a_write_and_reads_as_the_guide_reckons(tmp_path: Path, calls: int, times: str) -> None:
    once = dollars(tmp_path, "gpt-6-sol-explicit", 2_000, 1)
    assert dollars(tmp_path, "gpt-6-sol", 2_000, calls) == once * Decimal(times)


@pytest.mark.parametrize(
    ("size", "calls", "pays_off"),
    [(220, 10, False), (221, 10, True), (103, 1_962, False), (103, 1_963, True), (102, 2_500, False)],
)
def test_padding_a_short_prompt_to_the_minimum(tmp_path: Path, size: int, calls: int, pays_off: bool) -> None:
    """1,024 tokens that are cached against fewer that are not: from 221 tokens on, where ten calls have them."""
    padded = dollars(tmp_path, "gpt-6-sol", 1_024, 2)
    once = 1_024 * Decimal("2.5") / 10**6
    assert padded == once + 1_024 * Decimal("0.2") / 10**6
    bare = dollars(tmp_path, "gpt-6-sol", size, 2) * calls / 2
    assert (once + (calls - 1) * (padded - once) < bare) is pays_off


def test_before_5_6_hits_are_told_in_steps_of_128_from_1024(tmp_path: Path) -> None:
    for size, read in ((1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152)):
        first, more = user(text(size)), user(text(300, "more"))
        rows = replay(tmp_path, "openai", "gpt-4o", *every(10, body(first), body(first, more)))
        assert usages(rows) == [(0, 0, size), (read, 0, size + 300 - read)], size


def test_tool_choice_is_no_part_of_the_prefix_and_the_schema_is(tmp_path: Path) -> None:
    choice = {"tool_choice": {"type": "none"}}
    schema = {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}
    rows = replay(tmp_path, "openai", SOL, *every(10, *[body(FIRST, **HEAD, **more) for more in ({}, choice, schema)]))
    assert reads(rows) == [0, 12_000, 0]
    assert causes(rows) == ["cold_start", "hit", "output_format_changed"]
