"""Requests and answers of Gemini's generateContent as Messages bodies, and as calls where they were recorded."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cachecost.conversations.readers.apis.gemini import from_candidate, from_generate_content
from cachecost.conversations.readers.call_builder import CallBuilder
from cachecost.conversations.readers.http.exchange import HttpExchange, read
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import Usage

Body = dict[str, Any]
MODEL = "gemini-3.8-flash"
GEMINI = f"https://generativelanguage.googleapis.com/v1beta/models/{MODEL}"
VERTEX = f"https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/{MODEL}"
SCHEMA = {"type": "object", "properties": {"city_name": {"type": "string"}}}


def says(role: str, *parts: Body) -> Body:
    return {"role": role, "parts": list(parts)}


ASKED = says("user", {"text": "Which way?"})
PLAIN = {"role": "user", "content": [{"type": "text", "text": "Which way?"}]}
CALLED = {"functionCall": {"name": "look", "args": {"city_name": "Oslo"}}}
RETURNED = {"functionResponse": {"name": "look", "response": {"snow_cm": 3}}}


def used(called: str, name: str = "look", **arguments: Any) -> Body:
    return {"type": "tool_use", "id": called, "name": name, "input": arguments}


def returned(called: str, content: str = '{"snow_cm": 3}') -> Body:
    return {"type": "tool_result", "tool_use_id": called, "content": content}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"text": "North."}, {"type": "text", "text": "North."}),
        ({"text": "", "thoughtSignature": "s"}, {"type": "text", "text": ""}),
        ({"thoughtSignature": "s"}, {"type": "text", "text": ""}),
        ({"text": "Hm.", "thought": True}, {"type": "thinking", "thinking": "Hm."}),
        ({"text": "Hm.", "thought": False}, {"type": "text", "text": "Hm."}),
        (
            {"text": "Hm.", "thought": True, "thoughtSignature": "s"},
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        ),
        (CALLED, used("look 1", city_name="Oslo")),
        ({"functionCall": {"id": "c", "name": "look"}}, used("c")),
        ({**CALLED, "thoughtSignature": "s"}, used("look 1", city_name="Oslo")),
        (RETURNED, returned("look 1")),
        (
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        ),
        (
            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/f"}},
            {"type": "document", "source": {"type": "url", "url": "gs://b/f"}},
        ),
        (
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"type": "executableCode", "language": "PYTHON", "code": "1"},
        ),
    ],
)
def test_parts_are_blocks(part: Body, block: Body) -> None:
    assert from_generate_content({"contents": [says("user", part)]}, MODEL)["messages"][0]["content"] == [block]


def test_a_single_object_is_an_array_of_one() -> None:
    tools = {"functionDeclarations": {"name": "go"}}
    one = from_generate_content({"contents": ASKED, "tools": tools}, MODEL)
    several = from_generate_content({"contents": [ASKED], "tools": [{"functionDeclarations": [{"name": "go"}]}]}, MODEL)
    assert one == several and one["tools"] == [{"name": "go", "input_schema": {"type": "object"}}]


def test_a_whole_request() -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
        "tools": [
            {"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters": SCHEMA}, {"name": "go"}]},
            {"googleSearch": {}, "codeExecution": None},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {
            "maxOutputTokens": 16,
            "temperature": 0.0,
            "responseSchema": SCHEMA,
            "thinkingConfig": {"thinkingLevel": "LOW"},
        },
        "safetySettings": None,
        "contents": [ASKED, says("model", CALLED, CALLED), says("user", RETURNED, RETURNED), says("", {"text": "So?"})],
    }
    found = from_generate_content(body, MODEL)
    assert found == {
        "model": MODEL,
        "max_tokens": 16,
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        "tools": [
            {"name": "look", "description": "Looks.", "input_schema": SCHEMA},
            {"name": "go", "input_schema": {"type": "object"}},
            {"type": "googleSearch", "name": "googleSearch"},
        ],
        "tool_choice": {"type": "any"},
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"},
        "messages": [
            PLAIN,
            {"role": "assistant", "content": [used("look 1", city_name="Oslo"), used("look 2", city_name="Oslo")]},
            {"role": "user", "content": [returned("look 1"), returned("look 2")]},
            {"role": "user", "content": [{"type": "text", "text": "So?"}]},
        ],
    }
    assert Intake().body(found).model == MODEL


def test_snake_case_is_the_same_and_leaves_other_peoples_names_alone() -> None:
    snake = {
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [{"name": "look", "parameters_json_schema": SCHEMA}]}],
        "generation_config": {"max_output_tokens": 9, "response_json_schema": SCHEMA},
        "contents": [{"parts": [{"function_call": {"name": "look", "args": {"city_name": "Oslo"}}}], "role": "model"}],
    }
    assert from_generate_content(snake, MODEL) == {
        "model": MODEL,
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "look", "input_schema": SCHEMA}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "messages": [{"role": "assistant", "content": [used("look 1", city_name="Oslo")]}],
    }


def test_what_a_cached_content_brings_in_is_only_named() -> None:
    found = from_generate_content({"cachedContent": "cachedContents/a", "contents": [ASKED]}, MODEL)
    named = {"type": "cached_content", "name": "cachedContents/a", "cache_control": {"type": "ephemeral"}}
    assert (found["system"], found["model"]) == ([named], f"{MODEL}-explicit")


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, {"type": "auto"}),
        ({"mode": "NONE"}, {"type": "none"}),
        ({"mode": "ANY", "allowedFunctionNames": ["look"]}, {"type": "tool", "name": "look"}),
        ({"mode": "ANY", "allowedFunctionNames": ["look", "go"]}, {"type": "any"}),
        ({}, None),
    ],
)
def test_which_tools_may_be_called(config: Body, choice: Body | None) -> None:
    body = {"contents": [ASKED], "toolConfig": {"functionCallingConfig": config}}
    assert from_generate_content(body, MODEL).get("tool_choice") == choice


@pytest.mark.parametrize(
    ("body", "says_what"),
    [
        ({}, "contents: expected an array; got nothing"),
        ({"contents": ["hi"]}, "contents.0: expected an object; got 'hi'"),
        (
            {"contents": [says("system", {"text": "x"})]},
            "contents.0.role: expected user, model or function; got 'system'",
        ),
        (
            {"contents": [says("user", {})]},
            "contents.0.parts.0: expected a part with one kind of content; got an object",
        ),
        ({"contents": [ASKED], "tools": "a"}, "tools: expected an array; got 'a'"),
        ({"contents": [ASKED], "generationConfig": []}, "generationConfig: expected an object; got an array"),
    ],
)
def test_what_is_wrong_has_its_place(body: Body, says_what: str) -> None:
    with pytest.raises(NotAMessage) as caught:
        from_generate_content(body, MODEL)
    assert str(caught.value) == says_what


@pytest.mark.parametrize("answer", [{}, {"candidates": []}, {"candidates": [{"finishReason": "SAFETY"}]}])
def test_an_answer_that_was_blocked_has_no_blocks(answer: Body) -> None:
    assert from_candidate(answer) == []


# ------------------------------------------------------------------------------------------------ recorded


def piece(*parts: Body, **usage: int) -> Body:
    return {
        "candidates": [{"content": says("model", *parts), "index": 0}],
        "usageMetadata": usage,
        "modelVersion": MODEL,
        "responseId": "r",
    }


TOKENS = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
PIECES = [
    piece({"text": "Hm.", "thought": True}, promptTokenCount=100),
    piece({"text": "No"}, promptTokenCount=100),
    piece({"text": "rth."}, {"thoughtSignature": "s"}, **TOKENS),
]
WHOLE = piece({"text": "Hm.", "thought": True}, {"text": "North."}, **TOKENS)
SENT = "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in PIECES).encode()
BODY = {"contents": [ASKED]}


def call(answer: bytes, url: str = f"{GEMINI}:generateContent?key=k") -> SimpleNamespace:
    """What a call is built of."""
    exchange = HttpExchange(url=url, request=json.dumps(BODY).encode(), response=answer)
    found = read(exchange, lambda body, **fields: SimpleNamespace(**fields, body=body))
    assert isinstance(found, SimpleNamespace)
    return found


@pytest.mark.parametrize(
    "answer", [json.dumps(WHOLE).encode(), SENT, json.dumps(PIECES).encode()], ids=["whole", "events", "array"]
)
def test_an_answer_in_one_piece_or_streamed(answer: bytes) -> None:
    found = call(answer)
    assert (found.host, found.body["model"]) == ("gemini", MODEL)
    assert found.usage == Usage(40, 60, 0, 0, 7)
    texts = [one.get("text") or one.get("thinking") for one in found.answer if one != {"type": "text", "text": ""}]
    assert texts == ["Hm.", "North."]
    assert CallBuilder().build(**vars(found)).billed == found.usage


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (f"{GEMINI}:streamGenerateContent?alt=sse", "gemini"),
        (f"{VERTEX}:generateContent", "vertex"),
        (f"https://gateway.example/v1/models/{MODEL}:generateContent", "gateway.example"),
        (f"/v1beta/models/{MODEL}:generateContent", None),
    ],
)
def test_who_serves_it(url: str, host: str | None) -> None:
    found = call(json.dumps(WHOLE).encode(), url)
    assert (found.host, found.body["model"]) == (host, MODEL)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b'{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}', 429),
        (b'[{"error": {"code": 503, "status": "UNAVAILABLE"}}]', 503),
    ],
)
def test_an_error_after_a_good_status(answer: bytes, status: int) -> None:
    assert call(answer).status == status


def test_an_array_of_something_else_is_refused() -> None:
    with pytest.raises(NotAMessage, match=r"response\.body: expected an array of JSON objects; got an array"):
        call(b"[1]")
