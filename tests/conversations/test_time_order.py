"""Calls happen in the order of their times, whatever their order in a file; results come in the order of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.importing import import_files
from cachecost.conversations.input_files import quiet
from cachecost.conversations.readers.call_recording import calls
from cachecost.conversations.readers.common.peek import TIMES
from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.start_times import in_file_order, order_by_time
from command_runs import printed
from row_places import without_place

LONG = "word " * 2_000
AT = "2026-03-07T10:00:{:02}Z"
Row = dict[str, Any]


def row(turns: int, second: int | None = None, **fields: Any) -> Row:
    """A call of a growing conversation, which breakpoints its end."""
    said: list[Row] = []
    for turn in range(turns):
        said += [{"role": "user", "content": [{"type": "text", "text": f"{turn} {LONG}"}]}]
        said += [{"role": "assistant", "content": f"ok {turn}"}]
    end = {"type": "text", "text": f"{turns} {LONG}", "cache_control": {"type": "ephemeral"}}
    request = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": [*said, {"role": "user", "content": [end]}]}
    timed = {} if second is None else {"timestamp": AT.format(second)}
    return {**timed, "request": request, **fields}


IN_ORDER = [row(turns, 5 * turns, session=f"s{turns % 2}") for turns in range(5)]


def saved(path: Path, *rows: Row) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def replayed(log: Path, *how: str) -> list[Row]:
    return [without_place(line) for line in printed("replay", log, "--json", *how).splitlines()]


@pytest.mark.parametrize("tokens", ["bytes", "calibrated"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_a_call_costs_the_same_wherever_it_stands_in_the_file(
    tmp_path: Path, tokens: str, order: tuple[int, ...]
) -> None:
    expected = replayed(saved(tmp_path / "a.jsonl", *IN_ORDER), "--tokens", tokens)
    assert [one["call"] for one in expected] == [1, 2, 3, 4, 5]
    made = replayed(saved(tmp_path / "b.jsonl", *(IN_ORDER[place] for place in order)), "--tokens", tokens)
    assert made == [{**expected[place], "call": number} for number, place in enumerate(order, 1)]


def test_strategies_and_explanations_see_the_same_calls(tmp_path: Path) -> None:
    rows = [row(turns, 5 * turns) for turns in range(5)]
    rows[2]["request"]["messages"][0]["content"][0]["text"] += "changed"
    order = (3, 0, 4, 2, 1)
    there, shuffled = saved(tmp_path / "a.jsonl", *rows), saved(tmp_path / "b.jsonl", *(rows[n] for n in order))
    assert replayed(there, "--strategy", "none") == replayed(shuffled, "--strategy", "none")
    told, again = (json.loads(printed("explain", log, "--json")) for log in (there, shuffled))
    assert told["findings"] and told["avoidable_usd"] == again["avoidable_usd"]
    assert [one["call"] for one in again["findings"]] == sorted(one["call"] for one in again["findings"])
    places = {(one["code"], one["call"], one["cost_usd"]) for one in told["findings"]}
    assert places == {(one["code"], order[one["call"] - 1] + 1, one["cost_usd"]) for one in again["findings"]}


def test_bills_are_judged_in_the_order_of_the_calls(tmp_path: Path) -> None:
    bills = [{"input_tokens": 3, "cache_creation_input_tokens": 2_010, "output_tokens": 1}]
    bills += [
        {"input_tokens": 3, "cache_read_input_tokens": 2_010 * n, "cache_creation_input_tokens": 2_015} for n in (1, 2)
    ]
    rows = [row(turns, 5 * turns, usage=bills[turns]) for turns in range(3)]
    there, shuffled = saved(tmp_path / "a.jsonl", *rows), saved(tmp_path / "b.jsonl", *(rows[n] for n in (2, 0, 1)))
    told, again = (json.loads(printed("validate", log, "--json")) for log in (there, shuffled))
    lines = [(1, 2), (2, 3), (3, 1)]
    moved = [{**one, "source": str(shuffled), "call": dict(lines)[one["call"]]} for one in told.pop("mismatches")]
    assert [{**one, "line": 0} for one in again.pop("mismatches")] == sorted(
        ({**one, "line": 0} for one in moved), key=lambda one: one["call"]
    )
    assert told == again


def test_recordings_made_of_a_log_are_in_the_order_of_time(tmp_path: Path) -> None:
    log = saved(tmp_path / "log.jsonl", *(IN_ORDER[place] for place in (2, 0, 4, 1, 3)))
    import_files([log], tmp_path / "import.jsonl")
    printed("recording", "concat", log, "-o", tmp_path / "concat.jsonl")
    printed("recording", "cut", log, "-o", tmp_path / "cut.jsonl", "--calls", "1-3")
    for name, turns in (("import", [0, 1, 2, 3, 4]), ("concat", [0, 1, 2, 3, 4]), ("cut", [0, 2, 4])):
        made = list(calls(tmp_path / f"{name}.jsonl"))
        assert [call.request.thread.length // 2 for call in made] == turns


def test_a_recording_of_ours_that_is_out_of_order_is_put_in_order(tmp_path: Path) -> None:
    import_files([saved(tmp_path / "log.jsonl", *IN_ORDER)], tmp_path / "made.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    for line in lines:
        if "call" in line:
            line["timestamp"] = AT.format(50 - int(line["timestamp"][17:19]))
    saved(tmp_path / "made.jsonl", *lines)
    read = list(read_calls(tmp_path / "made.jsonl"))
    assert [(call.number, call.request.thread.length // 2) for call in read] == [(n + 1, n) for n in (4, 3, 2, 1, 0)]


def test_equal_times_on_all_calls_are_no_times(tmp_path: Path) -> None:
    same = [{**one, "timestamp": AT.format(7)} for one in IN_ORDER]
    said: list[str] = []
    read = list(read_calls(saved(tmp_path / "same.jsonl", *same), warn=said.append))
    assert [(call.start - read[0].start, call.timestamp, str(call.day)) for call in read] == [
        (2.0 * place, None, "2026-03-07") for place in range(5)
    ]
    told = "all 5 calls have the same timestamp: ignored, taken as 2 s apart in file order"
    assert said == [f"{tmp_path / 'same.jsonl'}: {told}"]
    untimed = [{name: value for name, value in one.items() if name != "timestamp"} for one in IN_ORDER]
    log = saved(tmp_path / "none.jsonl", *untimed)
    how = ("--tokens", "bytes", "--as-of", "2026-03-07")
    assert replayed(tmp_path / "same.jsonl", *how) == replayed(log, *how)


@pytest.mark.parametrize("seconds", [(7,), (7, 7, 8), (None, 7, 7)])
def test_equal_times_on_some_calls_are_times(tmp_path: Path, seconds: tuple[int | None, ...]) -> None:
    log = saved(tmp_path / "log.jsonl", *(row(turns, second) for turns, second in enumerate(seconds)))
    assert [call.timestamp for call in read_calls(log)] == [second and AT.format(second) for second in seconds]


def test_calls_without_a_time_follow_the_one_before_them_in_the_file(tmp_path: Path) -> None:
    log = saved(tmp_path / "log.jsonl", row(0, 20), row(1), row(2, 10), row(3))
    assert [(call.number, call.request.thread.length // 2) for call in read_calls(log)] == [
        (3, 2),
        (4, 3),
        (1, 0),
        (2, 1),
    ]


def test_an_ordered_log_is_never_held_in_memory(tmp_path: Path) -> None:
    """The first call is there before the second is asked for."""
    log = saved(tmp_path / "log.jsonl", *IN_ORDER)
    asked: list[int] = []

    def watched() -> Iterator[Call]:
        for call in read_calls(log):
            asked.append(call.line)
            yield call

    for place, _ in enumerate(order_by_time(watched(), log, quiet, TIMES["request-log"]), 1):
        assert len(asked) == place


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 9), max_size=8))
def test_times_are_seen_as_they_are_read(tmp_path: Path, random: Random, seconds: list[int]) -> None:
    """The look at a log's times sees those that its lines then have, wherever the time stands in a line."""
    rows = [row(0, second if random.random() < 0.8 else None) for second in seconds]
    for one in rows:
        if random.random() < 0.5:
            one["request"] = one.pop("request")
            if "timestamp" in one:
                one["timestamp"] = one.pop("timestamp")
    log = saved(tmp_path / "log.jsonl", *rows)
    found = list(TIMES["request-log"](log))
    read = (
        [] if not rows else sorted((call.number or place, call.start) for place, call in enumerate(read_calls(log), 1))
    )
    if len(set(found)) > 1 or not all("timestamp" in one for one in rows):
        assert found == [start for _, start in read]


def test_a_line_with_two_times_is_refused(tmp_path: Path) -> None:
    lines = [json.dumps(one) for one in IN_ORDER[:3]]
    lines[2] = lines[2][:-1] + f', "timestamp": "{AT.format(1)}"}}'
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=":3 timestamp: expected one in this line; got several"):
        list(read_calls(log))


def test_what_was_made_is_put_back_in_the_order_of_the_file() -> None:
    assert list(in_file_order([(0, "a"), (0, "b")])) == ["a", "b"]
    assert list(in_file_order([(3, "c"), (1, "a"), (2, "b")])) == ["a", "b", "c"]
