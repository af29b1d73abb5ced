"""The field names of each provider's and tool's usage. usage_shapes.py interprets them."""

from __future__ import annotations

from dataclasses import dataclass

Names = tuple[str, ...]
M5, H1 = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShape:
    """The field names of a usage; of several names, the first that is present and not 0 counts.

    "a/b" is b inside a. `more_input` and `more_output` are counted in addition to input and output. `includes`: the
    input includes the cached tokens; `doubtful`: unless the numbers show otherwise; `total_decides`: unless only
    another reading adds up to the total.
    """

    input: Names
    output: Names
    read: Names = ()
    write: Names = ()
    five: Names = ()
    hour: Names = ()
    total: Names = ()
    more_input: Names = ()
    more_output: Names = ()
    includes: bool = True
    doubtful: bool = False
    total_decides: bool = False


DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
"""Those of Chat Completions, of Responses, and of the Realtime API."""


def _in_details(*names: str) -> Names:
    return tuple(f"{details}/{name}" for name in names for details in DETAILS)


OPENAI = UsageShape(
    input=("prompt_tokens", "input_tokens"),
    output=("completion_tokens", "output_tokens"),
    read=(
        "cache_read_input_tokens",
        *_in_details("cached_tokens"),
        *("prompt_cache_hit_tokens", "cached_tokens", "cached_input_tokens", "cached_prompt_text_tokens"),
    ),
    write=(
        "cache_creation_input_tokens",
        *_in_details("cache_creation_tokens", "cache_write_tokens"),
        "cache_write_tokens",
        "cache_write_input_tokens",
    ),
    five=(*_in_details(f"cache_creation_token_details/{M5}"), f"cache_creation/{M5}"),
    hour=(
        *_in_details(f"cache_creation_token_details/{H1}", "cache_write_tokens_details/ttl_12h_tokens"),
        f"cache_creation/{H1}",
    ),
    total=("total_tokens",),
    more_output=(
        *(f"{details}/reasoning_tokens" for details in ("completion_tokens_details", "output_tokens_details")),
        "reasoning_tokens",
    ),
    total_decides=True,
)
LANGCHAIN = UsageShape(
    input=("input_tokens",),
    output=("output_tokens",),
    read=tuple(f"input_token_details/{tier}cache_read" for tier in ("", "priority_", "flex_")),
    write=("input_token_details/cache_creation",),
    five=(f"input_token_details/{M5}",),
    hour=(f"input_token_details/{H1}",),
)
GEMINI = UsageShape(
    input=("promptTokenCount", "prompt_token_count"),
    output=("candidatesTokenCount", "candidates_token_count", "responseTokenCount", "response_token_count"),
    read=("cachedContentTokenCount", "cached_content_token_count"),
    more_input=("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
    more_output=("thoughtsTokenCount", "thoughts_token_count"),
)
GEMINI_CLI = UsageShape(
    input=("input",),
    output=("output",),
    read=("cached",),
    more_input=("tool",),
    more_output=("thoughts",),
)
QWEN_CODE = UsageShape(
    input=("promptTokenCount", "input_token_count"),
    output=("candidatesTokenCount", "output_token_count"),
    read=("cachedContentTokenCount", "cached_content_token_count"),
    total=("totalTokenCount", "total_token_count"),
    more_output=("thoughtsTokenCount", "thoughts_token_count"),
    doubtful=True,
)
BEDROCK = UsageShape(
    input=("inputTokens", "inputTokenCount"),
    output=("outputTokens", "outputTokenCount"),
    read=("cacheReadInputTokens", "cacheReadInputTokenCount"),
    write=("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
    hour=("cacheDetails/1h",),
    includes=False,
)
CLAUDE_CODE = UsageShape(
    input=("input_tokens",),
    output=("output_tokens",),
    read=("cache_read_tokens",),
    write=("cache_creation_tokens",),
    includes=False,
)
AI_SDK = UsageShape(
    input=("inputTokens",),
    output=("outputTokens",),
    read=("inputTokenDetails/cacheReadTokens", "cachedInputTokens"),
    write=("inputTokenDetails/cacheWriteTokens",),
    total=("totalTokens",),
    doubtful=True,
)
LANGFUSE = UsageShape(
    input=("input", "input_tokens", "prompt_tokens"),
    output=("output", "output_tokens", "completion_tokens"),
    read=(
        *("cache_read_input_tokens", "input_cache_read", "input_cached_tokens", "input_cache_read_tokens"),
        *("cached_content_token_count", "input_flex_cache_read", "input_priority_cache_read", "cached_tokens"),
        *("cache_read.input_tokens", "cache_read_tokens", "cached_modality_"),
    ),
    write=(
        *("cache_creation_input_tokens", "input_cache_creation", "input_cache_creation_tokens", "input_cache_write"),
        *("input_cache_write_tokens", "cache_creation.input_tokens", "cache_write_tokens", "cache_creation_tokens"),
    ),
    five=("input_cache_creation_5m", f"input_{M5}", f"cache_creation_{M5}"),
    hour=("input_cache_creation_1h", f"input_{H1}", f"cache_creation_{H1}"),
    total=("total", "total_tokens"),
    more_input=("input_",),
    more_output=("output_",),
    includes=False,
    doubtful=True,
)
OTEL = UsageShape(
    input=(
        *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        *("ai.usage.inputTokens", "ai.usage.promptTokens"),
    ),
    output=(
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
        *("ai.usage.outputTokens", "ai.usage.completionTokens"),
    ),
    read=(
        *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        *("gen_ai.usage.details.cache_read_input_tokens", "gen_ai.usage.cache_read_tokens"),
        *("gen_ai.usage.input_tokens.cached", "llm.token_count.prompt_details.cache_read"),
        *("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
    ),
    write=(
        *("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
        *("gen_ai.usage.details.cache_creation_input_tokens", "gen_ai.usage.cache_write_tokens"),
        *("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_write_input_tokens"),
        *("gen_ai.usage.input_tokens.cache_write", "llm.token_count.prompt_details.cache_write"),
        "ai.usage.inputTokenDetails.cacheWriteTokens",
    ),
    total=("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens"),
    doubtful=True,
)
SHAPES: dict[str, UsageShape] = {
    "openai": OPENAI,
    "litellm": OPENAI,
    "langchain": LANGCHAIN,
    "gemini": GEMINI,
    "gemini-cli": GEMINI_CLI,
    "qwen-code": QWEN_CODE,
    "bedrock": BEDROCK,
    "ai-sdk": AI_SDK,
    "claude-code": CLAUDE_CODE,
    "langfuse": LANGFUSE,
    "otel": OTEL,
}
