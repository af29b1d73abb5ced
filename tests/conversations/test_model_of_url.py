"""A request that names its model in the URL alone: Bedrock's, in every recording that keeps the URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import read_calls
from cachecost.providers.rules import RuleBook

BEDROCK = "https://bedrock-runtime.eu-central-1.amazonaws.com/model"
MODEL = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
ESCAPED = MODEL.replace(":", "%3A")
BODY = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 9511, "output_tokens": 7}
ANSWER = {"content": [{"type": "text", "text": "North."}], "usage": USAGE}
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "North."}]}},
    "usage": {"inputTokens": 3, "outputTokens": 7, "cacheReadInputTokens": 9511, "cacheWriteInputTokens": 0},
    "stopReason": "end_turn",
}
WAYS = [(f"{BEDROCK}/{ESCAPED}/invoke", BODY, ANSWER), (f"{BEDROCK}/{MODEL}/invoke", BODY, ANSWER),
        (f"{BEDROCK}/{ESCAPED}/converse", CONVERSE, CONVERSED)]  # fmt: skip


def read(path: Path) -> list[Call]:
    return list(read_calls(path, "auto", lambda words: None))


def check(calls: list[Call]) -> None:
    (call,) = calls
    assert (call.host, call.billed and call.billed.read) == ("bedrock", 9511)
    assert RuleBook().rules("bedrock", call.request.model).model == RuleBook().rules("bedrock", MODEL).model


@pytest.mark.parametrize(("url", "sent", "answer"), WAYS)
def test_in_an_archive(tmp_path: Path, url: str, sent: dict[str, Any], answer: dict[str, Any]) -> None:
    body = {"mimeType": "application/json", "text": json.dumps(sent)}
    entry = {
        "startedDateTime": "2026-04-15T10:00:00Z",
        "time": 5,
        "request": {"method": "POST", "url": url, "headers": [], "postData": body},
        "response": {"status": 200, "headers": [], "content": {**body, "text": json.dumps(answer)}},
        "timings": {"send": 1, "wait": 1, "receive": 3},
    }
    path = tmp_path / "calls.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {}, "entries": [entry]}}))
    check(read(path))


@pytest.mark.parametrize(("url", "sent", "answer"), WAYS)
def test_in_a_cassette(tmp_path: Path, url: str, sent: dict[str, Any], answer: dict[str, Any]) -> None:
    told = {
        "request": {"body": json.dumps(sent), "headers": {}, "method": "POST", "uri": url},
        "response": {"body": {"string": json.dumps(answer)}, "headers": {}, "status": {"code": 200, "message": "OK"}},
    }
    path = tmp_path / "calls.yaml"
    path.write_text(json.dumps({"interactions": [told], "version": 1}, indent=1))
    check(read(path))


def row(**more: Any) -> dict[str, Any]:
    return {"timestamp": "2026-04-15T10:00:00Z", "request": BODY, "usage": USAGE, **more}


def log(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_in_a_request_log_that_keeps_the_url(tmp_path: Path) -> None:
    check(read(log(tmp_path, row(url=f"{BEDROCK}/{ESCAPED}/invoke"))))


def test_what_the_body_says_wins(tmp_path: Path) -> None:
    body = {**BODY, "model": "claude-opus-4-6"}
    (call,) = read(log(tmp_path, row(request=body, url=f"{BEDROCK}/{ESCAPED}/invoke")))
    assert (call.request.model, call.host) == ("claude-opus-4-6", "bedrock")


def test_the_url_tells_the_host_of_a_body_with_a_model(tmp_path: Path) -> None:
    body = {**BODY, "model": "llama-3.3-70b-versatile"}
    url = "https://api.groq.com/openai/v1/chat/completions"
    (call,) = read(log(tmp_path, row(request=body, url=url)))
    (told,) = read(log(tmp_path, row(request=body, url=url, host="together")))
    assert (call.host, told.host) == ("groq", "together")


@pytest.mark.parametrize("url", [None, "https://api.anthropic.com/v1/messages", "?"])
def test_no_model_anywhere_is_an_error(tmp_path: Path, url: str | None) -> None:
    with pytest.raises(Exception, match="model: expected a model id"):
        read(log(tmp_path, row(url=url)))


@pytest.mark.parametrize("where", ["row", "body", "header"])
def test_interleaved_thinking_is_asked_for_by_a_beta(tmp_path: Path, where: str) -> None:
    beta, body = ["interleaved-thinking-2025-05-14"], {**BODY, "model": "claude-sonnet-4-5"}
    rows = {
        "row": row(request=body, anthropic_beta=f"files-api-2025-04-14,{beta[0]}"),
        "body": row(request={**body, "anthropic_beta": beta}),
    }
    if where != "header":
        (call,) = read(log(tmp_path, rows[where]))
        assert "interleaved-thinking" in str(call.request.params["anthropic_beta"])
        return
    told = {
        "request": {
            "body": json.dumps(body),
            "headers": {"anthropic-beta": [f"files-api-2025-04-14, {beta[0]}"]},
            "method": "POST",
            "uri": "https://api.anthropic.com/v1/messages",
        },
        "response": {"body": {"string": json.dumps(ANSWER)}, "headers": {}, "status": {"code": 200, "message": "OK"}},
    }
    path = tmp_path / "calls.yaml"
    path.write_text(json.dumps({"interactions": [told], "version": 1}, indent=1))
    (call,) = read(path)
    assert call.request.params["betas"] == beta
