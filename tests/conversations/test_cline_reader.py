"""Tasks of Cline and Roo Code, and sessions of Cline's SDK, as calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import quiet
from cachecost.conversations.logs import find_input_files
from cachecost.conversations.readers.cline.reader import CallInfo, calls, session_files, sniff, task_usage
from cachecost.conversations.readers.detect import detect
from cachecost.providers.usage import Usage
from conversations.cline_store import (
    MESSAGES,
    ROO,
    SENT,
    SHOWN,
    START,
    Record,
    said,
    sdk_session,
    sent,
    shown,
    started,
    task,
    text,
)
from served_hosts import served_by

BEFORE = 1761955199.0
"""2025-10-31T23:59:59Z."""


def bills(path: Path) -> list[Usage | None]:
    return [call.billed for call in calls(path)]


def blocks(call: Call) -> list[tuple[str, int]]:
    return [(message.role, len(message.blocks)) for message in call.request.thread.messages()]


def test_each_request_of_a_task_is_a_call(tmp_path: Path) -> None:
    path = task(tmp_path, SHOWN, api_conversation_history=SENT)
    first, second = calls(path)
    assert [first.billed, second.billed] == [Usage(3, 0, 5000, 0, 60), Usage(4, 5000, 80, 0, 20)]
    assert (first.request.model, first.host, first.session) == ("claude-opus-4-6", "anthropic", "1772877600000")
    assert (first.project, first.file, first.timestamp) == ("/home/me/app", str(path), "2026-03-07T10:00:00.100+00:00")
    assert blocks(second) == [("user", 2), ("assistant", 1), ("user", 1)]
    assert len(second.response) == 1
    assert len(second.request.breakpoints) == 4


def test_a_request_without_counts_is_no_call_and_is_said(tmp_path: Path) -> None:
    path = task(tmp_path, [*SHOWN, started(3000, None)], api_conversation_history=SENT)
    notes: list[str] = []
    assert len(list(calls(path, notes.append))) == 2
    assert notes == [f"{path}: skipped 1 request: no usage (stopped, or still running)"]


def test_without_what_was_sent_a_call_has_its_bill_alone(tmp_path: Path) -> None:
    path = task(tmp_path, SHOWN)
    notes: list[str] = []
    assert [call.is_bill_only for call in calls(path, notes.append)] == [True, True]
    assert notes == [f"{path}: 2 calls without messages: what was sent was compacted or is missing"]


def test_the_model_is_that_of_the_metadata_where_the_message_has_none(tmp_path: Path) -> None:
    uses = [
        {"ts": START + 150, "model_id": "claude-opus-4-6", "model_provider_id": "anthropic"},
        {"ts": START + 3050, "model_id": "gpt-5", "model_provider_id": "openai-native"},
    ]
    messages = [started(100, (3, 0, 5000, 60)), started(3000, (5083, 0, 0, 20))]
    path = task(tmp_path, messages, task_metadata={"model_usage": uses})
    found = session_files(path)[0].calls
    assert [(call.model, call.host, call.events) for call in found] == [
        ("claude-opus-4-6", "anthropic", ()),
        ("gpt-5", "openai", ("model",)),
    ]


def test_roo_code_names_the_model_in_what_it_sends(tmp_path: Path) -> None:
    request = sent("user", text("<environment_details><model>claude-opus-4-6</model></environment_details>"), at=50)
    path = task(tmp_path, [started(100, (5003, 0, 5000, 60))], extension=ROO, api_conversation_history=[request])
    (call,) = session_files(path)[0].calls
    assert (call.model, served_by(call), call.tokens) == ("claude-opus-4-6", "anthropic", (3, 0, 5000, 0, 60))


def test_a_task_without_a_model_has_that_of_the_list_of_tasks(tmp_path: Path) -> None:
    path = task(tmp_path, [started(100, (3, 0, 5000, 60), request="")])
    state = path.parents[2] / "state"
    state.mkdir()
    item = {"id": path.parent.name, "modelId": "claude-opus-4-6", "cwdOnTaskInitialization": "/home/me/b"}
    (state / "taskHistory.json").write_text(json.dumps([item]))
    file = session_files(path)[0]
    assert (file.calls[0].model, file.project) == ("claude-opus-4-6", "/home/me/b")


def test_a_task_that_another_one_started_is_a_sub_agents(tmp_path: Path) -> None:
    item = {"id": "b", "workspace": "/home/me/c", "rootTaskId": "root", "parentTaskId": "mid", "mode": "code"}
    path = task(tmp_path, SHOWN, "0199aabb-1", ROO, history_item=item)
    assert {(call.session, call.agent, call.project) for call in calls(path)} == {
        ("root code 0199aabb", "code 0199aabb", "/home/me/c")
    }
    file = session_files(path)[0]
    assert (file.client, file.calls[0].session, file.calls[0].agent) == ("roo-code", "root", "code 0199aabb")


@pytest.mark.parametrize(
    ("is_roo", "provider", "start", "told", "uncached"),
    [
        (False, "anthropic", START / 1000, {"tokensIn": 5100}, 5100),
        (False, "openai", START / 1000, {"tokensIn": 5100}, 20),
        (True, "", START / 1000, {"tokensIn": 5100}, 20),
        (True, "", START / 1000, {"tokensIn": 5079}, 5079),
        (True, "", START / 1000, {"tokensIn": 5080}, 0),
        (True, "", BEFORE, {"tokensIn": 5100, "apiProtocol": "anthropic"}, 5100),
        (True, "", BEFORE, {"tokensIn": 5100, "apiProtocol": "openai"}, 20),
        (True, "", BEFORE + 1, {"tokensIn": 5100, "apiProtocol": "anthropic"}, 20),
        (True, "", BEFORE, {"tokensIn": 5100}, 5100),
    ],
    ids=[
        *("Cline", "Cline with OpenAI's usage", "Roo Code", "less than was cached", "all cached"),
        *("Roo Code before", "with OpenAI's usage", "the day itself", "before it stored the protocol"),
    ],
)
def test_tokens_in_includes_what_was_cached_or_not(
    is_roo: bool, provider: str, start: float, told: dict[str, Any], uncached: int
) -> None:
    protocol = told.get("apiProtocol")
    info = CallInfo(tokens_in=told["tokensIn"], cache_reads=5000, cache_writes=80, tokens_out=7, api_protocol=protocol)
    assert task_usage(info, provider, "claude-x", start, is_roo=is_roo) == Usage(uncached, 5000, 80, 0, 7)


def test_events_between_calls(tmp_path: Path) -> None:
    messages = [
        *SHOWN,
        shown(3000, "user_feedback", "and now?"),
        shown(3100, "condense_context"),
        started(3200, (9, 0, 900, 5), "claude-opus-4-6"),
        shown(4000, "api_req_retried"),
        {"ts": START + 4500, "type": "ask", "ask": "resume_task", "text": ""},
        started(5000, (9, 900, 10, 5), "claude-opus-4-6", streamingFailedMessage="overloaded"),
        started(6000, (9, 910, 10, 5), "claude-opus-4-6") | {"conversationHistoryDeletedRange": [2, 5]},
    ]
    found = session_files(task(tmp_path, messages))[0].calls
    assert [(call.before, call.events) for call in found] == [
        (0, ("human",)),
        (1, ()),
        (2, ("human", "compaction")),
        (3, ("error", "resume")),
        (4, ("compaction", "error")),
    ]


def test_each_answer_of_an_sdk_session_is_a_call(tmp_path: Path) -> None:
    path = sdk_session(tmp_path, MESSAGES)
    first, second = calls(path)
    assert [first.billed, second.billed] == [Usage(2, 0, 5000, 0, 60), Usage(100, 5000, 0, 0, 20)]
    assert (first.session, first.agent, first.project) == ("177_a", "", "/home/me/app")
    assert (first.timestamp, second.timestamp) == ("2026-03-07T10:00:00.000+00:00", "2026-03-07T10:00:01.000+00:00")
    assert blocks(second) == [("user", 1), ("assistant", 1), ("user", 1)]
    (bill, other) = session_files(path)[0].calls
    assert (bill.version, bill.end, bill.events, other.before, other.events) == (
        "3.0.65",
        START / 1000 + 0.9,
        ("human",),
        1,
        (),
    )


def test_the_bill_counts_the_blocks_that_are_new(tmp_path: Path) -> None:
    last = (
        said("user", 2000, text("and"), text("now?")),
        said("assistant", 2900, text("no"), metrics=(5150, 5000, 0, 3)),
    )
    file = session_files(sdk_session(tmp_path, [*MESSAGES, *last]))[0]
    assert [call.blocks for call in file.calls] == [1, 2, 3]


def test_an_sdk_session_marks_the_first_message_alone(tmp_path: Path) -> None:
    second = list(calls(sdk_session(tmp_path, MESSAGES)))[1]
    first, nodes = second.request.breakpoints[0], [one.node for one in second.request.breakpoints if one.node]
    assert first.node is None
    assert [node.length for node in nodes] == [1]


def test_a_sub_agent_of_an_sdk_session(tmp_path: Path) -> None:
    path = sdk_session(tmp_path, MESSAGES, file="agent_1", agent="subagent")
    file = session_files(path)[0]
    assert [(call.session, call.agent, call.events) for call in file.calls] == [
        ("177_a", "agent_1", ()),
        ("177_a", "agent_1", ()),
    ]
    assert {call.session for call in calls(path)} == {"177_a agent_1"}


def test_a_compacted_sdk_session_begins_with_the_summary(tmp_path: Path) -> None:
    summary = said("user", 2000, text("a summary"), metadata={"kind": "compaction_summary"})
    after = said("assistant", 2900, text("yes"), metrics=(5050, 5000, 40, 3))
    path = sdk_session(tmp_path, [*MESSAGES, summary, after])
    assert blocks(list(calls(path))[2]) == [("user", 1)]
    assert session_files(path)[0].calls[2].events == ("compaction",)


@pytest.mark.parametrize(("output", "notes"), [(80, ()), (81, ("1 token of calls that are no longer stored",))])
def test_a_session_that_counts_more_than_it_has_says_so(tmp_path: Path, output: int, notes: tuple[str, ...]) -> None:
    path = sdk_session(tmp_path, MESSAGES)
    manifest = path.with_name("177_a.json")
    totals = {"metadata": {"usage": {"inputTokens": 5002 + 5100, "outputTokens": output}}}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | totals))
    assert session_files(path)[0].notes == notes
    told: list[str] = []
    assert len(list(calls(path, told.append))) == 2
    assert told == [f"{path}: {note}" for note in notes]


def test_the_file_of_a_session_stands_for_its_messages(tmp_path: Path) -> None:
    path = sdk_session(tmp_path, MESSAGES)
    manifest = path.with_name("177_a.json")
    assert detect(manifest) == ("cline", "its keys are those of a session of Cline")
    assert bills(manifest) == bills(path)
    found = list(find_input_files([tmp_path], "auto", quiet, skipped := []))
    assert [file.path for file in found] == [path]
    assert skipped == []


def test_a_folder_of_tasks_has_each_log_once(tmp_path: Path) -> None:
    one = task(tmp_path, SHOWN, "1", api_conversation_history=SENT, task_metadata={}, history_item={})
    two = task(tmp_path, SHOWN, "2", ROO)
    found = list(find_input_files([tmp_path], "auto", quiet, skipped := []))
    assert [file.path for file in found] == sorted([two, one])
    assert skipped == []


def test_every_damaged_record_is_an_error_and_the_bill_counts_the_rest(tmp_path: Path) -> None:
    damaged = [shown(2000, "api_req_started", "{"), started(2100, (1, 2, 3, 4)) | {"text": '{"tokensIn": 1.5}'}]
    path = task(tmp_path, [*SHOWN, *damaged], task_metadata=[1])
    wrong = [
        (path.with_name("task_metadata.json"), "damaged record: Expected `object`, got `array`"),
        (path, "[5].text: damaged record: Input data was truncated"),
        (path, "[6].text.tokensIn: expected a whole number of tokens; got 1.5"),
    ]
    found = []
    with pytest.raises(InputError) as error:
        found.extend(calls(path))
    assert str(error.value).splitlines() == [f"{file} {reason}" for file, reason in wrong]
    file = session_files(path)[0]
    assert [reason for _, reason in file.damaged] == [f"task_metadata.json: {wrong[0][1]}", wrong[1][1], wrong[2][1]]
    assert len(file.calls) == 2


def test_an_sdk_input_below_what_was_cached_is_an_error(tmp_path: Path) -> None:
    path = sdk_session(tmp_path, [said("assistant", 0, metrics=(4999, 5000, 0, 1))])
    with pytest.raises(InputError) as error:
        list(calls(path))
    reason = "messages[0].metrics.inputTokens: expected at least the 5000 tokens read and written; got 4999"
    assert str(error.value) == f"{path} {reason}"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (SHOWN, "an array of shown messages, one of which says api_req_started"),
        (SHOWN[:1], None),
        (SENT, None),
        (
            {"version": 1, "agent": "lead", "sessionId": "s", "messages": []},
            "its keys are those of the messages of a session of Cline",
        ),
        ({"sessionId": "s", "messages": []}, None),
        ({"session_id": "s", "workspace_root": "/", "messages_path": "x"}, "its keys are those of a session of Cline"),
        ({"session_id": "s", "workspace_root": "/"}, None),
    ],
)
def test_a_file_is_known_by_its_keys(value: object, why: str | None) -> None:
    assert sniff(json.dumps(value).encode()) == why


COUNTS = st.tuples(*[st.integers(0, 9000)] * 4)


@settings(max_examples=40, deadline=None)
@given(made=st.lists(st.tuples(COUNTS, st.sampled_from(["", "user_feedback", "condense_context"])), max_size=9))
def test_the_bill_agrees_with_the_calls(
    made: list[tuple[tuple[int, int, int, int], str]], tmp_path_factory: Any
) -> None:
    messages: list[Record] = []
    for number, (counts, say) in enumerate(made):
        messages += [shown(100 * number, say)] if say else []
        messages.append(started(100 * number + 10, counts, "claude-opus-4-6"))
    path = task(tmp_path_factory.mktemp("task"), messages)
    assert [(call.id, call.billed, call.request.model, call.session, call.start) for call in calls(path)] == [
        (call.id, call.usage, call.model, call.session, call.start) for call in session_files(path)[0].calls
    ]
