"""Converts the usage of every provider and tool to one convention. No other module does this.

The convention is Anthropic's: `input_tokens` is what was neither read from the cache nor written to it. The others
differ in whether their input includes the cached tokens. Counting a cached token twice, or taking a 1h write for a 5m
one, makes a wrong bill. The conventions, with their sources (November 2026):

- anthropic (API reference), bedrock (Converse and its invocation log; botocore) and claude-code (the events of its
  telemetry): the input excludes them.
- openai (Chat, Responses; SDK types), and with it DeepSeek, xAI, Mistral, Moonshot and OpenRouter; litellm (its
  `Usage` since prompt_tokens is the sum): the input includes them. Some hosts of that API report an input without
  them, and xAI's chat API an output without the reasoning: the total shows it, where only that adds up. Where a total
  without the cached tokens adds up and fewer tokens were sent than read, the rest of the read is the provider's own
  text, which the input leaves out: all that was sent was read.
- langchain (`usage_metadata` of langchain-core 1.8, langchain-anthropic 1.7); gemini (`usageMetadata`; thoughts are
  output, tool-use prompts are additional input): the input includes them.
- codex (`token_usage_record`, `token_count`; openai's fields) and gemini-cli (`tokens` of a message; gemini's counts
  under names of its own): the input includes them. qwen-code (`usageMetadata`, `ui_telemetry`): gemini's names for the
  counts of any provider; whether the output includes the thoughts shows in the total.
- langfuse (`usageDetails`; documentation, SDK 5.0): each kind is a bucket of its own, so the input excludes them;
  but what a client sent flat is stored as sent. Where a `total` was sent and equals input + output, the input
  includes them (@langfuse/openai 4). Where Langfuse added the total up itself, only an input that is hardly more
  than what was cached tells (its pydantic-ai path); else the documented reading holds.
- otel (`gen_ai.usage.*`, OpenInference `llm.token_count.*`, the AI SDK's `ai.usage.*`) and ai-sdk: the semantic
  conventions include them since January 2026. Before, instrumentations of Anthropic and Bedrock often did not: an
  input smaller than what was cached, or a total that only the sum of all explains, says that it excludes them;
  where the numbers fit both, they are read as the conventions say.

OpenAI's TTLs are mapped: 30 minutes to 5m, 12 hours to 1h. A write without a TTL counts as 5m; otel, Bedrock's log and
most of Langfuse never state it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cachecost.base.limits import is_tokens
from cachecost.base.structs import replace
from cachecost.conversations.calls import parse_usage, reported_charge, reported_uses
from cachecost.prompts.request import BareWord, NotAMessage
from cachecost.providers.usage import Usage

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


def _names(text: str) -> Names:
    return tuple(text.split())


def _in_details(*names: str) -> Names:
    return tuple(f"{details}/{name}" for name in names for details in DETAILS)


OPENAI = UsageShape(
    input=_names("prompt_tokens input_tokens"),
    output=_names("completion_tokens output_tokens"),
    read=(
        "cache_read_input_tokens",
        *_in_details("cached_tokens"),
        *_names("prompt_cache_hit_tokens cached_tokens cached_input_tokens cached_prompt_text_tokens"),
    ),
    write=(
        "cache_creation_input_tokens",
        *_in_details("cache_creation_tokens", "cache_write_tokens"),
        *_names("cache_write_tokens cache_write_input_tokens"),
    ),
    five=(*_in_details(f"cache_creation_token_details/{M5}"), f"cache_creation/{M5}"),
    hour=(
        *_in_details(f"cache_creation_token_details/{H1}", "cache_write_tokens_details/ttl_12h_tokens"),
        f"cache_creation/{H1}",
    ),
    total=_names("total_tokens"),
    more_output=_names(
        "completion_tokens_details/reasoning_tokens output_tokens_details/reasoning_tokens reasoning_tokens"
    ),
    total_decides=True,
)
SHAPES: dict[str, UsageShape] = {
    "openai": OPENAI,
    "litellm": OPENAI,
    "langchain": UsageShape(
        input=_names("input_tokens"),
        output=_names("output_tokens"),
        read=tuple(f"input_token_details/{tier}cache_read" for tier in ("", "priority_", "flex_")),
        write=_names("input_token_details/cache_creation"),
        five=_names(f"input_token_details/{M5}"),
        hour=_names(f"input_token_details/{H1}"),
    ),
    "gemini": UsageShape(
        input=_names("promptTokenCount prompt_token_count"),
        output=_names("candidatesTokenCount candidates_token_count responseTokenCount response_token_count"),
        read=_names("cachedContentTokenCount cached_content_token_count"),
        more_input=_names("toolUsePromptTokenCount tool_use_prompt_token_count"),
        more_output=_names("thoughtsTokenCount thoughts_token_count"),
    ),
    "gemini-cli": UsageShape(
        input=("input",), output=("output",), read=("cached",), more_input=("tool",), more_output=("thoughts",)
    ),
    "qwen-code": UsageShape(
        input=_names("promptTokenCount input_token_count"),
        output=_names("candidatesTokenCount output_token_count"),
        read=_names("cachedContentTokenCount cached_content_token_count"),
        total=_names("totalTokenCount total_token_count"),
        more_output=_names("thoughtsTokenCount thoughts_token_count"),
        doubtful=True,
    ),
    "bedrock": UsageShape(
        input=_names("inputTokens inputTokenCount"),
        output=_names("outputTokens outputTokenCount"),
        read=_names("cacheReadInputTokens cacheReadInputTokenCount"),
        write=_names("cacheWriteInputTokens cacheWriteInputTokenCount"),
        hour=_names("cacheDetails/1h"),
        includes=False,
    ),
    "ai-sdk": UsageShape(
        input=_names("inputTokens"),
        output=_names("outputTokens"),
        read=_names("inputTokenDetails/cacheReadTokens cachedInputTokens"),
        write=_names("inputTokenDetails/cacheWriteTokens"),
        total=_names("totalTokens"),
        doubtful=True,
    ),
    "claude-code": UsageShape(
        input=_names("input_tokens"),
        output=_names("output_tokens"),
        read=_names("cache_read_tokens"),
        write=_names("cache_creation_tokens"),
        includes=False,
    ),
    "langfuse": UsageShape(
        input=_names("input input_tokens prompt_tokens"),
        output=_names("output output_tokens completion_tokens"),
        read=_names(
            "cache_read_input_tokens input_cache_read input_cached_tokens input_cache_read_tokens"
            " cached_content_token_count input_flex_cache_read input_priority_cache_read cached_tokens"
            " cache_read.input_tokens cache_read_tokens cached_modality_"
        ),
        write=_names(
            "cache_creation_input_tokens input_cache_creation input_cache_creation_tokens input_cache_write"
            " input_cache_write_tokens cache_creation.input_tokens cache_write_tokens cache_creation_tokens"
        ),
        five=_names(f"input_cache_creation_5m input_{M5} cache_creation_{M5}"),
        hour=_names(f"input_cache_creation_1h input_{H1} cache_creation_{H1}"),
        total=_names("total total_tokens"),
        more_input=_names("input_"),
        more_output=_names("output_"),
        includes=False,
        doubtful=True,
    ),
    "otel": UsageShape(
        input=_names(
            "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens llm.token_count.prompt"
            " ai.usage.inputTokens ai.usage.promptTokens"
        ),
        output=_names(
            "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens llm.token_count.completion"
            " ai.usage.outputTokens ai.usage.completionTokens"
        ),
        read=_names(
            "gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens"
            " gen_ai.usage.details.cache_read_input_tokens gen_ai.usage.cache_read_tokens"
            " gen_ai.usage.input_tokens.cached llm.token_count.prompt_details.cache_read"
            " ai.usage.inputTokenDetails.cacheReadTokens ai.usage.cachedInputTokens"
        ),
        write=_names(
            "gen_ai.usage.cache_creation.input_tokens gen_ai.usage.cache_creation_input_tokens"
            " gen_ai.usage.details.cache_creation_input_tokens gen_ai.usage.cache_write_tokens"
            " gen_ai.usage.cache_write.input_tokens gen_ai.usage.cache_write_input_tokens"
            " gen_ai.usage.input_tokens.cache_write llm.token_count.prompt_details.cache_write"
            " ai.usage.inputTokenDetails.cacheWriteTokens"
        ),
        total=_names("gen_ai.usage.total_tokens llm.usage.total_tokens llm.token_count.total ai.usage.totalTokens"),
        doubtful=True,
    ),
}


MOST_AFTER_BREAKPOINT = 64
"""Tokens that follow the last breakpoint of a request at most; of a short cached prefix, this part of its length."""


def usage_from(raw: Mapping[str, Any], path: str = "usage", shape: str = "auto") -> Usage:
    """The usage in `raw`. `shape` is "auto" (its keys decide), "anthropic" or one of `SHAPES`.

    Raises NotAMessage, with a place after `path`: invalid numbers, an input smaller than the cached tokens it
    is said to include, unknown keys, cached tokens under names that the shape does not have.
    """
    if not isinstance(raw, Mapping):
        raise NotAMessage(path, "a usage object", raw)
    reported = {key: value for key, value in raw.items() if value is not None}
    name = (
        shape_of(reported, path)
        if shape == "auto"
        or (shape in ("openai", "litellm") and not _any("prompt_tokens", "cached_input_tokens", *DETAILS)(reported))
        else shape
    )
    if name == "anthropic":
        usage = parse_usage(reported, path)
    elif name in SHAPES:
        usage = _UsageCounts(_normalize(reported, name, path), SHAPES[name], path).usage()
        uses, charged = reported_uses(reported), reported_charge(reported)
        if uses or charged is not None:
            usage = replace(usage, tool_uses=uses, charged_usd=charged)
    else:
        raise ValueError(f"shape: expected one of auto, anthropic, {', '.join(SHAPES)}; got {shape!r}")
    for key, value in () if usage.read or usage.write else _leaves(reported):
        is_ours = "." not in key or _IS_OTEL([key])  # then nothing cached was understood: there must be nothing
        if is_ours and "cach" in key.lower() and "miss" not in key and isinstance(value, int) and value > 0:
            raise NotAMessage(path, "cached tokens under a known key", key)
    return usage


def with_searches(usage: Usage, answer: Mapping[str, Any]) -> Usage:
    """The usage with the uses of server tools that an answer shows, where its usage counts none: items of the Responses
    API (a search, not the pages that it opens), and what Gemini's grounding looked up."""
    uses: Counter[str] = Counter()
    items, candidates = answer.get("output"), answer.get("candidates")
    tools = [tool.get("type") for tool in answer.get("tools") or () if isinstance(tool, Mapping)]
    for item in items if isinstance(items, list) else ():
        kind = item.get("type") if isinstance(item, Mapping) else None
        action = item.get("action") if kind == "web_search_call" else None
        if kind == "web_search_call" and (not isinstance(action, Mapping) or action.get("type") in (None, "search")):
            uses["web_search_preview" if any("preview" in str(name) for name in tools) else "web_search"] += 1
        elif kind == "file_search_call":
            uses["file_search"] += 1
    for candidate in candidates if isinstance(candidates, list) else ():
        grounding = candidate.get("groundingMetadata") if isinstance(candidate, Mapping) else None
        queries = grounding.get("webSearchQueries") if isinstance(grounding, Mapping) else None
        if isinstance(queries, list) and queries:
            uses["google_search"] += len(queries)
            uses["google_search_prompt"] = 1
    return usage if usage.tool_uses or not uses else replace(usage, tool_uses=tuple(sorted(uses.items())))


def shape_of(reported: Mapping[str, Any], path: str = "usage") -> str:
    """The name of the shape that has these keys. Raises NotAMessage if there is none."""
    for name, has_it in _KNOWN_BY:
        if has_it(reported):
            return name
    got = BareWord(f"only {', '.join(sorted(map(str, reported))[:3])}") if reported else None
    raise NotAMessage(path, "a usage in a known format", got)


def _any(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda reported: any(name in reported for name in names)


def _begins(*starts: str) -> Callable[[Iterable[Any]], bool]:
    return lambda keys: any(str(key).startswith(starts) for key in keys)


_IS_OTEL = _begins("gen_ai.usage.", "llm.token_count.", "ai.usage.")
_KNOWN_BY: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("otel", _IS_OTEL),
    ("gemini", _any("promptTokenCount", "prompt_token_count", "candidatesTokenCount", "candidates_token_count")),
    ("ai-sdk", _any("cachedInputTokens", "inputTokenDetails")),
    ("bedrock", _any("inputTokens", "outputTokens", "inputTokenCount", "outputTokenCount")),
    ("openai", _any("prompt_tokens", "input_tokens_details", "cached_input_tokens")),
    ("langchain", _any("input_token_details")),
    ("claude-code", lambda reported: "input_tokens" in reported and "cache_creation_tokens" in reported),
    ("anthropic", _any("input_tokens", "output_tokens")),
    ("openai", _any("completion_tokens")),
    ("langfuse", _any("input", "output")),
)
"""What each is known by, the surest first."""


def _leaves(reported: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in reported.items():
        yield from _leaves(value) if isinstance(value, Mapping) else [(str(key), value)]


def _normalize(reported: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    """The fields that only one shape has, under plain names."""
    if name == "bedrock" and isinstance(reported.get("cacheDetails"), list):
        hours = [one for one in reported["cacheDetails"] if isinstance(one, Mapping) and one.get("ttl") == "1h"]
        tokens = sum(_number(one, "inputTokens", f"{path}.cacheDetails") for one in hours)
        return {**reported, "cacheDetails": {"1h": tokens}}
    if name != "langfuse":
        return reported
    # Langfuse's buckets without fixed names: the modalities and tiers of input, output and cached tokens
    sums = dict.fromkeys(("input_", "output_", "cached_modality_"), 0)
    for key in reported:
        start = next((one for one in sums if key.startswith(one)), "")
        others = ("cach", "ephemeral", "priority", "tokens_details") if start != "cached_modality_" else ()
        if start and key not in ("input_tokens", "output_tokens") and not any(word in key for word in others):
            sums[start] += _number(reported, key, path)
    return {**reported, **sums}


class _UsageCounts:
    def __init__(self, raw: Mapping[str, Any], shape: UsageShape, path: str) -> None:
        self.raw, self.shape, self.path = raw, shape, path
        self.input, self.output = self._first(shape.input), self._first(shape.output)
        self.more_input, self.more_output = self._first(shape.more_input), self._first(shape.more_output)
        self.read, written = self._first(shape.read), self._first(shape.write)
        self.hour = self._first(shape.hour)
        self.five = max(self._first(shape.five), written - self.hour)
        self.cached = self.read + self.five + self.hour
        self.total = self._first(shape.total)

    def usage(self) -> Usage:
        includes, apart = self._reading()
        inside = self.cached if includes else 0
        output = self.output + (self.more_output if apart else 0)
        if self.input < inside:
            is_read_in_full = self.shape.total_decides and self.cached == self.read
            if is_read_in_full and 0 < self.total == self._sum(True, apart):  # the provider put more before it
                return Usage(0, self.input, 0, 0, output)
            name = next((name for name in self.shape.input if self.raw.get(name) is not None), self.shape.input[0])
            expected = f"at least the {inside} tokens read and written that it includes"
            raise NotAMessage(f"{self.path}.{name}", expected, self.input)
        return Usage(self.input - inside + self.more_input, self.read, self.five, self.hour, output)

    def _reading(self) -> tuple[bool, bool]:
        """(whether input includes the cached tokens, whether `more_output` is additional to output): as documented,
        unless only another interpretation adds up to the total."""
        if self.shape.doubtful:
            excludes = self.input < self.cached
            says_includes = self.shape.includes or _begins("cache_read.", "cache_creation.")(self.raw)
            documented = says_includes and not excludes
            readings = [(documented, True), (documented, False), (not documented, True), (not documented, False)]
            possible = [one for one in readings if not (excludes and one[0])]
        elif self.shape.total_decides:
            possible = readings = [(True, False), (True, True), (False, False), (False, True)]
        else:
            return self.shape.includes, True
        fitting = (one for one in possible if self.total and self._sum(*one) == self.total)
        includes, apart = next(fitting, readings[0])
        after = self.input - self.cached
        return includes or 0 <= after <= min(MOST_AFTER_BREAKPOINT, self.cached // MOST_AFTER_BREAKPOINT), apart

    def _sum(self, includes: bool, apart: bool) -> int:
        beside = 0 if includes else self.cached
        return self.input + self.more_input + beside + self.output + (self.more_output if apart else 0)

    def _first(self, names: Names) -> int:
        return next((found for name in names if (found := _number(self.raw, name, self.path))), 0)


def _number(raw: Mapping[str, Any], name: str, path: str) -> int:
    """The number at "a/b"; 0 where there is none, or a list of modalities in its place."""
    found: Any = raw
    for part in name.split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    if found is None:
        return 0
    if not is_tokens(found):
        raise NotAMessage(f"{path}.{name.replace('/', '.')}", "a whole number of tokens", found)
    return found
