"""Usage in the two forms of OpenAI's APIs: its input includes what was read from the cache or written to it.

Field names: openai 3.54, `CompletionUsage` and `ResponseUsage`. Chat Completions does not split writes by TTL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.conversations.wire_usage import parse_usage
from cachecost.providers.usage import Usage

Wire = dict[str, Any]


def chat_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The usage of a Messages answer as Chat Completions has it. `thinking_tokens` are part of its output."""
    usage = parse_usage(message["usage"], "usage")
    return {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_input + usage.output_tokens,
        "prompt_tokens_details": {**_details(usage), "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thinking_tokens, "audio_tokens": 0},
    }


def responses_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The same as Responses has it."""
    usage = parse_usage(message["usage"], "usage")
    written = {"ttl_30m_tokens": usage.write_5m, "ttl_12h_tokens": usage.write_1h}
    return {
        "input_tokens": usage.total_input,
        "input_tokens_details": {**_details(usage), "cache_write_tokens_details": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": thinking_tokens},
        "total_tokens": usage.total_input + usage.output_tokens,
    }


def _details(usage: Usage) -> Wire:
    return {"cached_tokens": usage.read, "cache_write_tokens": usage.write}
