"""Files that no rule counts get their tokens from bills, and cost no call its row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import json_of, rows_of, run_in

from conversations.session_stores import write_lines
from tokens.files_of_images import base64, pdf, png

PDF, PNG = (source["data"] for source in (base64(pdf(3, b""), "application/pdf"), base64(png(640, 480), "image/png")))
WORDS = "What does it say, and why is that so? " * 20
OTHER = "Something else altogether, said at length. " * 60
DATA = f"data:application/pdf;base64,{PDF}"
ADDRESSES = {
    "azure": "https://me.openai.azure.com/openai/deployments/gpt-4o/chat/completions",
    "openrouter": "https://openrouter.ai/api/v1/chat/completions",
    "xai": "https://api.x.ai/v1/chat/completions",
    "mistral": "https://api.mistral.ai/v1/chat/completions",
}
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google/models/"
CHAT = {
    "PDF": ("openai", "gpt-4o", {"type": "file", "file": {"filename": "a.pdf", "file_data": DATA}}),
    "file id": ("openai", "gpt-4o", {"type": "file", "file": {"file_id": "file-1"}}),
    "Azure": ("azure", "gpt-4o", {"type": "file", "file": {"filename": "a.pdf", "file_data": DATA}}),
    "OpenRouter": ("openrouter", "google/gemini-2.5-flash", {"type": "file", "file": {"file_data": DATA}}),
    "sound": ("openrouter", "google/gemini-2.5-flash", {"type": "input_audio", "input_audio": {"data": PDF * 9}}),
    "image": ("xai", "grok-4", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}),
    "by URL": ("mistral", "mistral-large-latest", {"type": "document_url", "document_url": "https://a.example/a.pdf"}),
}
PARTS = {
    "PDF": {"inlineData": {"mimeType": "application/pdf", "data": PDF}},
    "PDF of a file": {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/files/a"}},
    "image": {"inlineData": {"mimeType": "image/png", "data": PNG}},
    "sound": {"inlineData": {"mimeType": "audio/wav", "data": PDF * 9}},
    "YouTube": {"fileData": {"fileUri": "https://www.youtube.com/watch?v=a"}},
}


def chat(url: str, model: str, messages: list[dict[str, Any]], tokens: int | None, minute: int = 0) -> dict[str, Any]:
    """A line of a log of Chat Completions; without `tokens` it has no bill."""
    message = {"role": "assistant", "content": "That."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    head = {"id": f"c{minute}", "object": "chat.completion", "created": 1_768_416_147 + 60 * minute, "model": model}
    usage = {"usage": {"prompt_tokens": tokens, "completion_tokens": 5}} if tokens else {}
    return {
        **({"url": url} if url else {}),
        "request": {"model": model, "messages": messages},
        "response": {**head, "choices": [choice], **usage},
    }


def question(part: Any, text: str = WORDS) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, part]}


def replayed(folder: Path, *lines: dict[str, Any]) -> list[Any]:
    write_lines(folder / "log.jsonl", list(lines))
    return rows_of(run_in(folder, "replay", "log.jsonl", "--json"))


def total(row: Any) -> int:
    return int(row["usage"]["input_tokens"] + row["usage"]["cache_read_input_tokens"])


@pytest.mark.parametrize(("host", "model", "part"), CHAT.values(), ids=CHAT)
def test_a_file_in_a_chat_is_what_its_bill_leaves(tmp_path: Path, host: str, model: str, part: Any) -> None:
    (row,) = replayed(tmp_path, chat(ADDRESSES.get(host, ""), model, [question(part)], 1_800))
    assert "error" not in row and total(row) == 1_800


@pytest.mark.parametrize("kind", ["file_data", "file_id", "file_url"])
def test_a_file_in_a_response_is_what_its_bill_leaves(tmp_path: Path, kind: str) -> None:
    part = {"type": "input_file", kind: DATA if kind == "file_data" else "https://a.example/a.pdf"}
    content = [{"type": "input_text", "text": WORDS}, part]
    head = {"id": "r", "object": "response", "status": "completed", "created_at": 1_768_416_147, "model": "gpt-5"}
    response = {**head, "output": [], "usage": {"input_tokens": 1_800, "output_tokens": 5}}
    request = {"model": "gpt-5", "input": [{"role": "user", "content": content}]}
    (row,) = replayed(tmp_path, {"request": request, "response": response})
    assert "error" not in row and total(row) == 1_800


@pytest.mark.parametrize("url", [GEMINI, f"{VERTEX}gemini-2.5-flash:generateContent"], ids=["Gemini", "Vertex"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_file_in_gemini_is_what_its_bill_leaves(tmp_path: Path, part: Any, url: str) -> None:
    usage = {"promptTokenCount": 900, "candidatesTokenCount": 5, "totalTokenCount": 905}
    answer = {"content": {"role": "model", "parts": [{"text": "That."}]}, "finishReason": "STOP"}
    response = {"candidates": [answer], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}
    request = {"contents": [{"role": "user", "parts": [{"text": WORDS}, part]}]}
    (row,) = replayed(tmp_path, {"url": url, "request": request, "response": response})
    assert "error" not in row and total(row) == 900


def test_the_size_of_a_file_holds_in_other_prompts(tmp_path: Path) -> None:
    """A bill of 3,000 gives the PDF its tokens; in a prompt with other words, without a bill, it has as many, whatever
    the order of the lines."""
    part = CHAT["PDF"][2]
    lines = [
        chat("", "gpt-4o", [question(part)], 3_000),
        chat("", "gpt-4o", [question(part, OTHER)], None, 600),
        chat("", "gpt-4o", [{"role": "user", "content": WORDS}], None, 1_200),
        chat("", "gpt-4o", [{"role": "user", "content": OTHER}], None, 1_800),
    ]
    there = {row["timestamp"]: total(row) for row in replayed(tmp_path, *lines)}
    assert there == {row["timestamp"]: total(row) for row in replayed(tmp_path, *lines[::-1])}
    billed, unbilled, words, others = there.values()
    assert (billed, unbilled) == (3_000, 3_000 - words + others)


def test_a_file_that_no_bill_sizes_is_an_error(tmp_path: Path) -> None:
    write_lines(tmp_path / "log.jsonl", [chat("", "gpt-4o", [question(CHAT["PDF"][2])], None)])
    done = run_in(tmp_path, "replay", "log.jsonl", "--json")
    (row,) = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 3
    assert row["error"]["message"].startswith("612x792 page of a PDF: no rule gives its tokens in o200k")


def test_a_follow_up_is_judged_by_the_bill_before_it(tmp_path: Path) -> None:
    messages = [question(CHAT["PDF"][2])]
    lines = [chat("", "gpt-4o", list(messages), 3_000)]
    messages += [{"role": "assistant", "content": "That."}, {"role": "user", "content": WORDS}]
    write_lines(tmp_path / "log.jsonl", [*lines, chat("", "gpt-4o", messages, 3_210, 1)])
    found = json_of(run_in(tmp_path, "validate", "log.jsonl", "--json"))
    assert [one["where"] for one in found["not_judged"]] == ["log.jsonl:1"]
    assert found["calls"] == 1 and found["token_error"]["p95"] < 0.01


def test_a_tool_of_anthropic_elsewhere_is_what_its_bill_leaves(tmp_path: Path) -> None:
    body = {"model": "glm-4.6", "max_tokens": 9, "tools": [{"type": "bash_20250124", "name": "bash"}]}
    body["messages"] = [{"role": "user", "content": WORDS}]
    usage = {"input_tokens": 700, "output_tokens": 5}
    line = {"timestamp": "2026-01-14T10:00:00Z", "host": "zai", "request": body, "response": {"usage": usage}}
    (row,) = replayed(tmp_path, line)
    assert "error" not in row and total(row) == 700


def test_a_model_of_another_tokenizer_is_not_priced_by_it(tmp_path: Path) -> None:
    """What a file of an unknown kind has in the tokens of Sonnet 4.6 says nothing of those of Opus 5."""
    blocks = [{"type": "hologram", "payload": {"raw": PDF * 9}}, {"type": "text", "text": WORDS}]
    request = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": blocks}]}
    answer = {"type": "message", "content": [{"type": "text", "text": "That."}]}
    response = {**answer, "usage": {"input_tokens": 6_000, "output_tokens": 5}}
    write_lines(
        tmp_path / "log.jsonl", [{"timestamp": "2026-10-14T10:00:00Z", "request": request, "response": response}]
    )
    said = run_in(tmp_path, "whatif", "log.jsonl", "--full").stdout
    assert "model=claude-haiku-4-5" in said and "not evaluated: a file whose tokens no rule gives" in said
    assert "model=claude-opus-5 " not in said
