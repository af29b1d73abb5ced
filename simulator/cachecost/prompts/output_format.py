"""Structured output of a request, with its schema or, in content-free recordings, the counts of it.

Cache keys of other providers: what a layer depends on besides its blocks, by their rules (`keyed_by`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from json import dumps
from typing import Any

from cachecost.prompts.request import Request
from cachecost.providers.prices import terms_of
from cachecost.providers.rules import ModelRules

PLACES = (("output_config", "format"), ("output_format",))
"""Where a body may ask for structured output, by path; the first wins."""
UNSEEN = "~"
"""What stands for a schema that was taken out is a text that begins with this."""


def output_format(params: Mapping[str, Any]) -> Any:
    """The output format in the parameters of a request; None if there is none."""
    return (params.get("output_config") or {}).get("format") or params.get("output_format")


def schema_text(schema: Any) -> str:
    """The schema as Claude is shown it: keys sorted, indented by 2."""
    return dumps(schema, indent=2, ensure_ascii=False, sort_keys=True)


def counts_unseen(wanted: Mapping[str, Any]) -> Mapping[str, int] | None:
    """Counts of `schema_text` by tokenizer where the schema was removed; None where it is present."""
    schema, counts = wanted.get("schema"), wanted.get("counts")
    if not isinstance(schema, str) or not schema.startswith(UNSEEN):
        return None
    return counts if isinstance(counts, Mapping) else {}


def host_cache_keys(
    request: Request, rules: ModelRules, by_layer: Mapping[str, tuple[str, ...]]
) -> tuple[str, str, str]:
    """The cache keys of tools, system and messages. Raises KeyError for a parameter missing in `PARAMETERS`."""
    read = _read(by_layer, rules)
    keyed = [[PARAMETERS[name](request, rules) for name in read.get(layer, ())] for layer in LAYERS]
    tools, system, messages = (json.dumps(cache_key, separators=(",", ":")) for cache_key in keyed)
    return tools, system, messages


def _read(by_layer: Mapping[str, tuple[str, ...]], rules: ModelRules) -> Mapping[str, tuple[str, ...]]:
    """`by_layer` under the assumption `schema_in_prompt`.

    An explicit cache object comes before all of the request, including its schema.
    """
    reading = rules.assumptions.schema_in_prompt
    if reading == "as_stated":
        return by_layer
    without = {layer: tuple(name for name in names if name != SCHEMA) for layer, names in by_layer.items()}
    if reading == "not_in_it":
        return without
    head = "messages" if rules.matching == "named" else "tools"
    return {**without, head: (*without.get(head, ()), SCHEMA)}


def schema_layer(rules: ModelRules) -> str | None:
    """The layer that contains the response schema; None where it is not in the prompt.

    The start of that layer depends on the schema; after an explicit cache object (`named`) none does.
    """
    if rules.keyed_by is None:
        return rules.assumptions.structured_output_at
    read = _read(rules.keyed_by, rules)
    follows = rules.matching == "named" and rules.assumptions.schema_in_prompt == "as_stated"
    return next((layer for layer in LAYERS if SCHEMA in read.get(layer, ())), "messages" if follows else None)


def model_of(rules: ModelRules) -> str:
    """The model whose entries are read; other providers' ids may name a way of caching ("gpt-6.1-sol-explicit")."""
    return rules.model if rules.keyed_by is None else rules.model.removesuffix(f"-{rules.endpoint}")


def effort_asked(request: Request, rules: ModelRules) -> Any:
    """The effort; None if it is the model's default, as if omitted (rule 2)."""
    effort = (request.params.get("output_config") or {}).get("effort")
    return None if effort == rules.default_effort else effort


def effort_layer(rules: ModelRules) -> str:
    """The layer whose cache key has the effort (rule 2): by its row, else that of the thinking configuration; of other
    providers by `keyed_by`, "" where no layer depends on it.
    """
    if rules.keyed_by is not None:
        return next((layer for layer in LAYERS if "effort" in rules.keyed_by.get(layer, ())), "")
    return rules.assumptions.thinking_rendered_at if rules.effort_layer == "thinking" else rules.effort_layer


def thinking_asked(request: Request, rules: ModelRules) -> Any:
    """The thinking configuration without `display`, the model's default where it is omitted; None: off (rule 2)."""
    thinking = request.params.get("thinking") or {}
    kind = thinking.get("type") or rules.default_thinking
    if kind == "disabled":
        return None
    return sorted((key, value) for key, value in {**thinking, "type": kind}.items() if key != "display")


def skills_asked(request: Request) -> Any:
    """The skills of the container; None if there are none or the list is empty."""
    container = request.params.get("container")
    return (container.get("skills") or None) if isinstance(container, Mapping) else None


def _choice(request: Request) -> Mapping[str, Any]:
    return request.params.get("tool_choice") or {}


LAYERS = ("tools", "system", "messages")
SCHEMA = "format"
CACHE_KEYS = ("prompt_cache_key", "cache_salt", "extra_key", "user_id")
"""Keys of the cache: OpenAI's, xAI's and Mistral's; vLLM's; SGLang's; DeepSeek's."""
DEFAULT_VERBOSITY = "medium"
"""OpenAI's (openai 3.54.0)."""
PARAMETERS: Mapping[str, Callable[[Request, ModelRules], Any]] = {
    "model": lambda request, rules: model_of(rules),
    "format": lambda request, rules: output_format(request.params),
    "effort": effort_asked,
    "thinking": thinking_asked,
    "tool_choice": lambda request, rules: [_choice(request).get("type") or "auto", _choice(request).get("name")],
    # whether they are disabled, in OpenAI's or the Messages API's terms
    "parallel_tool_calls": lambda request, rules: (
        _choice(request).get("disable_parallel_tool_use") is True or request.params.get("parallel_tool_calls") is False
    ),
    "verbosity": lambda request, rules: (
        None if request.params.get("verbosity") == DEFAULT_VERBOSITY else request.params.get("verbosity")
    ),
    "cache_key": lambda request, rules: next(filter(None, map(request.params.get, CACHE_KEYS)), None),
    "service_tier": lambda request, rules: terms_of(request.params, False).tiers,
    "ttl": lambda request, rules: rules.endpoint,
    "images_detail": lambda request, rules: None,  # it is part of the image's block
}
"""Parameters that a rule may name, in the Messages API's terms where it has them."""
