"""What the API refuses of message threads and of on-demand compaction (rules 20 and 21), and what threads read."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.conversations.importing import ImportOptions, import_files
from cachecost.conversations.readers.common.message_threads import MessageThreads
from cachecost.conversations.readers.detect import read_calls
from cachecost.ledger.rows import CallRow
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import MessageThread, refusal, sent_breakpoints
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from naive_refusals import refused_thread

Row = dict[str, Any]
BREAKPOINT = {"cache_control": {"type": "ephemeral"}}
FOUR = (
    "thread: a maximum of 3 blocks with cache_control may be provided when `thread` is set -- the fourth marker slot "
    "is reserved for the marker the server places on the conversation's last cache-eligible block. Found 4."
)
LOST = (
    "No thread state was found for the requested `previous_message_id`. "
    'Replay the full conversation with thread: {"type": "create"} to start a new Thread.'
)
BOOK = RuleBook()
USAGE = {"input_tokens": 9_000, "output_tokens": 1}


def text(words: str, marked: bool = True) -> Row:
    return {"type": "text", "text": words, **(BREAKPOINT if marked else {})}


def row(second: int, model: str = "claude-opus-5-5", **fields: Any) -> Row:
    """A call at `second` after ten, answered as msg_SECOND."""
    time = f"2026-11-07T{10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    answer = {"id": f"msg_{second}", "content": [{"type": "text", "text": "yes"}]}
    more = {name: fields.pop(name) for name in ("usage", "host", "status") if name in fields}
    return {"timestamp": time, "request": {"model": model, "max_tokens": 9, **fields}, "response": answer, **more}


def starts(marks: int = 1, **fields: Any) -> Row:
    blocks = [text(f"word {n} " * 3_000, n < marks) for n in range(4)]
    return row(0, messages=[{"role": "user", "content": blocks}], thread={"type": "create"}, **fields)


def goes_on(second: int, before: int = 0, marks: int = 1, **fields: Any) -> Row:
    blocks = [text(f"more {second}.{n}", n < marks) for n in range(4)]
    thread = {"type": "continue", "previous_message_id": f"msg_{before}"}
    return row(second, messages=[{"role": "user", "content": blocks}], thread=thread, **fields)


def rows_of(path: Path, *lines: Row, host: str = "anthropic") -> list[CallRow]:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    calls = list(read_calls(path))
    setup = ReplaySetup(BOOK, PriceBook(), tokens="bytes", host=host, bills=calls)
    return list(Simulation(setup, preparer=setup.preparer()).rows(calls))


def errors_of(path: Path, *lines: Row, host: str = "anthropic") -> list[str | None]:
    return [one.error for one in rows_of(path, *lines, host=host)]


@pytest.mark.parametrize(("marks", "why"), [(3, None), (4, FOUR)])
def test_a_fourth_breakpoint_is_refused_in_a_thread(tmp_path: Path, marks: int, why: str | None) -> None:
    assert errors_of(tmp_path / "log.jsonl", starts(marks)) == [why]
    assert errors_of(tmp_path / "on.jsonl", starts(), goes_on(9, marks=marks)) == [None, why]


def test_the_breakpoints_of_the_threads_first_request_do_not_count_again(tmp_path: Path) -> None:
    assert errors_of(tmp_path / "log.jsonl", starts(3), goes_on(9, marks=3)) == [None, None]


def test_automatic_caching_counts(tmp_path: Path) -> None:
    automatic = {"cache_control": {"type": "ephemeral"}}
    assert errors_of(tmp_path / "log.jsonl", starts(3, **automatic)) == [FOUR]
    assert errors_of(tmp_path / "four.jsonl", starts(2, **automatic)) == [None]


def test_a_call_with_a_bill_was_not_refused(tmp_path: Path) -> None:
    late = goes_on(7_200, marks=4, usage=USAGE)
    assert errors_of(tmp_path / "log.jsonl", starts(4, usage=USAGE), late) == [None, None]


@pytest.mark.parametrize(("seconds", "why"), [(300, None), (301, LOST), (7_200, LOST)])
def test_a_thread_expires(tmp_path: Path, seconds: int, why: str | None) -> None:
    assert errors_of(tmp_path / "log.jsonl", starts(), goes_on(seconds)) == [None, why]


def test_each_request_keeps_a_thread(tmp_path: Path) -> None:
    lines = [starts(), goes_on(299), goes_on(598, 299), goes_on(900, 598)]
    assert errors_of(tmp_path / "log.jsonl", *lines) == [None, None, None, LOST]


def test_before_its_release_a_thread_was_held_for_an_hour() -> None:
    days = [date(2026, 11, 1), date(2026, 11, 2)]
    assert [BOOK.rules("anthropic", "claude-opus-5-5", day).thread_held_s for day in days] == [3_600, 300]


def test_an_imported_thread_is_refused_alike(tmp_path: Path) -> None:
    log, made = tmp_path / "log.jsonl", tmp_path / "made.jsonl"
    expected = errors_of(log, starts(4), goes_on(301))
    for content in ("keep", "digest"):
        import_files([log], made, ImportOptions(content))  # type: ignore[arg-type]
        calls = list(read_calls(made))
        assert (
            [one.error for one in Simulation(ReplaySetup(BOOK, PriceBook(), tokens="bytes")).rows(calls)]
            == expected
            == [FOUR, LOST]
        )
        made.unlink()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (starts(model="claude-opus-4-6"), "thread: Extra inputs are not permitted"),
        (goes_on(9, 1, model="claude-opus-4-6"), "thread: Extra inputs are not permitted"),
        (
            row(0, "claude-opus-4-6", messages=[{"role": "user", "content": "x"}], compaction={"type": "summarize"}),
            "compaction: Extra inputs are not permitted",
        ),
    ],
)
def test_bedrock_has_neither(tmp_path: Path, line: Row, why: str) -> None:
    assert errors_of(tmp_path / "log.jsonl", line, host="bedrock") == [why]
    assert errors_of(tmp_path / "log.jsonl", line)[0] != why


def whole(second: int, model: str) -> Row:
    """The conversation of `starts`, sent whole in a thread of its own."""
    first = starts(0, model=model)["request"]["messages"][0]
    said = {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}
    new = {"role": "user", "content": [text(f"fork {second}")]}
    system = [text("be kind " * 3_000)]
    return row(second, model, system=system, messages=[first, said, new], thread={"type": "create"})


@pytest.mark.parametrize(("model", "reads_all"), [("claude-sonnet-5-5", False), ("claude-opus-5-5", True)])
def test_what_a_fork_reads(tmp_path: Path, model: str, reads_all: bool) -> None:
    system = [text("be kind " * 3_000)]
    first = starts(4, model=model, system=system)
    first["request"]["messages"][0]["content"] = [text(f"word {n} " * 3_000, n == 3) for n in range(4)]
    inside = goes_on(9, model=model)
    made = rows_of(tmp_path / "log.jsonl", first, inside, whole(20, model))
    written = made[0].usage.write
    head = len(json.dumps({"type": "text", "text": "be kind " * 3_000}, separators=(",", ":")))
    assert made[1].usage.read == written
    assert made[2].usage.read == (written if reads_all else head)


def test_a_stateless_call_reads_nothing_of_a_threads_messages_on_sonnet_5_5() -> None:
    rules = BOOK.rules("anthropic", "claude-sonnet-5-5", date(2026, 11, 7))
    assert (rules.thread_reads, BOOK.rules("anthropic", "claude-sonnet-5", rules.day).thread_reads) == ("system", "all")


@given(st.integers(0, 6), st.floats(0, 10_000), st.sampled_from(["anthropic", "bedrock"]))
def test_refusals_are_those_of_the_naive_model(marks: int, idle_s: float, host: str) -> None:
    rules = BOOK.rules(host, "claude-opus-4-6", date(2026, 11, 7))
    body = {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "x"}]}
    request = Intake().body(body)
    kept = MessageThreads().complete(
        Intake().body({**body, "thread": {"type": "create"}}), 0.0, "msg_1", (), is_billed=True
    )
    assert kept.message_thread == MessageThread("msg_1")
    threaded = type(request)(request.model, request.thread, message_thread=MessageThread("t", marks, idle_s))
    expected = refused_thread(marks, idle_s, rules)
    why = refusal(threaded, sent_breakpoints(threaded), rules)
    assert (why is None) == (expected is None)
    assert (why or "").startswith(expected or "")
