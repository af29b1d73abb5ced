"""Finds the usage of a LangSmith run, and decides which of several is the bill.

The provider's own usage (`response_metadata.usage`, kept where an answer did not stream) is preferred: Anthropic's
input excludes the cached tokens and its writes are split by TTL, with nothing added up on the way. Next is
LangChain's `usage_metadata`, whose input includes them. LangSmith's columns come last: without a usage it counts
tokens itself.

Not every `usage_metadata` includes them: `wrap_anthropic` left them out before langsmith 0.7.14 (March 2026), so that
reading them as documented would take them off an input that never had them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.usage import Usage

M5, H1 = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
INCLUDED_SINCE = (0, 7, 14)
"""The first langsmith-py whose `wrap_anthropic` puts cached tokens into the input."""
MISSPELT = {"ephemeral_1hr_input_tokens": H1, "ephemeral_5min_input_tokens": M5}
"""Keys of langsmith-js before March 2026."""
Mapped = Mapping[str, Any]


def usage_of_answer(message: Mapped, outputs: Mapped, extra: Mapped) -> Usage | None:
    """The usage in the answer, or None. Raises NotAMessage."""
    own, counted = _provider_usage(message, outputs), _usage_metadata(message, outputs, extra)
    if "input_tokens" in own and any(str(name).startswith("cache_") for name in own):
        usage = usage_from(own, "usage", "anthropic")
        streamed = counted.get("output_tokens")
        return replace(usage, output_tokens=max(usage.output_tokens, streamed if isinstance(streamed, int) else 0))
    if counted:
        return usage_from(_with_cached_input(counted, outputs, extra), "usage_metadata", "langchain")
    return usage_from(own, "usage") if own else None


def usage_of_columns(run: JsonObject) -> Usage | None:
    """The usage in LangSmith's own columns, or None if they are empty. Raises NotAMessage."""
    prompt, completion = run.whole("prompt_tokens", 0), run.whole("completion_tokens", 0)
    if not prompt:
        return None
    details = run.mapping("prompt_token_details", required=False)
    told = {"input_tokens": prompt, "output_tokens": completion, "input_token_details": details}
    return usage_from(told, "prompt_tokens", "langchain")


def is_from_own_cache(message: Mapped) -> bool:
    """Whether LangChain answered from its own cache: it keeps the usage of then and sets the cost to 0."""
    counted = object_or_empty(message.get("usage_metadata"))
    return counted.get("total_cost") == 0 and "total_cost" in counted


def _provider_usage(message: Mapped, outputs: Mapped) -> Mapped:
    """The provider's usage, unchanged."""
    llm = object_or_empty(outputs.get("llm_output"))
    places = [object_or_empty(message.get("response_metadata")), llm, outputs]
    found = [object_or_empty(place.get(name)) for place in places for name in ("usage", "token_usage")]
    return next((usage for usage in found if usage), {})


def _usage_metadata(message: Mapped, outputs: Mapped, extra: Mapped) -> Mapped:
    places = (message, outputs, object_or_empty(extra.get("metadata")))
    return next((usage for place in places if (usage := object_or_empty(place.get("usage_metadata")))), {})


def _with_cached_input(counted: Mapped, outputs: Mapped, extra: Mapped) -> dict[str, Any]:
    """LangChain's usage with the cached tokens in its input, where it was written without them."""
    told = object_or_empty(counted.get("input_token_details"))
    details = {MISSPELT.get(name, name): value for name, value in told.items()}
    read, written, five, hour = (_count(details, name) for name in ("cache_read", "cache_creation", M5, H1))
    cached, uncached = read + max(written, five + hour), _count(counted, "input_tokens")
    excludes = uncached < cached or _is_of_old_wrapper(outputs, extra)
    return {
        **counted,
        "input_token_details": details,
        **({"input_tokens": uncached + cached} if excludes and cached else {}),
    }


def _is_of_old_wrapper(outputs: Mapped, extra: Mapped) -> bool:
    runtime, provider = object_or_empty(extra.get("runtime")), object_or_empty(extra.get("metadata")).get("ls_provider")
    if provider != "anthropic" or "generations" in outputs or runtime.get("sdk") != "langsmith-py":
        return False
    numbers = str(runtime.get("sdk_version") or "").split(".")[:3]
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) < INCLUDED_SINCE


def _count(told: Mapped, name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
