"""Batches: requests and results found wherever they stand, joined by their ids, nothing billed twice or left unsaid."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.anthropic_batch import calls, sniff
from cachecost.providers.usage import Usage

MODEL = "claude-opus-4-6"
BREAKPOINT = {"type": "ephemeral", "ttl": "1h"}
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 100,
    "system": [{"type": "text", "text": "sort these letters", "cache_control": BREAKPOINT}],
    "messages": [{"role": "user", "content": "dear sirs"}],
}
USAGE = {
    "input_tokens": 7,
    "cache_read_input_tokens": 2000,
    "cache_creation_input_tokens": 330,
    "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 300},
    "output_tokens": 11,
    "service_tier": "batch",
}
BILLED = Usage(7, 2000, 30, 300, 11)
Line = dict[str, Any]


def request(name: str, **more: Any) -> Line:
    return {"custom_id": name, "params": {**BODY, **more}}


def message(**more: Any) -> Line:
    content = [{"type": "text", "text": "a complaint"}]
    return {"id": "msg_1", "type": "message", "model": MODEL, "content": content, "usage": USAGE, **more}


def result(name: str, kind: str = "succeeded", **more: Any) -> Line:
    return {
        "custom_id": name,
        "result": {"type": kind, **({"message": message()} if kind == "succeeded" else {}), **more},
    }


def errored(name: str, kind: str) -> Line:
    return result(name, "errored", error={"type": "error", "error": {"type": kind, "message": "no"}})


def lines(path: Path, *rows: Line | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def read(path: Path) -> list[Call]:
    return list(calls(path, pytest.fail))


def faults_of(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        list(calls(path))
    return [str(fault).removeprefix(f"{path.parent}/") for fault in caught.value.faults]


# ------------------------------------------------------------------------------------- where things stand


def test_a_posted_batch_is_calls_without_usage(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    for indent in (None, 2):
        path.write_text(json.dumps({"requests": [request("a"), request("b", model="claude-haiku-4-5")]}, indent=indent))
        first, second = read(path)
        assert [call.request.model for call in (first, second)] == [MODEL, "claude-haiku-4-5"]
        assert (first.billed, first.is_batch, first.host, first.status, first.timestamp) == (
            None,
            True,
            None,
            None,
            None,
        )
        assert (first.start, second.start) == (0.0, 2.0)
        assert [breakpoint.ttl for breakpoint in first.request.breakpoints] == ["1h"]


def test_results_find_their_requests_in_the_same_file(tmp_path: Path) -> None:
    rows = [
        result("b"),
        request("a"),
        request("b"),
        {"type": "message_batch", "id": "msgbatch_1"},
        result("a", "expired"),
    ]
    said: list[str] = []
    path = lines(tmp_path / "batch.jsonl", *rows)
    first, second = calls(path, said.append)
    assert [(call.line, call.billed, call.status, call.id) for call in (first, second)] == [
        (2, None, 499, ""),
        (3, BILLED, None, "msg_1"),
    ]
    assert [block.content for block in second.response] == [{"type": "text", "text": "a complaint"}]
    assert (second.request.thread, second.request.system) == (first.request.thread, first.request.system)
    assert second.output_tokens == 11
    assert said == [f"{path}: skipped 1 entry: the status of a batch"]


@pytest.mark.parametrize(
    ("results", "requests"),
    [
        ("msgbatch_1_results.jsonl", "msgbatch_1_requests.jsonl"),
        ("results.jsonl", "requests.json"),
        ("monday.jsonl", "monday.requests.jsonl"),
        ("monday.results.jsonl.gz", "monday.requests.json.gz"),
    ],
)
def test_results_find_their_requests_beside_them(tmp_path: Path, results: str, requests: str) -> None:
    asked = [request("a"), request("b")]
    posted = json.dumps({"requests": asked}) if Path(requests.removesuffix(".gz")).suffix == ".json" else None
    for name, text in (
        (results, "".join(json.dumps(result(one)) + "\n" for one in "ba")),
        (requests, posted or "".join(json.dumps(one) + "\n" for one in asked)),
    ):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert [call.billed for call in read(tmp_path / results)] == [BILLED, BILLED]


def test_results_without_requests_say_where_they_were_looked_for(tmp_path: Path) -> None:
    path = lines(tmp_path / "results.jsonl", result("a"))
    assert faults_of(path) == [
        "results.jsonl contains results without their requests; "
        "expected them in one of requests.jsonl, requests.json, requests.jsonl.gz, requests.json.gz"
    ]
    lines(tmp_path / "results.requests.jsonl", request("a"))
    assert len(faults_of(path)) == 1


def test_requests_without_a_result_are_said(tmp_path: Path) -> None:
    path = lines(tmp_path / "batch.jsonl", request("a"), request("b"), result("b"))
    said: list[str] = []
    assert [call.billed for call in calls(path, said.append)] == [None, BILLED]
    assert said == [f"{path}: 1 request without a result: no usage"]


# -------------------------------------------------------------------------------------- what became of them


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (errored("a", "invalid_request_error"), 400),
        (errored("a", "overloaded_error"), 529),
        (errored("a", "something_new"), 400),
        (result("a", "errored", error={"type": "api_error"}), 500),
        (result("a", "canceled"), 499),
        (result("a", "expired"), 499),
    ],
)
def test_what_failed_costs_nothing(tmp_path: Path, line: Line, status: int) -> None:
    (call,) = read(lines(tmp_path / "batch.jsonl", request("a"), line))
    assert (call.status, call.has_failed, call.billed, call.response) == (status, True, None, ())


def test_what_the_api_refused_may_be_no_request_at_all(tmp_path: Path) -> None:
    rows = [request("a", messages=3), request("b"), errored("a", "invalid_request_error"), result("b")]
    path = lines(tmp_path / "batch.jsonl", *rows)
    said: list[str] = []
    assert [call.line for call in calls(path, said.append)] == [2]
    assert said == [f"{path}: skipped 1 request: refused by the API, and not a valid request"]
    lines(path, *rows[:2], result("a", "expired"), rows[3])
    assert faults_of(path) == ["batch.jsonl:1 params.messages: expected an array; got a number"]


def test_passes_are_told(tmp_path: Path) -> None:
    passes = [{"type": "compaction", **USAGE}, {**USAGE, "model": "claude-haiku-4-5"}]
    row = result("a", message=message(usage={**USAGE, "iterations": passes}))
    (call,) = read(lines(tmp_path / "batch.jsonl", request("a"), row))
    assert [(one.kind, one.usage, one.model) for one in call.iterations] == [
        ("compaction", BILLED, ""),
        ("message", BILLED, "claude-haiku-4-5"),
    ]


def test_content_can_be_left_out(tmp_path: Path) -> None:
    path = lines(tmp_path / "batch.jsonl", request("a"), result("a"))
    (call,) = calls(path, pytest.fail, False)
    assert [block.content for block in (*call.response, *call.request.system.blocks)] == [None, None]


# ---------------------------------------------------------------------------------------- damaged files


def test_every_fault_is_told_with_its_line(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "batch.jsonl",
        request("a", model=None),
        {"params": BODY},
        request("a"),
        '{"custom_id":',
        {"custom_id": "c", "params": [BODY]},
        {"custom_id": "d"},
        {"custom_id": "e", "params": {}},
        result("z"),
        result("z", "finished"),
        {"custom_id": "f", "result": 3},
        request("g"),
        result("g", message={"content": "x"}),
        result("a", message=message(content=[3])),
        result("g2", "errored"),
        result("c", message=message(usage={**USAGE, "output_tokens": -1})),
        "",
    )
    assert faults_of(path) == [
        "batch.jsonl:1 params.model: expected a model id; got nothing",
        "batch.jsonl:2 custom_id: expected a text; got nothing",
        "batch.jsonl:3 custom_id: expected a unique id; got 'a' again",
        "batch.jsonl:4 damaged JSON: Expecting value at character 15",
        "batch.jsonl:5 params: expected an object; got an array",
        'batch.jsonl:6 params: expected the body of a request (or a "result"); got nothing',
        "batch.jsonl:7 params.messages: expected an array of messages; got nothing",
        "batch.jsonl:9 custom_id: expected a unique id; got 'z' again",
        "batch.jsonl:9 result.type: expected one of succeeded, errored, canceled, expired; got 'finished'",
        "batch.jsonl:9 custom_id: no request in batch.jsonl has the id 'z'",
        "batch.jsonl:10 result: expected an object; got 3",
        "batch.jsonl:10 custom_id: no request in batch.jsonl has the id 'f'",
        "batch.jsonl:12 result.message.usage: expected a usage object; got nothing",
        "batch.jsonl:13 result.message.content.0: expected a block object; got 3",
        "batch.jsonl:14 result.error: expected an object; got nothing",
        "batch.jsonl:14 custom_id: no request in batch.jsonl has the id 'g2'",
        "batch.jsonl:15 result.message.usage.output_tokens: expected a whole number of tokens; got -1",
    ]


def test_a_fault_in_a_posted_batch_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"requests": [request("a"), request("b", messages=[{"role": "me", "content": "x"}])]}))
    assert faults_of(path) == [
        "batch.json:1 requests[1].params.messages.0.role: expected one of assistant, system, user; got 'me'"
    ]
    path.write_text('{"requests": 3}')
    assert faults_of(path) == ["batch.json:1 requests: expected an array of objects; got 3"]


def test_faults_in_both_files_name_theirs(tmp_path: Path) -> None:
    path = lines(tmp_path / "results.jsonl", result("a"), result("b"), '{"a":')
    lines(tmp_path / "requests.jsonl", request("a", tools=3))
    assert faults_of(path) == [
        "results.jsonl:2 custom_id: no request in requests.jsonl has the id 'b'",
        "results.jsonl:3 damaged JSON: Expecting value at character 7",
        "requests.jsonl:1 params.tools: expected an array of tools; got 3",
    ]


def test_calls_come_until_the_first_fault(tmp_path: Path) -> None:
    reading = calls(lines(tmp_path / "batch.jsonl", request("a"), "{", request("b")))
    assert next(reading).line == 1
    with pytest.raises(InputError):
        next(reading)


def test_a_file_still_being_written_and_an_empty_one(tmp_path: Path) -> None:
    path = lines(tmp_path / "batch.jsonl", request("a"))
    path.write_text(path.read_text() + '{"custom')
    said: list[str] = []
    assert len(list(calls(path, said.append))) == 1
    assert said == [f"{path}:2 the last line is cut off (still being written?): skipped"]
    assert faults_of(lines(path)) == ["batch.jsonl expected a batch, one request or result per line; got nothing"]


# --------------------------------------------------------------------------------------------- other hosts


def hosted(name: str, **more: Any) -> Line:
    return {"recordId": name, "modelInput": {key: BODY[key] for key in ("system", "messages", "max_tokens")}, **more}


def test_bedrocks_lines_hold_both(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "abc.jsonl.out",
        hosted("1", error={"errorCode": 429, "errorMessage": "slow down"}),
        hosted("2", modelOutput=message()),
        hosted("3"),
        hosted("4", error="?"),
    )
    read_ = read(path)
    assert {(call.host, call.request.model, call.is_batch) for call in read_} == {("bedrock", MODEL, True)}
    assert [(call.billed, call.status) for call in read_] == [(None, 429), (BILLED, None), (None, None), (None, 400)]


def test_google_clouds_lines_hold_both(tmp_path: Path) -> None:
    asked = {key: BODY[key] for key in ("system", "messages", "max_tokens")}
    path = lines(
        tmp_path / "predictions.jsonl",
        {"custom_id": "1", "request": asked, "response": message(), "status": ""},
        {"custom_id": "2", "request": asked, "response": {}, "status": "Bad Request"},
    )
    assert [(call.host, call.request.model, call.billed, call.status) for call in read(path)] == [
        ("google-cloud", MODEL, BILLED, None),
        ("google-cloud", MODEL, None, 400),
    ]


def test_a_job_that_names_no_model_is_one_fault(tmp_path: Path) -> None:
    path = lines(tmp_path / "abc.jsonl", hosted("1"), hosted("2"), {"recordId": "3", "modelInput": 3})
    assert faults_of(path) == [
        "abc.jsonl no model name: the batch job has it, this file only in a modelOutput or response",
        "abc.jsonl:3 modelInput: expected an object; got 3",
    ]
    lines(path, {"modelInput": {**BODY, "model": "claude-haiku-4-5"}})
    assert [call.request.model for call in read(path)] == ["claude-haiku-4-5"]


# ---------------------------------------------------------------------------------------------------- sniff


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (json.dumps(request("a")) + "\n", 'its first entry has a "custom_id" and a "params"'),
        (json.dumps(result("a"))[:80], 'its first entry has a "custom_id" and a "result"'),
        (json.dumps({"requests": [request("a")]}, indent=1)[:60], 'it has "requests", each with a "custom_id"'),
        ("\n[\n" + json.dumps(request("a")), 'its first entry has a "custom_id" and a "params"'),
        ('{"custom_id": "a", "request": {', 'its first entry has a "custom_id" and a "request"'),
        ('{"recordId": "a", "modelInput": {', 'its first line has a "modelInput"'),
    ],
)
def test_a_batch_is_known_by_its_beginning(head: str, why: str) -> None:
    assert sniff(head.encode()) == why


@pytest.mark.parametrize(
    "head",
    [
        '{"timestamp": "2026-03-07T10:00:00Z", "request": {"custom_id": "a"}}',
        '{"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": {"params": 1}}',
        '{"id": "batch_req_1", "custom_id": "a", "response": {"status_code": 200, "body": {}}, "error": null}',
        '{"format": 1, "kind": "calls"}',
        '[{"type": "turn_start", "timestamp": "2026-01-02"}]',
        '{"requests": [{"method": "GET"}], "custom_id": "x"}',
        '{"log": {"version": "1.2", "entries": []}}',
        '{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}',
        "interactions:\n- request:\n    custom_id: a",
        "",
    ],
)
def test_others_are_none(head: str) -> None:
    assert sniff(head.encode()) is None


# ----------------------------------------------------------------------------------- batches of all kinds

KINDS = ("succeeded", "errored", "canceled", "expired", "missing")
names = st.text("ab1-_é\n", min_size=1, max_size=4)
batches = st.lists(st.tuples(names, st.sampled_from(KINDS)), min_size=1, max_size=6, unique_by=lambda one: one[0])


@settings(max_examples=60, deadline=None)
@given(batch=batches, order=st.randoms(use_true_random=False), layout=st.sampled_from(["mixed", "beside", "posted"]))
def test_wherever_they_stand_each_request_gets_its_own_result(
    tmp_path_factory: pytest.TempPathFactory, batch: list[tuple[str, str]], order: Any, layout: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    asked = [request(name, messages=[{"role": "user", "content": name}]) for name, _ in batch]
    came = [
        result(name, message=message(id=f"msg_{name}", usage={**USAGE, "output_tokens": number}))
        if kind == "succeeded"
        else errored(name, "api_error")
        if kind == "errored"
        else result(name, kind)
        for number, (name, kind) in enumerate(batch)
        if kind != "missing"
    ]
    order.shuffle(came)
    path = folder / "results.jsonl"
    if layout == "mixed" or not came:
        rows: list[Line] = list(asked)
        for row in came:
            rows.insert(order.randrange(len(rows) + 1), row)
        lines(path, *rows)
    else:
        lines(path, *came)
        text = json.dumps({"requests": asked}) if layout == "posted" else "\n".join(map(json.dumps, asked))
        (folder / "requests.json").write_text(text + "\n")
    statuses = {"succeeded": None, "missing": None, "errored": 500, "canceled": 499, "expired": 499}
    found = list(calls(path))
    assert [call.request.thread.messages()[0].blocks[0].content for call in found] == [
        {"type": "text", "text": name} for name, _ in batch
    ]
    assert [call.status for call in found] == [statuses[kind] for _, kind in batch]
    assert [(call.id, call.billed and call.billed.output_tokens) for call in found] == [
        (f"msg_{name}", number) if kind == "succeeded" else ("", None) for number, (name, kind) in enumerate(batch)
    ]
