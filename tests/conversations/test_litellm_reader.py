"""LiteLLM's logs: payloads of its callbacks and spend logs of its database, in every dialect that it takes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import quiet
from cachecost.conversations.readers.litellm import calls, sniff
from cachecost.prompts.blocks import Block
from cachecost.providers.usage import Usage
from served_hosts import served_by

START = 1772877600.0
"""2026-03-07T10:00:00Z"""
USAGE = {
    "prompt_tokens": 5_210,
    "completion_tokens": 30,
    "total_tokens": 5_240,
    "prompt_tokens_details": {"cached_tokens": 5_000, "cache_creation_tokens": 200},
    "cache_read_input_tokens": 5_000,
    "cache_creation_input_tokens": 200,
}
MARKED = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
MESSAGES = [{"role": "system", "content": MARKED}, {"role": "user", "content": "please"}]
SAYS = {"id": "msg_1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}}]}
Row = dict[str, Any]


def payload(**more: Any) -> Row:
    """A StandardLoggingPayload of a chat completion."""
    return {
        "id": "msg_1",
        "trace_id": "trace-1",
        "call_type": "acompletion",
        "response_cost": 0.01,
        "status": "success",
        "custom_llm_provider": "anthropic",
        "startTime": START,
        "endTime": START + 9.0,
        "completionStartTime": START + 1.25,
        "model": "anthropic/claude-opus-4-6",
        "prompt_tokens": 5_210,
        "completion_tokens": 30,
        "metadata": {"usage_object": USAGE, "user_api_key_hash": "secret-hash"},
        "cache_hit": None,
        "messages": MESSAGES,
        "response": SAYS,
        "model_parameters": {"max_tokens": 64},
        "hidden_params": {"additional_headers": {"authorization": "secret-header"}},
        **more,
    }


def spend(**more: Any) -> Row:
    """A row of the proxy's spend logs, as a database exports it."""
    body = {"model": "my-alias", "system": MARKED, "messages": [{"role": "user", "content": "please"}]}
    return {
        "request_id": "msg_1",
        "call_type": "anthropic_messages",
        "api_key": "secret-key",
        "spend": 0.01,
        "total_tokens": 5_240,
        "prompt_tokens": 5_210,
        "completion_tokens": 30,
        "startTime": "2026-03-07 10:00:00+00",
        "endTime": "2026-03-07T10:00:09",
        "completionStartTime": "2026-03-07T10:00:01.250",
        "model": "claude-opus-4-6",
        "custom_llm_provider": "anthropic",
        "metadata": json.dumps({"usage_object": USAGE, "status": "success"}),
        "messages": "{}",
        "response": json.dumps(SAYS),
        "proxy_server_request": json.dumps({**body, "metadata": {"user_api_key": "secret-key"}}),
        "session_id": "session-1",
        **more,
    }


def read(folder: Path, *rows: Any, said: list[str] | None = None) -> list[Call]:
    path = folder / "litellm.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(calls(path, fail_on_note if said is None else said.append))


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def texts(blocks: tuple[Block, ...]) -> list[Any]:
    return [block.content and (block.content.get("text") or block.content) for block in blocks]


def shape(call: Call) -> list[tuple[str, list[str]]]:
    """Roles and kinds of the messages."""
    nodes = [node.message for node in call.request.thread.back() if node.message]
    return [(message.role, [block.kind for block in message.blocks]) for message in reversed(nodes)]


# ------------------------------------------------------------------------------------------------ one call


@pytest.mark.parametrize("row", [payload(), spend()], ids=["payload", "spend log"])
def test_a_call_with_all_that_is_told_of_it(tmp_path: Path, row: Row) -> None:
    (call,) = read(tmp_path, row)
    assert (call.request.model, call.host, call.session, call.id) == ("claude-opus-4-6", "anthropic", "", "msg_1")
    assert (call.start, call.timestamp, call.first_token_s) == (START, "2026-03-07T10:00:00.000000Z", 1.25)
    assert (call.billed, call.status, call.line) == (Usage(10, 5_000, 200, 0, 30), None, 1)
    assert texts(call.request.system.blocks) == ["be kind"]
    assert [(breakpoint.layer.value, breakpoint.ttl) for breakpoint in call.request.breakpoints] == [("system", "1h")]
    assert (shape(call), texts(call.response)) == ([("user", ["text"])], ["done"])
    assert "secret" not in repr(call)


def test_writes_are_divided_by_lifetime_where_the_usage_is_whole(tmp_path: Path) -> None:
    split = {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 150}
    details = {**USAGE["prompt_tokens_details"], "cache_creation_token_details": split}  # type: ignore[dict-item]
    (call,) = read(tmp_path, payload(metadata={"usage_object": {**USAGE, "prompt_tokens_details": details}}))
    assert call.billed == Usage(10, 5_000, 50, 150, 30)


def test_usage_is_taken_from_where_it_is(tmp_path: Path) -> None:
    theirs = {"input_tokens": 10, "cache_read_input_tokens": 5_000, "cache_creation_input_tokens": 200}
    anthropic = {"type": "message", "content": [{"type": "text", "text": "done"}], "usage": theirs}
    more = {"additional_usage_values": {"cache_read_input_tokens": 5_000, "cache_creation_input_tokens": 200}}
    rows = [
        payload(metadata={}, response={**SAYS, "usage": USAGE}),
        payload(metadata={}, response=anthropic, call_type="anthropic_messages"),
        spend(metadata=json.dumps(more), response="{}"),
        payload(metadata=None, response=None),
    ]
    billed = [call.billed for call in read(tmp_path, *rows)]
    whole = Usage(10, 5_000, 200, 0, 30)
    assert billed == [whole, Usage(10, 5_000, 200, 0, 0), whole, Usage(5_210, output_tokens=30)]


def test_tools_that_litellm_translated_already_stay_as_they_are(tmp_path: Path) -> None:
    theirs = {"name": "look", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    ours = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    choice = {"type": "tool", "name": "look"}
    first, second = read(
        tmp_path,
        payload(model_parameters={"tools": [theirs], "tool_choice": choice, "thinking": {"type": "adaptive"}}),
        payload(model_parameters={"tools": [ours]}),
    )
    assert [breakpoint.layer.value for breakpoint in first.request.breakpoints] == ["tools", "system"]
    assert (first.request.params["tool_choice"], first.request.params["thinking"]) == (choice, {"type": "adaptive"})
    assert [block.content for block in first.request.tools.blocks] == [
        block.content for block in second.request.tools.blocks
    ]


def test_tool_calls_and_their_results_in_both_dialects(tmp_path: Path) -> None:
    function = {"name": "look", "arguments": '{"at": 1}'}
    chat = [
        {"role": "user", "content": "please"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "t1", "content": "seen"},
    ]
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}
    anthropic = [
        {"role": "system", "content": "be kind"},
        chat[0],
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]},
    ]
    said = {"choices": [{"message": chat[1]}]}
    rows = [payload(messages=chat, response=said), payload(messages=anthropic, call_type="anthropic_messages")]
    one, other = read(tmp_path, *rows)
    assert shape(one) == shape(other) == [("user", ["text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert texts(one.response) == [use]
    assert texts(other.request.system.blocks) == ["be kind"]


def test_a_session_is_one_that_was_named_or_that_calls_share(tmp_path: Path) -> None:
    rows = [payload(session_id="mine"), payload(), spend(), spend(session_id="trace-1"), payload(trace_id="other")]
    assert [call.session for call in read(tmp_path, *rows)] == ["mine", "trace-1", "", "trace-1", ""]


def test_a_call_of_the_responses_api(tmp_path: Path) -> None:
    said = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}]}
    asked = [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": "please"},
        {"type": "function_call", "call_id": "t1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t1", "output": "seen"},
    ]
    more = {"model": "openai/gpt-5", "custom_llm_provider": "openai", "response": said}
    (call,) = read(tmp_path, payload(call_type="aresponses", messages=asked, **more))
    assert (call.request.model, call.host) == ("gpt-5", "openai")
    assert shape(call) == [("user", ["text"]), ("assistant", ["tool_use"]), ("user", ["tool_result"])]
    assert [block.kind for block in call.response] == ["text"]


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("anthropic/claude-opus-4-6", "", ("claude-opus-4-6", "anthropic")),
        ("bedrock/us.anthropic.claude-opus-4-6-v1", "bedrock", ("us.anthropic.claude-opus-4-6-v1", "bedrock")),
        ("bedrock/converse/eu-west-1/anthropic.claude-x", "", ("anthropic.claude-x", "bedrock")),
        ("bedrock/arn:aws:bedrock:x:1:a/b", "", ("arn:aws:bedrock:x:1:a/b", "bedrock")),
        ("vertex_ai/claude-opus-4-5@20251101", "vertex_ai", ("claude-opus-4-5@20251101", "google-cloud")),
        ("openrouter/anthropic/claude-opus-4.6", "openrouter", ("claude-opus-4.6", "openrouter")),
        ("hosted_vllm/org/model", "hosted_vllm", ("org/model", "vllm")),
        ("claude-opus-4-6", "openai", ("claude-opus-4-6", "anthropic")),
        ("azure/mine", "azure", ("mine", "azure")),
        ("org/model", "", ("org/model", "anthropic")),
    ],
)
def test_the_provider_becomes_the_host(tmp_path: Path, model: str, provider: str, expected: tuple[str, str]) -> None:
    (call,) = read(tmp_path, payload(model=model, custom_llm_provider=provider))
    assert (call.request.model, served_by(call)) == expected


@pytest.mark.parametrize(
    ("provider", "address", "host"),
    [
        ("openai", "https://api.avian.io/v1", "api.avian.io"),
        ("openai", "https://api.moonshot.ai/v1/", "moonshot"),
        ("openai", "http://localhost:8000/v1", "localhost"),
        ("openai", "", "openai"),
        ("moonshot", "https://llm.firm.example/v1", "moonshot"),
        ("openrouter", "https://openrouter.ai/api/v1", "openrouter"),
    ],
)
def test_a_server_of_a_protocol_is_known_by_its_address(tmp_path: Path, provider: str, address: str, host: str) -> None:
    (call,) = read(tmp_path, payload(model="kimi-k3", custom_llm_provider=provider, api_base=address))
    assert call.host == host


# --------------------------------------------------------------------------------------------- whole files


def test_calls_come_by_their_start_not_by_their_end(tmp_path: Path) -> None:
    late, early = payload(startTime=START + 5, id="late"), payload(id="early")
    assert [call.id for call in read(tmp_path, late, early)] == ["early", "late"]


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_one_object_and_gzip(tmp_path: Path, indent: int | None) -> None:
    for value, ids in (([payload(), payload(id="b")], ["msg_1", "b"]), (payload(), ["msg_1"])):
        path = tmp_path / "log.json.gz"
        path.write_bytes(gzip.compress(json.dumps(value, indent=indent).encode()))
        assert [call.id for call in calls(path)] == ids


def test_without_streaming_the_first_token_is_not_told(tmp_path: Path) -> None:
    (call,) = read(tmp_path, payload(completionStartTime=START + 9.0))
    assert call.first_token_s == 0.0


def test_failures_are_calls_with_their_status(tmp_path: Path) -> None:
    failed = {"status": "failure", "response": None, "error_str": "secret"}
    rows = [
        payload(**failed, error_information={"error_code": "429"}),
        payload(**failed, error_information={"error_code": "APIError"}),
        spend(metadata=json.dumps({"status": "failure", "error_information": {"error_code": "529"}})),
    ]
    assert [(call.status, call.billed, call.response) for call in read(tmp_path, *rows)] == [
        (429, None, ()),
        (500, None, ()),
        (529, None, ()),
    ]


@pytest.mark.parametrize(
    ("code", "status"), [(399, 500), (400, 400), (499, 499), (500, 500), (599, 599), (600, 500), ("9" * 5_000, 500)]
)
def test_a_status_is_that_of_an_error(tmp_path: Path, code: int | str, status: int) -> None:
    row = payload(status="failure", response=None, error_information={"error_code": str(code)})
    assert [call.status for call in read(tmp_path, row)] == [status]


def test_what_is_no_billed_model_call_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    rows = [
        payload(call_type="aembedding"),
        payload(call_type="aembedding"),
        payload(call_type="pass_through_endpoint", messages=None),
        payload(call_type="pass_through_endpoint"),
        payload(cache_hit=True),
        spend(cache_hit="True"),
        payload(status="failure", model=""),
        spend(cache_hit="False"),
    ]
    assert len(read(tmp_path, *rows, said=said)) == 2
    path = tmp_path / "litellm.jsonl"
    assert said == [
        f"{path}: skipped 2 entries: call_type 'aembedding' is not a model call",
        f"{path}: skipped 1 entry: call_type 'pass_through_endpoint' is not a model call",
        f"{path}: skipped 2 entries: from LiteLLM's own cache, not billed by a provider",
        f"{path}: skipped 1 entry: failed before a model was called",
    ]


def test_calls_without_messages_still_have_their_bill(tmp_path: Path) -> None:
    said: list[str] = []
    hidden = "redacted-by-litellm"
    answer = {"choices": [{"message": {"role": "assistant", "content": hidden}}]}
    rows = [
        payload(messages=[{"role": "user", "content": hidden}], response=answer),
        spend(proxy_server_request="{}", response="{}"),
    ]
    found = read(tmp_path, *rows, said=said)
    assert [(call.billed, call.request.thread.length, call.response) for call in found] == [
        (Usage(10, 5_000, 200, 0, 30), 0, ())
    ] * 2
    assert said == [f"{tmp_path / 'litellm.jsonl'}: 2 calls without messages: only usage is known"]


def test_a_system_prompt_that_litellm_does_not_log_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    asked: Row = {"call_type": "anthropic_messages", "messages": [{"role": "user", "content": "please"}]}
    bare = json.dumps({"messages": asked["messages"]})
    rows = [payload(**asked), payload(messages=asked["messages"]), spend(proxy_server_request=bare)]
    assert len(read(tmp_path, *rows, said=said)) == 3
    assert said == [
        f"{tmp_path / 'litellm.jsonl'}: 1 call without a system prompt: LiteLLM does not log it for this endpoint"
    ]


def test_texts_that_the_database_cut_short_are_said(tmp_path: Path) -> None:
    said: list[str] = []
    body = {"messages": [{"role": "user", "content": "a... (litellm_truncated skipped 9000 chars) ...b"}]}
    assert len(read(tmp_path, spend(proxy_server_request=body), said=said)) == 1
    assert said == [f"{tmp_path / 'litellm.jsonl'}: 1 call with text truncated by LiteLLM: sizes are too small"]


# -------------------------------------------------------------------------------------------------- damage


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    rows: list[Any] = [
        payload(),
        payload(startTime="yesterday"),
        payload(startTime=None),
        payload(messages=5),
        payload(messages=[{"role": "alien", "content": "x"}], call_type="anthropic_messages"),
        payload(metadata={"usage_object": {"prompt_tokens": -1}}),
        payload(model=""),
        {"call_type": None},
        7,
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"call_type": nobody}\n')
    with pytest.raises(InputError) as caught:
        list(calls(path))
    assert [str(fault).removeprefix(str(path)) for fault in caught.value.faults] == [
        ":2 startTime: expected an ISO 8601 time; got 'yesterday'",
        ":3 startTime: expected seconds since the epoch or an ISO 8601 time; got nothing",
        ":4 messages: expected an array of messages; got 5",
        ":5 messages.0.role: expected one of assistant, system, user; got 'alien'",
        ":6 metadata.usage_object.prompt_tokens: expected a whole number of tokens; got -1",
        ":7 model: expected a model id; got ''",
        ":8 call_type: expected a text; got nothing",
        ":9 expected an object; got 7",
        ":10 damaged JSON: Expecting value at character 15",
    ]


def test_faults_of_an_array_name_its_element(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([payload(), payload(startTime=-1), "x"]))
    with pytest.raises(InputError) as caught:
        list(calls(path))
    assert [str(fault).removeprefix(str(path)) for fault in caught.value.faults] == [
        ":1 [1].startTime: expected seconds since the epoch or an ISO 8601 time; got -1",
        ":1 [2]: expected an object; got 'x'",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", " expected a LiteLLM log; got nothing"),
        ("[{]", ":1 damaged JSON: Expecting property name enclosed in double quotes at character 3"),
        ("[\n  7\n]", ":1 [0]: expected an object; got 7"),
    ],
)
def test_a_file_without_calls(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(calls(path))
    assert [str(fault).removeprefix(str(path)) for fault in caught.value.faults] == [expected]


def test_a_last_line_that_is_cut_off_is_said_and_left_out(tmp_path: Path) -> None:
    path, said = tmp_path / "open.jsonl", []  # type: tuple[Path, list[str]]
    path.write_text(json.dumps(payload()) + "\n" + json.dumps(payload())[:90])
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]


def test_content_can_be_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(payload()) + "\n")
    (call,) = calls(path, quiet, False)
    assert [block.content for block in (*call.request.system.blocks, *call.response)] == [None, None]


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (payload(), 'its first object has a "call_type" and a "response_cost"'),
        ([payload()], 'its first object has a "call_type" and a "response_cost"'),
        (spend(), 'its first object has a "call_type" and a "spend"'),
        ({"request": payload()}, None),
        ({"call_type": "acompletion"}, None),
        ({"resourceSpans": []}, None),
        ({"type": "user", "uuid": "a", "parentUuid": None}, None),
        ({"format": 1, "kind": "calls"}, None),
        ({"log": {"entries": []}}, None),
        ({"id": "b", "object": "chat.completion", "model": "m", "choices": []}, None),
        ([], None),
    ],
)
def test_a_log_is_known_by_its_first_object(first: object, reason: str | None) -> None:
    assert sniff(json.dumps(first, indent=2).encode()) == sniff(json.dumps(first).encode()) == reason
