"""Seeded broken requests to OpenAI's and Gemini's served APIs: each is answered or refused in the API's own form."""

import asyncio
import random

import httpx2
import pytest
from api_dialects import CHAT, GEMINI_API, KEY, OTHERS, RESPONSES
from request_mutations import PNG, body_of
from server_fakes import served_by
from test_server_billed import START, meter

from cachecost.conversations.readers.request_log import calls
from cachecost.live.clock import SteppingClock
from cachecost.live.request_log import CallLog
from cachecost.live.server.answers.agent import AgentAnswerer
from cachecost.live.server.app import app_of
from loopback import Loopback
from slow_cases import mostly_slow

REQUESTS = 250
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "required": ["a"]}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}
FUNCTION = {"name": "get_order", "parameters": {"type": "object", "properties": {"id": {"enum": [1]}}}}
LOOP = {
    CHAT.name: {
        "model": CHAT.model,
        "max_completion_tokens": 90,
        "response_format": FORM,
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tool_choice": {"type": "function", "function": {"name": "get_order"}},
        "tools": [{"type": "function", "function": FUNCTION}, {"type": "custom", "custom": {"name": "read_any"}}],
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "Say it."}, IMAGE]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a line"},
        ],
    },
    RESPONSES.name: {
        "model": RESPONSES.model,
        "instructions": "Be brief.",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
        "tools": [{"type": "function", **FUNCTION}, {"type": "custom", "name": "read_any"}, {"type": "web_search"}],
        "tool_choice": "required",
        "stream": True,
        "store": False,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say it."}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "call_1", "name": "get_order", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "a"}]},
        ],
    },
    GEMINI_API.name: {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 90, "responseSchema": {"type": "OBJECT"}, "candidateCount": 1},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_order"]}},
        "tools": [{"functionDeclarations": [FUNCTION]}, {"googleSearch": {}}],
        "contents": [
            {"role": "user", "parts": [{"text": "Say it."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "get_order", "args": {}}, "thoughtSignature": "x"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": {"a": 1}}}]},
        ],
    },
}


def request_of(api, dice):
    bodies = [LOOP[api.name], api.body(api.model, "Be brief.", [api.question("Hi")], dice.random() < 0.5)]
    path = dice.choice([api.path, api.stream_path]).format(model=api.model)
    key = api.headers if dice.random() < 0.95 else {}
    return {"method": "POST", "url": path, "headers": dict(key), "content": body_of(dice, bodies)}


@pytest.mark.parametrize("api", mostly_slow(OTHERS, 1), ids=lambda api: api.name)
def test_no_request_makes_an_internal_error(api, tmp_path):
    said = []

    async def run(served):
        async with httpx2.AsyncClient(transport=Loopback(app_of(served)), base_url="http://test") as client:
            dices = [random.Random(f"{api.name} {number}") for number in range(REQUESTS)]
            return [(number, await client.request(**request_of(api, dice))) for number, dice in enumerate(dices)]

    with CallLog(tmp_path / "log.jsonl") as log:
        clock = SteppingClock(1.0, START)
        served = served_by(AgentAnswerer(), meter("bytes"), clock=clock, log=log, say=said.append)
        answers = asyncio.run(run(served))
    assert [(number, answer.status_code) for number, answer in answers if answer.status_code >= 500] == []
    assert said == []
    statuses = [answer.status_code for _, answer in answers]
    assert min(statuses.count(200), statuses.count(400)) > REQUESTS * 0.1
    assert all(answer.json()["error"]["message"] for _, answer in answers if answer.status_code >= 400)
    lines = list(calls(log.path, lambda words: None, keep_content=True))
    assert len(lines) == served.calls - served.unreadable >= statuses.count(200)
    assert KEY not in log.path.read_text()
