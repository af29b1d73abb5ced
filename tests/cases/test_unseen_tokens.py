"""What a bill counts and no request shows: searches of the provider, files that no rule counts, kept reasoning."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of, rows_of, run_in

from cachecost.conversations.readers.apis.converse import from_converse_blocks
from cachecost.conversations.readers.apis.gemini import from_generate_content
from cachecost.prompts.render import CannotCount
from cachecost.prompts.request import block_of
from cachecost.tokens.factory import make_counter
from cachecost.tokens.parts import parts_of
from conversations.session_stores import write_lines

SEARCH, VIDEO, REASONING = "17-search-follow-up", "18-video-bytes", "19-xai-reasoning-kept"
BYTES = b64encode(bytes(range(256)) * 120).decode()


def inputs(rows: list[Any]) -> list[tuple[int, int]]:
    """(all input tokens, those read) of each row."""
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return [(sum(row["usage"][kind] for kind in kinds), row["usage"]["cache_read_input_tokens"]) for row in rows]


def test_a_search_does_not_size_what_the_request_shows(run_case: Run) -> None:
    done = run_case(SEARCH, "validate", "log.jsonl", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["calls"], found["predicted_usd"]) == (3, 0, None), "nothing of it can be judged"
    assert ["a web search on the provider's side" in one["why"] for one in found["not_judged"]] == [True, True]
    assert [tokens for tokens, _ in inputs(rows_of(run_case(SEARCH, "replay", "log.jsonl", "--json")))] == [
        50_084,
        11_348,
    ]


def response(number: int, tokens: int, *items: dict[str, Any]) -> dict[str, Any]:
    words = f"answer {number} has these words"
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
    usage = {"input_tokens": tokens, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 0}}
    output = [*items, {"id": f"m{number}", "status": "completed", **message}]
    head = {"id": f"r{number}", "object": "response", "status": "completed", "created_at": 1_768_416_147 + number * 60}
    return {**head, "model": "gpt-5-nano-2025-08-07", "output": output, "usage": usage}


def conversation(folder: Path, *bills: int, item: dict[str, Any] | None) -> None:
    """A log of a conversation of so many calls, whose first answer has `item` before its text."""
    items: list[dict[str, Any]] = []
    lines = []
    for number, tokens in enumerate(bills):
        items.append({"role": "user", "content": f"question {number}: " + "and some more of it " * 30})
        got = response(number, tokens, *([item] if item and not number else []))
        lines.append({"request": {"model": "gpt-5-nano", "input": list(items)}, "response": got})
        items += got["output"]
    write_lines(folder / "log.jsonl", lines)


@pytest.mark.parametrize("kind", ["web_search_call", "file_search_call", "x_search_call", "code_interpreter_call"])
def test_calls_after_the_follow_up_of_a_search_are_judged_by_its_bill(tmp_path: Path, kind: str) -> None:
    """Call 2's bill gives the length of all before call 3, hidden tokens included; call 3 adds a question of 130."""
    conversation(tmp_path, 40_000, 9_000, 9_150, item={"type": kind, "id": "w", "status": "completed"})
    found = json_of(run_in(tmp_path, "validate", "log.jsonl", "--json"))
    assert [one["where"] for one in found["not_judged"]] == ["log.jsonl:1", "log.jsonl:2"]
    assert found["calls"] == 1 and found["token_error"]["p95"] < 0.01


@pytest.mark.parametrize(
    "item", [None, {"type": "computer_call", "id": "c", "call_id": "c", "action": {"type": "wait"}}], ids=str
)
def test_without_a_search_all_calls_are_judged(tmp_path: Path, item: dict[str, Any] | None) -> None:
    conversation(tmp_path, 140, 290, 440, item=item)
    found = json_of(run_in(tmp_path, "validate", "log.jsonl", "--json"))
    assert (found["calls"], found["not_judged"]) == (3, [])


def converse(**part: Any) -> dict[str, Any]:
    return from_converse_blocks([part], "content")[0]


def gemini(**part: Any) -> dict[str, Any]:
    body = {"contents": [{"role": "user", "parts": [part]}]}
    return from_generate_content(body, "gemini-2.5-flash")["messages"][0]["content"][0]


FILES = {
    "video": converse(video={"format": "mp4", "source": {"bytes": BYTES}}),
    "twice as long": converse(video={"format": "mp4", "source": {"bytes": BYTES * 2}}),
    "video in S3": converse(video={"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v"}}}),
    "audio": converse(audio={"format": "wav", "source": {"bytes": BYTES}}),
    "result": converse(toolResult={"toolUseId": "t", "content": [{"video": {"source": {"bytes": BYTES}}}]}),
    "inlineData": gemini(inlineData={"mimeType": "video/mp4", "data": BYTES}),
    "fileData": gemini(fileData={"mimeType": "audio/mp3", "fileUri": "gs://b/a"}),
    "input_audio": {"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}},
    "document": {"type": "document", "source": {"type": "base64", "media_type": "video/mp4", "data": BYTES}},
    "of tomorrow": {"type": "hologram", "payload": {"raw": [BYTES]}},
    "data URL": {"type": "clip", "url": f"data:video/mp4;base64,{BYTES}"},
}


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
@pytest.mark.parametrize("generation", ["claude-3", "o200k", "gemini", "open"])
def test_a_file_that_no_rule_counts_is_not_counted(file: dict[str, Any], generation: str) -> None:
    with pytest.raises(CannotCount, match="a file whose tokens no rule gives"):
        make_counter("tiktoken", generation).block(block_of("user", file))


@pytest.mark.parametrize("media", ["txt", "csv", "md", "html"])
def test_a_document_of_text_counts_as_its_text(media: str) -> None:
    text = "names and numbers, " * 40
    document = converse(document={"format": media, "name": "d", "source": {"bytes": b64encode(text.encode()).decode()}})
    assert parts_of("document", document).texts == ("d", text)
    assert make_counter("tiktoken", "gemini").block(block_of("user", document))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": BYTES},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"encrypted_content": BYTES}]},
        {"type": "thinking", "thinking": "", "signature": BYTES},
        {"type": "tool_result", "tool_use_id": "t", "content": BYTES},
        {"type": "of_tomorrow", "note": "a word " * 400},
    ],
    ids=lambda block: block["type"],
)
def test_what_has_a_rule_or_is_text_is_counted(block: dict[str, Any]) -> None:
    assert make_counter("tiktoken", "claude-4.7").block(block_of("user", block))


def test_a_video_is_given_by_the_bill(run_case: Run) -> None:
    found = json_of(run_case(VIDEO, "validate", "cassette.yaml", "--json"))
    assert [one["where"] for one in found["not_judged"]] == ["cassette.yaml:36"]
    rows = rows_of(run_case(VIDEO, "replay", "cassette.yaml", "--json"))
    assert inputs(rows) == [(901, 0), (2_752, 0)]
    outputs = sum(row["usage"]["output_tokens"] for row in rows)
    paid = sum(Decimal(row["cost_usd"]) for row in rows)
    assert paid == (Decimal(901 + 2_752) * Decimal("0.33") + outputs * Decimal("2.75")) / 1_000_000


def test_xai_keeps_reasoning_that_nobody_sends_back(run_case: Run) -> None:
    """361 of the prompt, 26 of the answer, 93 of reasoning, one that closes it."""
    found = json_of(run_case(REASONING, "validate", "cassette.yaml", "--json"))
    assert found["hits"] == {"knowable": 2, "exact": 1}
    assert (found["ranges"]["judged"], found["ranges"]["hold"]) == (1, 1)  # from nothing to nearly all says nothing
    assert found["unknown_earlier_writes"] == 0
    rows = rows_of(run_case(REASONING, "replay", "cassette.yaml", "--json"))
    assert inputs(rows) == [(361, 148), (493, 361 + 26 + 93 + 1)]


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("grok-4-1-fast-non-reasoning", 361),
        ("grok-4-fast-non-reasoning", 361 + 26),
        ("grok-3-mini", 356),
        ("grok-4-fast", 481),
        ("grok-code-fast-1", 448),
    ],
)
def test_what_each_model_of_xai_keeps(tmp_path: Path, run_case: Run, model: str, read: int) -> None:
    """Rows of what was recorded of each; without reasoning the answer of 26 tokens is its bill."""
    run_case(REASONING, "validate", "cassette.yaml")  # a copy of the folder
    text = (tmp_path / REASONING / "cassette.yaml").read_text().replace("grok-4-fast-reasoning", model)
    text = text.replace('"model": "grok-4-fast"', f'"model": "{model}"')
    if "non-reasoning" in model:
        text = text.replace('"reasoning_tokens": 93', '"reasoning_tokens": 0').replace(
            '"total_tokens": 480', '"total_tokens": 387'
        )
    text = text.replace('"cached_tokens": 481', f'"cached_tokens": {read}')
    (tmp_path / "cassette.yaml").write_text(text)
    found = json_of(run_in(tmp_path, "validate", "cassette.yaml", "--json"))
    assert found["hits"]["exact"] == 1, found["mismatches"]
