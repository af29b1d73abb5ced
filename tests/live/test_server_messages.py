"""The Messages API as `serve` speaks it: answers whole and streamed, token counts, models, the record."""

import asyncio
import gzip
import json
import zlib

import anthropic
import httpx2
import pytest
from server_fakes import BLOCKS, BODY, HEAD, KEY, MODEL, Says, events, get, lines_of, post, sdk_of, served_by
from server_fakes import Letters as Meter

from cachecost.conversations.readers.request_log import calls
from cachecost.live.clock import ScaledClock
from cachecost.live.keys import workspace_of
from cachecost.live.request_log import CallLog
from cachecost.live.server.app import app_of
from cachecost.live.server.served_api import events_of, pieces
from cachecost.live.server.state import Ids


def test_a_whole_answer_has_the_fields_of_the_api():
    response = post(served_by(Says(*BLOCKS, stop="tool_use")))
    body = response.json()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["request-id"].startswith("req_01")
    assert body["id"].startswith("msg_01")
    assert [body[name] for name in ("type", "role", "model", "stop_reason", "stop_sequence")] == [
        "message", "assistant", MODEL, "tool_use", None,
    ]  # fmt: skip
    assert body["content"] == list(BLOCKS)
    assert body["usage"]["cache_creation"] == {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0}
    assert {"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"} < {
        *body["usage"]
    }
    assert "diagnostics" not in body
    assert "context_management" not in body


def test_a_stream_has_the_events_of_the_api_in_their_order():
    response = post(served_by(Says(*BLOCKS, stop="tool_use")), {**BODY, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    told = events(response.text)
    assert all(name == data["type"] for name, data in told)
    names = [name for name, _ in told]
    assert names[:3] == ["message_start", "ping", "content_block_start"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    start, end = told[0][1]["message"], told[-2][1]
    assert start["content"] == []
    assert start["stop_reason"] is None
    assert start["usage"]["output_tokens"] == 1
    assert start["usage"]["cache_creation"] == {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0}
    assert {*end["usage"]} == {
        "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens",
    }  # fmt: skip
    assert end["delta"] == {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None}
    deltas = [data["delta"] for name, data in told if name == "content_block_delta"]
    kinds = list(dict.fromkeys(delta["type"] for delta in deltas))
    assert kinds == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta"]
    assert sum(delta["type"] == "text_delta" for delta in deltas) >= 3


def test_a_stream_says_what_the_whole_answer_says():
    async def run():
        whole, streamed = sdk_of(served_by(Says(*BLOCKS))), sdk_of(served_by(Says(*BLOCKS)))
        async with whole, streamed:
            one = await whole.messages.create(**BODY)
            async with streamed.messages.stream(**BODY) as stream:
                other = await stream.get_final_message()
        return one, other

    one, other = asyncio.run(run())
    left = one.to_dict()
    right = other.to_dict()
    right["content"][1].pop("parsed_output", None)
    assert right | {"id": left["id"]} == left


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "🙂" * 5, "word " * 3000])
def test_pieces_lose_nothing(text):
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert len(parts) <= 40
    assert len(parts) >= min(3, len(text))


def test_blocks_that_do_not_grow_come_whole():
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    message = post(served_by(Says(result))).json()
    told = list(events_of(message))
    assert told[2] == {"type": "content_block_start", "index": 0, "content_block": result}
    assert told[3]["type"] == "content_block_stop"


def test_an_answer_is_cut_to_max_tokens():
    long = {"type": "text", "text": "x" * 400}
    fits = post(served_by(Says(long)), {**BODY, "max_tokens": 400}).json()
    cut = post(served_by(Says(long)), {**BODY, "max_tokens": 399}).json()
    assert (fits["stop_reason"], len(fits["content"][0]["text"])) == ("end_turn", 400)
    assert (cut["stop_reason"], len(cut["content"][0]["text"])) == ("max_tokens", 399)
    assert cut["usage"]["output_tokens"] == 399


def test_a_tool_call_that_does_not_fit_is_left_out():
    cut = post(served_by(Says({"type": "text", "text": "Now"}, BLOCKS[2], stop="tool_use")), {**BODY, "max_tokens": 20})
    assert cut.json()["content"] == [{"type": "text", "text": "Now"}]
    assert cut.json()["stop_reason"] == "max_tokens"


def test_prewarming_answers_nothing_and_is_billed():
    meter = Meter()
    body = post(served_by(Says(*BLOCKS), meter), {**BODY, "max_tokens": 0}).json()
    assert (body["content"], body["stop_reason"], body["usage"]["output_tokens"]) == ([], "max_tokens", 0)
    assert len(meter.taken) == 1


def test_diagnostics_stand_in_the_answer_if_asked_for():
    told = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 9}}
    body = {**BODY, "diagnostics": {"previous_message_id": "msg_x"}}
    meter = Meter(diagnostics=told)
    assert post(served_by(meters=meter), body).json()["diagnostics"] == told
    assert (meter.taken[0].wants_diagnostics, meter.taken[0].previous) == (True, "msg_x")
    streamed = events(post(served_by(meters=Meter(diagnostics=told)), {**body, "stream": True}).text)
    assert streamed[0][1]["message"]["diagnostics"] == told
    first = post(served_by(), {**BODY, "diagnostics": {"previous_message_id": None}}).json()
    assert first["diagnostics"] is None


def test_context_management_and_unknown_fields_are_taken():
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    body = {**BODY, "context_management": edits, "metadata": {"user_id": "u"}, "novelty": 1}
    assert post(served_by(), body, "/v1/messages?beta=true").json()["context_management"] == {"applied_edits": []}
    streamed = events(post(served_by(), {**body, "stream": True}).text)
    assert streamed[-2][1]["context_management"] == {"applied_edits": []}
    assert "context_management" not in streamed[0][1]["message"]


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("deflate, gzip", lambda data: gzip.compress(zlib.compress(data))),
        ("identity", bytes),
    ],
)
def test_packed_bodies(encoding, pack):
    content = pack(json.dumps(BODY, indent=2).encode())
    assert post(served_by(), head={**HEAD, "content-encoding": encoding}, content=content).status_code == 200


def test_chunked_bodies():
    async def chunks():
        for letter in json.dumps(BODY):
            yield letter.encode()

    assert post(served_by(), content=chunks()).status_code == 200


def test_the_same_calls_have_the_same_bytes():
    def run():
        served = served_by(Says(*BLOCKS))
        return [
            (one.content, one.headers) for one in (post(served), post(served), post(served, {**BODY, "stream": True}))
        ]

    first, second = run(), run()
    assert first == second
    assert first[0][0] != first[1][0]


def test_count_tokens():
    served = served_by()
    counted = post(served, {name: BODY[name] for name in ("model", "messages")}, "/v1/messages/count_tokens")
    assert (counted.status_code, counted.json()) == (200, {"input_tokens": 7})
    assert served.calls == 0
    unknown = post(served, {**BODY, "model": "claude-no-1"}, "/v1/messages/count_tokens")
    assert unknown.json()["error"] == {"type": "not_found_error", "message": "model: claude-no-1"}


def test_a_retry_is_said_to_whoever_answers_and_recorded(tmp_path):
    answerer = Says()
    with CallLog(tmp_path / "log.jsonl") as log:
        served = served_by(answerer, log=log)
        post(served)
        post(served, head={**HEAD, "x-stainless-retry-count": "2"})
    assert [asked.retry for asked in answerer.asked] == [0, 2]
    assert [line.get("retry") for line in lines_of(tmp_path / "log.jsonl")] == [None, 2]


def test_every_call_is_recorded_as_a_reader_takes_it(tmp_path):
    path = tmp_path / "log.jsonl"
    marked = {**BODY, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]}]}  # fmt: skip # noqa: E501
    with CallLog(path) as log:
        served = served_by(Says(*BLOCKS, first=0.5, seconds=2.0), log=log)
        message = post(served, marked).json()
        post(served, {**BODY, "stream": True})
        post(served, {**BODY, "max_tokens": -1})
        post(served, {**BODY, "messages": [{"role": "nobody", "content": "x"}]})
    lines = lines_of(path)
    assert lines[0]["request"] == marked
    assert lines[0]["response"] == message
    assert lines[0]["usage"].items() <= message["usage"].items()
    assert lines[0]["workspace"] == workspace_of(HEAD)
    assert [line["first_token_s"] for line in lines[:2]] == [0.5, 0.5]
    assert [line["status"] for line in lines] == [200, 200, 400]
    assert served.unreadable == 1
    assert [call.has_failed for call in calls(path)] == [False, False, True]


def test_answers_come_when_the_clock_says(tmp_path):
    waits = []

    class Watched(ScaledClock):
        async def sleep(self, seconds):
            waits.append(seconds)

    answerer = Says({"type": "text", "text": "x"}, first=1.5, seconds=4.0)
    post(served_by(answerer, clock=Watched()))
    assert waits == [4.0]
    waits.clear()
    post(served_by(answerer, clock=Watched()), {**BODY, "stream": True})
    assert waits[0] == 1.5
    assert sum(waits) == pytest.approx(4.0)


def test_the_option_first_token_holds_where_an_answer_tells_none(tmp_path):
    with CallLog(tmp_path / "log.jsonl") as log:
        post(served_by(log=log, first_token_s=0.7))
        post(served_by(Says(first=0.2), log=log, first_token_s=0.7))
    assert [line["first_token_s"] for line in lines_of(tmp_path / "log.jsonl")] == [0.7, 0.2]


MODELS = [
    {"type": "model", "id": f"m-{n}", "lifecycle": "retired" if n == 3 else "active", "_aliases": ("m",)[: n == 0]}
    for n in range(5)
]


def test_models_are_listed_by_pages():
    served = served_by(models=MODELS)
    whole = get(served, "/v1/models").json()
    assert [one["id"] for one in whole["data"]] == ["m-0", "m-1", "m-2", "m-4"]
    assert (whole["has_more"], whole["first_id"], whole["last_id"]) == (False, "m-0", "m-4")
    assert "_aliases" not in whole["data"][0]
    page = get(served, "/v1/models?limit=2&after_id=m-0").json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == (["m-1", "m-2"], True)
    page = get(served, "/v1/models?limit=2&before_id=m-4").json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == (["m-1", "m-2"], True)
    assert [one["id"] for one in get(served, "/v1/models?lifecycle=retired").json()["data"]] == ["m-3"]
    assert get(served, "/v1/models?limit=0").status_code == 400
    assert get(served, "/v1/models?after_id=m-9").status_code == 404


def test_the_sdk_lists_models():
    async def run():
        async with sdk_of(served_by(models=MODELS)) as client:
            return [one.id async for one in client.models.list(limit=3)]

    assert asyncio.run(run()) == ["m-0", "m-1", "m-2", "m-4"]


def test_one_model():
    served = served_by(models=MODELS)
    assert get(served, "/v1/models/m-1").json()["id"] == "m-1"
    assert get(served, "/v1/models/m").json()["id"] == "m-0"
    assert get(served, "/v1/models/m-9").json()["error"] == {"type": "not_found_error", "message": "model: m-9"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_root_answers_without_a_key(method):
    response = get(served_by(), "/", {}, method)
    assert response.status_code == 200
    assert ("cachecost" in response.text) == (method == "GET")


def test_no_key_stands_in_log_or_answer(tmp_path):
    path = tmp_path / "log.jsonl"
    body = {**BODY, "messages": [{"role": "user", "content": f"my key is {KEY}, keep it"}]}
    echo = Says(by=lambda asked: Says({"type": "text", "text": f"you said {asked.body}"}).answer_)
    with CallLog(path) as log:
        served = served_by(echo, log=log)
        post(served, body)
        post(
            served, {**body, "stream": True}, head={"authorization": f"Bearer {KEY}", "anthropic-version": "2023-06-01"}
        )
        post(served, {**body, "max_tokens": -1})
    assert KEY not in path.read_text()
    assert len(lines_of(path)) == 3


def test_the_placeholder_is_no_secret(tmp_path):
    body = {**BODY, "messages": [{"role": "user", "content": "Is there anything left?"}]}
    with CallLog(tmp_path / "log.jsonl") as log:
        post(served_by(log=log), body, head={**HEAD, "x-api-key": "anything"})
    assert lines_of(tmp_path / "log.jsonl")[0]["request"] == body


@pytest.mark.parametrize("streams", [False, True])
def test_the_sdk_calls_the_app_through_the_plain_transport_too(streams):
    async def run():
        transport = httpx2.ASGITransport(app=app_of(served_by(Says(*BLOCKS))))
        client = anthropic.AsyncAnthropic(
            api_key="k", base_url="http://test", http_client=httpx2.AsyncClient(transport=transport)
        )
        async with client:
            if not streams:
                return await client.messages.create(**BODY)
            async with client.messages.stream(**BODY) as stream:
                return await stream.get_final_message()

    assert asyncio.run(run()).content[2].input == {"a": 1, "b": 2}


def test_ids_do_not_depend_on_the_order_of_different_calls():
    there, back = Ids(7), Ids(7)
    one = [there.next(b"a"), there.next(b"b"), there.next(b"a")]
    other = [back.next(b"b"), back.next(b"a"), back.next(b"a")]
    assert sorted(one) == sorted(other)
    assert len({*one}) == 3
    assert Ids(8).next(b"a") not in one
    assert all(len(name) == 24 and name.isalnum() for name in one)
