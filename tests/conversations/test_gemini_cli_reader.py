"""Sessions of Gemini CLI: a log in which messages are replaced and dropped, and all that was answered is billed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.detect import detect
from cachecost.conversations.readers.gemini_cli.reader import calls, session_files, sniff
from cachecost.providers.usage import Usage
from conversations.session_stores import (
    GEMINI_RESULT,
    START,
    Row,
    agree,
    gemini_answer,
    gemini_head,
    gemini_session,
    gemini_tool,
    gemini_user,
    shape,
    write_lines,
)
from served_hosts import served_by

NAME = "chats/session-2026-11-20T10-00-g-1.jsonl"


def read(folder: Path, *rows: Row, name: str = NAME) -> tuple[list[Call], SessionFile]:
    return agree(write_lines(folder / name, rows), calls, session_files)


def test_a_session_of_two_calls(tmp_path: Path) -> None:
    (first, second), billed = read(tmp_path, *gemini_session())
    assert (first.billed, second.billed) == (Usage(800, 0, 0, 0, 25), Usage(200, 700, 0, 0, 10))
    assert (served_by(first), first.request.model, first.session, first.id) == ("gemini", "gemini-2.5-pro", "g-1", "a1")
    assert [(call.line, call.start - START, call.end and call.end - START) for call in billed.calls] == [
        (5, 1, 3),
        (8, 4.5, 6),
    ]
    assert [(call.before, call.events) for call in billed.calls] == [(0, ("human",)), (1, ())]
    assert shape(second) == [("user", ["text", "text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert [block.kind for block in second.response] == ["text"]
    assert (billed.client, billed.project, billed.damaged) == ("gemini-cli", "2b75", ())


def test_the_project_is_in_a_file_beside_the_sessions(tmp_path: Path) -> None:
    (tmp_path / ".project_root").write_text("/home/me/proj\n")
    assert read(tmp_path, *gemini_session())[1].project == "/home/me/proj"
    side = "chats/g-1/s-1.jsonl"
    assert (
        read(tmp_path, gemini_head("s-1", kind="subagent"), *gemini_session()[1:], name=side)[1].project
        == "/home/me/proj"
    )


def test_a_sub_agent_belongs_to_the_session_that_called_it(tmp_path: Path) -> None:
    head = gemini_head("s-1", kind="subagent", directories=["/home/me/proj"])
    recorded, billed = read(tmp_path, head, *gemini_session()[1:], name="chats/g-1/s-1.jsonl")
    assert {(call.agent, call.session) for call in billed.calls} == {("subagent", "g-1")}
    assert ({call.session for call in recorded}, billed.project) == ({"g-1 s-1"}, "/home/me/proj")


OLD: Row = gemini_head(
    messages=[
        gemini_user("u1", 1),
        gemini_answer("a1", 3, (800, 0, 20, 5), toolCalls=[gemini_tool(4, result=[GEMINI_RESULT])]),
        {"id": "i1", "timestamp": "2026-11-20T10:00:05Z", "type": "info", "content": "a note"},
        gemini_answer("a2", 6, (900, 700, 10, 0), "done"),
        gemini_user("u2", 60, {"text": "more"}),
        gemini_answer("a3", 62, (950, 800, 10, 0), "done"),
    ]
)
OLD["messages"][0]["content"] = OLD["messages"][4]["content"] = "please"


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "many lines"])
def test_an_older_file_is_one_value(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(OLD, indent=indent))
    (first, second, third), billed = agree(path, calls, session_files)
    assert [call.billed for call in (first, second)] == [Usage(800, 0, 0, 0, 25), Usage(200, 700, 0, 0, 10)]
    assert [(call.line, call.start - START) for call in billed.calls] == [(1, 1), (1, 4), (1, 60)]
    assert shape(second) == [("user", ["text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert shape(third)[3:] == [("assistant", ["text"]), ("user", ["text"])]
    assert detect(path)[0] == "gemini-cli"


def test_a_message_without_tokens_is_no_call(tmp_path: Path) -> None:
    rows = [
        gemini_head(),
        gemini_user("u1", 1),
        gemini_answer("a1", 3, None, "one"),
        gemini_answer("a2", 4, (9, 0, 1, 0)),
    ]
    (only,), _ = read(tmp_path, *rows)
    assert shape(only) == [("user", ["text"]), ("assistant", ["text"])]


def test_tokens_that_come_later_are_those_of_the_message(tmp_path: Path) -> None:
    rows = [gemini_head(), gemini_user("u1", 1), gemini_answer("a1", 3, None), gemini_answer("a1", 3, (9, 0, 1, 2))]
    (only,), billed = read(tmp_path, *rows)
    assert (only.billed, billed.calls[0].line) == (Usage(9, 0, 0, 0, 3), 3)


def test_what_was_dropped_was_billed_and_the_next_call_goes_on_before_it(tmp_path: Path) -> None:
    rows = [*gemini_session(), {"$rewindTo": "u2"}, gemini_user("u3", 20), gemini_answer("a3", 22, (850, 0, 9, 0))]
    recorded, billed = read(tmp_path, *rows)
    assert [(call.before, call.events) for call in billed.calls] == [(0, ("human",)), (1, ()), (1, ("human", "fork"))]
    assert shape(recorded[2])[:2] == shape(recorded[1])[:2]
    assert [block.kind for block in recorded[2].request.thread.messages()[-1].blocks] == ["text"]


@pytest.mark.parametrize("target", ["u0", "nobody"])
def test_a_rewind_to_the_beginning_clears_the_history(tmp_path: Path, target: str) -> None:
    rows = [*gemini_session(), {"$rewindTo": target}, gemini_user("u3", 20), gemini_answer("a3", 22, (850, 0, 9, 0))]
    recorded, billed = read(tmp_path, *rows)
    assert (billed.calls[2].before, billed.calls[2].events) == (2, ("human", "clear"))
    assert shape(recorded[2]) == [("user", ["text"])]


def test_a_checkpoint_with_a_new_message_is_a_compaction(tmp_path: Path) -> None:
    left = [gemini_user("s1", 9, {"text": "so far"}), gemini_answer("a2", 6, (900, 700, 10, 0), "done")]
    rows = [
        *gemini_session(),
        {"$set": {"messages": left}},
        gemini_user("u3", 20),
        gemini_answer("a3", 22, (99, 0, 9, 0)),
    ]
    recorded, billed = read(tmp_path, *rows)
    assert (billed.calls[2].before, billed.calls[2].events) == (2, ("human", "compaction"))
    assert shape(recorded[2]) == [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])]
    assert len(recorded) == 3


def test_a_checkpoint_of_the_same_messages_changes_nothing(tmp_path: Path) -> None:
    same = [row for row in gemini_session() if row.get("type")]
    messages = [gemini_user("u0", 0, {"text": "context"}), same[0], *same[2:]]
    rows = [*gemini_session(), {"$set": {"sessionId": "g-1"}}, {"$set": {"messages": messages}}]
    more = [gemini_user("u3", 20), gemini_answer("a3", 22, (950, 900, 9, 0))]
    recorded, billed = read(tmp_path, *rows, *more)
    assert (len(recorded), billed.calls[2].before, billed.calls[2].events) == (3, 2, ("human", "resume"))
    assert len(shape(recorded[2])) == 5


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 900), st.integers(1, 90)), max_size=12))
def test_each_id_is_billed_once(tmp_path_factory: pytest.TempPathFactory, told: list[tuple[int, int, int]]) -> None:
    rows = [
        gemini_answer(f"a{name}", number, (total, 0, output, 0)) for number, (name, total, output) in enumerate(told)
    ]
    recorded, _ = read(tmp_path_factory.mktemp("gemini"), gemini_head(), *rows)
    last = {name: total for name, total, _ in told}
    assert sorted(call.billed.total_input for call in recorded if call.billed) == sorted(last.values())


def test_a_session_without_calls_is_fine(tmp_path: Path) -> None:
    assert read(tmp_path, gemini_head())[0] == []


def test_a_damaged_record_is_listed_and_the_others_count(tmp_path: Path) -> None:
    path = write_lines(tmp_path / NAME, [*gemini_session(), gemini_answer("a9", 8, (5, 9, 1, 0))], end='\n{"id": "cu')
    path.write_text(path.read_text().replace('"timestamp": "2026-11-20T10:00:04.500Z"', '"timestamp": "noon"'))
    billed = session_files(path)[0]
    expected = (
        (7, "timestamp: expected an ISO 8601 time; got 'noon'"),
        (9, "tokens.input: expected at least the 9 tokens read and written that it includes; got 5"),
    )
    assert (billed.damaged, [call.id for call in billed.calls]) == (expected, ["a1", "a2"])
    with pytest.raises(InputError) as error:
        list(calls(path))
    assert [(fault.line, fault.message) for fault in error.value.faults] == list(expected)


def test_a_damaged_value_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text('{\n "sessionId": "g-1", "projectHash": ')
    assert session_files(path)[0].damaged == ((1, "damaged JSON: Expecting value at character 40"),)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (gemini_head(), 'its first object has a "sessionId" and a "projectHash"'),
        ({"sessionId": "s"}, None),
        ({"projectHash": "p"}, None),
    ],
)
def test_a_session_is_known_by_its_head(head: Row, reason: str | None) -> None:
    assert sniff(json.dumps(head).encode()) == reason
