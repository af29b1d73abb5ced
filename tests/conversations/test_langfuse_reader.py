"""Generations of Langfuse: each form of export, each form of input, bills counted once; every fault told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.readers.langfuse import calls, sniff
from cachecost.prompts.blocks import Thread
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage

MODEL = "claude-sonnet-4-5"
SHORT = {"type": "ephemeral"}
BUCKETS = {"input": 5, "output": 40, "total": 1245, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 300}
BILLED = Usage(5, 900, 300, 0, 40)
HELLO = [{"role": "user", "content": "hello"}]
SNAKE = {
    "traceId": "trace_id",
    "startTime": "start_time",
    "completionStartTime": "completion_start_time",
    "parentObservationId": "parent_observation_id",
    "model": "provided_model_name",
    "modelParameters": "model_parameters",
    "usageDetails": "usage_details",
    "statusMessage": "status_message",
    "sessionId": "session_id",
}
Row = dict[str, Any]


def seen(at: int = 0, **more: Any) -> Row:
    """A generation as the API gives it, `at` seconds after ten o'clock."""
    row: Row = {
        "id": f"obs-{at}",
        "traceId": "trace-1",
        "startTime": f"2026-03-07T10:00:{at:02}.250Z",
        "completionStartTime": f"2026-03-07T10:00:{at + 1:02}.000Z",
        "parentObservationId": None,
        "type": "GENERATION",
        "model": MODEL,
        "modelParameters": {"max_tokens": 500, "temperature": 1},
        "input": HELLO,
        "output": {"role": "assistant", "content": "hi"},
        "usageDetails": BUCKETS,
        "level": "DEFAULT",
        "statusMessage": None,
        "sessionId": "session-1",
    }
    return {**row, **more}


def stored(row: Row) -> Row:
    """The same in blob storage: other names, contents as texts, nothing as an empty text."""
    texts = {name: json.dumps(row[name]) for name in ("input", "output", "modelParameters")}
    moments = {name: row[name].replace("T", " ").replace("Z", "000") for name in ("startTime", "completionStartTime")}
    told = {**row, **texts, **moments, "usageDetails": {name: str(n) for name, n in row["usageDetails"].items()}}
    return {SNAKE.get(name, name): "" if value is None else value for name, value in told.items()}


def read(folder: Path, *rows: Row, said: list[str] | None = None) -> list[Call]:
    path = folder / "observations.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(calls(path, fail_on_note if said is None else said.append))


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def shown(call: Call) -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    thread: Thread | None = call.request.thread
    while thread is not None and thread.message is not None:
        found.append((thread.message.role, [block.content for block in thread.message.blocks]))
        thread = thread.parent
    return found[::-1]


def text(words: str) -> Row:
    return {"type": "text", "text": words}


# ------------------------------------------------------------------------------------ forms of export


@pytest.mark.parametrize("form", ["lines", "page", "export", "trace", "download", "traces", "blob", "gzip"])
def test_every_form_of_export_is_the_same_calls(tmp_path: Path, form: str) -> None:
    rows = [seen(2), seen(1), seen(3, type="SPAN")]
    bare = [{name: value for name, value in row.items() if name != "sessionId"} for row in rows]
    shorn = [{"providedModelName" if name == "model" else name: value for name, value in row.items()} for row in rows]
    trace = {"id": "trace-1", "timestamp": "2026-03-07T10:00:00Z", "projectId": "p", "sessionId": "session-1"}
    lines = "\n".join(map(json.dumps, map(stored, rows) if form == "blob" else rows)) + "\n"
    written = {
        "page": json.dumps({"data": rows, "meta": {"page": 1}}),
        "export": json.dumps(shorn),
        "trace": json.dumps({**trace, "observations": bare}, indent=2),
        "download": json.dumps({"trace": trace, "observations": bare}),
        "traces": json.dumps({"data": [{**trace, "observations": bare}]}),
    }.get(form, lines)
    path, said = tmp_path / "langfuse.json", []
    path.write_bytes(gzip.compress(written.encode()) if form == "gzip" else written.encode())
    one, two = calls(path, said.append)
    assert (one.id, two.id, one.session, two.session) == ("obs-1", "obs-2", "session-1", "session-1")
    assert (one.billed, one.first_token_s, one.request.model) == (BILLED, 0.75, MODEL)
    assert (shown(one), [block.content for block in one.response]) == ([("user", [text("hello")])], [text("hi")])
    assert one.request.params == {"max_tokens": 500}
    assert two.start - one.start == 1.0 and one.day == two.day
    assert said == [f"{path}: skipped 1 entry: type 'SPAN' is not a model call"]
    assert sniff(written.encode())


def test_a_trace_is_the_conversation_where_there_is_no_session(tmp_path: Path) -> None:
    (call,) = read(tmp_path, stored(seen(sessionId=None)))
    assert call.session == "trace-1"


# ------------------------------------------------------------------------------------- forms of input

TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
FUNCTION = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
USE = {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}}


def test_a_messages_body_keeps_its_breakpoints(tmp_path: Path) -> None:
    body = {
        "system": [{**text("S"), "cache_control": {**SHORT, "ttl": "1h"}}],
        "tools": [{**TOOL, "cache_control": SHORT}],
        "messages": [
            *HELLO,
            {"role": "assistant", "content": [USE]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "one", "cache_control": SHORT}],
            },
        ],
    }
    parameters = {"tool_choice": '{"type": "any"}', "max_tokens": "Infinity"}
    output = [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("done")]
    (call,) = read(tmp_path, seen(input=body, modelParameters=parameters, output=output))
    breakpoints = [(breakpoint.layer, breakpoint.index, breakpoint.ttl) for breakpoint in call.request.breakpoints]
    assert breakpoints == [("tools", 0, "5m"), ("system", 0, "1h"), ("messages", 0, "5m")]
    assert [role for role, _ in shown(call)] == ["user", "assistant", "user"]
    assert call.request.params == {"tool_choice": {"type": "any"}}
    assert [block.content for block in call.response] == output


def test_langchains_handler_puts_tools_among_the_messages(tmp_path: Path) -> None:
    asked = [
        {"role": "system", "content": [{**text("S"), "cache_control": SHORT}]},
        *HELLO,
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"name": "look", "args": {"at": 1}, "id": "a", "type": "tool_call"}],
        },
        {"role": "tool", "content": "one", "tool_call_id": "a"},
        {"role": "tool", "content": {"type": "function", "function": FUNCTION}},
    ]
    metadata = {"ls_provider": "amazon_bedrock"}
    (call,) = read(tmp_path, seen(input=asked, model="eu.anthropic.claude-sonnet-4-5-20250929-v1:0", metadata=metadata))
    assert shown(call) == [
        ("user", [text("hello")]),
        ("assistant", [text("I look."), {"type": "tool_use", "name": "look", "input": {"at": 1}, "id": "a"}]),
        ("user", [{"type": "tool_result", "content": "one", "tool_use_id": "a", "is_error": False}]),
    ]
    (tool,) = call.request.tools.blocks
    assert tool.content == TOOL
    assert [(breakpoint.layer, breakpoint.index) for breakpoint in call.request.breakpoints] == [("system", 0)]
    assert call.host == "bedrock"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("hello", [("user", [text("hello")])]),
        ({"messages": HELLO}, [("user", [text("hello")])]),
        ({"messages": [HELLO]}, [("user", [text("hello")])]),
        ({"role": "user", "content": "hello"}, [("user", [text("hello")])]),
        ({"prompt": "hello"}, [("user", [text("hello")])]),
        ({"input": "hello", "tools": [{"type": "function", **FUNCTION}]}, [("user", [text("hello")])]),
        ([{"role": "developer", "content": "D"}, *HELLO], [("user", [text("hello")])]),
        ([{"type": "human", "content": "hello"}], [("user", [text("hello")])]),
        ([{"role": "user", "parts": [{"type": "text", "content": "hello"}]}], [("user", [text("hello")])]),
        (
            [*HELLO, {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at": 1}'}],
            [("user", [text("hello")]), ("assistant", [USE])],
        ),
    ],
)
def test_every_known_input_is_messages(tmp_path: Path, asked: Any, expected: Any) -> None:
    (call,) = read(tmp_path, seen(input=asked))
    assert shown(call) == expected
    if isinstance(asked, Mapping) and "tools" in asked:
        assert [block.content for block in call.request.tools.blocks] == [TOOL]


def test_an_input_that_is_none_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    nothing = {**stored(seen(3)), "input": ""}
    found = read(tmp_path, seen(1, input={"question": 1}), seen(2, input=["a", "b"]), nothing, said=said)
    assert [shown(call) for call in found] == [
        [("user", [text('{"question":1}')])],
        [("user", [text('["a","b"]')])],
        [],
    ]
    path = tmp_path / "observations.jsonl"
    assert said == [
        f"{path}: 2 calls whose input is not a list of messages: read as one text",
        f"{path}: 1 call without input: only usage is known",
    ]


@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        ("hi", [text("hi")]),
        (None, []),
        ({"choices": [{"message": {"role": "assistant", "content": "hi"}}]}, [text("hi")]),
        ({"type": "message", "role": "assistant", "content": [text("hi"), USE]}, [text("hi"), USE]),
        ([{"role": "assistant", "content": "hi"}], [text("hi")]),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}]},
            [USE],
        ),
        ([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}], [text("hi")]),
        ('{"answer":  1}', [text('{"answer":  1}')]),
        ({"answer": 1}, [text('{"answer":1}')]),
    ],
)
def test_every_known_output_is_blocks(tmp_path: Path, output: Any, blocks: list[Row]) -> None:
    (call,) = read(tmp_path, seen(output=output))
    assert [block.content for block in call.response] == blocks


# ---------------------------------------------------------------------------------------------- usage

CREATED = {"input_cache_creation_5m": 100, "input_cache_creation_1h": 200, "input_cache_creation": 0}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (BUCKETS, BILLED),
        ({name: float(count) for name, count in BUCKETS.items()}, BILLED),
        ({"input": 5, "output": 40, "input_cached_tokens": 900, **CREATED}, Usage(5, 900, 100, 200, 40)),
        # @langfuse/openai: the input includes what was cached (langfuse issue 10592)
        ({"input": 17903, "output": 100, "total": 18003, "input_cached_tokens": 17817}, Usage(86, 17817, 0, 0, 100)),
        # LiteLLM: only what was read is taken off (litellm issue 26919)
        ({**BUCKETS, "input": 305}, BILLED),
        # the same numbers, where the total says that nothing was left in it
        ({**BUCKETS, "input": 305, "total": 1545}, Usage(305, 900, 300, 0, 40)),
        ({**BUCKETS, "input": 305, "total": None}, Usage(305, 900, 300, 0, 40)),
    ],
)
def test_a_bucket_is_billed_once(tmp_path: Path, usage: Row, expected: Usage) -> None:
    (call,) = read(tmp_path, seen(usageDetails=usage))
    assert call.billed == expected


def test_an_old_usage_has_a_unit(tmp_path: Path) -> None:
    said: list[str] = []
    old = {"input": 7, "output": 2, "total": 9, "unit": "TOKENS", "inputCost": None}
    found = read(
        tmp_path,
        seen(1, usageDetails={}, usage=old),
        seen(2, usageDetails={}, usage={**old, "unit": "CHARACTERS"}),
        said=said,
    )
    assert [call.billed for call in found] == [Usage(7, 0, 0, 0, 2), None]
    assert said == [f"{tmp_path / 'observations.jsonl'}: 1 call without usage"]


def test_what_opentelemetry_said_is_read_as_such(tmp_path: Path) -> None:
    """pydantic-ai's input includes the cached tokens; Langfuse added them up again (langfuse issue 12306)."""
    attributes = {
        "gen_ai.provider.name": "anthropic",
        "gen_ai.usage.input_tokens": "130213",
        "gen_ai.usage.output_tokens": "40",
        "gen_ai.usage.cache_read_tokens": "128955",
        "gen_ai.usage.cache_write_tokens": 1253,
    }
    shown_there = {
        "input": 130213,
        "output": 40,
        "total": 260461,
        "cache_read_tokens": 128955,
        "cache_write_tokens": 1253,
    }
    for kept in (attributes, json.dumps(attributes)):
        (call,) = read(tmp_path, seen(usageDetails=shown_there, metadata={"attributes": kept}))
        assert (call.billed, call.host) == (Usage(5, 128955, 1253, 0, 40), "anthropic")


@pytest.mark.parametrize("way", ["buckets", "inclusive", "langchain"])
@pytest.mark.parametrize(
    ("model", "bill", "true", "shown_elsewhere"),
    [
        ("claude-3-7-sonnet-20250219", Usage(3, 0, 12304, 0, 550), "0.054399", "0.091311"),
        ("claude-3-5-haiku-20241022", Usage(4, 2455, 0, 0, 23), "0.0002916", "0.0022556"),
    ],
)
def test_cached_tokens_are_never_billed_twice(
    tmp_path: Path, way: str, model: str, bill: Usage, true: str, shown_elsewhere: str
) -> None:
    """Two bills that a gateway showed too high (litellm issues 9812 and 11789), as instrumentations write them."""
    total = {"output": bill.output_tokens, "total": bill.total_input + bill.output_tokens}
    flat = {"cache_read_input_tokens": bill.read, "cache_creation_input_tokens": bill.write}
    usage = {
        "buckets": {"input": bill.input_tokens, **total, **flat},
        "inclusive": {"input": bill.total_input, **total, **flat},
        "langchain": {
            "input": bill.input_tokens,
            **total,
            "input_cache_read": bill.read,
            "input_cache_creation": 0,
            "input_ephemeral_5m_input_tokens": bill.write,
            "input_ephemeral_1h_input_tokens": 0,
        },
    }[way]
    (call,) = read(tmp_path, seen(model=model, usageDetails=usage, startTime="2025-05-01T10:00:00Z"))
    sums, twice = BillTotal(PriceBook.load()), BillTotal(PriceBook.load())
    sums.add(call)
    assert (call.billed, sums.dollars, sums.unpriced) == (bill, Decimal(true), {})
    twice.add(replace(call, billed=replace(bill, input_tokens=bill.total_input)))
    assert twice.dollars == Decimal(shown_elsewhere)


# -------------------------------------------------------------------------------- what is not a call


def test_a_generation_inside_another_is_told_once(tmp_path: Path) -> None:
    said: list[str] = []
    inner = seen(2, parentObservationId="obs-1", model="claude-sonnet-4-5-20250929")
    assert [call.id for call in read(tmp_path, inner, seen(1), seen(1), said=said)] == ["obs-1"]
    path = tmp_path / "observations.jsonl"
    assert said == [
        f"{path}: skipped 1 entry: same id as another entry",
        f"{path}: skipped 1 model call: recorded twice, by nested entries",
    ]


def test_what_names_no_model_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    assert read(tmp_path, stored(seen(model=None)), seen(type="EMBEDDING"), said=said) == []
    path = tmp_path / "observations.jsonl"
    assert said == [
        f"{path}: skipped 1 model call: no model name",
        f"{path}: skipped 1 entry: type 'EMBEDDING' is not a model call",
    ]


@pytest.mark.parametrize(
    ("message", "status"),
    [("Error code: 400 - {'type': 'error'}", 400), ("HTTP 529: overloaded", 529), (None, 500), ("in 451 ms", 500)],
)
def test_a_failed_call_has_a_status_and_no_bill(tmp_path: Path, message: str | None, status: int) -> None:
    (call,) = read(tmp_path, seen(level="ERROR", statusMessage=message, usageDetails={}, output="no"))
    assert (call.status, call.has_failed, call.billed, call.response) == (status, True, None, ())
    (billed,) = read(tmp_path, seen(level="ERROR", statusMessage=message))
    assert (billed.status, billed.billed) == (None, BILLED)


def test_a_models_prefix_tells_the_host(tmp_path: Path) -> None:
    (call,) = read(tmp_path, seen(model="openrouter/anthropic/claude-sonnet-4.5"))
    assert (call.request.model, call.host) == ("claude-sonnet-4.5", "openrouter")


# --------------------------------------------------------------------------------------------- faults


def test_every_fault_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "observations.jsonl"
    rows = [
        json.dumps(seen(1)),
        '{"id": "o", nothing}',
        json.dumps(seen(2, input=[{"role": "robot", "content": "hi"}])),
        json.dumps(seen(3, usageDetails={"input": "many", "output": 1})),
        "",
        json.dumps(seen(5, startTime=None)),
        json.dumps(seen(6, completionStartTime="soon", usageDetails=[1])),
        json.dumps({"data": [seen(7), {"id": "t", "observations": ["obs-1"]}]}),
        json.dumps(seen(8, type=None)),
        json.dumps({"data": [seen(9), seen(10, input=[{"role": "user", "content": 7}])]}),
    ]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(InputError) as caught:
        list(calls(path))
    assert [str(fault) for fault in caught.value.faults] == [
        f"{path}:2 damaged JSON: Expecting property name enclosed in double quotes at character 13",
        f"{path}:3 messages.0.role: expected one of ai, assistant, developer, function, human, model, system, tool,"
        " user; got 'robot'",
        f"{path}:4 usageDetails.input: expected a whole number of tokens; got 'many'",
        f"{path}:6 startTime: expected an ISO 8601 time; got nothing",
        f"{path}:7 usageDetails: expected an object; got an array",
        f"{path}:7 completionStartTime: expected an ISO 8601 time; got 'soon'",
        f"{path}:8 data[1].observations: expected observations; got only their ids (as in a list of traces)",
        f"{path}:9 type: expected a text; got nothing",
        f"{path}:10 data[1].messages.0.content: expected a string or an array of blocks; got 7",
    ]


def test_a_cut_off_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    path, said = tmp_path / "observations.jsonl", []
    path.write_text(json.dumps(seen()) + "\n" + json.dumps(seen(1))[:80])
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]


def test_a_damaged_gzip_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "observations.jsonl.gz"
    path.write_bytes(gzip.compress((json.dumps(seen()) + "\n").encode())[:-9])
    with pytest.raises(InputError, match="damaged gzip"):
        list(calls(path))


def test_an_empty_file_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "observations.jsonl"
    path.write_text("")
    with pytest.raises(InputError, match="expected observations of Langfuse; got nothing"):
        list(calls(path))


def test_no_word_stays_where_content_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "observations.jsonl"
    path.write_text(json.dumps(seen()) + "\n")
    (call,) = calls(path, fail_on_note, False)
    assert shown(call) == [("user", [None])]


# ---------------------------------------------------------------------------------------------- sniff


def test_observations_are_known_by_their_beginning() -> None:
    assert sniff(json.dumps(seen()).encode()) == 'its first object has a "traceId" and a "parentObservationId"'
    assert sniff(json.dumps([stored(seen())]).encode()) == (
        'its first object has a "trace_id" and a "parent_observation_id"'
    )
    assert sniff(json.dumps({"data": [seen()], "meta": {}}).encode()) == 'its "data" contains observations'
    order = ("id", "traceId", "type", "startTime", "completionStartTime", "model", "modelParameters", "input")
    long = json.dumps({name: seen()[name] for name in order})[:-9]
    assert sniff(long.encode()) == 'its first object has a "traceId" and a "modelParameters"'


@pytest.mark.parametrize(
    "line",
    [
        {"request": {"model": MODEL, "messages": []}, "usage": {}},
        {"format": 1, "kind": "calls", "content": "keep"},
        {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "s", "timestamp": "t", "message": {}},
        {"log": {"version": "1.2", "entries": []}},
        {
            "id": "a",
            "trace_id": "t",
            "call_type": "acompletion",
            "response_cost": 1.0,
            "status": "success",
            "startTime": 1.0,
            "completionStartTime": 2.0,
            "model": MODEL,
            "model_parameters": {},
            "messages": [],
        },
        {"id": "1", "run_type": "llm", "inputs": {}, "trace_id": "t", "start_time": "t", "session_id": "s"},
        {"runs": [{"id": "1", "run_type": "llm", "inputs": {}}]},
        {"resourceSpans": [{"scopeSpans": []}]},
        {"name": "chat", "traceId": "t", "spanId": "s", "parentSpanId": "", "startTimeUnixNano": "1", "kind": 3},
        {"name": "chat", "context": {"trace_id": "t"}, "parent_id": None, "start_time": "t", "attributes": {}},
        {"object": "list", "data": [{"id": "resp", "object": "chat.completion", "usage": {}}]},
        {"custom_id": "a", "result": {"type": "succeeded", "message": {}}},
        {"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]},
        {"interactions": [], "version": 1},
        [1, 2],
        {},
    ],
)
def test_no_other_format_is_taken_for_observations(line: Any) -> None:
    assert sniff(json.dumps(line).encode()) is None
