"""Logs of OpenAI's APIs: what was sent, what came back, what it cost, and what the log cannot tell."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.base.times import seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.readers import request_log
from cachecost.conversations.readers.detect import read_calls
from cachecost.conversations.readers.openai_log import calls, sniff
from cachecost.providers.prices import terms_of
from cachecost.providers.usage import Usage
from served_hosts import served_by

Row = dict[str, Any]
MODEL = "gpt-5.6-sol"
START = 1_772_877_600
AT = "2026-03-07T10:00:{:02}.000000Z"
GO = {"role": "user", "content": "go"}
CHAT_URL = "https://api.deepseek.com/chat/completions"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def chat(*messages: Row, **more: Any) -> Row:
    return {"model": MODEL, "messages": list(messages) or [GO], **more}


def completion(
    prompt: int = 1_000, read: int = 0, written: int = 0, at: int = 0, said: str = "yes", **more: Any
) -> Row:
    details = {"cached_tokens": read, "cache_write_tokens": written}
    return {
        "id": f"chatcmpl-{at}",
        "object": "chat.completion",
        "created": START + at,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 9, "prompt_tokens_details": details},
        **more,
    }


def answered(name: str, *output: Row, at: int = 0, **more: Any) -> Row:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": name}]}
    return {
        "id": name,
        "object": "response",
        "created_at": START + at,
        "model": MODEL,
        "output": list(output) or [said],
        "usage": {"input_tokens": 1_000, "input_tokens_details": {"cached_tokens": 900}, "output_tokens": 9},
        **more,
    }


def asked(given: Any, **more: Any) -> Row:
    return {"model": MODEL, "input": given, **more}


def pair(request: Row, response: Any = None, **more: Any) -> Row:
    return {"request": request, "response": response, **more}


def requested(name: str, body: Row | None = None, url: str = "/v1/chat/completions") -> Row:
    return {"custom_id": name, "method": "POST", "url": url, "body": body or chat()}


def resulted(name: str, body: Any = None, status: int = 200, error: Any = None) -> Row:
    response = None if error else {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": name, "response": response, "error": error}


def log(folder: Path, *rows: Any, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def read(path: Path, said: list[str] | None = None, keep: bool = True) -> list[Call]:
    return list(calls(path, (said if said is not None else Silent()).append, keep))


class Silent(list[str]):
    def append(self, note: str) -> None:
        pytest.fail(f"said without need: {note}")


def texts(call: Call) -> list[str]:
    """What the messages say."""
    blocks = [block for node in nodes(call) for block in node.blocks]
    return [str((block.content or {}).get("text") or (block.content or {}).get("content") or "") for block in blocks]


def nodes(call: Call) -> Sequence[Any]:
    found, node = [], call.request.thread
    while node is not None and node.message is not None:
        found.append(node.message)
        node = node.parent  # type: ignore[assignment]
    return found[::-1]


# --------------------------------------------------------------------------------- requests with answers


def test_requests_with_their_answers(tmp_path: Path) -> None:
    system = {"role": "system", "content": "Be brief."}
    more = {"role": "user", "content": "more"}
    yes = {"role": "assistant", "content": "yes"}
    rows = [
        pair(chat(system, GO), completion(4_067, 0, 4_064)),
        pair(chat(system, GO, yes, more), completion(4_087, 4_064, 20, at=7, said="no")),
    ]
    first, second = read(log(tmp_path, *rows))
    assert [first.billed, second.billed] == [Usage(3, 0, 4_064, 0, 9), Usage(3, 4_064, 20, 0, 9)]
    assert [first.timestamp, second.timestamp] == [AT.format(0), AT.format(7)]
    assert (second.start, second.line, served_by(second), second.id) == (START + 7, 2, "openai", "chatcmpl-7")
    assert (second.status, second.session, second.is_batch, second.first_token_s) == (None, "", False, 0.0)
    assert second.request.model == MODEL
    assert [block.content for block in second.request.system.blocks] == [{"type": "text", "text": "Be brief."}]
    assert texts(second) == ["go", "yes", "more"]
    assert [block.content for block in second.response] == [{"type": "text", "text": "no"}]
    assert second.request.thread.parent.parent is first.request.thread  # type: ignore[union-attr]


def test_content_is_kept_only_if_wanted(tmp_path: Path) -> None:
    (call,) = read(log(tmp_path, pair(chat(), completion())), keep=False)
    assert [block.content for node in nodes(call) for block in node.blocks] == [None]
    assert [block.content for block in call.response] == [None]


def test_what_a_log_may_say_beside(tmp_path: Path) -> None:
    beside = {
        "timestamp": "2026-03-07T11:30:00.250+01:00",
        "first_token_s": 0.75,
        "status": 200,
        "host": "foundry",
        "session": "conversation",
        "workspace": "team",
        "headers": {"authorization": "Bearer secret"},
    }
    (call,) = read(log(tmp_path, pair(chat(), completion(), **beside)))
    assert (call.timestamp, call.start) == (beside["timestamp"], seconds("2026-03-07T10:30:00.250Z"))
    assert (call.first_token_s, call.status, call.host) == (0.75, 200, "foundry")
    assert (call.session, call.workspace) == ("conversation", "team")
    assert "secret" not in repr(call)


def test_usage_may_stand_beside_the_answer(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}
    own = completion()
    del own["usage"]
    first, second = read(log(tmp_path, pair(chat(), own, usage=usage), pair(chat(), completion(), usage=usage)))
    assert (first.billed, second.billed) == (Usage(10, 40, 0, 0, 5), Usage(1_000, 0, 0, 0, 9))


@pytest.mark.parametrize(
    ("model", "more", "named", "host"),
    [
        ("gpt-5.6-sol", {}, "gpt-5.6-sol", "openai"),
        ("openai/o3", {}, "o3", "openai"),
        ("gpt-5.6-sol", {"prompt_filter_results": []}, "gpt-5.6-sol", "azure"),
        ("claude-opus-4-6", {"prompt_filter_results": []}, "claude-opus-4-6", "foundry"),
        ("claude-opus-4-6", {}, "claude-opus-4-6", "anthropic"),
        ("anthropic/claude-opus-4-6", {}, "claude-opus-4-6", "anthropic"),
        ("anthropic/claude-opus-4.6", {"id": "gen-1", "provider": "Google"}, "claude-opus-4.6", "openrouter"),
        ("deepseek/deepseek-chat", {}, "deepseek-chat", "deepseek"),
    ],
)
def test_who_served_it(tmp_path: Path, model: str, more: Row, named: str, host: str) -> None:
    (call,) = read(log(tmp_path, pair({**chat(), "model": model}, {**completion(), **more})))
    assert (call.request.model, served_by(call)) == (named, host)


def test_a_model_that_only_the_answer_names(tmp_path: Path) -> None:
    """Azure has the deployment in the address, not in the body."""
    (call,) = read(log(tmp_path, pair({"messages": [GO]}, completion(prompt_filter_results=[]))))
    assert (call.request.model, call.host) == (MODEL, "azure")


@pytest.mark.parametrize(
    ("response", "status", "told"),
    [
        ({"error": {"message": "no", "type": "invalid_request_error", "code": None}}, None, 400),
        ({"error": {"message": "no", "code": "rate_limit_exceeded"}}, None, 429),
        ({"error": {"message": "no", "code": 502}}, None, 502),
        ({"error": {"message": "no", "code": "rate_limit_exceeded"}}, 503, 503),
        (None, 500, 500),
    ],
)
def test_a_call_that_failed(tmp_path: Path, response: Any, status: int | None, told: int) -> None:
    (call,) = read(log(tmp_path, pair(chat(), response, status=status)))
    assert (call.status, call.has_failed, call.billed, call.timestamp) == (told, True, None, None)


def test_a_response_that_failed(tmp_path: Path) -> None:
    error = {"code": "server_error", "message": "no"}
    (call,) = read(log(tmp_path, pair(asked("go"), answered("resp_1", status="failed", error=error, usage=None))))
    assert (call.status, call.billed) == (500, None)


def test_what_is_no_model_call_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    vectors = {"object": "list", "data": [], "usage": {"prompt_tokens": 5, "total_tokens": 5}}
    embedding = {"model": "text-embedding-3-small", "input": "go"}
    path = log(tmp_path, pair(chat(), completion()), pair(embedding, vectors), pair(embedding))
    assert len(read(path, said)) == 1
    assert said == [f"{path}: skipped 2 entries: not a model call"]


def test_the_tier_of_the_answer_takes_the_place_of_that_of_the_request(tmp_path: Path) -> None:
    asked_for = (("auto", "default"), ("auto", "flex"), ("flex", "default"), (None, "priority"), ("fast", "fast"))
    pairs = (
        pair(chat(**({"service_tier": one} if one else {})), completion(service_tier=got)) for one, got in asked_for
    )
    made = read(log(tmp_path, *pairs))
    tiers = [terms_of(call.request.params, call.is_batch).tiers for call in made]
    assert tiers == [(), ("flex",), (), ("priority",), ("fast",)]


@pytest.mark.parametrize(
    ("request_", "answer", "session"),
    [
        (asked("go", conversation="conv_1"), {}, "conv_1"),
        (asked("go", conversation={"id": "conv_1"}, metadata={"session_id": "s"}), {}, "conv_1"),
        (asked("go"), {"conversation": {"id": "conv_1"}}, "conv_1"),
        (asked("go", metadata={"thread_id": "t", "team": "a"}), {}, "t"),
        (asked("go"), {"metadata": {"session_id": "s"}}, "s"),
        (asked("go", metadata=None, conversation=None), {}, ""),
    ],
)
def test_the_session(tmp_path: Path, request_: Row, answer: Row, session: str) -> None:
    (call,) = read(log(tmp_path, pair(request_, answered("resp_1", **answer))))
    assert call.session == session


# ------------------------------------------------------------------------------------------ responses


def test_a_response_goes_on_from_another(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "5"}
    rows = [
        pair(asked("go", instructions="Be brief."), answered("resp_1", call)),
        pair(asked([result], previous_response_id="resp_1"), answered("resp_2", at=1)),
        pair(asked("more", previous_response_id="resp_2"), answered("resp_3", at=2)),
        pair(asked("another way", previous_response_id="resp_1"), answered("resp_4", at=3)),
    ]
    first, second, third, fourth = read(log(tmp_path, *rows))
    assert [texts(one) for one in (first, second, third, fourth)] == [
        ["go"],
        ["go", "", "5"],
        ["go", "", "5", "resp_2", "more"],
        ["go", "", "another way"],
    ]
    assert [len(one.request.system.blocks) for one in (first, second)] == [1, 0]  # instructions are not carried over
    assert (second.billed, second.session) == (Usage(100, 900, 0, 0, 9), "")
    assert third.request.thread.parent.parent is second.request.thread  # type: ignore[union-attr]


def test_an_input_that_repeats_what_was_said_is_not_doubled(tmp_path: Path) -> None:
    first = answered("resp_1")
    again = [{"role": "user", "content": "go"}, *first["output"], {"role": "user", "content": "more"}]
    rows = [pair(asked("go"), first), pair(asked(again, previous_response_id="resp_1"), answered("resp_2"))]
    assert texts(read(log(tmp_path, *rows))[1]) == ["go", "resp_1", "more"]


def test_a_conversation_is_what_the_file_has_of_it(tmp_path: Path) -> None:
    names = ("conv_1", "conv_2", "conv_1")
    rows = [
        pair(asked(f"ask {number}", conversation=name), answered(f"resp_{number}")) for number, name in enumerate(names)
    ]
    last = read(log(tmp_path, *rows))[2]
    assert (texts(last), last.session) == (["ask 0", "resp_0", "ask 2"], "conv_1")


def test_a_response_whose_start_is_elsewhere_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    path = log(tmp_path, pair(asked("more", previous_response_id="resp_0"), answered("resp_1")))
    (call,) = read(path, said)
    assert (texts(call), call.billed) == (["more"], Usage(100, 900, 0, 0, 9))
    assert said == [f"{path}: 1 call continuing a response that is not in the file: earlier messages are missing"]


# -------------------------------------------------------------------------------------- stored answers


def test_stored_answers_with_their_prompts(tmp_path: Path) -> None:
    rows = [
        completion(1_000, 900, messages=[GO], tools=[{"type": "function", "function": {"name": "f"}}]),
        answered("resp_1", at=5, input=[GO], instructions="Be brief.", reasoning={"effort": "low"}),
    ]
    first, second = read(log(tmp_path, *rows))
    assert (first.billed, first.timestamp, texts(first)) == (Usage(100, 900, 0, 0, 9), AT.format(0), ["go"])
    assert [block.content for block in first.request.tools.blocks] == [{"name": "f"}]
    parameters = {"output_config": {"effort": "low"}, "instruction_blocks": 1}
    assert (second.timestamp, second.request.params) == (AT.format(5), parameters)
    assert (len(second.request.system.blocks), texts(second)) == (1, ["go"])


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_list_of_them_is_read_in_the_order_of_time(tmp_path: Path, newest_first: bool) -> None:
    data = [completion(at=at, messages=[GO]) for at in (0, 3, 3, 5)]
    listed = {"object": "list", "data": data[::-1] if newest_first else data, "has_more": False}
    for text in (json.dumps(listed), json.dumps(listed, indent=2)):
        path = log(tmp_path, text, name="list.json")
        assert sniff(path.read_bytes()) == "it is a list of stored answers"
        assert [call.start - START for call in read(path)] == [0, 3, 3, 5]


def test_without_their_prompts_they_are_left_out_and_it_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    path = log(tmp_path, completion(), answered("resp_1"), completion(messages=[GO]))
    assert len(read(path, said)) == 1
    assert said == [f"{path}: skipped 2 stored answers: its messages or input are not in the file"]


@pytest.mark.parametrize("shape", ["array", "lines", "gzip", "indented", "one"])
def test_a_file_is_lines_or_an_array_or_one_object(tmp_path: Path, shape: str) -> None:
    rows = [pair(chat(), completion(at=at)) for at in range(2)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    written = {
        "array": json.dumps(rows),
        "lines": "\ufeff" + lines,
        "gzip": lines,
        "indented": json.dumps(rows, indent=1),
        "one": json.dumps(rows[0], indent=1),
    }[shape].encode()
    path = tmp_path / "log.json"
    path.write_bytes(gzip.compress(written) if shape == "gzip" else written)
    assert sniff(written) == 'its first answer is a "chat.completion"'
    assert [call.start - START for call in read(path)] == ([0] if shape == "one" else [0, 1])


# --------------------------------------------------------------------------------------------- batches


def test_a_batch_in_one_file(tmp_path: Path) -> None:
    said: list[str] = []
    rows = [
        *(requested(name) for name in ("a", "b", "c", "d", "e")),
        requested("f", asked("go"), "/v1/responses"),
        requested("g", {"model": "text-embedding-3-small", "input": "go"}, "/v1/embeddings"),
        resulted("b", completion(at=3)),
        resulted("a", completion(1_000, 900, at=8)),
        resulted("c", {"error": {"message": "no", "code": "x"}}, 429),
        resulted("d", error={"code": "batch_expired", "message": "too late"}),
        resulted("f", answered("resp_1", at=5)),
        resulted("g", {"object": "list", "data": []}),
    ]
    path = log(tmp_path, *rows)
    found = read(path, said)
    assert [(call.line, call.start - START, call.status) for call in found[:3]] == [
        (2, 3, None),
        (6, 5, None),
        (1, 8, None),
    ]
    assert [(call.line, call.timestamp, call.status) for call in found[3:]] == [
        (3, None, 429),
        (4, None, 499),
        (5, None, None),
    ]
    assert found[2].billed == Usage(100, 900, 0, 0, 9)
    assert all(call.is_batch and served_by(call) == "openai" for call in found)
    assert said == [
        f"{path}: 1 request without a result: no usage",
        f"{path}: skipped 1 entry: not a model call",
    ]


def test_results_take_the_requests_beside_them(tmp_path: Path) -> None:
    log(tmp_path, requested("a"), requested("b"), name="batch_1_input.jsonl")
    path = log(tmp_path, resulted("a", completion(at=4)), resulted("b", completion(at=1)), name="batch_1_output.jsonl")
    assert [(call.line, call.billed) for call in read(path)] == [
        (2, Usage(1_000, 0, 0, 0, 9)),
        (1, Usage(1_000, 0, 0, 0, 9)),
    ]


def test_requests_alone_are_calls_without_usage(tmp_path: Path) -> None:
    (call,) = read(log(tmp_path, requested("a")))
    assert (call.billed, call.is_batch, texts(call)) == (None, True, ["go"])


@pytest.mark.parametrize(
    ("name", "rest"),
    [("batch_output.jsonl", "; expected them in batch_input.jsonl"), ("x.jsonl", "")],
)
def test_results_alone_are_a_fault(tmp_path: Path, name: str, rest: str) -> None:
    path = log(tmp_path, resulted("a", completion()), name=name)
    with pytest.raises(InputError) as caught:
        read(path)
    assert [str(fault) for fault in caught.value.faults] == [
        f"{path} contains batch results without their requests{rest}"
    ]


# --------------------------------------------------------------------------------------------- damage


def test_every_fault_is_told_with_its_place(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        pair(chat(), completion()),
        "[",
        "7",
        {"object": "chat.completion.chunk"},
        {"hello": "world"},
        pair(chat({"role": "usr", "content": "go"}), completion(3, 900)),
        pair("go", completion()),  # type: ignore[arg-type]
        pair({**chat(), "model": None}, completion(model=None)),
        pair(chat(), completion(created=START * 1_000)),
        pair(asked([{"role": "user", "content": 5}]), answered("resp_1", {"role": "tool"})),
        pair(chat(), [], timestamp="noon", first_token_s=-1, status="ok"),
        {"object": "list", "data": [completion(messages=[GO]), completion(messages=[5])]},
        resulted("a", completion()),
        resulted("a", completion()),
        requested("b", chat({"role": "user"}, {"role": "user", "content": [{}]})),
        {**requested("c"), "body": 5},
        resulted("c", completion(-1)),
        resulted("b", completion(-1)),
    )
    with pytest.raises(InputError) as caught:
        read(path, [])
    assert [str(fault).removeprefix(str(path)) for fault in caught.value.faults] == [
        ":2 damaged JSON: Expecting value at character 3",
        ":3 expected an object; got 7",
        ":4 object: expected 'chat.completion' or 'response' (or a \"request\"); got 'chat.completion.chunk'",
        ":5 object: expected 'chat.completion' or 'response' (or a \"request\"); got nothing",
        ":6 response.usage.prompt_tokens: expected at least the 900 tokens read and written that it includes; got 3",
        ":6 request.messages.0.role: expected one of assistant, developer, function, system, tool, user; got 'usr'"
        " (did you mean 'user'?)",
        ":7 request: expected an object; got 'go'",
        ":8 request.model: expected a model id; got nothing",
        ":9 response.created: expected seconds since the epoch; got 1772877600000",
        ":10 response.output.0.role: expected one of assistant, developer, system, user; got 'tool'",
        ":10 request.input.0.content: expected a text or an array of parts; got 5",
        ":11 response: expected an object; got an array",
        ":11 timestamp: expected an ISO 8601 time; got 'noon'",
        ":11 first_token_s: expected a number from 0; got -1",
        ":11 status: expected a whole number from 0; got 'ok'",
        ":12 data[1].messages.0: expected a message object; got 5",
        ":13 custom_id: no request has the id 'a'",
        ":14 custom_id: expected a unique id; got 'a' again",
        ":15 body.messages.1.content.0.type: expected the part's type; got nothing",
        ":16 body: expected an object; got 5",
        ":18 response.body.usage.prompt_tokens: expected a whole number of tokens; got -1",
    ]


def test_calls_come_until_the_first_fault(tmp_path: Path) -> None:
    found = []
    rows = [pair(chat(), completion()), pair({}, completion()), pair(chat(), completion())]
    with pytest.raises(InputError, match=r"log\.jsonl:2 request\.messages: expected an array of messages; got nothing"):
        for call in calls(log(tmp_path, *rows)):
            found.append(call.line)
    assert found == [1]


def test_a_last_line_that_is_cut_off_is_said_and_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    path = log(tmp_path, pair(chat(), completion()))
    path.write_text(path.read_text() + json.dumps(pair(chat(), completion()))[:80])
    assert len(read(path, said)) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected an OpenAI log; got nothing"):
        read(log(tmp_path))


# ---------------------------------------------------------------------------------------- recognising


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (pair(chat(), completion()), 'its first answer is a "chat.completion"'),
        ({"response": completion(), "request": chat()}, 'its first answer is a "chat.completion"'),
        (pair(asked("go"), answered("resp_1")), 'its first "request" has an "input"'),
        (pair(asked("go")), 'its first "request" has an "input"'),
        (completion(messages=[GO]), 'its first object is a "chat.completion" or a "response"'),
        (answered("resp_1", input=[]), 'its first object is a "chat.completion" or a "response"'),
        (requested("a"), 'its first line has a "custom_id" and the "url" of an endpoint'),
        (requested("a", asked("go"), "/v1/responses"), 'its first line has a "custom_id" and the "url" of an endpoint'),
        (resulted("a", completion()), 'its first line has a "custom_id" and a "status_code"'),
        (pair(chat(), url=CHAT_URL), 'its first "url" is that of Chat Completions'),
        (pair(chat(tools=[TOOL])), 'its first "request" has a tool of OpenAI\'s form'),
        # ours, Anthropic's, and what others log
        (pair(chat(), url="https://api.anthropic.com/v1/messages"), None),
        (pair(chat({"role": "user", "content": [{"type": "tool_use", "input": {"url": CHAT_URL}}]})), None),
        (pair(chat({"role": "user", "content": json.dumps({"tools": [TOOL], "url": CHAT_URL})})), None),
        (pair(chat(tools=[{"type": "custom", "name": "function"}])), None),
        (
            pair(chat(tools=[{"name": "plot", "input_schema": {"properties": {"function": {"description": "f"}}}}])),
            None,
        ),
        (pair(chat(), {"type": "message", "content": [], "usage": {}}), None),
        ({"timestamp": "2026-03-07T10:00:00Z", "request": chat(), "usage": {"input_tokens": 5}}, None),
        (pair(chat(), {"content": [{"type": "text", "text": '{"object": "chat.completion"}'}]}), None),
        ({"custom_id": "a", "params": chat()}, None),
        ({"custom_id": "a", "result": {"type": "succeeded", "message": {}}}, None),
        ({"custom_id": "a", "request": chat(), "response": {"type": "message"}, "status": ""}, None),
        ({"id": "x", "call_type": "acompletion", "response": completion(), "messages": [GO]}, None),
        ({"id": "x", "run_type": "llm", "inputs": {}, "outputs": completion()}, None),
        ({"log": {"entries": [{"request": {"method": "POST"}, "response": {}}]}}, None),
        ({"interactions": [pair({"method": "POST", "body": "{}"}, completion())]}, None),
        (pair({"method": "POST", "url": "https://api.openai.com", "body": chat()}, completion()), None),
        ({"resourceSpans": []}, None),
        ({"format": 1, "kind": "calls"}, None),
        ({"object": "list", "data": [{"object": "embedding"}]}, None),
        ({"object": "chat.completion.chunk", "choices": []}, None),
        ({"type": "user", "parentUuid": None, "message": GO}, None),
        ([1], None),
    ],
)
def test_a_log_is_known_by_how_it_begins(first: Any, reason: str | None) -> None:
    line = json.dumps(first).encode()
    assert sniff(line + b"\n{}") == sniff(b"[" + line + b"]") == reason
    if reason:
        assert sniff(line[:-1]) == reason


@pytest.mark.parametrize(
    ("url", "host"), [(CHAT_URL, "deepseek"), ("https://my.proxy/v1/chat/completions", "my.proxy")]
)
def test_the_url_tells_the_host_where_there_is_no_answer(url: str, host: str, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 500, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 128}}
    path = log(tmp_path, pair(chat(GO, {"role": "tool", "content": "5"}, model="deepseek-chat"), url=url, usage=usage))
    (call,) = read_calls(path, "auto", lambda _: None)
    assert (call.host or "", call.billed) == (host, Usage(372, 128, 0, 0, 7))


def test_our_request_log_stays_ours() -> None:
    ours = json.dumps(pair(chat(), {"type": "message", "content": []})).encode()
    assert (sniff(ours), request_log.sniff(ours)) == (None, 'its first line has a "request"')


def test_calls_of_the_messages_api_among_others_are_read_as_they_were_sent(tmp_path: Path) -> None:
    """A log of several providers begins with one: its calls are not all of that one's API."""
    system = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "system": system, "messages": [GO]}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 3_000, "cache_creation_input_tokens": 0, "output_tokens": 5}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}], "usage": usage}
    rows = [
        pair(chat(), completion(), timestamp=AT.format(0)),
        pair(body, answer, timestamp=AT.format(1)),
        {"request": body, "usage": usage, "timestamp": AT.format(2)},
        pair({**body, "system": "Be kind."}, answer, timestamp=AT.format(3)),
    ]
    ours = [{"request": row["request"], "usage": usage, "timestamp": row["timestamp"]} for row in rows[1:]]
    first, *others = read(log(tmp_path, *rows))
    sent = list(request_log.calls(log(tmp_path, *ours, name="ours.jsonl")))
    assert served_by(first) == "openai"
    for call, same in zip(others, sent, strict=True):
        system_of = [[block.digest for block in one.request.system.blocks] for one in (call, same)]
        assert system_of[0] == system_of[1] != []
        assert texts(call) == texts(same) == ["go"]
        assert (call.request.breakpoints, call.request.params) == (same.request.breakpoints, same.request.params)
    assert [call.billed for call in others] == [Usage(10, 3_000, 0, 0, 5)] * 3
    assert [len(call.response) for call in others] == [1, 0, 1]


def test_a_chat_with_claude_stays_a_chat(tmp_path: Path) -> None:
    (call,) = read(log(tmp_path, pair(chat(model="claude-sonnet-4-6"), completion())))
    assert [block.content for block in call.response] == [{"type": "text", "text": "yes"}]
