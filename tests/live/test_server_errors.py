"""What `serve` does not take, in the API's words and with its statuses."""

import asyncio
import gzip
import json

import anthropic
import pytest
from server_fakes import BODY, HEAD, MODEL, REFUSED, Letters, Says, get, lines_of, post, sdk_of, served_by

from cachecost.live.request_log import CallLog
from cachecost.live.server import served_api
from cachecost.live.server.answers import answerer_from

STRICT = {**HEAD, "anthropic-version": "2026-10-21"}


def error_of(response):
    body = response.json()
    assert body["type"] == "error"
    assert {*body} == {"type", "error", "request_id"}
    assert body["request_id"] == response.headers["request-id"]
    assert body["request_id"].startswith("req_01")
    return response.status_code, body["error"]["type"], body["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize(
    ("head", "fault"),
    [
        ({"anthropic-version": "2023-06-01"}, (401, "authentication_error", "x-api-key header is required")),
        ({**HEAD, "x-api-key": ""}, (401, "authentication_error", "x-api-key header is required")),
        ({"x-api-key": "k"}, (400, "invalid_request_error", "anthropic-version: header is required")),
        (
            {**HEAD, "anthropic-version": "2024-01-01"},
            (400, "invalid_request_error", 'anthropic-version: "2024-01-01" is not a valid version'),
        ),
    ],
)
def test_headers(path, head, fault):
    assert error_of(post(served_by(), path=path, head=head)) == fault


def test_models_need_a_key_too():
    assert get(served_by(), "/v1/models", {}).status_code == 401
    assert get(served_by(), "/v1/models/x", {}).status_code == 401


def test_a_bearer_token_is_a_key():
    head = {"authorization": "Bearer t", "anthropic-version": "2023-06-01"}
    assert post(served_by(), head=head).status_code == 200


def without(name):
    return {key: value for key, value in BODY.items() if key != name}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (without("model"), "model: Field required"),
        ({**BODY, "model": 5}, "model: Input should be a valid string"),
        ({**BODY, "model": ""}, "model: String should have at least 1 character"),
        (without("messages"), "messages: Field required"),
        ({**BODY, "messages": "hi"}, "messages: Input should be a valid list"),
        ({**BODY, "messages": []}, "messages: at least one message is required"),
        (without("max_tokens"), "max_tokens: Field required"),
        ({**BODY, "max_tokens": "5"}, "max_tokens: Input should be a valid integer"),
        ({**BODY, "max_tokens": True}, "max_tokens: Input should be a valid integer"),
        ({**BODY, "max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
        ({**BODY, "stream": "yes"}, "stream: Input should be a valid boolean"),
        (
            {**BODY, "messages": [{"role": "nobody", "content": "x"}]},
            "messages.0.role: Input should be one of assistant, system, user",
        ),
        ({**BODY, "messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    ],
)
def test_bodies(body, message):
    assert error_of(post(served_by(), body)) == (400, "invalid_request_error", message)


@pytest.mark.parametrize("max_tokens", [0, 1])
def test_the_least_max_tokens(max_tokens):
    body = {**BODY, "max_tokens": max_tokens, "thinking": {"type": "adaptive"}, "tool_choice": {"type": "auto"}}
    assert post(served_by(), body).status_code == 200


CITED = [{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}]
DOCUMENT = [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}]
FOUND = [{"type": "search_result", "content": CITED, "source": "s", "title": "t"}]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"temperature": 1.0}, "temperature: Extra inputs are not permitted"),
        ({"top_p": 0.5}, "top_p: Extra inputs are not permitted"),
        ({"top_k": 5}, "top_k: Extra inputs are not permitted"),
        (
            {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": DOCUMENT}]},
            "messages.1.content.0: document blocks are not supported in assistant messages",
        ),
        (
            {"messages": [{"role": "user", "content": CITED}]},
            "messages.0.content.0.text.citations: Extra inputs are not permitted",
        ),
        (
            {"messages": [{"role": "user", "content": FOUND}]},
            "messages.0.content.0.search_result.content.citations: Extra inputs are not permitted",
        ),
    ],
)
def test_the_newer_version_takes_less(more, message):
    body = {**BODY, **more}
    assert error_of(post(served_by(), body, head=STRICT)) == (400, "invalid_request_error", message)
    assert post(served_by(), body, "/v1/messages/count_tokens", head=STRICT).status_code == 400
    assert post(served_by(meters=Forgiving()), body).status_code == 200


class Forgiving(Letters):
    def count(self, body, host=None):
        return 1


def test_the_newer_version_takes_documents_from_a_user():
    body = {**BODY, "messages": [{"role": "user", "content": DOCUMENT}]}
    assert post(served_by(meters=Forgiving()), body, head=STRICT).status_code == 200


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"a": }', b"[" * 100_000, b'{"a": NaN}', '{"a": 1}'.encode("utf-16")]
)
def test_bodies_that_are_no_json(content):
    fault = (400, "invalid_request_error", "The request body is not valid JSON")
    assert error_of(post(served_by(), content=content)) == fault


def test_a_body_that_is_no_object():
    assert error_of(post(served_by(), [1]))[2] == "Input should be a valid dictionary"


@pytest.mark.parametrize(
    ("encoding", "content", "code"),
    [
        ("gzip", b"nothing of the kind", "request_body_encoding_invalid"),
        ("gzip", gzip.compress(b'{"a": 1}' * 99, mtime=0)[:-9], "request_body_encoding_invalid"),
        ("deflate", b"\x00\x00", "request_body_encoding_invalid"),
        ("br", b"{}", "request_body_encoding_unsupported"),
    ],
)
def test_damaged_packing(encoding, content, code):
    response = post(served_by(), head={**HEAD, "content-encoding": encoding}, content=content)
    assert error_of(response)[:2] == (400, "invalid_request_error")
    assert response.json()["error"]["details"] == {"error_code": code}


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 413)])
def test_the_largest_body(monkeypatch, more, status):
    content = json.dumps(BODY).encode()
    monkeypatch.setattr(served_api, "LARGEST", len(content) - more)
    response = post(served_by(), content=content)
    assert response.status_code == status
    packed = post(served_by(), head={**HEAD, "content-encoding": "gzip"}, content=gzip.compress(content * 1))
    assert packed.status_code == (status if len(gzip.compress(content)) <= len(content) - more else 413)
    if more:
        assert error_of(response) == (413, "request_too_large", "Request exceeds the maximum size")


def test_a_small_body_that_unpacks_to_a_large_one():
    content = gzip.compress(b" " * (served_api.LARGEST + 1))
    response = post(served_by(), head={**HEAD, "content-encoding": "gzip"}, content=content)
    assert error_of(response)[:2] == (413, "request_too_large")
    assert response.json()["error"]["details"] == {"error_code": "request_body_too_large_after_decoding"}


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/messages/", "/v2/messages", "/v1/messages/batches"])
def test_other_paths(path):
    assert error_of(post(served_by(), path=path))[:2] == (404, "not_found_error")


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/messages"), ("DELETE", "/v1/models"), ("POST", "/")])
def test_other_methods(method, path):
    response = get(served_by(), path, method=method)
    assert error_of(response) == (405, "invalid_request_error", "Method Not Allowed")
    assert response.headers["allow"]


def test_refusals_of_the_simulator_and_of_whoever_answers(tmp_path):
    with CallLog(tmp_path / "log.jsonl") as log:
        assert error_of(post(served_by(meters=Letters(REFUSED), log=log))) == (400, REFUSED.type, REFUSED.message)
        assert error_of(post(served_by(Says(by=lambda asked: REFUSED), log=log)))[2] == REFUSED.message
        unknown = post(served_by(meters=Unknown(), log=log))
    assert error_of(unknown) == (404, "not_found_error", f"model: {MODEL}")
    lines = lines_of(tmp_path / "log.jsonl")
    assert [line["status"] for line in lines] == [400, 400, 404]
    assert lines[0]["response"]["error"]["message"] == REFUSED.message
    assert not any("usage" in line for line in lines)


class Unknown(Letters):
    def charge(self, asked, answer):
        return self.count({**asked.body, "model": "claude-none"})


def test_a_fault_of_ours_is_the_apis_500_and_names_no_key(tmp_path):
    said = []

    def fails(asked):
        raise RuntimeError(f"cannot do {asked.body['messages'][0]['content']}")

    body = {**BODY, "messages": [{"role": "user", "content": f"it with {HEAD['x-api-key']}"}]}
    with CallLog(tmp_path / "log.jsonl") as log:
        response = post(served_by(Says(by=fails), say=said.append, log=log), body)
    assert error_of(response) == (500, "api_error", "Internal server error")
    assert said == ["internal error: RuntimeError: cannot do it with [key]"]
    assert lines_of(tmp_path / "log.jsonl")[0]["status"] == 500


class Full:
    """A log on a full disk."""

    def append(self, fields, request):
        raise OSError(28, "No space left on device")


def test_a_call_that_cannot_be_recorded_is_answered_and_said():
    said = []
    assert post(served_by(log=Full(), say=said.append)).status_code == 200
    assert said == ["call 1 is not recorded: the file cannot be written: No space left on device"]


def test_the_sdk_raises_its_own_errors():
    async def run():
        async with sdk_of(served_by(meters=Letters(REFUSED))) as client:
            await client.messages.create(**BODY)

    with pytest.raises(anthropic.BadRequestError, match="A maximum of 4 blocks"):
        asyncio.run(run())


@pytest.mark.parametrize("how", ["tool", "format"])
def test_a_schema_whose_smallest_value_is_too_large(how):
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 10**9}}}
    tools = {"tools": [{"name": "f", "input_schema": schema}], "tool_choice": {"type": "tool", "name": "f"}}
    body = BODY | (tools if how == "tool" else {"output_config": {"format": {"type": "json_schema", "schema": schema}}})
    words = "schema: Input should be one whose smallest value has at most 10,000 parts"
    assert error_of(post(served_by(answerer_from("agent")), body)) == (400, "invalid_request_error", words)
