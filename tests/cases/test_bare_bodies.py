"""Bodies of other APIs than Anthropic's, alone or in a recorded exchange: what lint says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import Run

from cachecost.analysis.lint import lint
from cachecost.base.errors import InputError
from cachecost.conversations.readers.apis.converse import from_converse
from cachecost.conversations.readers.apis.formats import api_of
from command_runs import run_here

Body = dict[str, Any]
CASE = "13-converse-ttl-order"
MODEL = "us.anthropic.claude-sonnet-4-6"
POINT = {"cachePoint": {"type": "default"}}
HOUR = {"cachePoint": {"type": "default", "ttl": "1h"}}
LONG = {"text": "You help with whales. " * 700}


@pytest.mark.parametrize("name", ["exchange.jsonl", "body.json", "anthropic.json"])
def test_an_hour_after_five_minutes_is_refused_on_converse_too(run_case: Run, name: str) -> None:
    done = run_case(CASE, "lint", name, "--json")
    (found,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, found["code"], found["path"]) == (1, "CC502", "messages.1.content.0")
    assert ("The log has an answer to it" in found["message"]) is (name == "exchange.jsonl")


def converse(**fields: Any) -> Body:
    return {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "go"}]}], **fields}


def found(body: Body, **options: Any) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in lint(body, tokens="bytes", **options) if one.severity == "error"]


def result(*content: Body) -> Body:
    tool_result = {"toolResult": {"toolUseId": "t", "content": list(content)}}
    use = {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
    return converse(
        system=[LONG],
        messages=[
            {"role": "user", "content": [{"text": "go"}]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [tool_result]},
        ],
    )


CONVERSE: dict[str, tuple[Body, list[tuple[str, str]]]] = {
    "1h before 5m": (converse(system=[LONG, HOUR], messages=[{"role": "user", "content": [LONG, POINT]}]), []),
    "5m before 1h in system": (converse(system=[LONG, POINT, LONG, HOUR]), [("CC502", "system.1")]),
    "5m tools before 1h": (
        converse(
            toolConfig={"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}, POINT]},
            system=[LONG, HOUR],
        ),
        [("CC502", "system.0")],
    ),
    "five": (
        converse(system=[part for _ in range(5) for part in (LONG, POINT)]),
        [("CC501", "system.4")],
    ),
    "last in a result": (result({"text": "r"}, POINT), [("CC503", "messages.2.content.0")]),
    "first in a result": (result(POINT, {"text": "r"}), [("CC503", "messages.2.content.0")]),
    "within a result": (result({"text": "r"}, HOUR, {"json": {"a": 1}}), [("CC503", "messages.2.content.0")]),
    "after a result": (
        {**result({"text": "r"}), "system": [LONG, POINT]},
        [],
    ),
    "after reasoning": (
        converse(
            messages=[
                {"role": "user", "content": [LONG]},
                {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, POINT]},
                {"role": "user", "content": [{"text": "go"}]},
            ]
        ),
        [("CC503", "messages.1.content.0")],
    ),
    "effort by an additional field": (
        converse(
            modelId="anthropic.claude-sonnet-4-5", additionalModelRequestFields={"output_config": {"effort": "low"}}
        ),
        [("CC509", "output_config.effort")],
    ),
    "nova": (converse(modelId="us.amazon.nova-lite-v1:0", system=[LONG, POINT]), []),
}


@pytest.mark.parametrize(("body", "codes"), CONVERSE.values(), ids=CONVERSE)
def test_cache_points(body: Body, codes: list[tuple[str, str]]) -> None:
    assert found(body) == codes


@pytest.mark.parametrize("content", [({"text": "r"}, POINT), (POINT, {"text": "r"})], ids=["last", "first"])
def test_a_nested_cache_point_is_a_refused_row_of_replay(tmp_path: Path, content: tuple[Body, ...]) -> None:
    body = {name: value for name, value in result(*content).items() if name != "modelId"}
    url = f"https://bedrock-runtime.us-east-1.amazonaws.com/model/{MODEL}/converse"
    exchange = {
        "timestamp": "2026-09-11T14:00:00Z",
        "request": {"method": "POST", "url": url, "headers": {}, "body": json.dumps(body)},
        "response": {"status": 200, "headers": {}, "body": {"output": {"message": {"content": [{"text": "ok"}]}}}},
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(exchange) + "\n")
    done = run_here("replay", tmp_path / "log.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    words = json.loads(done.stdout)["error"]["message"]
    assert words.startswith("messages.2.content.0.content.")
    assert words.endswith(": extraneous key [cachePoint] is not permitted")


def test_the_same_breakpoints_come_of_converse_and_of_the_messages_api(run_case: Run, tmp_path: Path) -> None:
    run_case(CASE, "lint", "body.json")
    bodies = [json.loads((tmp_path / CASE / f"{name}.json").read_text()) for name in ("body", "anthropic")]
    turned = from_converse(bodies[0], "claude-sonnet-4-6")
    assert turned["system"] == bodies[1]["system"]


CHAT = {"model": "gpt-5.1", "messages": [{"role": "system", "content": "Help."}, {"role": "user", "content": "go"}]}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "Help."}]},
    "contents": [{"role": "user", "parts": [{"text": "go"}]}],
}
OTHERS: dict[str, tuple[Body, int, str]] = {
    "Gemini without a model": (
        GEMINI,
        2,
        "a request of Gemini's generateContent: model: expected a model id, which this API has in the URL; got nothing",
    ),
    "Converse without a model": (
        {"messages": [{"role": "user", "content": [{"text": "go"}, POINT]}]},
        2,
        "a request of Bedrock's Converse API: modelId: expected a model id, which this API has in the URL; got nothing",
    ),
}


@pytest.mark.parametrize(
    "body",
    [
        CHAT,
        {"model": "deepseek-chat", "messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"model": "gpt-5.1", "instructions": "Help.", "input": "go"},
        {"model": "models/gemini-2.5-pro", **GEMINI},
    ],
    ids=["Chat Completions", "tools", "Responses", "Gemini"],
)
def test_a_request_of_another_api_is_checked(tmp_path: Path, body: Body) -> None:
    (tmp_path / "body.json").write_text(json.dumps(body))
    done = run_here("lint", "body.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 request · nothing found\n"), done.stderr


@pytest.mark.parametrize(("body", "code", "words"), OTHERS.values(), ids=OTHERS)
def test_whose_request_it_is_is_said(tmp_path: Path, body: Body, code: int, words: str) -> None:
    (tmp_path / "body.json").write_text(json.dumps(body))
    done = run_here("lint", "body.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("body.json") and words in done.stderr
    piped = run_here("lint", "-", stdin=json.dumps(body))
    assert piped.returncode == code and words in piped.stderr


def test_a_chat_body_with_breakpoints_for_claude_has_findings() -> None:
    def part(ttl: str) -> Body:
        return {"type": "text", "text": LONG["text"], "cache_control": {"type": "ephemeral", "ttl": ttl}}

    messages = [{"role": "system", "content": [part("5m")]}, {"role": "user", "content": [part("1h")]}]
    assert found({"model": "openrouter/anthropic/claude-sonnet-4.5", "messages": messages}) == [
        ("CC502", "messages.0.content.0")
    ]


@pytest.mark.parametrize(
    ("body", "api"),
    [
        ({"model": "claude-sonnet-4-6", "messages": [{"role": "user", "content": "go"}]}, "messages"),
        ({"model": "claude-sonnet-4-6", "system": "x", "messages": [{"role": "system", "content": "go"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}]}, "messages"),
        ({"messages": "nothing"}, "messages"),
        ({"model": "gpt-5.1", "messages": []}, "chat"),
        ({"messages": [{"role": "user", "content": [{"text": "go"}]}]}, "converse"),
        ({"model": "x", "input": []}, "responses"),
        ({"contents": []}, "gemini"),
        ({"input": "of something else"}, None),
        ({"prompt": "go"}, None),
    ],
)
def test_whose_body_it_is(body: Body, api: str | None) -> None:
    assert api_of(body) == api


def test_a_body_of_the_messages_api_keeps_its_words() -> None:
    with pytest.raises(InputError, match="request model: expected a model id; got nothing"):
        lint({"messages": [{"role": "user", "content": "go"}]})
