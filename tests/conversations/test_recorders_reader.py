"""JSON files of HTTP recorders: each form that is known, what its calls are, what is wrong with damaged ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import detect, read_calls
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage

Json = Any
ORIGIN, PATH = "https://api.anthropic.com", "/v1/messages"
DATE = "Sat, 07 Mar 2026 10:00:00 GMT"
HEADERS = {"date": DATE, "content-type": "application/json"}
SENT = {"model": "claude-haiku-4-5-20251001", "max_tokens": 9, "messages": [{"role": "user", "content": "Which way?"}]}
USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 40, "output_tokens": 7}
ANSWER = {"type": "message", "id": "msg_1", "content": [{"type": "text", "text": "North."}], "usage": USAGE}
BEDROCK, MODEL = "https://bedrock-runtime.eu-central-1.amazonaws.com", "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
INVOKED = {"anthropic_version": "bedrock-2023-05-31", **{name: SENT[name] for name in ("max_tokens", "messages")}}
START = 1772877600.0
"""2026-03-07T10:00:00Z"""


def b64(value: Json) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else json.dumps(value).encode()).decode()


def lists(headers: dict[str, str]) -> dict[str, list[str]]:
    return {name: [value] for name, value in headers.items()}


def streamed(answer: Json) -> str:
    start = {"type": "message_start", "message": {**answer, "content": []}}
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in (start, {"type": "message_stop"}))


def nock(origin: str, path: str, sent: Json, answer: Json) -> Json:
    raw = [piece for header in HEADERS.items() for piece in header]
    return [{"scope": f"{origin}:443", "method": "POST", "path": path, "body": sent, "status": 200, "response": answer,
             "rawHeaders": raw, "responseIsBinary": False}]  # fmt: skip


def nock_in_hex(origin: str, path: str, sent: Json, answer: Json) -> Json:
    text = json.dumps(answer).encode().hex()
    return [{**nock(origin, path, sent, answer)[0], "response": [text[:20], text[20:]]}]


def mapping(origin: str, path: str, sent: Json, answer: Json) -> Json:
    pattern = {"equalToJson": json.dumps(sent), "ignoreArrayOrder": True, "ignoreExtraElements": True}
    return {
        "id": "1f1a",
        "name": "messages",
        "request": {"url": path, "method": "POST", "bodyPatterns": [pattern]},
        "response": {"status": 200, "body": json.dumps(answer), "headers": HEADERS},
        "persistent": True,
    }


def mappings(origin: str, path: str, sent: Json, answer: Json) -> Json:
    one = mapping(origin, path, sent, answer)
    one["response"] = {"status": 200, "base64Body": b64(answer), "headers": HEADERS}
    one["request"]["bodyPatterns"] = [{"equalToJson": sent}]
    return {"mappings": [one], "meta": {"total": 1}}


def mockserver(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"method": "POST", "path": path, "headers": lists(HEADERS), "body": {"type": "JSON", "json": sent}}
    return [{"httpRequest": request, "httpResponse": {"statusCode": 200, "headers": lists(HEADERS), "body": answer}}]


def hoverfly(origin: str, path: str, sent: Json, answer: Json) -> Json:
    scheme, _, destination = origin.partition("://")
    told = {"method": "POST", "scheme": scheme, "destination": destination, "path": path, "body": json.dumps(sent)}
    request = {name: [{"matcher": "exact", "value": value}] for name, value in told.items()}
    response = {"status": 200, "body": b64(answer), "encodedBody": True, "headers": lists(HEADERS), "templated": False}
    return {"data": {"pairs": [{"request": request, "response": response}], "globalActions": {"delays": []}},
            "meta": {"schemaVersion": "v5"}}  # fmt: skip


def httpreplay(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"Method": "POST", "URL": origin + path, "Header": lists(HEADERS), "MediaType": "application/json",
               "BodyParts": [b64(sent)], "Trailer": None}  # fmt: skip
    response = {"StatusCode": 200, "Proto": "HTTP/1.1", "Header": lists(HEADERS), "Body": b64(answer), "Trailer": None}
    return {"Initial": None, "Version": "0.2", "Converter": {"ClearHeaders": ["^X-"]},
            "Entries": [{"ID": "1", "Request": request, "Response": response}]}  # fmt: skip


def one_exchange(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"method": "POST", "url": origin + path, "headers": {}, "body": json.dumps(sent)}
    response = {"status": 200, "headers": HEADERS, "body": json.dumps(answer)}
    return {"request": request, "response": response}


def req_llm(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"body": {"b64": b64(sent)}, "canonical_json": sent, "headers": {"x-api-key": "[REDACTED:x-api-key]"},
               "method": "post", "url": origin + path}  # fmt: skip
    response = {"body": answer, "headers": lists(HEADERS), "status": 200}
    return {"model_spec": "anthropic:m", "provider": "anthropic", "request": request, "response": response,
            "streaming": False}  # fmt: skip


def req_llm_streamed(origin: str, path: str, sent: Json, answer: Json) -> Json:
    text = streamed(answer)
    whole = req_llm(origin, path, sent, None)
    chunks = [{"b64": b64(text[:30])}, {"b64": b64(text[30:])}]
    headers = {**lists(HEADERS), "content-type": ["text/event-stream"]}
    response = {"body": None, "headers": headers, "status": 200}
    return {"captured_at": "2026-03-07T10:00:00Z", "chunks": chunks, **whole, "response": response, "streaming": True}


def llama_stack(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"method": "POST", "url": origin + path, "headers": {}, "body": sent, "endpoint": path}
    return {"test_id": None, "request": request, "response": {"body": {"__type__": "Message", "__data__": answer}}}


def vcr_in_json(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"method": "POST", "uri": origin + path, "body": json.dumps(sent), "headers": {}}
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": lists(HEADERS),
        "body": {"string": json.dumps(answer)},
    }
    return {"version": 1, "interactions": [{"request": request, "response": response}]}


def ruby_in_json(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"method": "post", "uri": origin + path, "body": {"encoding": "UTF-8", "string": json.dumps(sent)},
               "headers": {}}  # fmt: skip
    response = {
        "status": {"code": 200, "message": None},
        "headers": {},
        "body": {"encoding": "UTF-8", "string": json.dumps(answer)},
    }
    interaction = {"request": request, "response": response, "recorded_at": DATE}
    return {"http_interactions": [interaction], "recorded_with": "VCR 6.3.1"}


def betamax(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {
        "body": {"encoding": "utf-8", "base64_string": b64(sent)},
        "headers": {},
        "method": "POST",
        "uri": origin + path,
    }
    response = {"body": {"encoding": "utf-8", "string": json.dumps(answer)}, "headers": {},
                "status": {"code": 200, "message": "OK"}, "url": origin + path}  # fmt: skip
    interaction = {"request": request, "response": response, "recorded_at": "2026-03-07T10:00:00"}
    return {"http_interactions": [interaction], "recorded_with": "betamax/0.9.0"}


def exvcr(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"body": "", "headers": {}, "method": "post", "options": {}, "request_body": json.dumps(sent),
               "url": origin + path}  # fmt: skip
    response = {
        "binary": False,
        "body": json.dumps(answer),
        "headers": {"Date": DATE},
        "status_code": 200,
        "type": "ok",
    }
    return [{"request": request, "response": response}]


def req_cassette(origin: str, path: str, sent: Json, answer: Json) -> Json:
    request = {"method": "POST", "uri": origin + path, "query_string": "", "headers": {}, "body_type": "json",
               "body_json": sent}  # fmt: skip
    response = {"status": 200, "headers": lists(HEADERS), "body_type": "json", "body_json": answer}
    interaction = {"request": request, "response": response, "recorded_at": "2026-03-07T10:00:00.000000Z"}
    return {"version": "1.0", "interactions": [interaction]}


FORMS: dict[str, tuple[str, Callable[[str, str, Json, Json], Json]]] = {
    "nock": ("http-json", nock),
    "nock in hex": ("http-json", nock_in_hex),
    "WireMock, a mapping": ("http-json", mapping),
    "WireMock, mappings": ("http-json", mappings),
    "MockServer": ("http-json", mockserver),
    "Hoverfly": ("http-json", hoverfly),
    "httpreplay": ("http-json", httpreplay),
    "one exchange": ("http-json", one_exchange),
    "req_llm": ("http-json", req_llm),
    "req_llm, streamed": ("http-json", req_llm_streamed),
    "llama-stack": ("http-json", llama_stack),
    "vcrpy": ("vcr", vcr_in_json),
    "VCR for Ruby": ("vcr", ruby_in_json),
    "Betamax": ("vcr", betamax),
    "ExVCR": ("vcr", exvcr),
    "req_cassette": ("vcr", req_cassette),
}
NO_TIME = {"llama-stack"}


def write(tmp_path: Path, value: Json, indent: int | None = 1, sort_keys: bool = False) -> Path:
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(value, indent=indent, sort_keys=sort_keys), encoding="utf-8")
    return path


def recorded(folder: Path, name: str) -> Path:
    """A file with one call in the form `name`."""
    return write(folder, FORMS[name][1](ORIGIN, PATH, SENT, ANSWER))


def read(path: Path, format_: str = "auto") -> list[Call]:
    return list(read_calls(path, format_, lambda words: None))


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", FORMS)
def test_a_call_of_the_messages_api_in_each_form(tmp_path: Path, name: str, indent: int | None) -> None:
    format_, form = FORMS[name]
    path = write(tmp_path, form(ORIGIN, PATH, SENT, ANSWER), indent)
    assert detect(path)[0] == format_
    (call,) = read(path)
    assert call.billed == Usage(3, 40, 500, 0, 7)
    assert (call.request.model, call.request.thread.length) == ("claude-haiku-4-5-20251001", 1)
    assert call.timestamp is None if name in NO_TIME else call.start == START


@pytest.mark.parametrize("name", FORMS)
def test_the_model_of_invoke_model_is_in_the_url_of_each_form(tmp_path: Path, name: str) -> None:
    escaped = f"/model/{MODEL.replace(':', '%3A')}/invoke"
    for path_ in (escaped, f"/model/{MODEL}/invoke"):
        (call,) = read(write(tmp_path, FORMS[name][1](BEDROCK, path_, INVOKED, ANSWER)))
        assert (call.host, call.billed and call.billed.read) == ("bedrock", 40)
        assert RuleBook().rules("bedrock", call.request.model).model == RuleBook().rules("bedrock", MODEL).model


@pytest.mark.parametrize("name", ["req_llm", "req_llm, streamed", "WireMock, a mapping"])
def test_sorted_keys_are_recognized_too(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, FORMS[name][1](ORIGIN, PATH, SENT, ANSWER), sort_keys=True)
    assert detect(path)[0] == "http-json"
    assert [call.billed for call in read(path)] == [Usage(3, 40, 500, 0, 7)]


def test_the_replays_of_google_genai(tmp_path: Path) -> None:
    sent = {"contents": [{"role": "user", "parts": [{"text": "Which way?"}]}]}
    usage = {"promptTokenCount": 900, "cachedContentTokenCount": 800, "candidatesTokenCount": 5, "totalTokenCount": 905}
    answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "North."}]}}], "usageMetadata": usage}
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
    request = {"method": "post", "url": url, "headers": {}, "bodySegments": [sent]}
    response = {"statusCode": 200, "headers": {}, "bodySegments": [answer], "sdkResponseSegments": [{}]}
    path = write(tmp_path, {"replayId": "a/b", "interactions": [{"request": request, "response": response}]})
    (call,) = read(path)
    assert (call.host, call.billed) == ("gemini", Usage(100, 800, 0, 0, 5))


NO_REQUEST = [
    ({"log": {"entries": []}}, "har"),
    ({"request": {"model": "m", "messages": []}, "usage": {}}, "request-log"),
    ([{"request": {"url": "u", "method": "GET"}, "response": {}}], "vcr"),
]


@pytest.mark.parametrize(("value", "format_"), NO_REQUEST)
def test_what_begins_otherwise_is_not_taken(tmp_path: Path, value: Json, format_: str) -> None:
    assert detect(write(tmp_path, value), otherwise="request-log")[0] == format_


def test_exchanges_may_stand_one_a_line(tmp_path: Path) -> None:
    """Each call says its line, and what is wrong with one does, too."""
    exchange = json.dumps(FORMS["one exchange"][1](ORIGIN, PATH, SENT, ANSWER))
    path = tmp_path / "log.jsonl"
    path.write_text(f"{exchange}\n{exchange}\n")
    assert detect(path)[0] == "http-json"
    assert [(call.line, call.billed) for call in read(path)] == [(number, Usage(3, 40, 500, 0, 7)) for number in (1, 2)]
    path.write_text(f"{exchange}\n{exchange.replace('200', '2')}\n{exchange[:-9]}\n")
    with pytest.raises(InputError) as error:
        read(path)
    assert [fault.line for fault in error.value.faults] == [2, 3]


def broken(name: str, change: Callable[[Json], None]) -> Json:
    value = FORMS[name][1](ORIGIN, PATH, SENT, ANSWER)
    change(value)
    return value


DAMAGED = [
    (broken("nock", lambda v: v.append(7)), "[1]: expected an object; got 7"),
    (broken("nock", lambda v: v[0].update(status="200")), "[0].status: expected an HTTP status; got '200'"),
    (broken("nock in hex", lambda v: v[0].update(response=["zz"])), "[0].response: expected pieces of bytes in hex"),
    (broken("WireMock, mappings", lambda v: v["mappings"][0]["response"].update(base64Body="?")),
     "mappings[0].response.base64Body: expected base64; got '?'"),
    (broken("WireMock, mappings", lambda v: v["mappings"][0].pop("response")),
     "mappings[0].response: expected an object; got nothing"),
    (broken("MockServer", lambda v: v[0]["httpResponse"].update(statusCode=7)),
     "[0].httpResponse.statusCode: expected an HTTP status; got 7"),
    (broken("Hoverfly", lambda v: v["data"]["pairs"][0]["request"].update(body="{}")),
     "data.pairs[0].request.body: expected an array of objects; got '{}'"),
    (broken("httpreplay", lambda v: v["Entries"][0]["Request"].update(BodyParts=["?"])),
     "Entries[0].Request.BodyParts[0]: expected base64; got '?'"),
    (broken("httpreplay", lambda v: v.update(Entries={})), "Entries: expected an array of entries; got an object"),
    (broken("req_llm", lambda v: v["request"]["body"].update(b64="?")), "request.body.b64: expected base64; got '?'"),
    (broken("one exchange", lambda v: v["request"].update(body='{"model": 3}')),
     "request.body.messages: expected an array of messages; got nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "words"), DAMAGED, ids=[words for _, words in DAMAGED])
def test_damage_is_an_error_with_its_place(tmp_path: Path, value: Json, words: str) -> None:
    path = write(tmp_path, value)
    with pytest.raises(InputError) as error:
        read(path, "http-json")
    assert any(fault.message.startswith(words) for fault in error.value.faults), error.value.faults


def test_a_cut_file_is_damaged_json(tmp_path: Path) -> None:
    path = write(tmp_path, FORMS["Hoverfly"][1](ORIGIN, PATH, SENT, ANSWER))
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match="damaged JSON"):
        read(path)


def test_named_with_format_a_file_of_none_of_them_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a recording of one of nock, MockServer, "):
        list(read_calls(write(tmp_path, {"a": 1}), "http-json", lambda words: None))


@pytest.mark.parametrize("name", [{}, {"a": 1}, [], ["x"], None, 1.5])
def test_a_header_may_have_any_name(tmp_path: Path, name: Json) -> None:
    """Raw headers are a list of names and values."""
    row = nock(ORIGIN, PATH, SENT, ANSWER)[0]
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps([{**row, "rawHeaders": [name, "x", "date", DATE]}]))
    (call,) = read_calls(path)
    assert call.start == START
