"""What a usage says of a call: nothing of the input where it has none, and no cached token twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import DATA, Run, json_of, rows_of, run_in

from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.usage import Usage

OUTPUT_ONLY = "25-usage-output-only"
NO_INPUT = "the usage has no input tokens, so what was sent is unknown; `cachecost replay` estimates it"


def prompt_bytes() -> list[int]:
    """A block counts the bytes of its compact JSON."""
    lines = (DATA / OUTPUT_ONLY / "log.jsonl").read_text().splitlines()
    blocks = [[{"type": "text", "text": one["request"]["messages"][0]["content"]}] for one in map(json.loads, lines)]
    return [sum(len(json.dumps(one, separators=(",", ":"))) for one in content) for content in blocks]


def test_a_replay_counts_the_prompts(run_case: Run) -> None:
    rows = rows_of(run_case(OUTPUT_ONLY, "replay", "log.jsonl", "--tokens", "bytes", "--json"))
    assert [row["usage"]["input_tokens"] for row in rows] == prompt_bytes()
    assert [row["usage"]["output_tokens"] for row in rows] == [10, 10, 10]


@pytest.mark.parametrize("tokens", [[], ["--tokens", "tiktoken"]])
def test_a_replay_counts_them_without_an_option(run_case: Run, tokens: list[str]) -> None:
    rows = rows_of(run_case(OUTPUT_ONLY, "replay", "log.jsonl", *tokens, "--json"))
    assert all(2_000 < row["usage"]["input_tokens"] < 9_010 for row in rows)


def test_a_bill_says_that_the_input_is_unknown(run_case: Run) -> None:
    done = run_case(OUTPUT_ONLY, "bill", "log.jsonl", "--json")
    bill = json.loads(done.stdout)
    assert (done.returncode, bill["billed_usd"], bill["calls"]) == (3, "0", 3)
    assert bill["unpriced"] == [{"reason": NO_INPUT, "calls": 3, "tokens": 30}]
    assert bill["usage"]["output_tokens"] == 30


def test_an_imported_recording_says_the_same(run_case: Run) -> None:
    imported = run_case(OUTPUT_ONLY, "import", "log.jsonl", "-o", "all.jsonl")
    assert imported.returncode == 3 and f"3 calls not in the billed dollars: {NO_INPUT}" in imported.stderr
    assert json.loads(run_case(OUTPUT_ONLY, "bill", "all.jsonl", "--json").stdout)["unpriced"][0]["calls"] == 3


CALL = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": "word " * 2_000}]}
STEP = {"type": "assistant", "uuid": "u", "sessionId": "s", "timestamp": "2026-11-01T00:00:00Z"}
TRANSCRIPT = {**STEP, "message": {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-5", "content": []}}


def logged(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-11-01T00:00:00Z", "request": CALL, "usage": usage}


def of_transcript(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {**TRANSCRIPT, "message": {**TRANSCRIPT["message"], "usage": usage}}


def observed(usage: Mapping[str, Any]) -> dict[str, Any]:
    """As Langfuse exports it."""
    of = {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "2026-11-01T00:00:00.000Z"}
    return {**of, "model": "claude-sonnet-5", "input": CALL["messages"], "usageDetails": usage}


def completed(usage: Mapping[str, Any]) -> dict[str, Any]:
    """As a log of Chat Completions has it."""
    answer = {"object": "chat.completion", "created": 1762000000, "model": "gpt-5", "choices": [], "usage": usage}
    return {"request": {"model": "gpt-5", "messages": CALL["messages"]}, "response": answer}


@pytest.mark.parametrize(
    "row",
    [
        logged({"output_tokens": 10}),
        logged({"input_tokens": None, "output_tokens": 10}),
        logged({"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 0}),
        logged({"input_tokens": 0, "output_tokens": 10}),
        of_transcript({"output_tokens": 10}),
        of_transcript({"input_tokens": None, "output_tokens": 10}),
        observed({"output": 10}),
        completed({"completion_tokens": 10}),
        completed({"prompt_tokens": 0, "completion_tokens": 10, "total_tokens": 10}),
        completed({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    ],
)
def test_no_reader_takes_it_for_a_prompt_of_no_tokens(tmp_path: Path, row: Mapping[str, Any]) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
    done = run_in(tmp_path, "bill", "log.jsonl", "--json")
    (unpriced,) = json.loads(done.stdout)["unpriced"]
    assert (done.returncode, unpriced["reason"], unpriced["calls"]) == (3, NO_INPUT, 1)
    if "message" not in row:
        (replayed,) = rows_of(run_in(tmp_path, "replay", "log.jsonl", "--json"))
        assert replayed["usage"]["input_tokens"] > 1_900


def test_cached_tokens_in_the_input_are_not_counted_twice(run_case: Run) -> None:
    bill = json_of(run_case("10-langfuse-counted-twice", "bill", "export.jsonl", "--json"))
    right = 5 * 3 + 128_955 * Decimal("0.3") + 1_253 * Decimal("3.75") + 500 * 15
    assert Decimal(bill["billed_usd"]) == right / 10**6


READ_AND_WRITTEN = Usage(5, 128_955, 1_253, 0, 500)
TWICE = 130_213 + 128_955 + 1_253 + 500
ONCE = 130_213 + 500
OTEL = "gen_ai.usage."


@pytest.mark.parametrize("total", [0, TWICE, ONCE])
@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ("langfuse", ("input", "cache_read_input_tokens", "cache_creation_input_tokens", "output", "total")),
        ("langfuse", ("input", "input_cached_tokens", "input_cache_creation", "output", "total")),
        (
            "litellm",
            (
                "prompt_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
                "completion_tokens",
                "total_tokens",
            ),
        ),
        (
            "otel",
            tuple(
                OTEL + name
                for name in (
                    *("input_tokens", "cache_read.input_tokens", "cache_creation.input_tokens"),
                    *("output_tokens", "total_tokens"),
                )
            ),
        ),
        (
            "ai-sdk",
            (
                *("inputTokens", "inputTokenDetails/cacheReadTokens", "inputTokenDetails/cacheWriteTokens"),
                *("outputTokens", "totalTokens"),
            ),
        ),
    ],
)
def test_whatever_the_total_adds_up(shape: str, names: tuple[str, ...], total: int) -> None:
    raw: dict[str, Any] = {}
    for name, number in zip(names, (130_213, 128_955, 1_253, 500, total), strict=True):
        head, _, rest = name.partition("/")
        if rest:
            raw.setdefault(head, {})[rest] = number
        elif number:
            raw[name] = number
    assert usage_from(raw, "usage", shape) == READ_AND_WRITTEN


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ({"input": 900, "cache_read_input_tokens": 500, "output": 9, "total": 1_409}, Usage(900, 500, 0, 0, 9)),
        ({"input": 9_000, "cache_read_input_tokens": 8_000, "output": 9}, Usage(9_000, 8_000, 0, 0, 9)),
        ({"input": 60, "cache_creation_input_tokens": 50, "output": 9}, Usage(60, 0, 50, 0, 9)),
        ({"input": 5, "cache_read_input_tokens": 128_955, "output": 9}, Usage(5, 128_955, 0, 0, 9)),
        ({"input": 700, "output": 9}, Usage(700, 0, 0, 0, 9)),
    ],
)
def test_buckets_of_their_own_stay_so(raw: Mapping[str, Any], right: Usage) -> None:
    assert usage_from(raw, "usage", "langfuse") == right


@pytest.mark.parametrize(
    ("metadata", "right"),
    [
        (
            {
                "anthropic": {
                    "cacheCreationInputTokens": 1_253,
                    "usage": {
                        "input_tokens": 5_000,
                        "cache_read_input_tokens": 3_000,
                        "cache_creation_input_tokens": 1_253,
                        "cache_creation": {"ephemeral_1h_input_tokens": 1_253},
                        "output_tokens": 500,
                    },
                }
            },
            Usage(5_000, 3_000, 0, 1_253, 500),
        ),
        ({"anthropic": {"cacheCreationInputTokens": 1_253}}, Usage(747, 3_000, 1_253, 0, 500)),
        ({"bedrock": {"usage": {"cacheWriteInputTokens": 1_253}}}, Usage(747, 3_000, 1_253, 0, 500)),
        ({"openai": {"responseId": "r"}}, Usage(2_000, 3_000, 0, 0, 500)),
        ("no JSON", Usage(2_000, 3_000, 0, 0, 500)),
    ],
)
def test_version_5_of_the_ai_sdk_has_the_writes_in_the_provider_s_metadata(
    tmp_path: Path, metadata: Any, right: Usage
) -> None:
    attributes = {
        "ai.operationId": "ai.generateText.doGenerate",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.system": "anthropic.messages",
        "ai.usage.inputTokens": 5_000,
        "ai.usage.cachedInputTokens": 3_000,
        "gen_ai.usage.input_tokens": 5_000,
        "gen_ai.usage.output_tokens": 500,
        "ai.usage.outputTokens": 500,
        "ai.usage.totalTokens": 5_500,
        "ai.response.providerMetadata": metadata if isinstance(metadata, str) else json.dumps(metadata),
    }
    typed = [
        {"key": key, "value": {"stringValue": one} if isinstance(one, str) else {"intValue": str(one)}}
        for key, one in attributes.items()
    ]
    times = {"startTimeUnixNano": "1762000000000000000", "endTimeUnixNano": "1762000002000000000"}
    span = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "ai.generateText.doGenerate", **times, "attributes": typed}
    resource = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "ai"}, "spans": [span]}]}]}
    (tmp_path / "spans.json").write_text(json.dumps(resource))
    usage = json.loads(run_in(tmp_path, "bill", "spans.json", "--json").stdout)["usage"]
    assert usage == right.wire()
