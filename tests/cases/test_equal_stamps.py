"""Calls with one time stamp: what goes on from another call comes after it, all others with it are concurrent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of, rows_of, run_in

from bodies import Body, assistant, body, breakpoint_last, text, user
from cachecost.conversations.readers.detect import read_calls
from conversations.session_stores import (
    codex_context,
    codex_count,
    codex_line,
    codex_meta,
    codex_says,
    codex_sum,
    codex_usage,
    write_lines,
)
from conversations.test_transcript_reader import SAYS, system
from conversations.test_transcript_reader import answer as replied
from conversations.test_transcript_reader import user as asks

CASE = "16-equal-time-stamps"
Row = dict[str, Any]
STATIC = 10_000
STEP = 500


def reads(folder: Path, *words: object) -> list[tuple[int, str]]:
    """What each call of a replay read, and why."""
    rows = rows_of(run_in(folder, "replay", *words, "--json"))
    return [(row["usage"]["cache_read_input_tokens"], row["cause"]) for row in rows]


def test_a_resumed_session_s_copied_calls_read_each_other(run_case: Run) -> None:
    """As recorded: as billed, but for the two calls that read nothing: 17,882 and 18,381 × (18.75 − 1.5) / 10^6."""
    rows = rows_of(run_case(CASE, "replay", "session.jsonl", "--json"))
    usages = [row["usage"] for row in rows]
    assert [one["cache_read_input_tokens"] for one in usages][:6] == [0, 17_330, 17_433, 17_654, 17_772, 17_882]
    billed = Decimal(json_of(run_case(CASE, "bill", "session.jsonl", "--json"))["billed_usd"])
    cost = sum((Decimal(row["cost_usd"]) for row in rows), Decimal())
    assert billed - cost == (17_882 + 18_381) * Decimal("17.25") / 10**6
    assert {row["cause"] for row in rows} == {"cold_start", "hit", "warm_start"}
    words = run_case(CASE, "bill", "session.jsonl").stdout
    assert "after caching 18,381 tokens nothing was found" in words
    assert " 0 s " not in words and "same time" not in words


# --------------------------------------------------------------------------------------------------- transcripts


def chain(number: int, at: float, every: float = 0.0, before: str | None = None, **more: Any) -> list[Row]:
    """Calls one after another, `every` seconds apart: each reads what the last one had, and writes 500 tokens more.
    `tag` names them, `first` is the number of the first."""
    tag, first = more.pop("tag", "m"), more.pop("first", 0)
    rows: list[Row] = []
    for one in range(first, first + number):
        moment = at + every * (one - first)
        cached = STATIC + STEP * one if one else 0
        bill = (3, cached, STEP if one else STATIC + STEP, 40)
        rows.append(asks(f"{tag}{one}q", before, moment, f"question {tag}{one} " + "word " * 200, **more))
        before = f"{tag}{one}a"
        names = {"name": f"msg_{tag}{one}", "request": f"req_{tag}{one}"}
        rows.append(replied(before, f"{tag}{one}q", moment, bill, SAYS, **names, **more))
    return rows


@pytest.mark.parametrize("at", [7.123, 7.0], ids=["milliseconds", "whole seconds"])
@pytest.mark.parametrize("number", [3, 40])
def test_copied_calls_of_a_transcript_are_one_after_another(tmp_path: Path, at: float, number: int) -> None:
    rows = [*chain(number, at), *chain(1, at + 60, before=f"m{number - 1}a", first=number)]
    write_lines(tmp_path / "session.jsonl", rows)
    found = reads(tmp_path, "session.jsonl")
    assert found[0] == (0, "cold_start")
    assert found[1:] == [(STATIC + STEP * one, "hit") for one in range(1, number + 1)]


def test_a_compaction_among_copied_calls(tmp_path: Path) -> None:
    """Its request holds no earlier answer: that it comes after them is in the recording alone."""
    boundary = system("cut", "m2a", 7.5, "compact_boundary")
    summary = asks("sum", "cut", 7.5, "so far", isCompactSummary=True)
    after = replied("last", "sum", 7.5, (3, STATIC, 700, 40), SAYS, name="msg_last", request="req_last")
    write_lines(
        tmp_path / "session.jsonl", [*chain(3, 7.5), boundary, summary, after, *chain(1, 90, before="last", tag="z")]
    )
    found = list(read_calls(tmp_path / "session.jsonl"))
    assert all(one.start < other.start for one, other in pairwise(found))
    assert reads(tmp_path, "session.jsonl")[3][1] != "concurrent_write"


def test_two_chains_with_one_stamp_are_concurrent(tmp_path: Path) -> None:
    """The first calls of two sub-agents; within each the calls are one after another."""
    agents = [chain(2, 7.5, tag=tag, isSidechain=True, agentId=tag) for tag in ("p", "q")]
    write_lines(tmp_path / "session.jsonl", [*agents[0], *agents[1], *chain(1, 60, tag="z")])
    starts = {call.id.partition(" ")[0]: call.start for call in read_calls(tmp_path / "session.jsonl")}
    assert starts["msg_p0"] == starts["msg_q0"] < starts["msg_p1"] == starts["msg_q1"] < starts["msg_z0"]
    found = reads(tmp_path, "session.jsonl")
    assert [found[0], *found[2:4]] == [(0, "cold_start"), (0, "concurrent_write"), (10_500, "hit")]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["original first", "copy first"])
@pytest.mark.parametrize("more", [0, 9], ids=["equal", "longer copy"])
def test_a_copy_has_the_time_of_the_original(tmp_path: Path, names: tuple[str, str], more: int) -> None:
    """Resumed after ten minutes: what the session had cached for five had expired, and the copy's stamp hides it."""
    original = chain(3, 10, 20)
    copied = chain(3, 650)
    copied[-1]["message"]["usage"]["output_tokens"] += more
    new = replied("n", "nq", 655, (3, 0, 12_000, 40), SAYS, name="msg_n", request="req_n")
    write_lines(tmp_path / f"{names[0]}.jsonl", original)
    write_lines(tmp_path / f"{names[1]}.jsonl", [*copied, asks("nq", "m2a", 653, "go on"), new])
    found = json_of(run_in(tmp_path, "bill", "a.jsonl", "b.jsonl", "--json"))
    assert (found["calls"], [(one["cause"], one["tokens"]) for one in found["causes"]]) == (
        4,
        [("ttl_expired", 11_500)],
    )
    assert reads(tmp_path, "a.jsonl", "b.jsonl")[1:] == [(10_500, "hit"), (11_000, "hit"), (0, "ttl_expired")]


def test_without_the_original_nothing_is_said_of_the_time(tmp_path: Path) -> None:
    new = replied("n", "nq", 655, (3, 0, 12_000, 40), SAYS, name="msg_n", request="req_n")
    write_lines(tmp_path / "session.jsonl", [*chain(3, 650.25), asks("nq", "m2a", 653, "go on"), new])
    done = run_in(tmp_path, "bill", "session.jsonl")
    assert "after caching 11,500 tokens nothing was found" in done.stdout


@pytest.mark.parametrize("late", [0.001, 0.04])
def test_copies_are_not_called_sub_agents_that_started_together(tmp_path: Path, late: float) -> None:
    """A resume may stamp what a person said and what was answered a moment apart; no model answers within 50 ms."""
    rows = [*chain(2, 7.5, tag="p"), *chain(2, 7.5, tag="q"), *chain(1, 60, tag="z")]
    for row in rows:
        if row["type"] == "assistant":
            second = float(row["timestamp"][17:-1]) + late
            row["timestamp"] = f"{row['timestamp'][:17]}{second:06.3f}Z"
        if row["uuid"] in ("p1a", "q1a"):  # both read nothing, and wrote all again
            row["message"]["usage"].update(cache_read_input_tokens=0, cache_creation_input_tokens=11_000)
    write_lines(tmp_path / "session.jsonl", rows)
    causes = json_of(run_in(tmp_path, "bill", "session.jsonl", "--json"))["causes"]
    assert [one["cause"] for one in causes] == ["billed_not_explained"]


def test_three_thousand_copied_calls_take_no_longer_than_others(tmp_path: Path) -> None:
    write_lines(tmp_path / "session.jsonl", [*chain(3_000, 7.5), *chain(1, 60, tag="z")])
    found = list(read_calls(tmp_path / "session.jsonl"))
    assert all(one.start < other.start for one, other in pairwise(found))
    assert found[-2].start - found[0].start < 0.002


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (("q1", 9.5, (3, 0, 20_000, 40)), 2),
        (("m0q", 9.5, (3, 0, 20_000, 40)), 2),
        (("m0a", 9.5, (3, 0, 20_000, 40)), 1),
        (("q1", 9.5, (3, 0, STATIC + STEP, 44)), 1),
    ],
    ids=["after a person's words", "another answer to the same words", "a later line of the answer", "a copy"],
)
def test_answers_with_one_id(tmp_path: Path, second: tuple[str, float, Any], expected: int) -> None:
    parent, at, bill = second
    between = asks("q1", "m0a", 9, "and now?")
    again = replied("again", parent, at, bill, SAYS, name="msg_m0", request="req_m0")
    other = chain(1, 8, before="m0a", tag="o") if parent == "m0q" else []
    write_lines(tmp_path / "session.jsonl", [*chain(1, 7), *([between] if parent == "q1" else other), again])
    billed = json_of(run_in(tmp_path, "bill", "session.jsonl", "--json"))
    calls = list(read_calls(tmp_path / "session.jsonl"))
    assert billed["calls"] == len(calls) == expected + bool(other)
    assert billed["usage"]["output_tokens"] == sum(call.billed.output_tokens for call in calls if call.billed)


# ------------------------------------------------------------------------------------------------ request logs

ASK, ANSWER = user(text(8_000, "ask")), assistant(text(300))
MORE = (user(text(8_000, "ask")), ANSWER, user(text(200)))
BESIDE = (user(text(8_000, "ask")), user(text(200)))


def request(at: str, messages: Sequence[Body], **more: Any) -> Row:
    return {"timestamp": f"2026-03-07T10:00:{at}Z", "request": breakpoint_last(body(*messages)), **more}


@pytest.mark.parametrize("wait", [0.0, 1.5])
@pytest.mark.parametrize(
    ("stamps", "second", "cause"),
    [
        (("07.25", "07.25"), MORE, "hit"),
        (("07.25", "07.25"), (ASK,), "concurrent_write"),
        (("07.25", "07.25"), BESIDE, "concurrent_write"),
        (("07", "07"), MORE, "hit"),
    ],
    ids=["goes on", "the same again", "without the answer", "whole seconds"],
)
def test_equal_stamps_inside_a_request_log(
    tmp_path: Path, stamps: tuple[str, str], second: Sequence[Body], cause: str, wait: float
) -> None:
    rows = [
        request(stamps[0], (ASK,), first_token_s=wait),
        request(stamps[1], second),
        request("50", (user(text(300)),)),
    ]
    for order in (rows, [rows[2], *rows[:2]]):
        write_lines(tmp_path / "log.jsonl", order)
        causes = [one for _, one in reads(tmp_path, "log.jsonl", "--tokens", "bytes")]
        assert causes[order.index(rows[1])] == cause


# ----------------------------------------------------------------------------------------------------- Codex


def test_calls_of_a_copied_codex_turn_are_one_after_another(tmp_path: Path) -> None:
    """All that is known of their time is when the turn began."""
    usages = [
        codex_usage(0, 20_000, 9, 20_000),
        codex_usage(20_000, 21_000, 9, 1_000),
        codex_usage(21_000, 22_000, 9, 1_000),
    ]
    began = codex_line(1, "event_msg", type="task_started", started_at=1.0)
    rows = [codex_meta("t-2", forked_from_id="t-1", cli_version="0.140.0"), codex_context(1), began]
    for number, usage in enumerate(usages, 1):
        rows += [codex_says(1, "user", f"more {number}"), codex_says(1, "assistant", "done")]
        rows.append(codex_count(1, usage, codex_sum(*usages[:number])))
    own = codex_line(500, "event_msg", type="task_started", started_at=1.0)
    path = write_lines(tmp_path / "rollout-t-2.jsonl", [*rows, own])
    found = list(read_calls(path))
    assert len({call.timestamp for call in found}) <= 1
    assert all(one.start < other.start for one, other in pairwise(found))
