"""opencode's sessions as calls: from its database, and from the files of earlier versions."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall, quiet
from cachecost.conversations.logs import find_input_files, merge_calls
from cachecost.conversations.readers.detect import detect
from cachecost.conversations.readers.opencode.reader import calls, session_files, sniff, sniff_file, usage_of
from cachecost.conversations.readers.opencode.store import MessageRecord, StepTokens
from cachecost.providers.usage import Usage
from conversations.opencode_store import (
    START,
    TURN,
    Record,
    answer,
    calls_tool,
    database,
    fill,
    later_database,
    part,
    says,
    session,
    storage,
    usage,
    user,
)

COPIES = {"msg_1": "msg_4", "msg_2": "msg_5", "msg_3": "msg_6"}
"""The messages of `TURN`, and what a fork of its session calls them."""


def forked(session: str = "ses_2") -> list[Record]:
    """The turn as a forked session has it: other ids, the same times and usage."""
    found = []
    for record in TURN:
        made = {**record, "sessionID": session}
        name = record.get("messageID", record["id"])
        own = {"messageID": COPIES[name], "id": record["id"] + "x"} if "messageID" in record else {"id": COPIES[name]}
        found.append({**made, **own})
    return found


def billed(path: Path) -> list[BilledCall]:
    return [call for file in session_files(path) for call in file.calls]


def blocks(call: Call) -> list[tuple[str, list[str]]]:
    return [(message.role, [block.kind for block in message.blocks]) for message in call.request.thread.messages()]


def test_each_answer_is_a_call_with_what_was_sent_and_billed(tmp_path: Path) -> None:
    path = database(tmp_path, [session()], TURN)
    first, second = calls(path)
    assert [call.billed for call in (first, second)] == [Usage(2, 0, 5000, 0, 60), Usage(2, 5000, 80, 0, 20)]
    assert (first.request.model, first.host, first.session, first.agent) == (
        "claude-opus-4-6",
        "anthropic",
        "ses_1",
        "",
    )
    assert (first.project, first.file, first.timestamp) == ("/home/me/app", str(path), "2026-03-07T10:00:00.200+00:00")
    assert blocks(first) == [("user", ["text"])]
    assert blocks(second) == [("user", ["text"]), ("assistant", ["thinking", "tool_use"]), ("user", ["tool_result"])]
    assert [block.kind for block in second.response] == ["text"]


def test_the_static_prefix_is_sized_by_the_bill_and_marked_as_opencode_does(tmp_path: Path) -> None:
    first, second = calls(database(tmp_path, [session()], TURN))
    words = sum(block.size for message in first.request.thread.messages() for block in message.blocks)
    assert [block.tokens for block in first.request.system.blocks] == [5002 - words // 4]
    assert second.request.system is first.request.system
    assert len(second.request.breakpoints) == 3, "one on the static prefix, one on each of the last two messages"


def test_files_of_earlier_versions_hold_the_same_calls(tmp_path: Path) -> None:
    of_database = list(calls(database(tmp_path, [session()], TURN)))
    (path,) = storage(tmp_path, [session()], TURN)
    of_files = list(calls(path))
    assert [(call.id, call.billed, blocks(call)) for call in of_files] == [
        (call.id, call.billed, blocks(call)) for call in of_database
    ]
    assert len(list(merge_calls([iter(of_files), iter(of_database)], quiet))) == 2, "each call once"


def test_a_fork_begins_with_copies_that_were_billed_once(tmp_path: Path) -> None:
    more = [*user("msg_7", 5000, "again", session="ses_2"), *answer("msg_8", 5100, (2, 0, 5150, 9), session="ses_2")]
    path = database(tmp_path, [session(), session("ses_2", 4000)], [*TURN, *forked(), *more])
    said: list[str] = []
    found = list(calls(path, said.append))
    assert [call.session for call in found] == ["ses_1", "ses_1", "ses_2"]
    assert blocks(found[2])[:3] == blocks(found[1]), "it goes on from the other session"
    assert said == [f"{path}: skipped 2 messages: copied from the session that this one was forked from"]
    (file,) = session_files(path)
    assert [(call.number, call.before, call.events) for call in file.calls] == [
        (1, 0, ("human",)),
        (2, 1, ()),
        (3, 2, ("human", "fork")),
    ]


def test_a_copy_counts_where_the_session_that_it_was_copied_from_is_gone(tmp_path: Path) -> None:
    path = database(tmp_path, [session("ses_2", 4000)], [*TURN, *forked()])
    assert [call.session for call in calls(path)] == ["ses_2", "ses_2"]


def test_a_sub_agent_belongs_to_the_session_at_the_top(tmp_path: Path) -> None:
    def child(name: str, at: int) -> list[Record]:
        told = {"session": name, "agent": "explore"}
        return [
            *user(f"msg_{at}a", at, "look", **told),
            *answer(f"msg_{at}b", at + 10, (2, 0, 4000, 7), says("seen"), **told),
        ]

    sessions = [session(), session("ses_2", 300, parentID="ses_1"), session("ses_3", 400, parentID="ses_2")]
    path = database(tmp_path, sessions, [*TURN, *child("ses_2", 300), *child("ses_3", 400)])
    assert [(call.session, call.agent) for call in calls(path)] == [
        ("ses_1", ""),
        ("ses_1 explore", "explore"),
        ("ses_1 explore 2", "explore 2"),
        ("ses_1", ""),
    ]
    (file,) = session_files(path)
    assert [(call.session, call.agent, call.before, call.events) for call in file.calls] == [
        ("ses_1", "", 0, ("human",)),
        ("ses_1", "explore", 0, ()),
        ("ses_1", "explore 2", 0, ()),
        ("ses_1", "", 1, ()),
    ]


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    sessions = [session(parentID="ses_2"), session("ses_2", 1, parentID="ses_1")]
    assert len(list(calls(database(tmp_path, sessions, TURN)))) == 2


def test_after_a_compaction_the_request_begins_with_the_summary(tmp_path: Path) -> None:
    asks = user("msg_4", 3000)
    asks.append(part("msg_4", 0, type="compaction", auto=True))
    summary = answer(
        "msg_5", 3100, (2, 0, 812, 48), says("a summary"), summary=True, mode="compaction", agent="compaction"
    )
    after = [*user("msg_6", 4000, "go on"), *answer("msg_7", 4100, (2, 4900, 60, 5), says("yes"))]
    path = database(tmp_path, [session()], [*TURN, *asks, *summary, *after])
    found = list(calls(path))
    assert blocks(found[3]) == [("user", ["text"]), ("assistant", ["text"]), ("user", ["text"])]
    assert found[2].request.system is not found[3].request.system, "a summary has a prompt of its own"
    assert found[1].request.system is found[3].request.system
    assert [(call.before, call.events) for call in billed(path)] == [
        (0, ("human",)),
        (1, ()),
        (2, ("compaction",)),
        (2, ("human", "compaction")),
    ]


def test_the_bill_counts_the_blocks_that_are_new(tmp_path: Path) -> None:
    after = [*user("msg_4", 3000, "a", "b"), *answer("msg_5", 3100, (2, 5080, 30, 5))]
    assert [call.blocks for call in billed(database(tmp_path, [session()], [*TURN, *after]))] == [1, 3, 3]


@pytest.mark.parametrize("more", [0, 7])
def test_a_session_that_counts_more_than_it_has_says_so(tmp_path: Path, more: int) -> None:
    path = database(tmp_path, [session()], TURN)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE session ADD COLUMN tokens_input integer DEFAULT 4")
        connection.execute(f"ALTER TABLE session ADD COLUMN tokens_output integer DEFAULT {10160 + more}")
    connection.close()
    (file,) = session_files(path)
    assert file.notes == (("session ses_1: 7 tokens of calls that are no longer stored",) if more else ())


def test_another_model_another_agent_and_a_cleared_output_are_events(tmp_path: Path) -> None:
    cleared = calls_tool(time={"start": START, "end": START + 50, "compacted": START + 4000})
    records = [
        *user("msg_1", 100, "list", variant="high"),
        *answer("msg_2", 200, (2, 0, 5000, 60), cleared),
        *answer("msg_3", 1200, (2, 5000, 80, 20), agent="plan", mode="plan"),
        *user("msg_4", 5000, "more", variant="low"),
        *answer("msg_5", 5100, (2, 0, 99, 1), agent="plan", mode="plan", modelID="gpt-5", providerID="openai"),
    ]
    found = billed(database(tmp_path, [session()], records))
    assert [call.events for call in found[1:]] == [("tools",), ("human", "edit", "model", "effort")]
    assert (found[2].model, found[2].host) == ("gpt-5", "openai")


def test_a_message_with_several_steps_is_several_calls(tmp_path: Path) -> None:
    def end(*tokens: int) -> Record:
        return {"type": "step-finish", "cost": 0.1, "tokens": usage(*tokens)}

    steps = [calls_tool(), end(2, 0, 5000, 60), says("none"), end(2, 5000, 80, 20)]
    records = [*user("msg_1", 100, "list the files"), *answer("msg_2", 200, (2, 5000, 80, 20), *steps)]
    path = database(tmp_path, [session()], records)
    first, second = calls(path)
    assert [first.billed, second.billed] == [Usage(2, 0, 5000, 0, 60), Usage(2, 5000, 80, 0, 20)]
    assert blocks(second) == [("user", ["text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert first.id != second.id
    one = answer("msg_2", 200, (2, 5000, 80, 20), *steps[2:])
    assert len(list(calls(database(tmp_path, [session()], [*TURN[:2], *one], "one.db")))) == 1


@pytest.mark.parametrize(
    ("model", "tokens", "output"),
    [
        ("gpt-5", usage(10, 0, 0, 70, reasoning=30, total=110), 100),
        ("gpt-5", usage(10, 0, 0, 100, reasoning=30, total=110), 100),
        ("gpt-5", usage(10, 0, 0, 100, reasoning=30), 100),
        ("gpt-5", usage(10, 0, 0, 20, reasoning=30), 50),
        ("gemini-3-pro", usage(10, 0, 0, 70, reasoning=30), 100),
        ("gemini-3-pro", usage(10, 0, 0, 100, reasoning=30, total=110), 100),
        ("claude-opus-4-6", usage(10, 0, 0, 100), 100),
    ],
    ids=["apart", "included", "no total", "more than the output", "gemini", "gemini since", "none"],
)
def test_reasoning_is_output_once(model: str, tokens: Record, output: int) -> None:
    assert usage_of(msgspec.convert(tokens, StepTokens), model) == Usage(10, 0, 0, 0, output)


def test_an_input_below_zero_is_none(tmp_path: Path) -> None:
    records = [*user("msg_1", 100, "x"), *answer("msg_2", 200, (-4998, 5000, 0, 60))]
    (call,) = calls(database(tmp_path, [session()], records))
    assert call.billed == Usage(0, 5000, 0, 0, 60)


def test_what_has_no_usage_is_no_call_and_is_said(tmp_path: Path) -> None:
    stopped = answer("msg_4", 3000, (0, 0, 0, 0), error={"name": "MessageAbortedError"})
    after = answer("msg_5", 4000, (2, 5080, 30, 5))
    path = database(tmp_path, [session()], [*TURN, *stopped, *after])
    said: list[str] = []
    assert len(list(calls(path, said.append))) == 3
    assert said == [f"{path}: skipped 1 message: no usage (stopped, or still being written)"]
    assert billed(path)[2].events == ("error",)


def test_every_damaged_record_is_an_error_and_the_bill_counts_the_rest(tmp_path: Path) -> None:
    path = database(tmp_path, [session()], [*TURN, *answer("msg_4", 3000, (2, 5080, 30, 5))])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE message SET data = '{\"role\": 1}' WHERE id = 'msg_3'")
        connection.execute("UPDATE message SET data = replace(data, '5080', '5080.5') WHERE id = 'msg_4'")
        connection.execute("UPDATE part SET data = '{' WHERE message_id = 'msg_1'")
    connection.close()
    wrong = [
        "message msg_3: damaged record: Expected `str`, got `int` - at `$.role`",
        "part prt_msg_1_0: damaged record: Input data was truncated",
        "message msg_4: tokens.cache.read: expected a whole number of tokens; got 5080.5",
    ]
    found: list[Call] = []
    with pytest.raises(InputError) as error:
        found.extend(calls(path))
    assert str(error.value).splitlines() == [f"{path} {reason}" for reason in wrong]
    (file,) = session_files(path)
    assert file.damaged == tuple((0, reason) for reason in wrong)
    assert len(file.calls) == 1


def test_a_damaged_file_of_a_message_is_named(tmp_path: Path) -> None:
    (path,) = storage(tmp_path, [session()], TURN)
    broken = tmp_path / "storage/message/ses_1/msg_3.json"
    broken.write_text("{")
    with pytest.raises(InputError) as error:
        list(calls(path))
    assert str(error.value) == f"{broken} damaged record: Input data was truncated"
    assert session_files(path)[0].damaged == ((0, "msg_3.json: damaged record: Input data was truncated"),)


def test_a_database_is_read_while_opencode_writes_it(tmp_path: Path) -> None:
    """Its tables are in the write-ahead log alone until the first checkpoint."""
    path = tmp_path / "opencode.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    fill(writer, [session()], TURN)
    assert sniff(path.read_bytes()) is None
    assert detect(path) == ("opencode", "a database with opencode's tables")
    assert len(list(calls(path))) == 2
    writer.close()


def test_a_database_that_ends_early_is_an_error(tmp_path: Path) -> None:
    path = database(tmp_path, [session()], TURN)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match=r"opencode\.db cannot be read as an SQLite database: "):
        list(calls(path))
    (file,) = session_files(path)
    assert file.damaged[0][1].startswith("cannot be read as an SQLite database: ")
    assert file.calls == []


def test_other_databases_are_not_opencode(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        for name in ("session", "message", "part"):
            connection.execute(f"CREATE TABLE {name} (id)")
    connection.close()
    assert sniff_file(path, path.read_bytes()) is None
    with pytest.raises(InputError, match="unrecognized format"):
        detect(path)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (session(), "its keys are those of a session of opencode"),
        (TURN[0], "its keys are those of a message of opencode"),
        (TURN[1], "its keys are those of a part of opencode"),
        ({"sessionID": "ses_1", "role": "user"}, None),
    ],
)
def test_a_record_is_known_by_its_keys(tmp_path: Path, record: Record, why: str | None) -> None:
    assert sniff(json.dumps(record).encode()) == why


def later_answer(at: int, tokens: Record, *content: Record) -> Record:
    model = {"id": "claude-opus-4-6", "providerID": "anthropic"}
    time = {"created": START + at, "completed": START + at + 900}
    return {"agent": "build", "model": model, "content": list(content), "tokens": tokens, "time": time}


def test_messages_of_version_2(tmp_path: Path) -> None:
    tool = {
        "type": "tool",
        "id": "toolu_1",
        "name": "bash",
        "time": {"created": START, "completed": START + 300},
        "state": {"status": "completed", "input": {}, "content": [{"type": "text", "text": "done"}]},
    }
    rows = [
        ("ses_1", "user", {"text": "list the files", "time": {"created": START + 100}}),
        ("ses_1", "assistant", later_answer(200, usage(2, 0, 5000, 50) | {"reasoning": 10}, tool)),
        ("ses_1", "agent-switched", {"agent": "plan", "time": {"created": START + 1000}}),
        ("ses_1", "assistant", later_answer(1200, usage(2, 5000, 80, 20), {"type": "text", "id": "t", "text": "none"})),
        ("ses_1", "compaction", {"summary": "a summary", "time": {"created": START + 3000}}),
        ("ses_1", "user", {"text": "go on", "time": {"created": START + 4000}}),
        ("ses_1", "assistant", later_answer(4100, usage(2, 4900, 60, 5))),
    ]
    path = later_database(tmp_path, [session()], rows)
    assert detect(path) == ("opencode", "a database with opencode's tables")
    first, second, third = calls(path)
    assert [call.billed for call in (first, second)] == [Usage(2, 0, 5000, 0, 60), Usage(2, 5000, 80, 0, 20)]
    assert (first.request.model, first.host, first.project) == ("claude-opus-4-6", "anthropic", "/home/me/app")
    assert blocks(second) == [("user", ["text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert blocks(third) == [("user", ["text", "text"])]
    assert [call.events for call in billed(path)] == [("human",), (), ("human", "compaction")]


def test_a_folder_has_each_session_once(tmp_path: Path) -> None:
    storage(tmp_path, [session(), session("ses_2", 4000)], [*TURN, *forked()])
    skipped: list[Any] = []
    found = list(find_input_files([tmp_path], "auto", quiet, skipped))
    assert [file.path.name for file in found] == ["ses_1.json", "ses_2.json"]
    assert skipped == []
    assert len(list(merge_calls([file.calls(quiet) for file in found], quiet))) == 2


def test_the_folder_of_the_messages_of_a_session_can_be_named(tmp_path: Path) -> None:
    storage(tmp_path, [session()], TURN)
    found = list(find_input_files([tmp_path / "storage/message/ses_1"], "auto", quiet, []))
    told = [call for file in found for call in file.calls(quiet)]
    assert [(call.billed, call.session, call.project) for call in told] == [
        (Usage(2, 0, 5000, 0, 60), "ses_1", "/home/me/app"),
        (Usage(2, 5000, 80, 0, 20), "ses_1", "/home/me/app"),
    ]


def test_an_id_leads_nowhere_else(tmp_path: Path) -> None:
    """An id in a file becomes the name of a folder."""
    (path,) = storage(tmp_path, [session()], TURN)
    path.write_text(path.read_text().replace('"ses_1"', '"../message/ses_1"'))
    assert list(calls(path)) == []


TOKENS = st.tuples(*[st.integers(0, 9000)] * 4)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ses_1", "ses_2", "ses_3"]), TOKENS, st.booleans()), max_size=12))
def test_the_bill_agrees_with_the_calls(made: list[tuple[str, tuple[int, int, int, int], bool]]) -> None:
    records = []
    for number, (name, tokens, is_human) in enumerate(made):
        records += user(f"msg_{number}a", 100 * number, "x", session=name) if is_human else []
        records += answer(f"msg_{number}b", 100 * number + 10, tokens, says("y"), session=name)
    sessions = [session(), session("ses_2", 50, parentID="ses_1"), session("ses_3", 90)]
    with tempfile.TemporaryDirectory() as folder:
        path = database(Path(folder), sessions, records)
        found = sorted(calls(path), key=lambda call: call.id)
        bill = sorted(billed(path), key=lambda call: call.id)
    assert [_facts(call) for call in found] == [
        (one.id, one.usage, one.model, f"{one.session} {one.agent}".strip(), one.start, one.host) for one in bill
    ]


def _facts(call: Call) -> tuple[object, ...]:
    return call.id, call.billed, call.request.model, call.session, call.start, call.host


def test_the_summary_of_a_user_message_is_none_of_a_compaction() -> None:
    of_user = msgspec.json.decode(b'{"role": "user", "summary": {"diffs": []}}', type=MessageRecord)
    of_answer = msgspec.json.decode(b'{"role": "assistant", "summary": true}', type=MessageRecord)
    assert (of_user.is_summary, of_answer.is_summary) == (False, True)
