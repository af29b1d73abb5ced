"""Mooncake traces: each id a message, shared ids a shared thread, no block at a length it does not have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers import call_recording as recordings
from cachecost.conversations.readers import mooncake, request_log
from cachecost.conversations.readers.mooncake import MODEL, calls, sniff
from slow_cases import examples

Row = dict[str, Any]


def row(at: float, tokens: int, ids: list[int], answer: int = 52) -> Row:
    return {"timestamp": at, "input_length": tokens, "output_length": answer, "hash_ids": ids}


def trace_file(folder: Path, *rows: Row | str) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows))
    return path


def read(folder: Path, *rows: Row | str) -> list[Call]:
    return list(calls(trace_file(folder, *rows), pytest.fail))


def faults_of(folder: Path, *rows: Row | str) -> list[str]:
    path = trace_file(folder, *rows)
    with pytest.raises(InputError) as caught:
        list(calls(path))
    return [str(fault).removeprefix(f"{path}:") for fault in caught.value.faults]


def tokens_of(call: Call) -> list[int | None]:
    return [block.tokens for message in call.request.thread.messages() for block in message.blocks]


def shared(one: Call, other: Call) -> int:
    """How many messages two prompts begin with alike."""
    nodes = set(one.request.thread.back())
    return next((node.length for node in other.request.thread.back() if node in nodes), 0)


def test_requests_with_the_same_ids_share_their_thread(tmp_path: Path) -> None:
    first, second, third = read(
        tmp_path, row(27482, 1300, [46, 47, 2353]), row(30535, 1536, [46, 47, 2366], 26), row(30535.5, 20, [7])
    )
    assert [tokens_of(call) for call in (first, second, third)] == [[512, 512, 276], [512] * 3, [20]]
    assert (shared(first, second), shared(first, third)) == (2, 0)
    assert first.request.thread.messages()[0] is second.request.thread.messages()[0]


def test_what_a_call_tells(tmp_path: Path) -> None:
    (call,) = read(tmp_path, row(27482, 1300, [46, 47, 2353], 52))
    assert (call.line, call.start, call.timestamp, call.day) == (1, 27.482, None, None)
    assert (call.request.model, call.billed, call.status, call.is_batch, call.session) == (MODEL, None, None, False, "")
    assert [(block.role, block.tokens, block.content) for block in call.response] == [("assistant", 52, None)]
    assert {message.role for message in call.request.thread.messages()} == {"user"}
    assert (call.request.breakpoints, call.request.automatic) == ((), None)


def test_answers_of_equal_length_are_not_one_block(tmp_path: Path) -> None:
    first, second = read(tmp_path, row(0, 5, [1]), row(1, 5, [1]))
    assert first.response[0].digest != second.response[0].digest


def test_an_id_at_another_length_is_another_block(tmp_path: Path) -> None:
    short, long, longer = read(tmp_path, row(0, 612, [1, 2]), row(1, 700, [1, 2]), row(2, 1100, [1, 2, 3]))
    assert [tokens_of(call) for call in (short, long, longer)] == [[512, 100], [512, 188], [512, 512, 76]]
    assert (shared(short, long), shared(long, longer)) == (1, 1)


def test_a_last_block_without_an_id_is_nobody_elses(tmp_path: Path) -> None:
    first, second, third = read(tmp_path, row(0, 612, [1]), row(1, 612, [1]), row(2, 100, []))
    assert [tokens_of(call) for call in (first, second, third)] == [[512, 100], [512, 100], [100]]
    assert (shared(first, second), shared(second, third)) == (1, 0)


def test_a_trace_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(gzip.compress(trace_file(tmp_path, row(0, 5, [1])).read_bytes()))
    assert len(list(calls(path))) == 1


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(row(0, 5, [1])) + '\n{"timestamp": 3, "inp')
    said: list[str] = []
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]


LATEST_MS = 221_845_392_000_000
"""The year 9000: a replay may go on from any moment before."""


def test_a_moment_beyond_all_dates_is_an_error(tmp_path: Path) -> None:
    assert len(list(calls(trace_file(tmp_path, row(LATEST_MS - 1, 5, [1]))))) == 1
    for beyond in (LATEST_MS, 10**300, 1e308):
        (words,) = faults_of(tmp_path, row(beyond, 5, [1]))  # type: ignore[arg-type]
        assert words.startswith("1 timestamp: expected milliseconds since the trace began; got ")


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    assert faults_of(
        tmp_path,
        row(3000, 1300, [1, 2, 3]),
        row(2000, 1300, [1, 2]),
        row(3000, 1300, [1]),
        row(3000, 655, [0, 1, 2]),
        row(3000, 0, []),
        '{"timestamp": "3", "input_length": 5, "output_length": -1, "hash_ids": [1.5]}',
        {"timestamp": float("inf"), "hash_ids": [1], "session_id": "a"},
        '{"timestamp":',
        "[]",
    ) == [
        "2 timestamp: expected 3000 or later (lines are in order of arrival); got 2000",
        "3 hash_ids: expected 3 ids, one per 512 of 1300 tokens; got 1",
        "4 hash_ids: expected 2 ids, one per 512 of 655 tokens; got 3",
        "5 input_length: expected a whole number from 1; got 0",
        "6 hash_ids: expected an array of whole numbers; got an array",
        "6 timestamp: expected milliseconds since the trace began; got '3'",
        "6 output_length: expected a whole number from 0; got -1",
        "7 input_length: expected a whole number from 1; got nothing",
        "7 timestamp: expected milliseconds since the trace began; got inf",
        "7 output_length: expected a whole number from 0; got nothing",
        "7 session_id: unknown key",
        "8 damaged JSON: Expecting value at character 15",
        "9 expected an object; got an array",
    ]


def test_calls_come_until_the_first_fault(tmp_path: Path) -> None:
    path = trace_file(tmp_path, row(0, 5, [1]), row(1, 5, []), "{", row(2, 5, [1]))
    reading = calls(path)
    assert [next(reading).line, next(reading).line] == [1, 2]
    with pytest.raises(InputError):
        next(reading)


def test_an_empty_trace_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("\n")
    with pytest.raises(InputError, match="is empty; expected a Mooncake trace, one request per line"):
        list(calls(path))


@pytest.mark.parametrize(
    "head",
    [
        json.dumps(row(0, 5, [1])),
        '{"hash_ids": [], "output_length": 1, "input_length": 5, "timestamp": 0}',
        '\n {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2',
    ],
)
def test_a_trace_is_known_by_its_keys(head: str) -> None:
    assert sniff(head.encode()) == "its first line has only hash_ids, lengths and a timestamp"


@pytest.mark.parametrize(
    "head",
    [
        '{"chat_id": 1, "timestamp": 61.1, "input_length": 5, "output_length": 1, "hash_ids": [1]}',
        '{"timestamp": 0, "input_length": 5, "output_length": 1}',
        '{"timestamp": "2026-03-07T10:00:00Z", "request": {"hash_ids": 1}}',
        '{"format": 1, "kind": "calls"}',
        '{"custom_id": "a", "params": {}}',
        '[{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}]',
        "",
    ],
)
def test_others_are_none(head: str) -> None:
    assert sniff(head.encode()) is None


def test_a_trace_is_no_other_format() -> None:
    head = json.dumps(row(0, 5, [1])).encode()
    assert not any(reader.sniff(head) for reader in (request_log, recordings))


# ----------------------------------------------------------------------------------- traces of all kinds

prompts = st.lists(st.integers(0, 3), max_size=5).flatmap(
    lambda ids: st.tuples(st.just(ids), st.sampled_from([0, 1, 511]), st.booleans()).filter(
        lambda one: one[0] or one[1]
    )
)
pauses = st.sampled_from([0, 1, 0.5, 3000])


@settings(max_examples=examples(60), deadline=None)
@given(asked=st.lists(st.tuples(prompts, pauses), min_size=1, max_size=6))
def test_any_trace_gives_its_lengths_times_and_shared_beginnings(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[tuple[list[int], int, bool], float]]
) -> None:
    rows, blocks, at = [], [], 0.0
    for number, ((ids, rest, has_id), pause) in enumerate(asked):
        at += pause
        rows.append(row(at, 512 * len(ids) + rest, ids + [9] * (has_id and rest > 0)))
        end = [(9 if has_id else f"line {number}", rest)] if rest else []
        blocks.append([(id_, 512) for id_ in ids] + end)
    read_ = read(tmp_path_factory.mktemp("any"), *rows)
    assert [call.start for call in read_] == [one["timestamp"] / 1000 for one in rows]
    assert [tokens_of(call) for call in read_] == [[tokens for _, tokens in one] for one in blocks]
    for one, mine in zip(read_, blocks, strict=True):
        for other, theirs in zip(read_, blocks, strict=True):
            alike = [a == b for a, b in zip(mine, theirs, strict=False)] + [False]
            assert shared(one, other) == alike.index(False)


def test_what_is_known_costs_no_new_message(tmp_path: Path) -> None:
    ids = list(range(100))
    read_ = read(tmp_path, *(row(number, 512 * 100, ids) for number in range(5)))
    assert len({id(call.request.thread) for call in read_}) == 1
    assert sum(tokens or 0 for tokens in tokens_of(read_[0])) == mooncake.BLOCK_TOKENS * 100
