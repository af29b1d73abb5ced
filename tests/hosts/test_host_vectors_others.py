"""Gemini, DeepSeek, xAI, Mistral and who is no host, as published: a log goes in, usage and dollars come out.

Sources: the makers' docs as the rule rows name them (`cachecost rules --host NAME`).
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from host_logs import Sent, ask, body, causes, every, reads, replay, usages, write_log

from bodies import BREAKPOINT, HOUR, Body, assistant, marked, text, tool, user

FLASH = "gemini-3.8-flash-explicit"
HOUR_S = 3600


def head(ttl: str = "5m", size: int = 3_000) -> Body:
    return {"tools": [tool(2_000)], "system": [marked(text(size, "s"), ttl)]}


ASKED, ANSWERED, THEN = user(text(2_000, "u")), assistant(text(100, "a")), user(text(900, "v"))


@pytest.mark.parametrize(("ttl", "lives_s"), [("5m", 300), ("1h", HOUR_S)])
def test_a_read_does_not_lengthen_the_life_of_an_object(tmp_path: Path, ttl: str, lives_s: int) -> None:
    """It is made anew when its time is over, though it was read a second before."""
    times = (0, lives_s - 1, lives_s, 2 * lives_s - 1)
    rows = replay(tmp_path, "gemini", FLASH, *[Sent(at, body(ASKED, **head(ttl))) for at in times])
    assert usages(rows) == [(0, 5_000, 2_000), (5_000, 0, 2_000)] * 2
    assert causes(rows) == ["cold_start", "hit", "ttl_expired", "hit"]


@pytest.mark.parametrize(
    ("day", "rates"),
    [("2026-12-31", ("0.75", "0.075", "0.5")), ("2027-01-01", ("1.5", "0.15", "1"))],
)
def test_making_an_object_costs_its_tokens_its_first_read_and_its_hour(
    tmp_path: Path, day: str, rates: tuple[str, ...]
) -> None:
    full, read, storage = map(Decimal, rates)
    begin = f"{day}T12:00:00+00:00"
    rows = replay(tmp_path, "gemini", FLASH, *every(10, *[body(ASKED, **head("1h"))] * 2), begin=begin)
    made, used = (Decimal(row["cost_usd"]) * 10**6 for row in rows)
    assert made == 5_000 * (full + read + storage) + 2_000 * full
    assert used == 5_000 * read + 2_000 * full


def test_a_tail_that_moves_is_no_object(tmp_path: Path) -> None:
    """Neither the top-level breakpoint nor one in messages makes one; the head's does."""
    bare = {"tools": [tool(2_000)], "system": [text(3_000, "s")]}
    tail = [body(ASKED, **bare, cache_control=BREAKPOINT), body(user(marked(text(2_000, "u"))), **bare)]
    assert usages(replay(tmp_path, "gemini", FLASH, *every(10, *tail))) == [(0, 0, 7_000)] * 2
    both = [
        body(ASKED, **head(), cache_control=BREAKPOINT),
        body(ASKED, ANSWERED, THEN, **head(), cache_control=BREAKPOINT),
    ]
    assert usages(replay(tmp_path, "gemini", FLASH, *every(10, *both))) == [(0, 5_000, 2_000), (5_000, 0, 3_000)]


@pytest.mark.parametrize(("size", "usage"), [(2_095, (0, 0, 6_095)), (2_096, (0, 4_096, 2_000))])
def test_an_object_has_a_least_size(tmp_path: Path, size: int, usage: tuple[int, int, int]) -> None:
    assert usages(replay(tmp_path, "gemini", FLASH, Sent(0, body(ASKED, **head(size=size))))) == [usage]


@pytest.mark.parametrize(("size", "read"), [(4_095, 0), (4_096, 4_096)])
def test_gemini_itself_promises_nothing(tmp_path: Path, size: int, read: int) -> None:
    """The row has the most that it can read; what a miss costs stands beside it."""
    calls = every(10, body(user(text(size))), body(user(text(size)), THEN))
    rows = replay(tmp_path, "gemini", "gemini-3.8-flash", *calls)
    assert usages(rows)[1] == (read, 0, size + 900 - read)
    cost = Decimal(rows[1]["cost_usd"]) * 10**6
    assert cost == read * Decimal("0.075") + (size + 900 - read) * Decimal("0.75")
    least, most = map(Decimal, rows[1]["cost_range_usd"])
    assert (least * 10**6, most * 10**6) == (cost, (size + 900) * Decimal("0.75"))


def part(name: str, size: int = 640) -> Body:
    return user(text(size, name))


def sent(names: str) -> Body:
    return body(*map(part, names))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["AB", "ABC"], [0, 1_280]),
        (["AB", "AC", "AD"], [0, 0, 640]),
        (["AB", "AC", "AD", "ABE"], [0, 0, 640, 1_280]),
        (["AB", "CB"], [0, 0]),
    ],
)
def test_deepseek_reads_whole_units(tmp_path: Path, asked: list[str], found: list[int]) -> None:
    """The guide's examples: A+B, A+B+C; A+B, A+C, A+D."""
    assert reads(replay(tmp_path, "deepseek", "deepseek-flash", *every(10, *map(sent, asked)))) == found


def test_an_answer_of_deepseek_is_read_when_it_comes_back(tmp_path: Path) -> None:
    calls = every(10, sent("A"), body(part("A"), assistant(text(384, "a")), part("B")))
    rows = replay(tmp_path, "deepseek", "deepseek-flash", *calls)
    assert usages(rows) == [(0, 0, 640), (1024, 0, 640)]


@pytest.mark.parametrize(
    ("begin", "times"),
    [
        ("2026-11-17T00:59:59+00:00", 1),
        ("2026-11-17T01:00:00+00:00", 2),
        ("2026-11-17T03:59:59+00:00", 2),
        ("2026-11-17T04:00:00+00:00", 1),
        ("2026-11-17T06:00:00+00:00", 2),
        ("2026-11-17T10:00:00+00:00", 1),
        ("2026-11-17T10:30:00+08:00", 2),
        ("2026-11-21T02:00:00+00:00", 1),
        ("2026-10-01T02:00:00+00:00", 1),
    ],
    ids=["before", "begins", "lasts", "over", "again", "over again", "by UTC", "Saturday", "a holiday"],
)
def test_peak_hours_of_deepseek_go_by_the_time_of_the_call(tmp_path: Path, begin: str, times: int) -> None:
    rows = replay(tmp_path, "deepseek", "deepseek-flash", Sent(0, sent("A")), begin=begin)
    assert Decimal(rows[0]["cost_usd"]) * 10**6 == 640 * times * Decimal("0.15")


def test_a_log_that_runs_into_the_peak_pays_it_from_then_on(tmp_path: Path) -> None:
    calls = [Sent(0, sent("A")), Sent(1, sent("B")), Sent(2, sent("C"))]
    rows = replay(tmp_path, "deepseek", "deepseek-flash", *calls, begin="2026-11-17T00:59:59+00:00")
    assert [Decimal(row["cost_usd"]) / Decimal("0.000096") for row in rows] == [1, 2, 2]


@pytest.mark.parametrize(("tokens", "price"), [(199_999, 2), (200_000, 4)])
def test_xai_charges_twice_from_200_000_tokens_on(tmp_path: Path, tokens: int, price: int) -> None:
    rows = replay(tmp_path, "xai", "grok-4.7", Sent(0, body(user(text(tokens)))))
    assert Decimal(rows[0]["cost_usd"]) * 10**6 == tokens * price


@pytest.mark.parametrize(("host", "model"), [("xai", "grok-4.7"), ("mistral", "mistral-large-4")])
def test_a_grid_charges_nothing_for_a_write_and_reads_whole_steps(tmp_path: Path, host: str, model: str) -> None:
    """Which steps is for the rows to say; a write is priced as input."""
    rows = replay(tmp_path, host, model, *every(10, sent("B"), body(part("A", 1_279)), body(part("A", 1_279), THEN)))
    first, other, read = reads(rows)
    assert first == 0
    assert other <= 23, "all texts begin with the same JSON"
    assert 1_279 - 128 < read < 1_279
    assert read % 16 == 0
    assert usages(rows)[2] == (read, 0, 2_179 - read)


def test_breakpoints_are_of_no_matter_where_the_host_caches_by_itself(tmp_path: Path) -> None:
    plain = every(10, body(ASKED, system=[text(3_000, "s")]), body(ASKED, ANSWERED, THEN))
    with_breakpoints = every(
        10,
        body(ASKED, system=[marked(text(3_000, "s"), "1h")], cache_control=HOUR),
        body(ASKED, ANSWERED, user(marked(text(900, "v")))),
    )
    for host, model in (("xai", "grok-4.7"), ("deepseek", "deepseek-flash"), ("openai", "gpt-5.5")):
        assert replay(tmp_path, host, model, *plain) == replay(tmp_path, host, model, *with_breakpoints)


def test_a_host_that_is_none_of_ours(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", "kimi-k3", [Sent(0, sent("A"), "novita")])
    result = ask("replay", log, "--json")
    assert result.code == 3
    assert result.rows[0]["error"]["message"].startswith(
        "no rules for host 'novita'; known: anthropic, azure, bedrock, "
    )
    refused = ask("replay", log, "--host", "novita")
    assert (refused.code, refused.out) == (2, "")
    assert "expected one of anthropic, azure, " in refused.words
    assert "; got 'novita'" in refused.words
