"""OpenTelemetry traces: every convention that writes a model call down, each call once, nothing made up."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import quiet
from cachecost.conversations.readers.otel.reader import calls, sniff
from cachecost.prompts.blocks import Block
from cachecost.providers.usage import Usage

START = 1772877600
"""2026-03-07T10:00:00Z"""
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude-opus-4-6",
    "gen_ai.usage.input_tokens": 5_210,
    "gen_ai.usage.output_tokens": 30,
    "gen_ai.usage.cache_read.input_tokens": 5_000,
    "gen_ai.usage.cache_creation.input_tokens": 200,
}
BILL = Usage(10, 5_000, 200, 0, 30)
ASKS = {"role": "user", "parts": [{"type": "text", "content": "please"}]}
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}
TOOL = {"name": "look", "description": "looks", "input_schema": {"type": "object"}}
TURN = [("user", ["text"]), ("assistant", ["text", "tool_use"]), ("user", ["tool_result"])]
"""The conversation that every convention tells below."""
Attributes = dict[str, Any]


def any_value(value: Any) -> dict[str, Any]:
    """A value as OTLP's JSON has it: 64-bit integers are texts."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    return {"stringValue": value}


def pairs(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": any_value(value)} for name, value in attributes.items()]


def span(attributes: Attributes, at: float = 0.0, name: str = "a1", trace: str = "t1", **more: Any) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": name,
        "name": "chat claude-opus-4-6",
        "startTimeUnixNano": str(int((START + at) * 10**9)),
        "attributes": pairs(attributes),
        **more,
    }


def event(name: str, attributes: Attributes) -> dict[str, Any]:
    return {"name": name, "timeUnixNano": "1", "attributes": pairs(attributes)}


def exported(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "mine"}, "spans": list(spans)}]}]}


def logged(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}


def printed(attributes: Attributes, **more: Any) -> dict[str, Any]:
    """A span as Python's console exporter prints it."""
    return {
        "name": "chat",
        "context": {"trace_id": "0xt1", "span_id": "0xa1", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": None,
        "start_time": "2026-03-07T10:00:00.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": attributes,
        "events": [],
        **more,
    }


def read(folder: Path, *values: Any, said: list[str] | None = None) -> list[Call]:
    path = folder / "spans.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return list(calls(path, fail_on_note if said is None else said.append))


def one(folder: Path, attributes: Attributes, **more: Any) -> Call:
    (call,) = read(folder, exported(span(attributes, **more)))
    return call


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def shape(call: Call) -> list[tuple[str, list[str]]]:
    """Roles and kinds of the messages."""
    nodes = [node.message for node in call.request.thread.back() if node.message]
    return [(message.role, [block.kind for block in message.blocks]) for message in reversed(nodes)]


def contents(blocks: tuple[Block, ...]) -> list[Any]:
    return [block.content for block in blocks]


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


def messages(call: Call) -> list[Any]:
    nodes = [node.message for node in call.request.thread.back() if node.message]
    return [content for message in reversed(nodes) for content in contents(message.blocks)]


# ---------------------------------------------------------------------------------------------- conventions


def current() -> Attributes:
    call = {"type": "tool_call", "id": "t1", "name": "look", "arguments": {"at": 1}}
    asked = [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        ASKS,
        {"role": "assistant", "parts": [{"type": "text", "content": "I look"}, call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t1", "response": "seen"}]},
    ]
    definition = {"type": "function", "name": "look", "description": "looks", "parameters": {"type": "object"}}
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "done"}], "finish_reason": "stop"}
    return {
        **CHAT,
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "be kind"}]),
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.tool.definitions": json.dumps([definition]),
        "gen_ai.output.messages": json.dumps([answer]),
    }


def structured() -> Attributes:
    """The same, not as JSON but as values of attributes."""
    return {name: json.loads(value) if str(value)[:1] == "[" else value for name, value in current().items()}


def openllmetry() -> Attributes:
    """An Anthropic tool call stands in the content and beside it."""
    return {
        **{name: value for name, value in CHAT.items() if "operation" not in name},
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": json.dumps([text("be kind"), text("be brief")]),
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": "please",
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.content": json.dumps([text("I look"), USE]),
        "gen_ai.prompt.2.tool_calls.0.id": "t1",
        "gen_ai.prompt.2.tool_calls.0.name": "look",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"at": 1}',
        "gen_ai.prompt.3.role": "user",
        "gen_ai.prompt.3.content": json.dumps([RESULT]),
        "llm.request.functions.0.name": "look",
        "llm.request.functions.0.description": "looks",
        "llm.request.functions.0.input_schema": '{"type": "object"}',
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "done",
    }


def openinference() -> Attributes:
    asked, answer = "llm.input_messages", "llm.output_messages.0.message"
    contents = "message.contents"
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "claude-opus-4-6",
        "llm.provider": "anthropic",
        "llm.token_count.prompt": 5_210,
        "llm.token_count.completion": 30,
        "llm.token_count.prompt_details.cache_read": 5_000,
        "llm.token_count.prompt_details.cache_write": 200,
        f"{asked}.0.message.role": "system",
        f"{asked}.0.{contents}.0.message_content.type": "text",
        f"{asked}.0.{contents}.0.message_content.text": "be kind",
        f"{asked}.0.{contents}.1.message_content.type": "text",
        f"{asked}.0.{contents}.1.message_content.text": "be brief",
        f"{asked}.1.message.role": "user",
        f"{asked}.1.message.content": "please",
        f"{asked}.2.message.role": "assistant",
        f"{asked}.2.message.content": "I look",
        f"{asked}.2.message.tool_calls.0.tool_call.id": "t1",
        f"{asked}.2.message.tool_calls.0.tool_call.function.name": "look",
        f"{asked}.2.message.tool_calls.0.tool_call.function.arguments": '{"at": 1}',
        f"{asked}.3.message.role": "tool",
        f"{asked}.3.message.tool_call_id": "t1",
        f"{asked}.3.message.content": "seen",
        "llm.tools.0.tool.json_schema": json.dumps(TOOL),
        f"{answer}.role": "assistant",
        f"{answer}.content": "done",
    }


def received() -> Attributes:
    """OpenInference's input.value is the request itself, output.value the answer with its own usage."""
    body = {
        "model": "claude-opus-4-6",
        "max_tokens": 64,
        "system": [text("be kind"), text("be brief")],
        "tools": [{**TOOL, "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "please"},
            {"role": "assistant", "content": [text("I look"), USE]},
            {"role": "user", "content": [RESULT]},
        ],
    }
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5_000, "cache_creation_input_tokens": 200}
    split = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 200}
    answer = {
        "type": "message",
        "content": [{**text("done"), "citations": None}],
        "usage": {**usage, "cache_creation": split},
    }
    return {**openinference(), "input.value": json.dumps(body), "output.value": json.dumps(answer)}


def old() -> Attributes:
    function = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    asked = [
        {"role": "system", "content": [text("be kind"), text("be brief")]},
        {"role": "user", "content": "please"},
        {"role": "assistant", "content": "I look", "tool_calls": [function]},
        {"role": "tool", "tool_call_id": "t1", "content": "seen"},
    ]
    said = [{"role": "assistant", "content": "done"}]
    return {**CHAT, "gen_ai.prompt": json.dumps(asked), "gen_ai.completion": json.dumps(said)}


@pytest.mark.parametrize("told", [current, structured, openllmetry, openinference, received, old])
def test_every_convention_tells_the_same_call(tmp_path: Path, told: Any) -> None:
    call = one(tmp_path, told())
    assert (call.request.model, call.host, call.session, call.status) == ("claude-opus-4-6", "anthropic", "", None)
    assert (call.start, call.timestamp, call.line) == (START, "2026-03-07T10:00:00.000000Z", 1)
    assert contents(call.request.system.blocks) == [text("be kind"), text("be brief")]
    assert shape(call) == TURN
    assert messages(call) == [text("please"), text("I look"), USE, RESULT]
    assert contents(call.response) == [text("done")]
    assert call.billed in (BILL, Usage(10, 5_000, 0, 200, 0))
    assert contents(call.request.tools.blocks) == ([] if told is old else [TOOL])


def test_the_request_itself_has_breakpoints_and_its_answer_has_lifetimes(tmp_path: Path) -> None:
    call = one(tmp_path, received())
    assert [(breakpoint.layer.value, breakpoint.ttl) for breakpoint in call.request.breakpoints] == [("tools", "5m")]
    assert (call.billed, call.request.params) == (Usage(10, 5_000, 0, 200, 0), {"max_tokens": 64})


def test_a_message_an_event(tmp_path: Path) -> None:
    events = [
        event("gen_ai.system.message", {"content": "be kind"}),
        event("gen_ai.user.message", {"content": "please"}),
        event(
            "gen_ai.assistant.message", {"content": "I look", "tool_calls": json.dumps([{**USE, "arguments": "{}"}])}
        ),
        event("gen_ai.tool.message", {"id": "t1", "content": '{"seen": 1}'}),
        event("gen_ai.choice", {"index": 0, "message": json.dumps({"content": "done"})}),
    ]
    call = one(tmp_path, CHAT, events=events)
    assert (shape(call), messages(call)[-1]["content"]) == (TURN, '{"seen": 1}')
    assert (contents(call.request.system.blocks), contents(call.response)) == ([text("be kind")], [text("done")])


def test_content_in_the_event_of_the_call(tmp_path: Path) -> None:
    content = {name: value for name, value in current().items() if name not in CHAT}
    for name in ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt"):
        assert shape(one(tmp_path, CHAT, events=[event(name, content)])) == TURN


def test_content_in_log_records(tmp_path: Path) -> None:
    name, content = "gen_ai.client.inference.operation.details", structured()
    more = {"eventName": name, "timeUnixNano": (START + 1) * 10**9, "attributes": pairs(content)}
    record = {"traceId": "t1", "spanId": "a1", **more}
    body = {"traceId": "t1", "spanId": "b2", "attributes": pairs({"event.name": "gen_ai.user.message"})}
    asked = {**body, "observedTimeUnixNano": str(START * 10**9), "body": any_value({"content": "please"})}
    (joined,) = read(tmp_path, logged(record), exported(span(CHAT)))
    (alone,) = read(tmp_path, logged(record))
    (event_only,) = read(tmp_path, exported(span(CHAT, name="b2")), logged(asked))
    assert (shape(joined), joined.start, shape(alone), alone.start) == (TURN, START, TURN, START + 1)
    assert (joined.billed, alone.billed, shape(event_only)) == (BILL, BILL, [("user", ["text"])])


def test_parts_of_every_kind_become_blocks(tmp_path: Path) -> None:
    odd = {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"type": "web_search"}}
    parts = [
        {"type": "reasoning", "content": "hm"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
        {"type": "uri", "modality": "document", "uri": "https://a/b.pdf"},
        {"type": "file", "modality": "image", "file_id": "f1"},
        {"type": "blob", "modality": "audio", "content": "aGk="},
        {"type": "text", "content": "so", "cache_control": {"type": "ephemeral"}},
        {"type": "tool_call_response", "id": "t1", "response": {"seen": 1}},
        odd,
    ]
    call = one(tmp_path, {**CHAT, "gen_ai.input.messages": [{"role": "user", "parts": parts}]})
    assert messages(call) == [
        {"type": "thinking", "thinking": "hm"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "document", "source": {"type": "url", "url": "https://a/b.pdf"}},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        parts[4],
        text("so"),
        {"type": "tool_result", "tool_use_id": "t1", "content": '{"seen": 1}'},
        odd,
    ]
    assert [(breakpoint.layer.value, breakpoint.index) for breakpoint in call.request.breakpoints] == [("messages", 5)]


def test_results_in_a_row_are_one_message(tmp_path: Path) -> None:
    results = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": id_}]} for id_ in ("t1", "t2")]
    call = one(tmp_path, {**CHAT, "gen_ai.input.messages": [ASKS, *results, ASKS]})
    assert shape(call) == [("user", ["text"]), ("user", ["tool_result", "tool_result"]), ("user", ["text"])]


def test_thinking_stands_before_an_answer_of_openllmetry(tmp_path: Path) -> None:
    answers = {
        "gen_ai.completion.0.role": "thinking",
        "gen_ai.completion.0.content": "hm",
        "gen_ai.completion.1.role": "assistant",
        "gen_ai.completion.1.content": "done",
    }
    call = one(tmp_path, {**openllmetry(), **answers})
    assert contents(call.response) == [{"type": "thinking", "thinking": "hm"}, text("done")]


def test_more_than_ten_messages_keep_their_order(tmp_path: Path) -> None:
    asked = {
        f"gen_ai.prompt.{n}.{name}": value for n in range(12) for name, value in (("role", "user"), ("content", f"{n}"))
    }
    call = one(tmp_path, {**CHAT, **dict(sorted(asked.items()))})
    assert messages(call) == [text(str(n)) for n in range(12)]


# ------------------------------------------------------------------------------------------- a call's fields


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"input_tokens": "5210", "cache_read_input_tokens": "5000", "cache_creation_input_tokens": 200}, (10, 200)),
        ({"input_tokens": 10, "cache_read.input_tokens": 5_000, "cache_creation.input_tokens": 200}, (10, 200)),
        ({"prompt_tokens": 5_010, "cache_read_input_tokens": 5_000}, (10, 0)),
    ],
)
def test_usage_under_older_names(tmp_path: Path, told: Attributes, expected: tuple[int, int]) -> None:
    bare = {name: value for name, value in current().items() if "usage" not in name}
    call = one(tmp_path, {**bare, **{f"gen_ai.usage.{name}": value for name, value in told.items()}})
    assert call.billed == Usage(expected[0], 5_000, expected[1])


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.provider.name": "aws.bedrock"}, "bedrock"),
        ({"gen_ai.provider.name": None, "gen_ai.system": "Anthropic"}, "anthropic"),
        ({"gen_ai.provider.name": "gcp.vertex_ai"}, "google-cloud"),
        ({"gen_ai.provider.name": "openai"}, None),
        ({"gen_ai.provider.name": "openai", "server.address": "openrouter.ai"}, "openrouter"),
        ({"gen_ai.provider.name": "acme"}, None),
    ],
)
def test_the_provider_becomes_the_host(tmp_path: Path, attributes: Attributes, expected: str | None) -> None:
    assert one(tmp_path, {**current(), **{k: v or "" for k, v in attributes.items()}}).host == expected


def test_session_first_token_and_id(tmp_path: Path) -> None:
    more = {"session.id": "s1", "gen_ai.response.time_to_first_chunk": 1.5, "gen_ai.response.id": "msg_1"}
    call = one(tmp_path, {**current(), **more, "gen_ai.request.max_tokens": 64})
    assert (call.session, call.first_token_s, call.id) == ("s1", 1.5, "msg_1")
    assert call.request.params == {"max_tokens": 64}
    plain = one(tmp_path, {**current(), "gen_ai.conversation.id": "c1", "session.id": "s1"})
    assert (plain.session, plain.first_token_s, plain.id) == ("c1", 0.0, "t1/a1")
    several = [span(current(), n, f"a{n}", trace) for n, trace in enumerate(("t1", "t2", "t1"))]
    assert [call.session for call in read(tmp_path, exported(*several))] == ["t1", "", "t1"]


def test_errors_are_failed_calls_unless_they_were_billed(tmp_path: Path) -> None:
    bare = {name: value for name, value in current().items() if "usage" not in name and "output" not in name}
    failed = {"status": {"code": 2, "message": "no"}}
    assert one(tmp_path, {**bare, "error.type": "429"}, **failed).status == 429
    assert one(tmp_path, {**bare, "error.type": "timeout"}, **failed).status == 500
    thrown = [event("exception", {"exception.message": "Error code: 529 - busy"})]
    assert one(tmp_path, bare, status={"code": 2}, events=thrown).status == 529
    (console,) = read(tmp_path, printed(bare, status={"status_code": "ERROR", "description": "Error code: 413 - long"}))
    assert console.status == 413
    billed = one(tmp_path, current(), status={"code": "STATUS_CODE_ERROR"})
    assert (billed.status, billed.billed) == (None, BILL)


# -------------------------------------------------------------------------------------------- whole files


def test_spans_come_by_their_start(tmp_path: Path) -> None:
    late, early = span(current(), 5.0, "a1"), span(current(), 0.25, "a2")
    found = read(tmp_path, exported(late), exported(early))
    assert [(call.start - START, call.line) for call in found] == [(0.25, 2), (5.0, 1)]


def test_what_is_no_model_call_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    usage = {name: value for name, value in CHAT.items() if "operation" not in name}
    others = [
        {**CHAT, "gen_ai.operation.name": "invoke_agent"},
        {**CHAT, "gen_ai.operation.name": "embeddings"},
        {"openinference.span.kind": "CHAIN", **usage},
        {"http.method": "POST"},
    ]
    spans = [span(attributes, name=f"b{n}") for n, attributes in enumerate(others)]
    kept = span({**current(), **usage, "gen_ai.operation.name": "my own word"}, name="c1")
    record = {"eventName": "app.started", "timeUnixNano": "1", "attributes": []}
    assert len(read(tmp_path, exported(*spans, kept), logged(record), {"resourceMetrics": []}, said=said)) == 1
    path = tmp_path / "spans.jsonl"
    assert sorted(said) == [
        f"{path}: skipped 1 log record: not a model call",
        f"{path}: skipped 4 spans: not a model call",
    ]


def test_a_call_that_two_tracers_wrote_down_counts_once(tmp_path: Path) -> None:
    said: list[str] = []
    tool = {"gen_ai.operation.name": "execute_tool"}
    spans = [
        span(openinference(), 0, "outer"),
        span({"traceloop.span.kind": "task"}, 1, "between", parentSpanId="outer"),
        span(current(), 2, "inner", parentSpanId="between"),
        span(tool, 3, "tool", parentSpanId="inner"),
        span(current(), 4, "of the tool", parentSpanId="tool"),
    ]
    found = read(tmp_path, exported(*spans), said=said)
    assert [call.start - START for call in found] == [2, 4]
    assert f"{tmp_path / 'spans.jsonl'}: skipped 1 span: same call as a span inside it" in said


def test_spans_without_messages_still_have_their_bill(tmp_path: Path) -> None:
    said: list[str] = []
    hidden = {**openinference(), "llm.input_messages.1.message.content": "__REDACTED__"}
    cut = {**CHAT, "gen_ai.input.messages": current()["gen_ai.input.messages"][:60]}
    found = read(tmp_path, exported(*(span(told, n, f"a{n}") for n, told in enumerate((CHAT, hidden, cut)))), said=said)
    assert [(call.billed, call.request.thread.length) for call in found] == [(BILL, 0)] * 3
    assert said == [
        f"{tmp_path / 'spans.jsonl'}: 2 spans without messages: only usage is known",
        f"{tmp_path / 'spans.jsonl'}: 1 span with truncated messages: only usage is known",
    ]


def test_printed_spans_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "console.txt"
    second = printed(current(), start_time="2026-03-07T10:00:04Z", status={"status_code": "ERROR"})
    path.write_text("\n".join(json.dumps(one, indent=4) for one in (printed(current()), second)) + "\n")
    first, other = calls(path, fail_on_note)
    assert (first.start, first.session, first.id, shape(first), first.line) == (START, "t1", "t1/a1", TURN, 1)
    assert shape(first) == shape(other)
    assert (other.start, other.billed, other.line) == (START + 4, BILL, 2 + path.read_text().count("\n") // 2 - 1)


@pytest.mark.parametrize("indent", [None, 2])
def test_one_document_an_array_and_gzip(tmp_path: Path, indent: int | None) -> None:
    for value in (exported(span(current())), [exported(span(current()))], [printed(current())]):
        path = tmp_path / "spans.json.gz"
        path.write_bytes(gzip.compress(json.dumps(value, indent=indent).encode()))
        assert [shape(call) for call in calls(path, fail_on_note)] == [TURN]


def test_content_can_be_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(exported(span(current()))))
    (call,) = calls(path, quiet, False)
    assert [block.content for block in (*call.request.system.blocks, *call.response)] == [None] * 3


# -------------------------------------------------------------------------------------------------- damage


def test_every_fault_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    place = "resourceSpans[0].scopeSpans[0].spans[0]"
    wrong = {**span({}), "attributes": [{"key": "a", "value": {"intValue": "x"}}, {"value": {"stringValue": ""}}, 5]}
    rows: list[Any] = [
        exported(span(current())),
        exported(wrong),
        exported({**span(current()), "startTimeUnixNano": "soon"}),
        exported(span({**current(), "gen_ai.usage.output_tokens": -4})),
        exported(span({**CHAT, "gen_ai.input.messages": [{"role": "alien", "parts": []}]})),
        exported(span({**CHAT, "gen_ai.input.messages": [{"role": "user", "parts": [{"content": "x"}]}]})),
        exported(span({**current(), "gen_ai.request.model": ""})),
        {"spans": []},
        printed(current(), start_time="never"),
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "[}\n")
    with pytest.raises(InputError) as caught:
        list(calls(path))
    told = [str(fault).removeprefix(str(path)).replace(place, "SPAN") for fault in caught.value.faults]
    assert sorted(told) == [
        ":10 damaged JSON: Expecting value at character 2",
        ":2 SPAN.attributes: expected an array of objects; got an array",
        ":3 SPAN.startTimeUnixNano: expected nanoseconds since the epoch; got 'soon'",
        ":4 SPAN.attributes: usage.gen_ai.usage.output_tokens: expected a whole number of tokens; got -4",
        ":5 SPAN.attributes: messages.0.role: expected one of assistant, system, user; got 'alien'",
        ":6 SPAN.attributes: gen_ai.input.messages.0.parts.0: expected a part with a type; got an object",
        ":7 SPAN.attributes: model: expected a model id; got ''",
        ":8 resourceSpans: expected spans (or the attributes of a printed span); got nothing",
        ":9 start_time: expected an ISO 8601 time; got 'never'",
    ]


def test_values_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    bad = [("a", {"intValue": "x"}), ("b", 5), ("c", {"newValue": 1})]
    attributes = [{"key": name, "value": value} for name, value in bad]
    path.write_text(json.dumps(exported({**span({}), "attributes": [*attributes, {"value": {}}]})))
    with pytest.raises(InputError) as caught:
        list(calls(path))
    place = f"{path}:1 resourceSpans[0].scopeSpans[0].spans[0].attributes"
    assert [str(fault).removeprefix(place) for fault in caught.value.faults] == [
        "[0].value.intValue: expected a whole number; got 'x'",
        "[1].value: expected a value object; got 5",
        "[2].value: expected a value type; got 'newValue'",
        "[3].key: expected a text; got nothing",
    ]


def test_an_empty_file_and_one_that_is_cut_off(tmp_path: Path) -> None:
    path, said = tmp_path / "spans.jsonl", []  # type: tuple[Path, list[str]]
    path.write_text("")
    with pytest.raises(InputError, match="expected OpenTelemetry spans; got nothing"):
        list(calls(path))
    path.write_text(json.dumps(exported(span(current()))) + "\n" + '{"resourceSpans": [')
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]
    path.write_text('{\n  "resourceSpans": [\n')
    with pytest.raises(InputError, match=r"spans\.jsonl:3 damaged JSON: Expecting value at character 1"):
        list(calls(path))


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (exported(), 'its first object has "resourceSpans"'),
        ([exported()], 'its first object has "resourceSpans"'),
        (logged(), 'its first object has "resourceLogs"'),
        (printed({}), 'its first object has a "context" with a "trace_id"'),
        ({"request": {"resourceSpans": []}}, None),
        ({"context": {}, "attributes": {}, "start_time": "x"}, None),
        ({"call_type": "acompletion", "response_cost": 1}, None),
        ({"id": "r1", "trace_id": "t", "run_type": "llm", "start_time": "x"}, None),
        ({"type": "user", "uuid": "a", "parentUuid": None}, None),
        ({"format": 1, "kind": "calls"}, None),
        ({"log": {"entries": []}}, None),
        ([], None),
    ],
)
def test_traces_are_known_by_their_first_object(first: object, reason: str | None) -> None:
    assert sniff(json.dumps(first, indent=2).encode()) == sniff(json.dumps(first).encode()) == reason
