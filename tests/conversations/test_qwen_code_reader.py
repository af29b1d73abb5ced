"""Sessions of Qwen Code: each answer of the API is billed once, whether telemetry tells of it, a record, or both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.detect import detect
from cachecost.conversations.readers.qwen_code.reader import NO_WRITES, calls, session_files, sniff
from cachecost.providers.usage import Usage
from conversations.session_stores import (
    START,
    Row,
    agree,
    qwen_answer,
    qwen_line,
    qwen_response,
    qwen_session,
    qwen_user,
    shape,
    write_lines,
)
from served_hosts import served_by

NAME = "chats/q-1.jsonl"
SIDE = {"subagent_id": "ex-1", "subagent_name": "explorer"}
AGENT = {"agentId": "ex-1", "agentName": "explorer", "isSidechain": True}


def read(folder: Path, *rows: Row, name: str = NAME) -> tuple[list[Call], SessionFile]:
    return agree(write_lines(folder / name, rows), calls, session_files)


def test_a_session_of_two_calls(tmp_path: Path) -> None:
    (first, second), billed = read(tmp_path, *qwen_session())
    assert (first.billed, second.billed) == (Usage(800, 0, 0, 0, 30), Usage(132, 768, 0, 0, 20))
    assert (served_by(first), first.request.model, first.session, first.id) == ("qwen", "qwen3.7-plus", "q-1", "r-e1")
    assert (first.first_token_s, first.line) == (0.5, 2)
    assert [(call.start - START, call.end and call.end - START) for call in billed.calls] == [(1, 3), (5.5, 7.5)]
    assert [(call.before, call.events, call.has_thinking) for call in billed.calls] == [
        (0, ("human",), True),
        (1, (), True),
    ]
    assert shape(second) == [("user", ["text"]), ("assistant", ["thinking", "tool_use"]), ("user", ["tool_result"])]
    assert (billed.client, billed.project, billed.notes) == ("qwen-code", "/home/me/proj", ())


def test_a_record_without_telemetry_is_billed_by_itself(tmp_path: Path) -> None:
    rows = [
        qwen_user("u1", None, 1),
        qwen_answer("a1", "u1", 3, (800, 0, 30)),
        qwen_user("u2", "a1", 9),
        qwen_answer("a2", "u2", 12, (900, 768, 20)),
    ]
    (first, second), billed = read(tmp_path, *rows)
    assert (first.billed, second.billed) == (Usage(800, 0, 0, 0, 30), Usage(132, 768, 0, 0, 20))
    assert [(call.id, call.start - START, call.end and call.end - START) for call in billed.calls] == [
        ("a1", 1, 3),
        ("a2", 9, 12),
    ]


def test_telemetry_without_a_record_is_a_bill_alone(tmp_path: Path) -> None:
    rows = [*qwen_session(), qwen_response("e3", "a2", 20, (500, 0, 9))]
    recorded, billed = read(tmp_path, *rows)
    assert (recorded[2].is_bill_only, recorded[2].id, billed.calls[2].before) == (True, "r-e3", 0)


@pytest.mark.parametrize(
    ("total", "output"),
    [(830, 30), (835, 35), (None, 35)],
    ids=["thoughts in the output", "thoughts beside it", "no total"],
)
def test_the_total_tells_whether_thoughts_are_output_already(tmp_path: Path, total: int | None, output: int) -> None:
    (only,), _ = read(
        tmp_path, qwen_user("u1", None, 1), qwen_response("e1", "u1", 3, (800, 0, 30), total_token_count=total)
    )
    assert only.billed == Usage(800, 0, 0, 0, output)


def test_an_input_smaller_than_what_was_read_excludes_it(tmp_path: Path) -> None:
    """As 0.15 stores Anthropic's usage."""
    (only,), _ = read(
        tmp_path, qwen_user("u1", None, 1), qwen_response("e1", "u1", 3, (2, 900, 30), thoughts_token_count=0)
    )
    assert only.billed == Usage(2, 900, 0, 0, 30)


def test_a_sub_agent_s_calls_have_the_same_ids_in_both_files(tmp_path: Path) -> None:
    twice = [qwen_response(name, "a1", second, (500, 256, 9), **SIDE) for name, second in (("e8", 4), ("e9", 5))]
    recorded, billed = read(tmp_path, *qwen_session()[:3], *twice, *qwen_session()[3:])
    user = {**qwen_user("x1", None, 3), **AGENT}
    answers = [
        {**qwen_answer(name, before, second, (500, 256, 9)), **AGENT, "model": None}
        for name, before, second in (("y1", "x1", 4), ("y2", "y1", 5))
    ]
    (tmp_path / "subagents/q-1").mkdir(parents=True)
    (tmp_path / "subagents/q-1/agent-ex-1.meta.json").write_text('{"persistedCliFlags": {"model": "qwen3.7-plus"}}')
    alone, own = read(tmp_path, user, *answers, name="subagents/q-1/agent-ex-1.jsonl")
    assert (
        [call.id for call in alone]
        == [call.id for call in recorded[1:3]]
        == ["q-1 ex-1 500/256/9 1", "q-1 ex-1 500/256/9 2"]
    )
    assert {(call.agent, call.session, call.model) for call in own.calls} == {("explorer", "q-1", "qwen3.7-plus")}
    assert [(call.agent, call.before) for call in billed.calls] == [("", 0), ("explorer", 0), ("explorer", 2), ("", 1)]
    assert [call.billed for call in alone] == [call.billed for call in recorded[1:3]]
    assert {call.session for call in alone} == {"q-1 ex-1"} == {call.session for call in recorded[1:3]}
    assert [call.is_bill_only for call in recorded] == [False, True, True, False]


@pytest.mark.parametrize("meta", [None, "{", '{"persistedCliFlags": null}', "[]"])
def test_a_sub_agent_s_model_is_unknown_where_nothing_tells_it(tmp_path: Path, meta: str | None) -> None:
    rows = [
        {**qwen_user("x1", None, 3), **AGENT},
        {**qwen_answer("y1", "x1", 4, (500, 256, 9)), **AGENT, "model": None},
    ]
    path = write_lines(tmp_path / "agent-ex-1.jsonl", rows)
    if meta is not None:
        (tmp_path / "agent-ex-1.meta.json").write_text(meta)
    assert [call.model for call in session_files(path)[0].calls] == ["unknown"]


def test_a_rewind_goes_on_from_an_earlier_call(tmp_path: Path) -> None:
    more = [
        qwen_user("u9", "a1", 30),
        qwen_response("e9", "u9", 33, (850, 0, 9)),
        qwen_answer("a9", "e9", 33, (850, 0, 9)),
    ]
    recorded, billed = read(tmp_path, *qwen_session(), *more)
    assert (billed.calls[2].before, billed.calls[2].events) == (1, ("human", "fork"))
    assert shape(recorded[2]) == [("user", ["text"]), ("assistant", ["thinking", "tool_use"]), ("user", ["text"])]


def test_a_compression_begins_another_history(tmp_path: Path) -> None:
    left = [{"role": "user", "parts": [{"text": "so far"}]}, {"role": "model", "parts": [{"text": "yes"}]}]
    cut = qwen_line("c1", "a2", 10, "system", subtype="chat_compression", systemPayload={"compressedHistory": left})
    more = [
        qwen_user("u9", "c1", 30),
        qwen_response("e9", "u9", 33, (300, 0, 9)),
        qwen_answer("a9", "e9", 33, (300, 0, 9)),
    ]
    recorded, billed = read(tmp_path, *qwen_session(), cut, *more)
    assert (billed.calls[2].before, billed.calls[2].events) == (2, ("human", "compaction"))
    assert shape(recorded[2]) == [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])]


def test_a_branched_session_s_copies_have_the_ids_of_the_first(tmp_path: Path) -> None:
    told = {"sessionId": "q-2", "forkedFrom": {"sessionId": "q-1", "messageUuid": "u"}}
    rows = [*qwen_session(), qwen_response("e8", "a2", 9, (500, 256, 9), **SIDE)]
    recorded, _ = read(tmp_path, *rows)
    copies, _ = read(tmp_path, *[{**row, **told} for row in rows], name="chats/q-2.jsonl")
    assert [call.id for call in copies] == [call.id for call in recorded]


def test_claude_s_writes_are_missed_and_that_is_said(tmp_path: Path) -> None:
    told = {"model": "claude-opus-5-5", "auth_type": "anthropic"}
    recorded, billed = read(
        tmp_path,
        qwen_user("u1", None, 1),
        qwen_response("e1", "u1", 3, (800, 0, 30), **told),
        qwen_answer("a1", "e1", 3, (800, 0, 30)),
    )
    assert (recorded[0].host, billed.notes) == ("anthropic", (NO_WRITES,))
    assert [breakpoint.layer.value for breakpoint in recorded[0].request.breakpoints] == ["system", "messages"]


@pytest.mark.parametrize(
    ("auth", "model", "host"),
    [
        ("openai", "qwen3.7-plus", "qwen"),
        ("qwen-oauth", "coder-model", "qwen"),
        ("gemini", "gemini-2.5-pro", "gemini"),
        ("vertex-ai", "gemini-2.5-pro", "vertex"),
        ("openai", "deepseek-chat", "deepseek"),
        ("openai", "llama", "anthropic"),
    ],
)
def test_the_host_is_the_protocol_s_or_the_maker_s(tmp_path: Path, auth: str, model: str, host: str) -> None:
    row = qwen_response("e1", "u1", 3, (800, 0, 30), auth_type=auth, model=model)
    assert [served_by(call) for call in read(tmp_path, qwen_user("u1", None, 1), row)[1].calls] == [host]


def test_a_damaged_line_is_listed_and_the_others_count(tmp_path: Path) -> None:
    wrong = qwen_response("e9", "a2", 9, (5, 0, 9), input_token_count=-5)
    long = qwen_response("e8", "a2", 9, (5, 0, 9), duration_ms=1e9 + 1)
    rows = [*qwen_session(), wrong, {"type": "user", "cwd": 5}, long]
    path = write_lines(tmp_path / NAME, rows, end='\n{"uuid": "cu')
    billed = session_files(path)[0]
    expected = (
        (7, "uiEvent.input_token_count: expected a whole number of tokens; got -5"),
        (8, "expected `str | null`, got `int` - at `$.cwd`"),
        (9, "uiEvent.duration_ms: expected milliseconds from 0 to 1,000,000,000; got 1000000001.0"),
    )
    assert (billed.damaged, [call.id for call in billed.calls]) == (expected, ["r-e1", "r-e2"])
    with pytest.raises(InputError) as error:
        list(calls(path))
    assert [(fault.line, fault.message) for fault in error.value.faults] == list(expected)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (qwen_user("u1", None, 1), 'its first line has a "parentUuid" and a message with "parts"'),
        (qwen_response("e1", None, 1, (1, 0, 1)), 'its first line has a "parentUuid" and a message with "parts"'),
        (qwen_user("u1", None, 1, message={"content": "a transcript of Claude Code"}), None),
        ({"message": {"parts": []}}, None),
    ],
)
def test_a_session_is_known_by_its_first_line(row: Row, reason: str | None) -> None:
    assert sniff(json.dumps(row).encode()) == reason


def test_detect_knows_it(tmp_path: Path) -> None:
    assert detect(write_lines(tmp_path / NAME, qwen_session()))[0] == "qwen-code"
