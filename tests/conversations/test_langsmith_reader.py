"""Runs of LangSmith and LangChain: what was sent, what was billed, what is left out; every fault told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.readers.langsmith import calls, sniff
from cachecost.prompts.blocks import Message, Thread
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage

MODEL = "claude-sonnet-4-5"
SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}, "cache_control": SHORT}
OWN = {
    "input_tokens": 5,
    "cache_read_input_tokens": 900,
    "cache_creation_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
    "output_tokens": 40,
}
COUNTED = {
    "input_tokens": 1205,
    "output_tokens": 40,
    "total_tokens": 1245,
    "input_token_details": {
        "cache_read": 900,
        "cache_creation": 0,
        "ephemeral_5m_input_tokens": 100,
        "ephemeral_1h_input_tokens": 200,
    },
}
BILLED = Usage(5, 900, 100, 200, 40)
Row = dict[str, Any]


def lc(kind: str, content: Any, **more: Any) -> Row:
    """A message as LangChain serializes it."""
    name = kind if kind.endswith("Chunk") else kind.removesuffix("Message").lower()
    kwargs = {"content": content, "type": name, **more}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


def ai(content: Any, calls: Sequence[Row] = (), **more: Any) -> Row:
    told = [{"type": "tool_call", **call} for call in calls]
    return lc("AIMessage", content, tool_calls=told, invalid_tool_calls=[], **more)


def answered(message: Row | None, **more: Any) -> Row:
    return {"generations": [[{"text": "", "type": "ChatGeneration", "message": message}]], **more}


def run(at: int = 0, **more: Any) -> Row:
    """A run of ChatAnthropic that began `at` seconds after ten o'clock."""
    row: Row = {
        "id": f"run-{at}",
        "name": "ChatAnthropic",
        "run_type": "llm",
        "start_time": f"2026-03-07T10:00:{at:02}.250000",
        "end_time": f"2026-03-07T10:00:{at + 1:02}.000000",
        "extra": {
            "invocation_params": {"model": MODEL, "max_tokens": 500, "stop": None, "thinking": None},
            "metadata": {"ls_provider": "anthropic", "ls_model_name": MODEL, "thread_id": "thread-1"},
        },
        "error": None,
        "inputs": {"messages": [[lc("HumanMessage", "hello")]]},
        "outputs": answered(ai("hi", response_metadata={"usage": OWN})),
        "trace_id": "trace-1",
        "parent_run_id": None,
        "session_id": "project-1",
    }
    return {**row, **more}


def with_extra(row: Row, **parameters: Any) -> Row:
    extra = row["extra"]
    return {**row, "extra": {**extra, "invocation_params": {**extra["invocation_params"], **parameters}}}


def wrapped(usage: Row, version: str = "0.15.0", provider: str = "anthropic", **more: Any) -> Row:
    """A run of an SDK that LangSmith wraps: its body as inputs, its answer as outputs."""
    extra = {
        "metadata": {"ls_provider": provider, "ls_model_name": MODEL},
        "runtime": {"sdk": "langsmith-py", "sdk_version": version},
    }
    inputs = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    outputs = {"id": "msg_1", "role": "assistant", "model": MODEL, "content": "hi", "usage_metadata": usage}
    return run(extra=extra, inputs=inputs, outputs=outputs, **more)


def read(folder: Path, *rows: Row, said: list[str] | None = None) -> list[Call]:
    path = folder / "runs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(calls(path, fail_on_note if said is None else said.append))


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def messages(thread: Thread) -> list[Message]:
    found: list[Message] = []
    while thread.message is not None and thread.parent is not None:
        found.append(thread.message)
        thread = thread.parent
    return found[::-1]


def shown(call: Call) -> list[tuple[str, list[Any]]]:
    return [(one.role, [block.content for block in one.blocks]) for one in messages(call.request.thread)]


def billed(folder: Path, *rows: Row, said: list[str] | None = None) -> list[Usage | None]:
    return [call.billed for call in read(folder, *rows, said=said)]


# ---------------------------------------------------------------------------------------- a whole run


def test_a_run_is_the_request_that_chat_anthropic_sent(tmp_path: Path) -> None:
    asked = [
        lc("SystemMessage", [{"type": "text", "text": "You are.", "cache_control": LONG}]),
        lc("HumanMessage", "hello"),
        ai(
            [
                {"type": "thinking", "thinking": "hm", "signature": "s", "index": 0},
                {"type": "text", "text": "I look.", "id": "lc_1"},
                {"type": "tool_use", "id": "a", "name": "look", "input": {}, "partial_json": '{"at": 1}', "index": 2},
            ],
            [{"name": "look", "args": {"at": 1}, "id": "a"}, {"name": "look", "args": {"at": 2}, "id": "b"}],
        ),
        lc("ToolMessage", "one", tool_call_id="a", status="success"),
        lc("ToolMessage", [{"type": "text", "text": "two", "cache_control": SHORT}], tool_call_id="b", status="error"),
        lc("HumanMessage", [{"type": "text", "text": "go on", "cache_control": SHORT}, {"type": "text", "text": " "}]),
    ]
    row = run(inputs={"messages": [asked]}, events=[{"name": "new_token", "time": "2026-03-07T10:00:01.5"}])
    choice, thinking = {"type": "tool", "name": "look"}, {"type": "enabled", "budget_tokens": 1024}
    (call,) = read(tmp_path, with_extra(row, tools=[TOOL], tool_choice=choice, thinking=thinking, effort="low"))
    assert shown(call) == [
        ("user", [{"type": "text", "text": "hello"}]),
        (
            "assistant",
            [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "name": "look", "input": {"at": 1}, "id": "a"},
                {"type": "tool_use", "name": "look", "input": {"at": 2}, "id": "b"},
            ],
        ),
        (
            "user",
            [
                {"type": "tool_result", "content": "one", "tool_use_id": "a", "is_error": False},
                {
                    "type": "tool_result",
                    "content": [{"type": "text", "text": "two"}],
                    "tool_use_id": "b",
                    "is_error": True,
                },
                {"type": "text", "text": "go on"},
            ],
        ),
    ]
    breakpoints = [
        (breakpoint.layer, breakpoint.index, breakpoint.ttl, breakpoint.node.length if breakpoint.node else None)
        for breakpoint in call.request.breakpoints
    ]
    assert breakpoints == [
        ("tools", 0, "5m", None),
        ("system", 0, "1h", None),
        ("messages", 1, "5m", 3),
        ("messages", 2, "5m", 3),
    ]
    assert [block.content for block in call.request.system.blocks] == [{"type": "text", "text": "You are."}]
    assert call.request.params == {
        "max_tokens": 500,
        "tool_choice": choice,
        "thinking": thinking,
        "output_config": {"effort": "low"},
    }
    assert (call.request.model, call.host, call.session, call.id) == (MODEL, "anthropic", "thread-1", "run-0")
    assert (call.timestamp, call.first_token_s, call.line) == ("2026-03-07T10:00:00.250000", 1.25, 1)
    assert [block.content for block in call.response] == [{"type": "text", "text": "hi"}]
    assert (call.billed, call.status) == (BILLED, None)


def test_automatic_caching_is_a_parameter_of_the_call(tmp_path: Path) -> None:
    (call,) = read(tmp_path, with_extra(run(), cache_control=LONG))
    assert (call.request.automatic, call.request.breakpoints) == ("1h", ())


def test_a_thread_grows_and_the_newest_run_stands_first(tmp_path: Path) -> None:
    first = [lc("HumanMessage", "hello")]
    more = [*first, lc("AIMessageChunk", "hi"), lc("HumanMessage", "and?")]
    one, second = read(tmp_path, run(9, inputs={"messages": [more]}), run(2))
    assert (one.id, second.id, second.line) == ("run-2", "run-9", 1)
    assert one.request.thread.message is not None
    assert messages(second.request.thread)[0].blocks == one.request.thread.message.blocks


def test_a_wrapped_sdk_logs_its_body(tmp_path: Path) -> None:
    system = {"role": "system", "content": [{"type": "text", "text": "S", "cache_control": SHORT}]}
    row = wrapped(COUNTED)
    row["inputs"] |= {"messages": [system, *row["inputs"]["messages"]], "tools": [TOOL], "tool_choice": {"type": "any"}}
    function = {"name": "look", "arguments": '{"at": 3}'}
    row["outputs"] |= {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    (call,) = read(tmp_path, row)
    assert [breakpoint.layer for breakpoint in call.request.breakpoints] == ["tools", "system"]
    assert shown(call) == [("user", [{"type": "text", "text": "hi"}])]
    assert [block.content for block in call.response] == [
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 3}}
    ]
    assert (call.billed, call.session) == (BILLED, "trace-1")


def test_openai_runs_come_in_openais_words(tmp_path: Path) -> None:
    function = {"name": "look", "parameters": {"type": "object"}}
    usage = {"prompt_tokens": 1000, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 640}}
    chat = run(
        extra={"metadata": {"ls_provider": "openai"}},
        inputs={
            "model": "gpt-5.6",
            "messages": [
                {"role": "developer", "content": "Be."},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "a", "content": "one"},
            ],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": "required",
        },
        outputs={"choices": [{"message": {"role": "assistant", "content": "yes"}}], "usage": usage},
    )
    responses = run(
        5,
        extra={"invocation_params": {}, "metadata": {"ls_provider": "openai"}},
        inputs={"model": "gpt-5.6", "instructions": "Be.", "input": "hi"},
        outputs={
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]}]
        },
    )
    said: list[str] = []
    one, two = read(tmp_path, chat, responses, said=said)
    assert [role for role, _ in shown(one)] == ["user", "assistant", "user"]
    assert (one.host, one.request.params, one.billed) == (
        "openai",
        {"tool_choice": {"type": "any"}},
        Usage(360, 640, 0, 0, 7),
    )
    assert [block.content for block in one.request.tools.blocks] == [
        {"name": "look", "input_schema": {"type": "object"}}
    ]
    assert [block.content for block in two.response] == [{"type": "text", "text": "y"}]
    assert said == [f"{tmp_path / 'runs.jsonl'}: 1 call without usage"]


@pytest.mark.parametrize("form", ["lines", "array", "page", "pretty", "tree", "gzip", "texts"])
def test_every_form_of_export_is_the_same_calls(tmp_path: Path, form: str) -> None:
    rows = [run(1), run(2)]
    parts = ("inputs", "outputs", "extra")
    texts = [{**row, **{name: json.dumps(row[name]) for name in parts}} for row in rows]
    tree = {**run(0, run_type="chain", inputs={}), "child_runs": rows}
    written = {
        "array": json.dumps(rows),
        "page": json.dumps({"runs": rows, "cursors": {"next": None}}),
        "pretty": json.dumps({"runs": rows}, indent=2),
        "tree": json.dumps(tree),
        "texts": "\n".join(map(json.dumps, texts)) + "\n",
    }.get(form, "\n".join(map(json.dumps, rows)) + "\n")
    path, said = tmp_path / "runs.json", []
    path.write_bytes(gzip.compress(written.encode()) if form == "gzip" else written.encode())
    found = list(calls(path, said.append))
    assert [(call.id, call.billed, len(call.response)) for call in found] == [
        ("run-1", BILLED, 1),
        ("run-2", BILLED, 1),
    ]
    left_out = [f"{path}: skipped 1 entry: run_type 'chain' is not a model call"]
    assert said == (left_out if form == "tree" else [])
    assert sniff(written.encode())


def test_an_event_that_ends_a_model_is_a_call(tmp_path: Path) -> None:
    told = {"name": "ChatAnthropic", "run_id": "r1", "metadata": {"ls_model_name": MODEL, "thread_id": "t"}}
    output = {"content": "hi", "type": "ai", "usage_metadata": COUNTED}
    asked = {"messages": [[{"content": "hello", "type": "human"}]]}
    rows = [
        {"event": "on_chat_model_start", "data": {"input": asked}, **told},
        {"event": "on_chat_model_end", "data": {"input": asked, "output": output}, **told},
    ]
    said: list[str] = []
    (call,) = read(tmp_path, *rows, said=said)
    assert (shown(call), call.billed) == ([("user", [{"type": "text", "text": "hello"}])], BILLED)
    assert (call.timestamp, call.session, call.id) == (None, "t", "r1")
    assert said == [f"{tmp_path / 'runs.jsonl'}: skipped 1 entry: run_type 'on_chat_model_start' is not a model call"]
    assert sniff(json.dumps(rows[0]).encode()) == 'its first object has an "event" and a "run_id"'


# ---------------------------------------------------------------------------------------------- usage


def test_the_providers_own_usage_wins(tmp_path: Path) -> None:
    wrong = {**COUNTED, "input_tokens": 1500, "input_token_details": {"cache_creation": 300, "cache_read": 900}}
    message = ai("hi", response_metadata={"usage": OWN}, usage_metadata={**wrong, "output_tokens": 55})
    assert billed(tmp_path, run(outputs=answered(message))) == [Usage(5, 900, 100, 200, 55)]


def test_langchains_input_includes_what_was_cached(tmp_path: Path) -> None:
    message, bare = ai("hi", usage_metadata=COUNTED), run(outputs=answered(ai("hi")))
    bare["extra"]["metadata"]["usage_metadata"] = COUNTED
    assert billed(tmp_path, run(outputs=answered(message))) == [BILLED]
    assert billed(tmp_path, bare) == [BILLED]
    assert billed(tmp_path, run(outputs=answered(ai("hi"), llm_output={"usage": OWN}))) == [BILLED]


@pytest.mark.parametrize(
    ("version", "uncached", "read", "expected"),
    [
        ("0.7.13", 5000, 900, 5000),
        ("0.7.14", 5000, 900, 4100),
        ("0.7.13", 5, 900, 5),
        ("0.7.14", 5, 900, 5),  # smaller than what it is said to include: it cannot
        ("0.8.0rc1", 5000, 900, 4100),
    ],
)
def test_an_old_wrapper_left_cached_tokens_out(
    tmp_path: Path, version: str, uncached: int, read: int, expected: int
) -> None:
    usage = {"input_tokens": uncached, "output_tokens": 1, "input_token_details": {"cache_read": read}}
    assert billed(tmp_path, wrapped(usage, version)) == [Usage(expected, read, 0, 0, 1)]


def test_an_old_wrapper_in_javascript_misspelt_the_lifetime(tmp_path: Path) -> None:
    details = {"cache_read": 900, "ephemeral_1hr_input_tokens": 200}
    usage = {"input_tokens": 5, "output_tokens": 1, "input_token_details": details}
    assert billed(tmp_path, wrapped(usage)) == [Usage(5, 900, 0, 200, 1)]


@pytest.mark.parametrize("way", ["langchain", "own", "wrapped", "old wrapper"])
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
    """Two bills that a gateway showed too high (litellm issues 9812 and 11789), as every tracer writes them."""
    own = {name: count for name, count in bill.wire().items() if name != "cache_creation"}
    details = {"cache_read": bill.read, "cache_creation": bill.write}
    counted = {"input_tokens": bill.total_input, "output_tokens": bill.output_tokens, "input_token_details": details}
    row = {
        "langchain": run(outputs=answered(ai("hi", usage_metadata=counted))),
        "own": run(outputs=answered(ai("hi", usage_metadata=counted, response_metadata={"usage": own}))),
        "wrapped": wrapped(counted),
        "old wrapper": wrapped({**counted, "input_tokens": bill.input_tokens}, "0.7.13"),
    }[way]
    row["extra"]["invocation_params"] = {"model": model}
    row["start_time"] = "2025-05-01T10:00:00Z"
    (call,) = read(tmp_path, row)
    sums = BillTotal(PriceBook.load())
    sums.add(call)
    assert (call.billed, sums.dollars, sums.unpriced) == (bill, Decimal(true), {})
    twice = BillTotal(PriceBook.load())
    twice.add(replace(call, billed=replace(bill, input_tokens=bill.total_input)))
    assert twice.dollars == Decimal(shown_elsewhere)


def test_langsmiths_columns_come_last_and_it_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    row = run(outputs=None, prompt_tokens=1000, completion_tokens=9, prompt_token_details={"cache_read": 600})
    assert billed(tmp_path, row, said=said) == [Usage(400, 600, 0, 0, 9)]
    assert said == [f"{tmp_path / 'runs.jsonl'}: 1 call with usage counted by LangSmith, which may be an estimate"]


# -------------------------------------------------------------------------------- what is not a call


def test_a_run_inside_another_is_told_once(tmp_path: Path) -> None:
    said: list[str] = []
    outer, inner = run(1), wrapped(COUNTED, id="inner", parent_run_id="run-1")
    frame, real = (
        run(3, outputs=None),
        wrapped(COUNTED, id="real", parent_run_id="run-3", start_time="2026-03-08T10:00"),
    )
    found = read(tmp_path, outer, inner, inner, frame, real, said=said)
    assert [call.id for call in found] == ["run-1", "real"]
    assert said == [
        f"{tmp_path / 'runs.jsonl'}: 1 call without usage",
        f"{tmp_path / 'runs.jsonl'}: skipped 1 entry: same id as another entry",
        f"{tmp_path / 'runs.jsonl'}: skipped 2 model calls: recorded twice, by nested entries",
    ]


def test_what_no_provider_answered_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    cached = run(1, outputs=answered(ai("hi", usage_metadata={**COUNTED, "total_cost": 0})))
    nameless = run(2, extra={})
    odd = run(3, inputs={"question": "why?"})
    silent = run(4, inputs=None)
    found = read(tmp_path, run(0, run_type="tool"), cached, nameless, odd, silent, said=said)
    assert [shown(call) for call in found] == [[("user", [{"type": "text", "text": '{"question":"why?"}'}])], []]
    path = tmp_path / "runs.jsonl"
    assert said == [
        f"{path}: skipped 1 entry: run_type 'tool' is not a model call",
        f"{path}: skipped 1 answer: from LangChain's own cache, not billed by a provider",
        f"{path}: skipped 1 model call: no model name",
        f"{path}: 1 call whose input is not a list of messages: read as one text",
        f"{path}: 1 call without messages: only usage is known",
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("RateLimitError(\"Error code: 429 - {'type': 'error'}\")Traceback", 429),
        ("APIStatusError('overloaded', status_code=529)", 529),
        ("ValueError('Error code: none')", 500),
    ],
)
def test_a_failed_call_has_a_status_and_no_bill(tmp_path: Path, error: str, status: int) -> None:
    (call,) = read(tmp_path, run(error=error, outputs=None, prompt_tokens=12))
    assert (call.status, call.has_failed, call.billed, call.response) == (status, True, None, ())


def test_a_call_that_was_billed_did_not_fail(tmp_path: Path) -> None:
    (call,) = read(tmp_path, run(error="OutputParserException('no JSON')"))
    assert (call.status, call.billed) == (None, BILLED)


def test_no_word_stays_where_content_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(run()) + "\n")
    (call,) = calls(path, fail_on_note, False)
    assert [block.content for one in messages(call.request.thread) for block in one.blocks] == [None]


def test_keys_never_get_in(tmp_path: Path) -> None:
    row = with_extra(run(), anthropic_api_key="sk-ant-secret", default_headers={"x-api-key": "sk-ant-secret"})
    assert "secret" not in repr(read(tmp_path, row))


# --------------------------------------------------------------------------------------------- faults


def test_every_fault_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    rows = [
        json.dumps(run(1)),
        '{"run_type": "llm", ',
        json.dumps(run(2, inputs={"messages": [[{"type": "robot", "content": "hi"}]]})),
        json.dumps(run(3, outputs=answered(ai("hi", usage_metadata={**COUNTED, "output_tokens": "many"})))),
        json.dumps(run(4, start_time="yesterday", inputs=[1])),
        json.dumps(run(5, inputs={"messages": [[], []]})),
        json.dumps({"inputs": {}}),
        json.dumps({"runs": [run(6), run(7, inputs={"messages": [["human", "hi"]]})]}),
    ]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(InputError) as caught:
        list(calls(path))
    assert [str(fault) for fault in caught.value.faults] == [
        f"{path}:2 damaged JSON: Expecting property name enclosed in double quotes at character 22",
        f"{path}:3 messages.0.role: expected one of ai, assistant, developer, function, human, model, system, tool,"
        " user; got 'robot'",
        f"{path}:4 usage_metadata.output_tokens: expected a whole number of tokens; got 'many'",
        f"{path}:5 inputs: expected an object; got an array",
        f"{path}:5 start_time: expected an ISO 8601 time; got 'yesterday'",
        f"{path}:6 inputs.messages: expected one conversation per run; got '2 conversations'",
        f"{path}:7 run_type: expected a text; got nothing",
        f"{path}:8 runs[1].messages.0: expected a message object; got 'human'",
    ]


def test_a_cut_off_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    path, said = tmp_path / "runs.jsonl", []
    path.write_text(json.dumps(run()) + "\n" + json.dumps(run(1))[:80])
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]


def test_an_empty_file_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("")
    with pytest.raises(InputError, match="expected runs of LangSmith; got nothing"):
        list(calls(path))


# ---------------------------------------------------------------------------------------------- sniff


def test_runs_are_known_by_their_beginning() -> None:
    whole = json.dumps(run())
    assert sniff(whole.encode()) == 'its first object has a "run_type"'
    assert sniff(b"\xef\xbb\xbf[" + whole.encode()) == 'its first object has a "run_type"'
    assert sniff(json.dumps({"runs": [run()]}, indent=1).encode()) == 'its first object has a "run_type"'
    cut = json.dumps({"id": "1", "inputs": run()["inputs"]})[:-20]
    assert sniff(cut.encode()) == 'its first object has LangChain "inputs"'


@pytest.mark.parametrize(
    "line",
    [
        {"request": {"model": MODEL, "messages": []}, "usage": {}},
        {"format": 1, "kind": "calls", "content": "keep"},
        {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "s", "message": {}},
        {"log": {"version": "1.2", "entries": []}},
        {"call_type": "acompletion", "response_cost": 1, "trace_id": "t", "startTime": 1.0},
        {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "2026-03-07", "usageDetails": {}},
        {"data": [{"id": "o", "traceId": "t", "type": "GENERATION", "usageDetails": {}}]},
        {"resourceSpans": [{"scopeSpans": []}]},
        {"name": "chat", "traceId": "t", "spanId": "s", "attributes": {"gen_ai.request.model": MODEL}},
        {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {}},
        {"custom_id": "a", "result": {"type": "succeeded", "message": {}}},
        {"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]},
        {"interactions": [], "version": 1},
        {"event": "on_page", "data": {}},
        [1, 2],
        {},
    ],
)
def test_no_other_format_is_taken_for_runs(line: Any) -> None:
    assert sniff(json.dumps(line).encode()) is None
