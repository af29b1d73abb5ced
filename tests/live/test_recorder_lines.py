"""What is written of a captured call: what it says, nothing secret, and nothing that would not read."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from recorder_upstream import MODEL, body, events, message, usage

from cachecost.conversations.readers.detect import read_calls
from cachecost.live.keys import secrets_in, workspace_of
from cachecost.live.recorder.writing import BodyCopy, Capture, CaptureMemory, LogLine, LogLineBuilder, NotRecorded
from cachecost.live.request_log import CallLog

KEY = "sk-ant-api03-planted-1"
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream; charset=utf-8"}
START = 1_790_000_000.25


def kept(*chunks: bytes, most: int = 1 << 20) -> BodyCopy:
    """Chunks that came a second apart, the first a second after the call's start."""
    made = BodyCopy(CaptureMemory(), most)
    for number, data in enumerate(chunks, 1):
        made.add(START + number, data)
    return made


def capture(request: BodyCopy | bytes, answer: BodyCopy | bytes, **more: Any) -> Capture:
    given = {"asked": {"x-api-key": KEY}, "answered": JSON, "status": 200, "end": START + 9, "is_cut": False, **more}
    sides = [one if isinstance(one, BodyCopy) else kept(one) for one in (request, answer)]
    asked = given.pop("asked")
    return Capture(1, START, asked, *sides, secrets=secrets_in(asked.items()), **given)


def line(*given: Any, **more: Any) -> LogLine:
    return LogLineBuilder().line(capture(*given, **more))


def test_an_answer_in_one_piece() -> None:
    made = line(body(), json.dumps(message()).encode())
    told = message()
    assert made.fields == {
        "timestamp": "2026-09-21T14:13:20.250000+00:00",
        "duration_s": 9.0,
        "workspace": workspace_of({"x-api-key": KEY}),
        "status": 200,
        "usage": told.pop("usage"),
        "response": told,
    }
    assert (made.request, made.notes) == (body(), ())


def test_a_streamed_answer_is_what_it_would_have_been_in_one_piece() -> None:
    """First content is the third event: message_start and ping are none."""
    made = line(body(), kept(*events("Certainly", usage(7, 11))), answered=SSE)
    whole = message("Certainly", usage=usage(7, 11))
    assert made.fields["usage"] == whole.pop("usage")
    assert made.fields["response"] == whole
    assert made.fields["first_token_s"] == 3.0
    assert "cut" not in made.fields


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_packed_stream_tells_when_its_content_came(coding: str) -> None:
    packing = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    pieces = [packing.compress(one) + packing.flush(zlib.Z_SYNC_FLUSH) for one in events()] + [packing.flush()]
    made = line(body(), kept(*pieces), answered={**SSE, "content-encoding": coding})
    assert made.fields["first_token_s"] == 3.0
    assert made.fields["response"]["content"] == [{"type": "text", "text": "Yes"}]


def test_a_packed_request_is_kept_as_it_was_before() -> None:
    packed = gzip.compress(body("packed"), mtime=0)
    made = line(packed, json.dumps(message()).encode(), asked={"content-encoding": "gzip"})
    assert made.request == body("packed")
    assert "workspace" not in made.fields


@pytest.mark.parametrize("events_there", [0, 1, 3, 5, 7])
def test_a_stream_that_was_cut_tells_what_it_told(events_there: int) -> None:
    made = line(body(), kept(*events()[:events_there]), answered=SSE, is_cut=True)
    assert made.fields["cut"] is True
    assert ("usage" in made.fields) == (events_there > 0)
    assert ("first_token_s" in made.fields) == (events_there > 2)


def test_a_client_that_leaves_after_the_last_event_has_cut_nothing() -> None:
    assert "cut" not in line(body(), kept(*events()), answered=SSE, is_cut=True).fields


def test_an_answer_that_never_came_has_no_status() -> None:
    made = line(body(), kept(), answered={}, status=None, is_cut=True)
    assert {"timestamp", "duration_s", "workspace", "cut"} == made.fields.keys()


@pytest.mark.parametrize(("kind", "status"), [("overloaded_error", 529), ("rate_limit_error", 429), ("odd", None)])
def test_a_failed_call_keeps_its_status_and_kind(kind: str, status: int | None) -> None:
    told = {"type": "error", "error": {"type": kind, "message": "no"}}
    made = line(body(), json.dumps(told).encode(), status=status or 418)
    assert (made.fields["error"], made.fields["status"]) == (kind, status or 418)
    assert not {"usage", "response"} & made.fields.keys()


def test_a_stream_that_begins_well_and_brings_an_error() -> None:
    told = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    event = f"event: error\ndata: {json.dumps(told)}\n\n".encode()
    alone = line(body(), event, answered=SSE).fields
    after = line(body(), kept(*events()[:4], event), answered=SSE).fields
    assert (alone["status"], alone["error"], alone["cut"]) == (529, "overloaded_error", True)
    assert (after["status"], after["error"], after["cut"]) == (200, "overloaded_error", True)
    assert after["usage"]["input_tokens"] == 3


@pytest.mark.parametrize(
    ("said", "kept_"), [("0", None), ("1", 1), ("2", 2), ("many", None), ("", None), ("9" * 5_000, None)]
)
def test_a_retry_says_which(said: str, kept_: int | None) -> None:
    fields = line(body(), json.dumps(message()).encode(), asked={"x-stainless-retry-count": said}).fields
    assert fields.get("retry") == kept_


@pytest.mark.parametrize("name", ["x-api-key", "authorization", "cookie"])
def test_a_key_is_nowhere(name: str) -> None:
    """Neither where the client wrote it, nor where the API said it again, in one piece or in two."""
    value = f"Bearer {KEY}" if name == "authorization" else KEY
    half = {"metadata": {"user_id": KEY}, "system": f"mine is {KEY}."}
    made = line(body(f"key: {KEY}", **half), kept(*events(f"{KEY}{KEY}")), asked={name: value}, answered=SSE)
    whole = json.dumps(made.fields).encode() + made.request
    assert KEY.encode() not in whole
    assert made.request.count(b"[key]") == 3
    assert made.fields["response"]["content"][0]["text"] == "[key][key]"


def test_a_token_for_another_server_is_a_secret_too() -> None:
    token = 'to/ke"n-é'
    servers = [{"type": "url", "url": "https://x.example/mcp", "name": "x", "authorization_token": token}]
    told = {"model": MODEL, "mcp_servers": servers, "messages": [{"role": "user", "content": "plain to say"}]}
    for text in (
        json.dumps(told),
        json.dumps(told, ensure_ascii=False),
        json.dumps(told).replace("to/", "\\u0074o\\/"),
    ):
        made = line(text.encode(), json.dumps(message("again: " + token)).encode())
        assert json.loads(made.request)["mcp_servers"][0]["authorization_token"] == "[key]"
        assert json.loads(made.request)["messages"] == told["messages"]
        assert "n-é" not in json.dumps(made.fields, ensure_ascii=False)


def test_what_was_too_long_is_said_and_the_rest_is_recorded() -> None:
    long = kept(body("x" * 100), most=50)
    no_request = line(long, json.dumps(message()).encode())
    no_answer = line(body(), kept(json.dumps(message()).encode(), most=50))
    neither = line(long, kept(json.dumps(message()).encode(), most=50))
    assert json.loads(no_request.request) == {"model": MODEL, "messages": []}
    assert no_request.fields["usage"] == usage()
    assert "usage" not in no_answer.fields
    assert json.loads(neither.request)["model"] == "unknown"
    words = "longer than 64 MiB, or over the memory limit"
    assert no_request.notes == (f"its request is {words}: recorded without content",)
    assert no_answer.notes == (f"its answer is {words}: recorded without usage",)


def test_an_answer_in_an_unknown_packing_is_said() -> None:
    made = line(body(), b"\x8b\x03\x80abc\x03\xff", answered={**JSON, "content-encoding": "gzip"})
    assert made.notes == ("recorded without usage: response: expected a body in gzip; got damaged bytes",)
    assert "usage" not in made.fields


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"", "it is not JSON"),
        (b'{"model":"m","messages":[', "it is not JSON"),
        (b'{"model":"m"}', "messages: expected an array of messages; got nothing"),
        (b'{"messages":[]}', "model: expected a model id; got nothing"),
        (b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}', "it is not JSON"),
    ],
)
def test_what_would_spoil_the_file_is_not_recorded(sent: bytes, why: str) -> None:
    with pytest.raises(NotRecorded, match="^" + why.replace("[", r"\[")):
        line(sent, json.dumps(message()).encode())


def test_an_odd_answer_does_not_take_the_request_with_it() -> None:
    odd = message(usage={"input_tokens": "three"})
    made = line(body(), json.dumps(odd).encode())
    assert not {"usage", "response"} & made.fields.keys()
    (note,) = made.notes
    assert note.startswith("its answer is omitted: usage.input_tokens: expected a whole number of tokens; got")


def test_lines_read_as_calls(tmp_path: Path) -> None:
    lines, path = LogLineBuilder(), tmp_path / "calls.jsonl"
    pretty = json.dumps(json.loads(body("one")), indent=2).encode()
    with CallLog(path) as log:
        for one in (
            capture(pretty, kept(*events(bill=usage(4000, 20))), answered=SSE),
            capture(body("two"), b'{"type":"error","error":{"type":"api_error"}}', status=500),
            capture(kept(body(), most=9), json.dumps(message()).encode()),
        ):
            made = lines.line(one)
            log.append(made.fields, made.request)
    one, two, three = read_calls(path)
    assert (one.first_token_s, one.billed and one.billed.read, one.workspace) == (
        3.0,
        4000,
        workspace_of({"x-api-key": KEY}),
    )
    assert one.response[0].kind == "text"
    assert (two.has_failed, two.billed, three.is_bill_only) == (True, None, True)
