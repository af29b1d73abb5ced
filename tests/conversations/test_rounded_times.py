"""Stamps of whole seconds are intervals: no entry is called unreadable because of rounding."""

from __future__ import annotations

import json
from math import floor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bodies import Body, assistant, body, text, user
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import quiet
from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.start_times import NEXT_S, ROUNDED_S, order_by_time, read_rounded
from cachecost.prompts.intake import Intake

ASK = user(text(2_000, "ask"))
MORE = (ASK, assistant(text(300)), user(text(200)))
BESIDE = (ASK, user(text(200)))
ON, AT = [(ASK,), MORE], "2026-03-07T10:00:{:09.6f}Z"
Said = tuple[Body, ...]


def calls(*sent: tuple[float, float, Said]) -> list[Call]:
    """Calls by start and time to first token, in seconds."""
    intake = Intake(keep_content=True)
    return [
        Call(intake.body(body(*said)), start, timestamp=AT.format(start % 60), first_token_s=first)
        for start, first, said in sent
    ]


def is_readable(writer: Call, reader: Call) -> bool:
    return reader.start > writer.start and reader.start >= writer.start + writer.ready_s


@given(*[st.integers(0, 40).map(lambda tenth: tenth / 8)] * 3)
def test_an_entry_is_unreadable_only_if_it_is_for_every_time_in_the_interval(
    start: float, wait: float, first_token: float
) -> None:
    """Times are eighths of seconds, so that the ends of intervals are met."""
    writer, reader = read_rounded(calls((floor(start), first_token, (ASK,)), (floor(start + wait), 0.0, BESIDE)))
    starts = [floor(start) + share / 64 for share in range(64)]
    later = [floor(start + wait) + share / 64 for share in range(64)]
    latest = any(at >= one + first_token and at > one for one in starts for at in later)
    if floor(start) != floor(start + wait):
        assert is_readable(writer, reader) is (latest or floor(start) + first_token == floor(start + wait) + 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=8))
def test_calls_keep_their_order_and_stay_within_their_second(sent: list[tuple[int, bool]]) -> None:
    given_calls = calls(*[(second, 0.0, ON[is_long]) for second, is_long in sorted(sent)])
    read = list(read_rounded(given_calls))
    assert [(one.request, one.timestamp) for one in read] == [(one.request, one.timestamp) for one in given_calls]
    for before, after in zip(given_calls, read, strict=True):
        assert before.start <= after.start < before.start + ROUNDED_S and after.rounding_s >= ROUNDED_S


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.booleans()), max_size=6))
def test_a_call_reads_what_was_written_by_the_one_that_it_goes_on_from(sent: list[tuple[int, int, bool]]) -> None:
    """However late the log says that the first token came; what stands beside it stays as it is."""
    read = list(read_rounded(calls(*[(at, first / 4, ON[is_long]) for at, first, is_long in sorted(sent)])))
    assert [one.start // 1 for one in read] == sorted(at for at, *_ in sent)
    for place, reader in enumerate(read):
        for writer in read[:place]:
            if reader.request.thread.length == 3 and writer.request.thread.length == 1:
                assert is_readable(writer, reader)


def test_a_call_without_the_answer_tells_nothing() -> None:
    writer, reader = read_rounded(calls((0, 9.5, (ASK,)), (2, 0.0, (ASK, user(text(200))))))
    assert (writer.ready_s, reader.start) == (8.5, 2)
    writer, reader = read_rounded(calls((0, 9.5, (ASK,)), (2, 0.0, MORE)))
    assert (writer.ready_s, reader.start) == (2.0, 2)


def test_equal_stamps_are_one_time_unless_one_call_goes_on_from_the_other() -> None:
    first, on, again, beside = read_rounded(
        calls((7, 0.4, (ASK,)), (7, 0.4, MORE), (7, 0.4, (ASK,)), (7, 0.4, (ASK, user(text(90)))))
    )
    assert [one.start for one in (first, on, again, beside)] == [7, 7 + NEXT_S, 7, 7]
    assert is_readable(first, on) and not is_readable(first, again) and not is_readable(first, beside)


@pytest.mark.parametrize(
    ("starts", "ready"),
    [((10.0, 12.0), 0.5), ((10.0, 12.25), 1.5), ((10.25, 12.0), 1.5), ((10.25, 12.25), 1.5)],
)
def test_stamps_with_fractions_change_nothing(tmp_path: Path, starts: tuple[float, ...], ready: float) -> None:
    """One fraction in a log shows that its stamps are not of whole seconds."""
    found = list(order_by_time(calls(*[(at, 1.5, (ASK,)) for at in starts]), tmp_path, quiet, None))
    assert [one.start for one in found] == list(starts)
    assert {one.ready_s for one in found} == {ready}


def saved(path: Path, *stamps: str | None) -> Path:
    rows = [{"request": body(ASK), "first_token_s": 1.5, **({"timestamp": at} if at else {})} for at in stamps]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("stamps", "ready"),
    [
        (("2026-03-07T10:00:00Z", "2026-03-07T10:00:02Z"), [0.5, 0.5]),
        (("2026-03-07T10:00:02Z", "2026-03-07T10:00:00Z"), [0.5, 0.5]),
        (("2026-03-07T10:00:00.5Z", "2026-03-07T10:00:02Z"), [1.5, 1.5]),
        (("2026-03-07T10:00:02Z", "2026-03-07T10:00:00.5Z"), [1.5, 1.5]),
        ((None, None), [1.5, 1.5]),
    ],
)
def test_a_log_is_read_so_in_order_or_not(tmp_path: Path, stamps: tuple[str | None, ...], ready: list[float]) -> None:
    assert [one.ready_s for one in read_calls(saved(tmp_path / "log.jsonl", *stamps))] == ready
