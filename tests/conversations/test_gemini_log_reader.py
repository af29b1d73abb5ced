"""Logs of generateContent that clients write themselves: REST and SDK bodies, where the model stands, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.detect import detect
from cachecost.conversations.readers.http.gemini_log import calls
from cachecost.providers.usage import Usage
from command_runs import run_here

Row = dict[str, Any]
MODEL = "gemini-2.5-flash"
ASKED = [{"role": "user", "parts": [{"text": "What is in README.md?"}]}]
USAGE = {
    "promptTokenCount": 3_000,
    "cachedContentTokenCount": 2_048,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 3_025,
}
BILLED = Usage(952, 2_048, 0, 0, 25)
ANSWER = {"candidates": [{"content": {"role": "model", "parts": [{"text": "A plan."}]}}], "usageMetadata": USAGE}


def generated(second: int = 0, **changed: Any) -> Row:
    """A call; a field that is None is left out."""
    row = {
        "timestamp": f"2026-11-20T10:00:{second:02}Z",
        "request": {"model": MODEL, "contents": ASKED},
        "response": ANSWER,
        **changed,
    }
    return {name: value for name, value in row.items() if value is not None}


def write(folder: Path, *rows: Row | str) -> Path:
    path = folder / "gemini.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def read(folder: Path, *rows: Row) -> list[Call]:
    return list(calls(write(folder, *rows)))


def test_a_call_with_its_bill(tmp_path: Path) -> None:
    (call,) = read(tmp_path, generated(session="s1", first_token_s=0.5))
    assert (call.host, call.request.model, call.session) == ("gemini", MODEL, "s1")
    assert (call.timestamp, call.billed, call.first_token_s) == ("2026-11-20T10:00:00Z", BILLED, 0.5)
    assert [block.content for block in call.response] == [{"type": "text", "text": "A plan."}]


BARE = {"contents": ASKED}
MODELS: list[tuple[Row, str, str]] = [
    ({"request": BARE, "model": MODEL}, "gemini", MODEL),
    ({"request": {**BARE, "model": f"models/{MODEL}"}}, "gemini", MODEL),
    ({"request": BARE, "response": {**ANSWER, "modelVersion": MODEL}}, "gemini", MODEL),
    ({"request": BARE, "response": [ANSWER, {**ANSWER, "modelVersion": MODEL}]}, "gemini", MODEL),
    ({"host": "vertex"}, "vertex", MODEL),
    (
        {"url": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
        "gemini",
        "gemini-2.5-pro",
    ),
]


@pytest.mark.parametrize(("changed", "host", "model"), MODELS)
def test_where_the_model_stands(tmp_path: Path, changed: Row, host: str, model: str) -> None:
    (call,) = read(tmp_path, generated(**changed))
    assert (call.host, call.request.model, call.billed) == (host, model, BILLED)


def test_the_body_of_the_sdk_is_that_of_the_api(tmp_path: Path) -> None:
    system = "Be brief."
    sdk = {"model": MODEL, "contents": "hi", "config": {"system_instruction": system, "temperature": 0}}
    rest = {
        "model": MODEL,
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": system}]},
    }
    one, other = read(tmp_path, generated(request=sdk), generated(10, request=rest))
    assert one.request.system.blocks == other.request.system.blocks
    assert one.request.thread.message == other.request.thread.message


def test_the_usage_may_stand_beside_the_answer_or_lack(tmp_path: Path) -> None:
    beside, without, failed = read(
        tmp_path,
        generated(response=None, usage=USAGE),
        generated(10, response=None),
        generated(20, response=None, status=429),
    )
    assert (beside.billed, without.billed, failed.status) == (BILLED, None, 429)


def test_every_error_has_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        generated(),
        generated(request={"model": MODEL, "contents": 5}),
        generated(timestamp="yesterday", request=BARE),
        generated(request=BARE, response={**ANSWER, "usageMetadata": {"promptTokenCount": "5"}}, model=MODEL),
        "{",
        generated(),
    )
    with pytest.raises(InputError) as caught:
        list(calls(path))
    *found, damaged = [str(fault).removeprefix(str(path)) for fault in caught.value.faults]
    assert damaged.startswith(":5 damaged JSON: ")
    assert found == [
        ":2 request.contents: expected an array; got 5",
        ':3 model: expected a model id (in "model", the request, "url" or the answer\'s "modelVersion"); got nothing',
        ":3 timestamp: expected an ISO 8601 time; got 'yesterday'",
        ":4 response.usage.promptTokenCount: expected a whole number of tokens; got '5'",
    ]


DETECTED: list[tuple[Row, str]] = [
    (generated(), "gemini-log"),
    (generated(request={"model": "m", "messages": [], "contents": ASKED}), "request-log"),
    (
        generated(request={"model": "m", "messages": [{"role": "user", "content": "contents"}]}, response=None),
        "request-log",
    ),
]


@pytest.mark.parametrize(("row", "name"), DETECTED)
def test_it_is_told_from_a_request_log(tmp_path: Path, row: Row, name: str) -> None:
    assert detect(write(tmp_path, row), "auto", "request-log")[0] == name


def test_the_cost_of_a_log_through_the_command(tmp_path: Path) -> None:
    """By hand, at 0.30, 0.03 and 2.50 dollars per million: 952, 2,048 and 25 tokens."""
    write(tmp_path, generated())
    done = run_here("bill", "gemini.jsonl", "--json", cwd=tmp_path, CACHECOST_STORE="off")
    assert (done.returncode, json.loads(done.stdout)["billed_usd"]) == (0, "0.00040954")


OTHERS: list[tuple[Row, str]] = [
    ({"model": MODEL, "contents": ASKED}, " (--format gemini-log reads such requests)"),
    ({"model": "gpt-5", "input": "hi"}, " (--format openai-log reads such requests)"),
    ({"model": "gpt-5"}, ""),
]


@pytest.mark.parametrize(("request_", "hint"), OTHERS)
def test_a_request_of_another_api_in_a_request_log_names_the_format(tmp_path: Path, request_: Row, hint: str) -> None:
    ours = {"model": "claude-sonnet-4-6", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    write(tmp_path, {"request": ours}, {"request": request_})
    done = run_here("replay", "gemini.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    said = f"gemini.jsonl:2 messages: expected an array of messages; got nothing{hint}\n"
    assert done.stderr == f"{said}1 error; nothing was run.\n"
