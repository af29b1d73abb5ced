"""One HTTP exchange: which are calls of which API and host, bodies however coded, answers in one piece or streamed."""

from __future__ import annotations

import base64
import gzip
import json
import sys
import zlib
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call, Iteration
from cachecost.conversations.readers.call_builder import CallBuilder
from cachecost.conversations.readers.http.exchange import HttpExchange, headers_of, read
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import Usage

BREAKPOINT = {"type": "ephemeral"}
BODY: dict[str, Any] = {
    "model": "claude-opus-4-6",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": BREAKPOINT}],
    "messages": [{"role": "user", "content": "Which way?"}],
}
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-6",
    "content": [{"type": "text", "text": "North."}],
    "usage": {"input_tokens": 3, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 40, "output_tokens": 7},
}
USAGE = Usage(3, 40, 500, 0, 7)
URL = "https://api.anthropic.com/v1/messages?beta=true"


def exchange(body: Any = BODY, answer: Any = ANSWER, url: str = URL, **more: Any) -> HttpExchange:
    return HttpExchange(
        **{
            "url": url,
            "request": body if isinstance(body, bytes) else json.dumps(body).encode(),
            "response": answer if isinstance(answer, bytes) else json.dumps(answer).encode(),
            **more,
        }
    )


def call(one: HttpExchange) -> SimpleNamespace:
    """What a call is built of."""
    found = read(one, lambda body, **fields: SimpleNamespace(**{"usage": None, "answer": (), **fields}, body=body))
    assert isinstance(found, SimpleNamespace), found
    return found


def fault(one: HttpExchange) -> str:
    with pytest.raises(NotAMessage) as error:
        read(one, CallBuilder().build)
    return str(error.value)


def sent(*events: Any) -> bytes:
    """Server-sent events as Anthropic sends them."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def chunks(*events: Any) -> bytes:
    """Server-sent events as OpenAI sends them."""
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in events) + b"data: [DONE]\n\n"


def frames(*payloads: Any) -> bytes:
    """Amazon's event stream, each frame with one header."""
    header = b"\x0d:content-type\x07\x00\x10application/json"
    return b"".join(_frame(header, json.dumps(one).encode()) for one in payloads)


def _frame(header: bytes, payload: bytes) -> bytes:
    prelude = (len(header) + len(payload) + 16).to_bytes(4, "big") + len(header).to_bytes(4, "big")
    frame = prelude + zlib.crc32(prelude).to_bytes(4, "big") + header + payload
    return frame + zlib.crc32(frame).to_bytes(4, "big")


STREAM = (
    {"type": "message_start", "message": {**ANSWER, "content": [], "usage": {**ANSWER["usage"], "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "No"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "rth."}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"n": 1}}},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t", "name": "go", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"to":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ' "N"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"input_tokens": 5, "output_tokens": 7}},
    {"type": "message_stop"},
)
STREAMED = [
    {"type": "thinking", "thinking": "hm", "signature": "abc"},
    {"type": "text", "text": "North.", "citations": [{"n": 1}]},
    {"type": "tool_use", "id": "t", "name": "go", "input": {"to": "N"}},
]

# ------------------------------------------------------------------------------------------------ a whole call


def test_a_call_is_told_with_its_usage_and_its_answer() -> None:
    headers = {"x-claude-code-session-id": "s1"}
    one = exchange(started="2026-03-07T10:00:00Z", first_token_s=1.5, request_headers=headers, line=4)
    found = call(one)
    assert found.body == BODY and found.answer == ANSWER["content"] and found.usage == USAGE
    assert (found.host, found.status, found.session, found.line) == ("anthropic", 200, "s1", 4)
    assert (found.timestamp, found.first_token_s) == ("2026-03-07T10:00:00Z", 1.5)
    made = read(one, CallBuilder().build)
    assert isinstance(made, Call) and made.workspace == ""
    assert [(breakpoint.layer, breakpoint.index, breakpoint.ttl) for breakpoint in made.request.breakpoints] == [
        ("system", 0, "5m")
    ]
    assert made.start == 1772877600.0


def test_copies_have_one_id_and_an_invented_id_is_no_copy() -> None:
    ids = {call(one).id for one in (exchange(), exchange(), exchange({**BODY, "max_tokens": 5}))}
    assert len(ids) == 2 and all(one.startswith("msg_1 ") for one in ids)
    assert call(exchange(answer={**ANSWER, "id": None})).id == ""


def test_passes_of_a_call_are_told() -> None:
    usage = {**ANSWER["usage"], "iterations": [{"type": "compaction", "input_tokens": 9, "output_tokens": 2}]}
    found = call(exchange(answer={**ANSWER, "usage": usage}))
    assert found.iterations == (Iteration("compaction", Usage(9, 0, 0, 0, 2)),)


@pytest.mark.parametrize(
    ("headers", "user", "session"),
    [
        ({}, "user_1_account_2_session_abc", "abc"),
        ({}, '{"device_id": "d", "session_id": "abc"}', "abc"),
        ({}, '{"device_id": ', ""),
        ({}, "somebody", ""),
        ({"session_id": "h"}, "user_1_account_2_session_abc", "h"),
    ],
)
def test_a_client_may_name_its_session(headers: dict[str, str], user: str, session: str) -> None:
    assert call(exchange({**BODY, "metadata": {"user_id": user}}, request_headers=headers)).session == session


def test_keys_are_not_even_looked_at() -> None:
    pairs = [("Authorization", "Bearer x"), ("X-Api-Key", "x"), ("Cookie", "x"), ("Content-Type", "application/json")]
    assert headers_of(pairs) == {"content-type": "application/json"}


def test_the_day_is_told_where_the_recorder_took_the_date_out() -> None:
    headers = {"anthropic-ratelimit-requests-reset": "2026-02-07T14:39:09Z"}
    assert call(exchange(response_headers=headers)).seen_on == date(2026, 2, 7)
    assert call(exchange(response_headers={"anthropic-ratelimit-requests-reset": "X"})).seen_on is None


# ------------------------------------------------------------------------------------------- which API, whose host

CLAUDE_BODY = {name: value for name, value in BODY.items() if name != "model"} | {"anthropic_version": "x"}
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model"
CLOUD = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models"


@pytest.mark.parametrize(
    ("url", "body", "host", "model"),
    [
        (
            f"{BEDROCK}/us.anthropic.claude-opus-4-6-v1%3A0/invoke",
            CLAUDE_BODY,
            "bedrock",
            "us.anthropic.claude-opus-4-6-v1:0",
        ),
        (
            "https://bedrock-runtime.<REGION>.amazonaws.com/model/anthropic.claude-opus-4-6-v1/invoke",
            CLAUDE_BODY,
            "bedrock",
            "anthropic.claude-opus-4-6-v1",
        ),
        (
            f"{BEDROCK}/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx9/invoke",
            CLAUDE_BODY,
            "bedrock",
            "claude-opus-4-6",
        ),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages", BODY, "bedrock", "claude-opus-4-6"),
        (
            f"{CLOUD}/claude-opus-4-5@20251101:rawPredict",
            CLAUDE_BODY,
            "google-cloud",
            "locations/us-east5/publishers/anthropic/models/claude-opus-4-5@20251101",
        ),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1/messages", BODY, "bedrock", "claude-opus-4-6"),
        ("https://aws-external-anthropic.us-east-1.api.aws/v1/messages", BODY, "anthropic", "claude-opus-4-6"),
        (
            "https://x.execute-api.us-east-1.amazonaws.com/v1/messages",
            BODY,
            "x.execute-api.us-east-1.amazonaws.com",
            "claude-opus-4-6",
        ),
        ("https://acme.services.ai.azure.com/anthropic/v1/messages", BODY, "foundry", "claude-opus-4-6"),
        (
            "https://openrouter.ai/api/v1/messages",
            {**BODY, "model": "anthropic/claude-opus-4.6"},
            "openrouter",
            "claude-opus-4.6",
        ),
        ("http://localhost:4000/v1/messages", BODY, None, "claude-opus-4-6"),
        ("http://localhost:4000/v1/messages", {**BODY, "model": "bedrock/my-router"}, "bedrock", "claude-opus-4-6"),
        ("https://[SCRUBBED]/v1/messages", BODY, None, "claude-opus-4-6"),
    ],
)
def test_who_serves_messages(url: str, body: Any, host: str | None, model: str) -> None:
    found = call(exchange(body, url=url))
    assert (found.host, found.body["model"], found.usage) == (host, model, USAGE)


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (exchange(url=f"{URL.partition('?')[0]}/count_tokens"), "token counting"),
        (exchange(url=f"{CLOUD}/count-tokens:rawPredict"), "token counting"),
        (exchange(url="https://api.anthropic.com/v1/messages/batches"), "batch API"),
        (exchange(url="https://api.anthropic.com/v1/messages/batches/b1/cancel"), "batch API"),
        (exchange(method="GET"), "not a model call"),
        (exchange(url="https://api.anthropic.com/v1/files"), "not a model call"),
        (exchange({"to": "+1", "text": "hi"}, url="https://sms.example/v1/messages"), "not a model call"),
        (exchange(b"to=1&text=hi", url="https://sms.example/v1/messages"), "not a model call"),
        (
            exchange(url="https://generativelanguage.googleapis.com/v1/models/g:batchGenerateContent"),
            "batch API",
        ),
        (exchange(url="https://generativelanguage.googleapis.com/v1/models/g:countTokens"), "token counting"),
        (exchange(url="https://generativelanguage.googleapis.com/v1beta/cachedContents"), "not a model call"),
        (exchange(url=CLOUD.replace("anthropic", "mistralai") + "/m:rawPredict"), "unsupported model API"),
        (
            exchange({"inputText": "x"}, url=f"{BEDROCK}/amazon.titan-embed-text-v2:0/invoke"),
            "unsupported model API",
        ),
        (
            exchange({"prompt": "\n\nHuman:"}, url=f"{BEDROCK}/anthropic.claude-v2/invoke"),
            "unsupported model API",
        ),
        (exchange(url="https://api.openai.com/v1/completions"), "unsupported model API"),
        (exchange(status=None), "no answer"),
        (exchange(status=307), "redirected"),
    ],
)
def test_what_is_no_call_is_named(one: HttpExchange, what: str) -> None:
    assert read(one, CallBuilder().build) == what


def test_a_failed_call_keeps_its_status_and_its_answer_is_not_read() -> None:
    found = call(exchange(status=529, answer=b"<html>busy</html>"))
    assert (found.status, found.usage, tuple(found.answer)) == (529, None, ())


def test_an_answer_that_was_not_kept_tells_nothing() -> None:
    found = call(exchange(answer=b""))
    assert (found.status, found.usage, tuple(found.answer)) == (200, None, ())


# ------------------------------------------------------------------------------------------------------ codings


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("", gzip.compress),
        ("gzip", bytes),
        ("br", bytes),
        ("deflate, gzip", lambda data: gzip.compress(zlib.compress(data))),
    ],
)
def test_bodies_are_unpacked_where_they_are_packed(coding: str, packed: Any) -> None:
    headers = {"content-encoding": coding} if coding else {}
    one = exchange(request_headers=headers, response_headers=headers)
    one = replace(one, request=packed(one.request), response=packed(one.response))
    assert call(one).usage == USAGE and call(one).body == BODY


def test_a_coding_that_cannot_be_unpacked_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("brotli", "brotlicffi"):
        monkeypatch.setitem(sys.modules, name, None)
    one = exchange(answer=b"\x1b\x03", response_headers={"content-encoding": "br"})
    assert fault(one) == "response.body: expected a body that can be decompressed (br requires brotli); got bytes"
    monkeypatch.setitem(sys.modules, "brotli", SimpleNamespace(decompress=lambda data: json.dumps(ANSWER).encode()))
    assert call(one).usage == USAGE


# ------------------------------------------------------------------------------------------------------ streams


def test_a_stream_comes_to_blocks_and_the_largest_usage() -> None:
    found = call(exchange(answer=sent(*STREAM)))
    assert found.answer == STREAMED
    assert found.usage == Usage(5, 40, 500, 0, 7)


def test_a_stream_on_bedrock_is_packed_in_frames() -> None:
    packed = frames(*({"bytes": base64.b64encode(json.dumps(one).encode()).decode(), "p": "ab"} for one in STREAM))
    url = f"{BEDROCK}/anthropic.claude-opus-4-6-v1/invoke-with-response-stream"
    found = call(exchange(CLAUDE_BODY, packed, url))
    assert (found.answer, found.usage) == (STREAMED, Usage(5, 40, 500, 0, 7))
    cut = call(exchange(CLAUDE_BODY, packed[:-9], url))
    assert cut.answer == STREAMED
    damaged = exchange(CLAUDE_BODY, packed[:20] + b"?" + packed[21:], url)
    assert fault(damaged) == "response.body: expected an event stream; got a damaged frame at byte 0"


@pytest.mark.parametrize("ends", [b'data: {"type": "content_', b"event: content_block_delta\n", b"event: x\ndata:"])
def test_a_stream_that_is_cut_off_tells_what_it_told(ends: bytes) -> None:
    found = call(exchange(answer=sent(*STREAM[:7], STREAM[10]) + ends))
    assert found.usage == Usage(3, 40, 500, 0, 1)
    assert found.answer[1] == {"type": "text", "text": "No"}


def test_input_of_a_tool_that_is_cut_off_stays_as_it_came() -> None:
    found = call(exchange(answer=sent(*STREAM[:1], *STREAM[9:11])))
    assert found.answer == [{"type": "tool_use", "id": "t", "name": "go", "input": '{"to":'}]


def test_a_damaged_event_is_a_fault() -> None:
    damaged = sent(STREAM[0]) + b'data: {"type"\n\n' + sent(*STREAM[1:])
    assert fault(exchange(answer=damaged)) == "response.body: expected JSON; got '{\"type\"'"


@pytest.mark.parametrize(("kind", "status"), [("overloaded_error", 529), ("api_error", 500), ("strange", 500)])
def test_an_error_in_place_of_a_stream_is_a_failed_call(kind: str, status: int) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "no"}}
    for answer in (sent(event), event):
        found = call(exchange(answer=answer))
        assert (found.status, found.usage) == (status, None)


# ------------------------------------------------------------------------------------------------------- OpenAI

CHAT = "https://api.openai.com/v1/chat/completions"
ASKED = {
    "model": "gpt-5.1",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
}
CALLED = {"id": "c1", "type": "function", "function": {"name": "go", "arguments": '{"to": "N"}'}}
CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}


def test_a_chat_completion() -> None:
    message = {"role": "assistant", "content": "North.", "tool_calls": [CALLED]}
    answer = {"id": "cmpl", "created": 1772877600, "choices": [{"message": message}], "usage": CHAT_USAGE}
    found = call(exchange(ASKED, answer, CHAT))
    assert (found.host, found.usage, found.timestamp) == (
        "openai",
        Usage(36, 64, 0, 0, 7),
        "2026-03-07T10:00:00.000000Z",
    )
    assert found.body["messages"][0]["role"] == "user" and found.body["system"]
    assert [block["type"] for block in found.answer] == ["text", "tool_use"]


def test_a_streamed_chat_completion_comes_to_the_same() -> None:
    pieces = [
        {"role": "assistant", "content": ""},
        {"content": "Nor"},
        {"content": "th."},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "go", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"to":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "N"}'}}]},
    ]
    stream = [{"id": "cmpl", "choices": [{"index": 0, "delta": piece}], "usage": None} for piece in pieces]
    last = {"id": "cmpl", "choices": [], "usage": CHAT_USAGE}
    found = call(exchange({**ASKED, "stream": True}, chunks(*stream, last), CHAT))
    whole = {"choices": [{"message": {"role": "assistant", "content": "North.", "tool_calls": [CALLED]}}]}
    assert found.answer == call(exchange(ASKED, whole, CHAT)).answer
    assert found.usage == Usage(36, 64, 0, 0, 7)


def test_a_deployment_in_the_address_is_the_model_of_last_resort() -> None:
    url = "https://acme.openai.azure.com/openai/deployments/mine/chat/completions?api-version=1"
    nameless = {"messages": ASKED["messages"]}
    answer = {"choices": [{"message": {"role": "assistant", "content": "x"}}]}
    assert call(exchange(nameless, answer, url)).body["model"] == "mine"
    assert call(exchange(ASKED, answer, url)).body["model"] == "gpt-5.1"


def test_the_responses_api_whole_and_streamed() -> None:
    url, asked = "https://api.openai.com/v1/responses", {"model": "gpt-5.1", "input": "Hi"}
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "North."}]}
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 7}
    answer = {"id": "resp", "output": [item], "usage": usage}
    found = call(exchange(asked, answer, url))
    assert (found.usage, [block["type"] for block in found.answer]) == (Usage(36, 64, 0, 0, 7), ["text"])
    events = (
        {"type": "response.created", "response": {"id": "resp", "output": []}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": answer},
    )
    assert call(exchange(asked, sent(*events), url)) == found
    cut = call(exchange(asked, sent(*events[:2]), url))
    assert (cut.usage, cut.answer) == (None, found.answer)


# ----------------------------------------------------------------------------------------------------- Converse

POINT = {"cachePoint": {"type": "default"}}
CONVERSE: dict[str, Any] = {
    "system": [{"text": "Be brief."}, POINT],
    "messages": [
        {"role": "user", "content": [{"text": "Which way?"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "go", "input": {"to": "N"}}}]},
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t", "content": [{"json": {"ok": True}}], "status": "error"}},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"cachePoint": {"type": "default", "ttl": "1h"}},
            ],
        },
    ],
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "go", "description": "Goes.", "inputSchema": {"json": {"type": "object"}}}},
            POINT,
        ],
        "toolChoice": {"tool": {"name": "go"}},
    },
    "inferenceConfig": {"maxTokens": 50},
    "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
}
CONVERSE_URL = f"{BEDROCK}/anthropic.claude-opus-4-6-v1/converse"
CONVERSE_USAGE = {"inputTokens": 3, "outputTokens": 7, "cacheReadInputTokens": 40, "cacheWriteInputTokens": 500}
SAID = [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, {"text": "North."}]


def test_converse_is_the_messages_api_in_other_words() -> None:
    answer = {"output": {"message": {"role": "assistant", "content": SAID}}, "usage": CONVERSE_USAGE}
    found = call(exchange(CONVERSE, answer, CONVERSE_URL))
    assert found.body == {
        "model": "anthropic.claude-opus-4-6-v1",
        "max_tokens": 50,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": BREAKPOINT}],
        "tools": [
            {"name": "go", "description": "Goes.", "input_schema": {"type": "object"}, "cache_control": BREAKPOINT},
        ],
        "tool_choice": {"type": "tool", "name": "go"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Which way?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "go", "input": {"to": "N"}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": '{"ok": true}'}],
                        "is_error": True,
                    },
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                        "cache_control": {"type": "ephemeral", "ttl": "1h"},
                    },
                ],
            },
        ],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    assert (found.host, found.usage) == ("bedrock", USAGE)
    assert found.answer == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "North."},
    ]
    assert len(CallBuilder().build(found.body).request.breakpoints) == 3


def test_converse_streamed() -> None:
    def delta(index: int, **what: Any) -> dict[str, Any]:
        return {"contentBlockIndex": index, "delta": what}

    events = (
        {"role": "assistant"},
        delta(0, reasoningContent={"text": "h"}),
        delta(0, reasoningContent={"text": "m"}),
        delta(0, reasoningContent={"signature": "s"}),
        delta(1, text="Nor"),
        delta(1, text="th."),
        {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t", "name": "go"}}},
        delta(2, toolUse={"input": '{"to":'}),
        delta(2, toolUse={"input": ' "N"}'}),
        {"contentBlockIndex": 2},
        {"stopReason": "end_turn"},
        {"usage": CONVERSE_USAGE, "metrics": {"latencyMs": 1}},
    )
    found = call(exchange(CONVERSE, frames(*events), f"{CONVERSE_URL}-stream"))
    assert found.usage == USAGE
    assert found.answer == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "North."},
        {"type": "tool_use", "id": "t", "name": "go", "input": {"to": "N"}},
    ]


def test_a_stream_without_numbers_of_blocks_is_a_fault() -> None:
    lost = {"contentBlockIndex": {}, "delta": {"text": "x"}}
    one = exchange(CONVERSE, frames(lost), f"{CONVERSE_URL}-stream")
    assert fault(one) == "response.body.contentBlockIndex: expected the number of a block; got an object"


# ------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (exchange(b"REDACTED"), "request.body: expected JSON; got 'REDACTED'"),
        (exchange(b""), "request.body: expected JSON; got nothing"),
        (exchange(b"[1]"), "request.body: expected a JSON object; got an array"),
        (exchange(b'{"model": "\xff"}'), "request.body: expected JSON; got bytes that are not UTF-8"),
        (
            exchange(b"\x1f\x8b\x08broken", request_headers={"content-encoding": "gzip"}),
            "request.body: expected a body in gzip; got damaged bytes",
        ),
        (exchange(answer=b"<html>"), "response.body: expected JSON; got '<html>'"),
        (exchange(answer={"scrubbed": True}), "response.body.content: expected an array; got nothing"),
        (
            exchange(answer={**ANSWER, "usage": {"input_tokens": -1}}),
            "response.body.usage.input_tokens: expected a whole number of tokens; got -1",
        ),
        (
            exchange({**CONVERSE, "system": [POINT]}, url=CONVERSE_URL, status=529),
            "request.body.system.0.cachePoint: expected a block before it; got nothing",
        ),
        (
            exchange({"messages": [{"role": "user", "content": "x"}]}, url=CONVERSE_URL, status=529),
            "request.body.messages.0.content: expected an array; got 'x'",
        ),
    ],
)
def test_faults_say_where(one: HttpExchange, message: str) -> None:
    assert fault(one) == message


def test_faults_are_named_as_the_file_names_them() -> None:
    one = exchange(b"x", request_at="log.entries[2].request.postData.text")
    assert fault(one).startswith("log.entries[2].request.postData.text: expected JSON")
