"""Usages of every provider and tool, put into ours: no token counted twice, no TTL mistaken."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cachecost.base.times import seconds
from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.usage_shapes import SHAPES, shape_of, usage_from
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import NotAMessage
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage

PRICES = PriceBook.load()
Raw = dict[str, Any]


def dollars(usage: Usage, model: str, day: str) -> Decimal:
    bill = BillTotal(PRICES)
    request = Intake().body({"model": model, "messages": []})
    bill.add(Call(request, seconds(day), timestamp=day, billed=usage, line=1))
    assert bill.dollars is not None
    return bill.dollars


def chat(prompt: int, output: int, **more: Any) -> Raw:
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **more}


CREATION = {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60}
NATIVE = {"input_tokens": 3, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 100, "output_tokens": 7}
OURS = Usage(3, 900, 100, 0, 7)
SPLIT = Usage(3, 900, 40, 60, 7)


@pytest.mark.parametrize(
    ("raw", "shape", "usage"),
    [
        (NATIVE, "anthropic", OURS),
        ({**NATIVE, "cache_creation": CREATION}, "anthropic", SPLIT),
        ({**NATIVE, "output_tokens_details": {"thinking_tokens": 5}}, "anthropic", OURS),
        ({"input_tokens": 3, "output_tokens": 7}, "anthropic", Usage(3, output_tokens=7)),
        (
            chat(1003, 7, prompt_tokens_details={"cached_tokens": 900, "audio_tokens": 0}),
            "openai",
            Usage(103, 900, 0, 0, 7),
        ),
        (chat(1003, 7, prompt_tokens_details={"cached_tokens": 900, "cache_write_tokens": 100}), "openai", OURS),
        (chat(1003, 7, prompt_tokens_details=None), "openai", Usage(1003, output_tokens=7)),
        (chat(1003, 7, prompt_cache_hit_tokens=900, prompt_cache_miss_tokens=103), "openai", Usage(103, 900, 0, 0, 7)),
        (chat(1003, 7, prompt_cache_hit_tokens=0, prompt_cache_miss_tokens=1003), "openai", Usage(1003, 0, 0, 0, 7)),
        (chat(1003, 7, cached_tokens=900), "openai", Usage(103, 900, 0, 0, 7)),
        (
            {"input_tokens": 1003, "input_tokens_details": {"cached_tokens": 900}, "output_tokens": 7},
            "openai",
            Usage(103, 900, 0, 0, 7),
        ),
        (
            {
                "input_tokens": 1003,
                "input_tokens_details": {
                    "cached_tokens": 900,
                    "cache_write_tokens": 100,
                    "cache_write_tokens_details": {"ttl_30m_tokens": 40, "ttl_12h_tokens": 60},
                },
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 5},
            },
            "openai",
            SPLIT,
        ),
        ({"input_tokens": 1003, "cached_input_tokens": 900, "output_tokens": 7}, "openai", Usage(103, 900, 0, 0, 7)),
        (chat(1003, 7, cache_read_input_tokens=900, cache_creation_input_tokens=100), "openai", OURS),
        (
            chat(
                1003,
                7,
                prompt_tokens_details={
                    "cached_tokens": 900,
                    "cache_creation_tokens": 100,
                    "cache_creation_token_details": CREATION,
                },
                cache_read_input_tokens=900,
                cache_creation_input_tokens=100,
            ),
            "openai",
            SPLIT,
        ),
        (
            {
                "input_tokens": 1003,
                "output_tokens": 7,
                "total_tokens": 1010,
                "input_token_details": {"cache_read": 900, "cache_creation": 100},
            },
            "langchain",
            OURS,
        ),
        (
            {
                "input_tokens": 1003,
                "output_tokens": 7,
                "input_token_details": {"cache_read": 900, "cache_creation": 0, **CREATION},
            },
            "langchain",
            SPLIT,
        ),
        (
            {"input_tokens": 1003, "output_tokens": 7, "input_token_details": {"flex_cache_read": 900}},
            "langchain",
            Usage(103, 900, 0, 0, 7),
        ),
        (
            {
                "promptTokenCount": 1003,
                "cachedContentTokenCount": 900,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 2,
            },
            "gemini",
            Usage(103, 900, 0, 0, 7),
        ),
        (
            {
                "prompt_token_count": 1003,
                "cached_content_token_count": 900,
                "candidates_token_count": 7,
                "tool_use_prompt_token_count": 30,
            },
            "gemini",
            Usage(133, 900, 0, 0, 7),
        ),
        (
            {"inputTokens": 3, "outputTokens": 7, "cacheReadInputTokens": 900, "cacheWriteInputTokens": 100},
            "bedrock",
            OURS,
        ),
        (
            {
                "inputTokens": 3,
                "outputTokens": 7,
                "totalTokens": 1010,
                "cacheReadInputTokens": 900,
                "cacheWriteInputTokens": 100,
                "cacheDetails": [{"ttl": "1h", "inputTokens": 60}, {"ttl": "5m", "inputTokens": 40}],
            },
            "bedrock",
            SPLIT,
        ),
        (
            {
                "inputTokenCount": 3,
                "outputTokenCount": 7,
                "cacheReadInputTokenCount": 900,
                "cacheWriteInputTokenCount": 100,
            },
            "bedrock",
            OURS,
        ),
        (
            {"input_tokens": 3, "output_tokens": 7, "cache_read_tokens": 900, "cache_creation_tokens": 100},
            "claude-code",
            OURS,
        ),
        (
            {
                "inputTokens": 1003,
                "outputTokens": 7,
                "inputTokenDetails": {"noCacheTokens": 3, "cacheReadTokens": 900, "cacheWriteTokens": 100},
            },
            "ai-sdk",
            OURS,
        ),
        (
            {"inputTokens": 3, "outputTokens": 7, "totalTokens": 10, "cachedInputTokens": 900},
            "ai-sdk",
            Usage(3, 900, 0, 0, 7),
        ),
    ],
)
def test_the_keys_tell_the_shape(raw: Raw, shape: str, usage: Usage) -> None:
    assert (shape_of(raw), usage_from(raw), usage_from(raw, shape=shape)) == (shape, usage, usage)


def langfuse(total: int | None = None, **kinds: int) -> Raw:
    return {**kinds, **({} if total is None else {"total": total})}


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (langfuse(input=3, output=7, cache_read_input_tokens=900, cache_creation_input_tokens=100), OURS),
        (langfuse(1010, input=3, output=7, input_cache_read=900, input_cache_creation=100), OURS),
        (
            langfuse(input=3, output=7, input_cache_read=900, input_cache_creation_5m=40, input_cache_creation_1h=60),
            SPLIT,
        ),
        (
            langfuse(
                1010,
                input=3,
                output=7,
                input_cache_read=900,
                input_cache_creation=0,
                input_ephemeral_5m_input_tokens=40,
                input_ephemeral_1h_input_tokens=60,
            ),
            SPLIT,
        ),
        # reasoning is a bucket of its own, unless the total says that output has it
        (langfuse(1010, input=1003, output=2, output_reasoning_tokens=5), Usage(1003, 0, 0, 0, 7)),
        (langfuse(1010, input=1003, output=7, output_reasoning_tokens=5), Usage(1003, 0, 0, 0, 7)),
        (langfuse(input=1000, input_audio_tokens=3, output=7), Usage(1003, 0, 0, 0, 7)),
        (langfuse(input=0, input_modality_TEXT=103, cached_modality_TEXT=900, output=7), Usage(103, 900, 0, 0, 7)),
        (langfuse(input=0, input_flex=103, input_flex_cache_read=900, output=7), Usage(103, 900, 0, 0, 7)),
        # langfuse#10592: the provider's total shows that the input was not cleared of what was read
        (langfuse(18_003, input=17_903, input_cached_tokens=17_817, output=100), Usage(86, 17_817, 0, 0, 100)),
        (langfuse(35_820, input=17_903, input_cached_tokens=17_817, output=100), Usage(17_903, 17_817, 0, 0, 100)),
        (langfuse(input=17_903, input_cached_tokens=17_817, output=100), Usage(17_903, 17_817, 0, 0, 100)),
        (langfuse(10, input=3, input_cached_tokens=900, output=7), Usage(3, 900, 0, 0, 7)),
        # names of the semantic conventions bring their meaning along
        ({"input": 1003, "output": 7, "cache_read.input_tokens": 900}, Usage(103, 900, 0, 0, 7)),
        ({"input": 3, "output": 7, "cache_read.input_tokens": 900}, Usage(3, 900, 0, 0, 7)),
    ],
)
def test_langfuse_has_buckets_unless_its_total_says_otherwise(raw: Raw, usage: Usage) -> None:
    assert usage_from(raw, shape="langfuse") == usage_from(raw) == usage


def otel(total: int | None = None, **more: int) -> Raw:
    names = {
        "read": "gen_ai.usage.cache_read.input_tokens",
        "written": "gen_ai.usage.cache_creation.input_tokens",
        "input": "gen_ai.usage.input_tokens",
        "output": "gen_ai.usage.output_tokens",
    }
    told = {names[name]: value for name, value in more.items()}
    return told if total is None else {**told, "gen_ai.usage.total_tokens": total}


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (otel(input=1003, read=900, written=100, output=7), OURS),
        (otel(1010, input=1003, read=900, written=100, output=7), OURS),
        (otel(input=3, read=900, written=100, output=7), OURS),  # an instrumentation of before
        (otel(input=999, read=900, written=100, output=7), Usage(999, 900, 100, 0, 7)),
        (otel(input=1000, read=900, written=100, output=7), Usage(0, 900, 100, 0, 7)),
        # only the sum of all explains the total
        (otel(58_291, input=4_299, read=35_574, written=17_787, output=631), Usage(4_299, 35_574, 17_787, 0, 631)),
        (otel(96_205, input=60_000, read=35_574, output=631), Usage(60_000, 35_574, 0, 0, 631)),
        (otel(60_631, input=60_000, read=35_574, output=631), Usage(24_426, 35_574, 0, 0, 631)),
        (otel(5, input=1003, read=900, output=7), Usage(103, 900, 0, 0, 7)),
        (
            {
                "llm.token_count.prompt": 1003,
                "llm.token_count.completion": 7,
                "llm.token_count.prompt_details.cache_read": 900,
                "llm.token_count.prompt_details.cache_write": 100,
                "http.cache_age": 5,
            },
            OURS,
        ),
        (
            {
                "ai.usage.inputTokens": 1003,
                "ai.usage.outputTokens": 7,
                "ai.usage.cachedInputTokens": 900,
                "ai.usage.inputTokenDetails.cacheWriteTokens": 100,
            },
            OURS,
        ),
        (
            {"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 7, "http.cache_age": 5},
            Usage(5, 0, 0, 0, 7),
        ),
    ],
)
def test_opentelemetry_is_decided_by_its_numbers(raw: Raw, usage: Usage) -> None:
    assert usage_from(raw, shape="otel") == usage_from(raw) == usage


# ------------------------------------------------------------------------------- bills that were wrong


def test_cached_tokens_are_billed_once() -> None:
    """BerriAI/litellm#9812: $0.091311 where the truth was $0.054399."""
    raw = chat(12_307, 550, cache_creation_input_tokens=12_304, cache_read_input_tokens=0)
    usage, model, day = usage_from(raw, shape="litellm"), "claude-3-7-sonnet-20250219", "2025-04-07T10:00:00Z"
    assert usage == Usage(3, 0, 12_304, 0, 550)
    assert dollars(usage, model, day) == Decimal("0.054399")
    assert dollars(Usage(12_307, 0, 12_304, 0, 550), model, day) == Decimal("0.091311")


def test_read_tokens_are_billed_once() -> None:
    """BerriAI/litellm#11789: $0.002059 where the truth was $0.000292 (0.8 and 4 dollars per 10**6 tokens)."""
    usage = usage_from(chat(2_459, 23, cache_read_input_tokens=2_455, prompt_tokens_details={"cached_tokens": 2_455}))
    assert usage == Usage(4, 2_455, 0, 0, 23)
    assert dollars(usage, "claude-3-5-haiku-20241022", "2025-06-17T10:00:00Z") == Decimal("0.0002916")


def test_langchain_adds_what_anthropic_keeps_apart() -> None:
    """The trace of a real session: new, write, read and output of five calls."""
    trace = [(356, 3269, 0, 162), (1437, 0, 3269, 63), (1583, 0, 3269, 133), (2437, 0, 3269, 156), (2724, 0, 3269, 213)]
    total = Usage()
    for new, write, read, output in trace:
        details = {"cache_read": read, "cache_creation": write}
        total += usage_from(
            {"input_tokens": new + write + read, "output_tokens": output, "input_token_details": details}
        )
    assert total == Usage(8_537, 13_076, 3_269, 0, 727)
    assert total.total_input == 24_882


def test_an_hour_is_not_five_minutes() -> None:
    """ryoppippi/ccusage#899: a 1h write costs 2.0 and not 1.25 times the input."""
    hour = {"ephemeral_1h_input_tokens": 136_238, "ephemeral_5m_input_tokens": 0}
    raw = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 136_238, "cache_creation": hour}
    langchain = {"input_tokens": 136_238, "output_tokens": 0, "input_token_details": {"cache_creation": 0, **hour}}
    for told in (raw, langchain, langfuse(input=0, output=0, input_cache_creation_1h=136_238)):
        assert usage_from(told) == Usage(write_1h=136_238)
    day = "2026-03-07T10:00:00Z"
    assert dollars(usage_from(raw), "claude-opus-4-6", day) == Decimal("1.36238")
    assert dollars(Usage(write_5m=136_238), "claude-opus-4-6", day) == Decimal("0.8514875")


def test_openai_writes_are_inside_its_input() -> None:
    first = chat(4_067, 9, prompt_tokens_details={"cached_tokens": 0, "cache_write_tokens": 4_064})
    second = chat(4_087, 9, prompt_tokens_details={"cached_tokens": 4_064, "cache_write_tokens": 20})
    assert [usage_from(first), usage_from(second)] == [Usage(3, 0, 4_064, 0, 9), Usage(3, 4_064, 20, 0, 9)]


# ----------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("raw", "shape", "message"),
    [
        (7, "auto", "usage: expected a usage object; got 7"),
        ({}, "auto", "usage: expected a usage in a known format; got nothing"),
        ({"tokens": 5, "cost": 2}, "auto", "usage: expected a usage in a known format; got only cost, tokens"),
        (
            chat(3, 7, cache_read_input_tokens=900, cache_creation_input_tokens=100),
            "litellm",
            "usage.prompt_tokens: expected at least the 1000 tokens read and written that it includes; got 3",
        ),
        (
            {"input_tokens": 899, "input_tokens_details": {"cached_tokens": 900}},
            "openai",
            "usage.input_tokens: expected at least the 900 tokens read and written that it includes; got 899",
        ),
        (
            {"input_tokens": 3, "input_token_details": {"cache_read": 900}},
            "langchain",
            "usage.input_tokens: expected at least the 900 tokens read and written that it includes; got 3",
        ),
        (
            {"cachedContentTokenCount": 5, "candidatesTokenCount": 1},
            "gemini",
            "usage.promptTokenCount: expected at least the 5 tokens read and written that it includes; got 0",
        ),
        (chat(-1, 7), "openai", "usage.prompt_tokens: expected a whole number of tokens; got -1"),
        (
            chat(9, 7, prompt_tokens_details={"cached_tokens": True}),
            "openai",
            "usage.prompt_tokens_details.cached_tokens: expected a whole number of tokens; got True",
        ),
        ({"input_tokens": "3"}, "auto", "usage.input_tokens: expected a whole number of tokens; got '3'"),
        (
            {"inputTokens": 3, "cacheDetails": [{"ttl": "1h", "inputTokens": 0.5}]},
            "bedrock",
            "usage.cacheDetails.inputTokens: expected a whole number of tokens; got 0.5",
        ),
        (langfuse(input=3, output_text=-2), "langfuse", "usage.output_text: expected a whole number of tokens; got -2"),
        (
            {"input_tokens": 1003, "cache_read_tokens": 900, "output_tokens": 7},
            "auto",
            "usage: expected cached tokens under a known key; got 'cache_read_tokens'",
        ),
        (
            {"input": 3, "output": 7, "cacheRead": 900},
            "auto",
            "usage: expected cached tokens under a known key; got 'cacheRead'",
        ),
        (
            chat(1003, 7, prompt_tokens_details={"cached": 900}),
            "openai",
            "usage: expected cached tokens under a known key; got 'cached'",
        ),
    ],
)
def test_what_cannot_be_a_usage_is_refused(raw: Any, shape: str, message: str) -> None:
    with pytest.raises(NotAMessage) as caught:
        usage_from(raw, shape=shape)
    assert str(caught.value) == message


def test_the_place_of_a_fault_is_told() -> None:
    with pytest.raises(NotAMessage, match=r"^response\.usage\.prompt_tokens: expected at least the 9 tokens"):
        usage_from({**chat(3, 7, cached_tokens=9), "total_tokens": 11}, "response.usage", "openai")


def totalled(prompt: int, cached: int, output: int, total: int | None, reasoning: int = 0) -> Raw:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": cached},
        **({} if total is None else {"total_tokens": total}),
        **({"completion_tokens_details": {"reasoning_tokens": reasoning}} if reasoning else {}),
    }


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (totalled(900, 800, 50, 950), Usage(100, 800, 0, 0, 50)),  # the documented reading adds up
        (totalled(900, 800, 50, 1750), Usage(900, 800, 0, 0, 50)),  # only an input without the cached tokens does
        (totalled(900, 800, 50, 1749), Usage(100, 800, 0, 0, 50)),  # neither does: as documented
        (totalled(900, 800, 50, None), Usage(100, 800, 0, 0, 50)),
        (totalled(100, 800, 50, 950), Usage(100, 800, 0, 0, 50)),  # more cached than input: apart from it
        (totalled(100, 161, 50, 150), Usage(0, 100, 0, 0, 50)),  # xAI: its own text is read and not in the input
        (totalled(161, 161, 50, 211), Usage(0, 161, 0, 0, 50)),
        (totalled(351, 148, 53, 627, 223), Usage(203, 148, 0, 0, 276)),  # xAI: reasoning beside the output
        (totalled(351, 148, 276, 627, 223), Usage(203, 148, 0, 0, 276)),  # OpenAI: inside it
        (totalled(351, 148, 53, 775, 223), Usage(351, 148, 0, 0, 276)),
        (totalled(351, 148, 276, None, 223), Usage(203, 148, 0, 0, 276)),
    ],
)
def test_the_total_of_openais_usage_says_what_its_parts_include(raw: Raw, usage: Usage) -> None:
    assert usage_from(raw) == usage_from(raw, shape="openai") == usage


@pytest.mark.parametrize("total", [None, 149, 151])
def test_more_cached_than_was_sent_needs_a_total_that_explains_it(total: int | None) -> None:
    with pytest.raises(NotAMessage, match=r"^usage\.prompt_tokens: expected at least the 161 tokens"):
        usage_from(totalled(100, 161, 50, total))


def test_a_write_beside_such_a_read_is_not_explained() -> None:
    raw = totalled(100, 161, 50, 150)
    raw["prompt_tokens_details"]["cache_write_tokens"] = 5
    with pytest.raises(NotAMessage):
        usage_from(raw)


def test_an_unknown_shape_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match=r"^shape: expected one of auto, anthropic, openai, .*; got 'ollama'$"):
        usage_from(NATIVE, shape="ollama")


def test_a_gateway_may_pass_on_what_the_provider_said() -> None:
    assert [usage_from(NATIVE, shape=shape) for shape in ("openai", "litellm")] == [OURS, OURS]


def test_nothing_cached_is_the_same_everywhere() -> None:
    plain = {
        "anthropic": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 0},
        "openai": chat(5, 7),
        "litellm": chat(5, 7, cache_read_input_tokens=0, cache_creation_input_tokens=None),
        "langchain": {"input_tokens": 5, "output_tokens": 7, "input_token_details": {}},
        "gemini": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
        "gemini-cli": {"input": 5, "output": 7, "cached": 0, "thoughts": 0, "tool": 0, "total": 12},
        "qwen-code": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
        "bedrock": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
        "ai-sdk": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12, "cachedInputTokens": 0},
        "claude-code": {"input_tokens": 5, "output_tokens": 7, "cache_read_tokens": 0, "cache_creation_tokens": 0},
        "langfuse": langfuse(12, input=5, output=7),
        "otel": otel(12, input=5, output=7),
    }
    assert plain.keys() == {"anthropic", *SHAPES}
    for shape, raw in plain.items():
        assert usage_from(raw) == usage_from(raw, shape=shape) == Usage(5, output_tokens=7)
