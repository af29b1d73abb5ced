"""VCR cassettes of each recorder: which are known, what their calls are, what is wrong with damaged ones."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import detect
from cachecost.conversations.readers.http.vcr import calls, sniff
from cachecost.providers.usage import Usage

URL = "https://api.anthropic.com/v1/messages"
USAGE = Usage(3, 40, 500, 0, 7)
START = 1772877600.0
"""2026-03-07T10:00:00Z"""
DATE = "Sat, 07 Mar 2026 10:00:00 GMT"
Interaction = dict[str, Any]


def asked(text: str = "Which way?\n\n  'Now'?") -> str:
    breakpoint = {"type": "ephemeral"}
    content = [{"type": "text", "text": text, "cache_control": breakpoint}]
    return json.dumps({"model": "claude-opus-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": content}]})


def answered(name: str = "msg_1") -> str:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 40, "output_tokens": 7}
    return json.dumps({"id": name, "content": [{"type": "text", "text": "North: 1."}], "usage": usage})


def streamed() -> str:
    start = {"type": "message_start", "message": {**json.loads(answered()), "content": []}}
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in (start, {"type": "message_stop"}))


def vcrpy(body: Any = None, answer: Any = None, **more: Any) -> Interaction:
    """An interaction as vcrpy writes it."""
    return {
        "request": {
            "body": asked() if body is None else body,
            "headers": {"content-type": ["application/json"], "x-api-key": ["sk-1"]},
            "method": "POST",
            "uri": URL,
        },
        "response": {
            "body": {"string": answered() if answer is None else answer},
            "headers": {"Date": [DATE]},
            "status": {"code": 200, "message": "OK"},
            **more,
        },
    }


def go(body: str, **more: Any) -> Interaction:
    """An interaction as go-vcr writes it."""
    request = {"proto": "HTTP/1.1", "body": body, "headers": {}, "url": URL, "method": "POST"}
    response = {"body": answered(), "headers": {"Date": [DATE]}, "status": "200 OK", "code": 200, "duration": "1.25s"}
    return {"id": 0, "request": request, "response": {**response, **more}}


def ruby(body: Any, at: str = DATE) -> Interaction:
    """An interaction as VCR for Ruby writes it."""
    return {
        "request": {"method": "post", "uri": URL, "body": body, "headers": {}},
        "response": {"status": {"code": 200}, "headers": {}, "body": {"encoding": "UTF-8", "string": answered()}},
        "recorded_at": at,
    }


def dump(value: Any, path: Path) -> Path:
    path.write_text(yaml.dump(value, sort_keys=False))
    return path


def cassette(folder: Path, *interactions: Any, **top: Any) -> Path:
    return dump({"interactions": list(interactions), "version": 1, **top}, folder / "cassette.yaml")


def fail_on_note(note: str) -> None:
    pytest.fail(f"said without need: {note}")


def read(path: Path, warn: Callable[[str], None] = fail_on_note) -> list[Call]:
    assert sniff(path.read_bytes())
    return list(calls(path, warn))


def faults(path: Path) -> list[str]:
    with pytest.raises(InputError) as error:
        list(calls(path, fail_on_note))
    return [str(one).removeprefix(str(path)) for one in error.value.faults]


# --------------------------------------------------------------------------------------------- each recorder's


def test_a_cassette_of_vcrpy(tmp_path: Path) -> None:
    first, second = read(cassette(tmp_path, vcrpy(), vcrpy(asked("Again"), streamed())))
    assert (first.billed, second.billed) == (USAGE, USAGE)
    assert (first.start, first.first_token_s, first.host, first.line) == (START, 0.0, "anthropic", 2)
    assert first.request.model == "claude-opus-4-6" and len(first.request.breakpoints) == 1
    (message,) = first.request.thread.messages()
    assert message.blocks[0].content == {"type": "text", "text": "Which way?\n\n  'Now'?"}
    assert [block.content for block in first.response] == [{"type": "text", "text": "North: 1."}]
    assert (first.session, first.workspace) == ("", "")


def test_bodies_that_are_bytes(tmp_path: Path) -> None:
    packed = vcrpy(asked().encode(), gzip.compress(answered().encode()))
    packed["response"]["headers"]["Content-Encoding"] = ["gzip"]
    path = cassette(tmp_path, packed)
    assert "!!binary" in path.read_text()
    assert read(path)[0].billed == USAGE


def test_bodies_that_were_parsed(tmp_path: Path) -> None:
    one = vcrpy()
    one["request"] |= {"parsed_body": json.loads(asked()) | {"temperature": 0.5, "stream": False}, "body": None}
    one["response"] |= {"parsed_body": json.loads(answered())}
    assert read(cassette(tmp_path, one))[0].billed == USAGE


def test_words_that_yaml_would_take_for_something_else(tmp_path: Path) -> None:
    """PyYAML writes 1e3 without quotes: to YAML 1.1 it is no number. Nor is a date a time to us."""
    text = f"""\
interactions:
- request:
    method: POST
    uri: {URL}
    parsed_body:
      model: claude-opus-4-6
      max_tokens: 1_0
      stream: off
      messages:
      - role: user
        content: 1e3
      - role: assistant
        content:
        - {{type: text, text: 2026-03-07, '': [x]}}
      - role: user
        content: !!python/unicode 'yes'
  response:
    status: {{code: 200, message: OK}}
    headers: {{}}
    body: {{string: ''}}
"""
    path = tmp_path / "cassette.yaml"
    path.write_text(text)
    said: list[str] = []
    (call,) = read(path, said.append)
    assert call.request.thread.messages()[1].blocks[0].content == {"type": "text", "text": "2026-03-07", "": ["x"]}
    texts = [message.blocks[0].content for message in call.request.thread.messages()]
    assert [block and block["text"] for block in texts] == ["1e3", "2026-03-07", "yes"]
    assert call.request.params == {"max_tokens": 10}
    assert said == [f"{path}: 1 call whose answer has no usage"]


@pytest.mark.parametrize(
    "body",
    [
        "!!python/object/new:_io.BytesIO\n      state: !!python/tuple\n      - !!binary |\n        {}\n      - 0\n",
        "!!python/object/apply:builtins.iter\n      args:\n      - - !!binary |\n          {}\n        - '}}'\n",
    ],
)
def test_bodies_that_vcrpy_left_as_python_objects(body: str, tmp_path: Path) -> None:
    whole = asked() if "BytesIO" in body else asked().removesuffix("}")
    path = cassette(tmp_path, vcrpy("HERE"))
    held = body.format(base64.b64encode(whole.encode()).decode())
    path.write_text(path.read_text().replace("body: HERE\n", f"body: {held}"))
    assert read(path)[0].billed == USAGE


def test_a_cassette_of_old_vcrpy_with_httpx(tmp_path: Path) -> None:
    one = vcrpy()
    one["response"] = {"status_code": 200, "headers": {"date": DATE}, "content": answered(), "http_version": "HTTP/1.1"}
    assert read(cassette(tmp_path, one))[0].billed == USAGE


def test_a_cassette_of_go_vcr(tmp_path: Path) -> None:
    path = dump(
        {"version": 2, "interactions": [go(asked() + "\n"), go(asked(), duration="1m2ms")]}, tmp_path / "go.yaml"
    )
    path.write_text("---\n" + path.read_text())
    first, second = read(path)
    assert (first.billed, first.start, first.first_token_s) == (USAGE, START, 1.25)
    assert second.first_token_s == 60.002


def test_a_cassette_of_ruby(tmp_path: Path) -> None:
    interactions = [
        ruby({"encoding": "UTF-8", "string": asked()}),
        ruby({"encoding": "ASCII-8BIT", "base64_string": base64.b64encode(asked().encode()).decode()}),
        ruby({"encoding": "UTF-8", "string": asked()}, "2026-03-07T11:00:00+01:00"),
    ]
    path = dump({"http_interactions": interactions, "recorded_with": "VCR 6.3.1"}, tmp_path / "ruby.yml")
    made = read(path)
    assert [call.billed for call in made] == [USAGE] * 3
    assert [(call.start, call.timestamp) for call in made] == [(START, "2026-03-07T10:00:00.000000Z")] * 3


def test_bytes_of_ruby_have_a_tag_of_their_own(tmp_path: Path) -> None:
    data = base64.b64encode(asked().encode()).decode()
    path = dump({"http_interactions": [ruby({"string": "HERE"})]}, tmp_path / "ruby.yml")
    path.write_text(path.read_text().replace("string: HERE", f"string: !binary |-\n          {data}"))
    assert read(path)[0].billed == USAGE


def php(body: str) -> Interaction:
    headers = {"Host": "api.anthropic.com"}
    return {
        "request": {"method": "POST", "url": URL, "headers": headers, "body": body},
        "response": {
            "status": {"code": "200", "message": "OK"},
            "headers": {"Date": DATE},
            "body": answered(),
            "curl_info": {"starttransfer_time": 0.75},
        },
        "index": 0,
    }


def test_a_cassette_of_php(tmp_path: Path) -> None:
    in_json = tmp_path / "php"
    in_json.write_text(json.dumps([php(asked())], indent=4))
    in_yaml = dump([php(asked())], tmp_path / "php.yml")
    in_yaml.write_text("-\n    " + in_yaml.read_text().removeprefix("- ").replace("\n  ", "\n    "))
    for path in (in_json, in_yaml):
        (call,) = read(path)
        assert (call.billed, call.start, call.first_token_s) == (USAGE, START, 0.75)


def typed(body: str) -> dict[str, str | Any]:
    """A body as pydantic-ai's recorder writes it."""
    return {"type": "json", "content": json.loads(body)}


def test_a_cassette_whose_bodies_say_their_type(tmp_path: Path) -> None:
    stream = {"type": "text", "content": streamed()}
    one, two = vcrpy(typed(asked())), vcrpy(typed(asked("Again")))
    one["response"] |= {"status": 200, "body": typed(answered())}
    two["response"] |= {"status": 200, "body": stream}
    assert [call.billed for call in read(cassette(tmp_path, one, two))] == [USAGE, USAGE]


def halves(*interactions: Interaction) -> dict[str, list[Any]]:
    """A cassette as langchain-tests writes it: all requests, then all responses."""
    return {name: [one[name[:-1]] for one in interactions] for name in ("requests", "responses")}


def test_a_cassette_with_requests_and_responses_apart(tmp_path: Path) -> None:
    two = vcrpy(asked("Again").encode(), answered("msg_2").encode())
    first, second = read(dump(halves(vcrpy(), two), tmp_path / "halves.yaml"))
    assert (first.billed, second.billed, first.line) == (USAGE, USAGE, 2)
    (message,) = second.request.thread.messages()
    assert message.blocks[0].content == {"type": "text", "text": "Again"}
    packed = tmp_path / "halves.yaml.gz"
    packed.write_bytes(gzip.compress((tmp_path / "halves.yaml").read_bytes()))
    assert detect(packed)[0] == "vcr"


@pytest.mark.parametrize(
    ("url", "answer", "is_call"),
    [
        ("**REDACTED**", answered(), False),
        ("**REDACTED**", '{"type": "message", ' + answered()[1:], True),
        ("**REDACTED**", streamed(), True),
        ("https://example.com/other", streamed(), False),
    ],
)
def test_an_answer_shows_the_api_where_the_address_was_removed(
    url: str, answer: str, is_call: bool, tmp_path: Path
) -> None:
    one = vcrpy(answer=answer)
    one["request"]["uri"] = url
    said: list[str] = []
    path = dump(halves(one), tmp_path / "halves.yaml")
    assert [(call.billed, call.host) for call in calls(path, said.append)] == [(USAGE, None)] * is_call
    assert said == [f"{path}: skipped 1 entry: not a model call"] * (not is_call)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"responses": []}, " responses: expected 1, one for each request; got 0"),
        ({"responses": "x"}, " responses: expected an array; got 'x'"),
        ({"responses": None}, " responses: expected an array; got nothing"),
        ({"requests": [3]}, " interactions[0].request: expected an object; got 3"),
    ],
)
def test_halves_that_do_not_fit(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert faults(dump(halves(vcrpy()) | change, tmp_path / "halves.yaml")) == [message]


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "metadata": {"name": "a", "tags": ["b"]}, "interactions": [vcrpy()]},
        {"version": 1, "interactions": [vcrpy()]},
        {"interactions": [vcrpy()], "version": 1},
        {"http_interactions": [ruby({"string": asked()})], "recorded_with": "betamax/0.9"},
        {"recorded_with": "VCR 6.3.1", "http_interactions": [ruby({"string": asked()})]},
        {"version": 2, "interactions": [go(asked())]},
    ],
)
def test_cassettes_in_json_packed_or_not(document: Any, tmp_path: Path) -> None:
    path, packed = tmp_path / "cassette.json", tmp_path / "cassette.json.gz"
    path.write_text(json.dumps(document))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(path)[0].billed == USAGE
    assert next(calls(packed)).billed == USAGE


def test_without_a_date_the_order_is_that_of_the_file(tmp_path: Path) -> None:
    scrubbed = [vcrpy(), vcrpy()]
    for one in scrubbed:
        one["response"]["headers"] = {"Date": ["SCRUBBED"]}
    assert [(call.start, call.timestamp) for call in read(cassette(tmp_path, *scrubbed))] == [(0.0, None), (2.0, None)]


def test_what_is_no_call_is_counted_and_said(tmp_path: Path) -> None:
    others: list[Interaction] = []
    for uri in (f"{URL}/count_tokens", "https://example.com/a", "https://example.com/b"):
        others.append(vcrpy())
        others[-1]["request"] |= {"uri": uri, "body": "x=1"}
    failed, refused = vcrpy(), vcrpy("[]")
    failed["response"]["status"] = refused["response"]["status"] = {"code": 429}
    said: list[str] = []
    path = cassette(tmp_path, *others, failed, refused)
    (call,) = read(path, said.append)
    assert (call.status, call.billed, call.has_failed) == (429, None, True)
    assert said == [
        f"{path}: skipped 1 entry: token counting",
        f"{path}: skipped 2 entries: not a model call",
        f"{path}: skipped 1 entry: refused by the API, and not a valid request",
    ]


def test_content_free_calls_keep_no_content(tmp_path: Path) -> None:
    (call,) = calls(cassette(tmp_path, vcrpy()), fail_on_note, False)
    assert [block.content for message in call.request.thread.messages() for block in message.blocks] == [None]
    assert [block.content for block in call.response] == [None]


# ------------------------------------------------------------------------------------------------ what is wrong


def test_every_fault_names_its_interaction(tmp_path: Path) -> None:
    no_body, no_status, bad_role = vcrpy(), vcrpy(status="?"), json.loads(asked())
    bad_role["messages"][0]["role"] = "usr"
    del no_body["request"]["body"]
    path = cassette(
        tmp_path,
        vcrpy(),
        vcrpy("<SCRUBBED>"),
        vcrpy('{"scrubbed": true}'),
        vcrpy(json.dumps(bad_role)),
        no_body,
        no_status,
        vcrpy(answer="<html>"),
        vcrpy(answer=json.dumps({"content": [{"text": "x"}], "usage": {}})),
        vcrpy(["x"]),
        {"request": None},
        "x",
        {**ruby({"base64_string": "?"}), "recorded_at": "once"},
        vcrpy({"a": b"x"}),
    )
    lines = [int(one[1:].partition(" ")[0]) for one in faults(path) if one[1].isdecimal()]
    assert lines == sorted(lines) and len(set(lines)) == 11
    assert [one.partition(" ")[2] for one in faults(path)] == [
        "interactions[1].request.body: expected JSON; got '<SCRUBBED>'",
        "interactions[2].request.body.messages: expected an array of messages; got nothing",
        "interactions[3].request.body.messages.0.role: expected one of assistant, system, user; "
        "got 'usr' (did you mean 'user'?)",
        "interactions[4].request.body: expected JSON; got nothing",
        "interactions[5].response.status: expected an HTTP status; got '?'",
        "interactions[6].response.body: expected JSON; got '<html>'",
        "interactions[7].response.body.content.0.type: expected the block's type; got nothing",
        "interactions[8].request.body: expected a text or bytes; got an array",
        "interactions[9].request: expected an object; got nothing",
        "interactions[9].response: expected an object; got nothing",
        "interactions[10]: expected an object; got 'x'",
        "interactions[11].request.body.base64_string: expected base64; got '?'",
        "interactions[11].recorded_at: expected a time; got 'once'",
        "interactions[12].request.body: expected values of JSON; got bytes",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("interactions:\n- request: [\n", ":3 damaged YAML: expected the node content, but found '<stream end>'"),
        ("interactions:\n- request:\n    a: b\n    a: c\n", ":3 damaged YAML: duplicate key"),
        ("interactions: &a\n- request: {b: *a}\n", ":1 damaged YAML: recursive aliases, or too many"),
        ("interactions:\n- request: !!binary '?'\n", ":2 damaged YAML: invalid base64"),
        ("interactions:\n- request: a\x00\n", ":2 damaged YAML: a character that is not allowed"),
        ("interactions: 3\n", " interactions: expected an array of interactions; got 3"),
        ("", " expected an array of interactions; got nothing"),
        ('{"interactions": [', " damaged JSON: Expecting value at character 19"),
    ],
)
def test_damaged_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    path.write_text(text)
    assert faults(path) == [message]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "cassette.yaml"
    path.write_bytes(b"interactions:\n- request: \xff\n")
    assert faults(path) == [":2 damaged YAML: not UTF-8"]


def test_deep_nesting_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "cassette.yaml"
    path.write_text(f"interactions: {'[' * 1000}")
    assert faults(path) == [" expected at most 128 levels of nesting; got more"]


OTHERS: Sequence[str] = (
    '{"timestamp": null, "request": {"messages": []}, "response": {}}\n',
    '{"format": 1, "kind": "calls"}\n',
    '{"log": {"version": "1.2", "entries": [{"request": {"method": "POST"}, "response": {}}]}}',
    '[{"custom_id": "a", "params": {}}]',
    '[{"request": {"messages": []}, "response": {}}]',
    '{"interactions": [{"user": "x"}]}',
    '{"type": "user", "message": {"content": "interactions:\\n- request:\\n"}}\n',
    "format: 1\nname: x\nconversation:\n  synthetic: {seed: 1}\n",
    "interactions:\n- name: x\n",
    "requests:\n- name: x\n",
    "12:7:version;2:21#}",
    "# Notes\n\nhttp\n",
    "",
)


@pytest.mark.parametrize("text", OTHERS)
def test_other_formats_are_not_taken_for_cassettes(text: str) -> None:
    assert sniff(text.encode()) is None


def test_a_head_that_is_cut_off_is_still_known(tmp_path: Path) -> None:
    whole = cassette(tmp_path, vcrpy()).read_bytes()
    assert sniff(whole[: whole.index(b"max_tokens")])
    assert sniff(json.dumps({"version": 1, "interactions": [vcrpy()]}).encode()[:80])
