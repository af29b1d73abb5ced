"""What the layers of other makers' hosts depend on besides their blocks, as their rules tell it (`salted_by`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cachecost.prompts.output_format import output_format
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


def host_salts(request: Request, rules: ModelRules, by_layer: Mapping[str, tuple[str, ...]]) -> tuple[str, str, str]:
    """The salts of tools, system and messages. Raises KeyError for a parameter that `PARAMETERS` has not."""
    read = _read(by_layer, rules)
    told = [[PARAMETERS[name](request, rules) for name in read.get(layer, ())] for layer in LAYERS]
    tools, system, messages = (json.dumps(salt, separators=(",", ":")) for salt in told)
    return tools, system, messages


def _read(by_layer: Mapping[str, tuple[str, ...]], rules: ModelRules) -> Mapping[str, tuple[str, ...]]:
    """`by_layer` as the switch `schema_in_prompt` reads it.

    What a caller made an object of stands before everything that a request brings, its schema too.
    """
    reading = rules.switches.schema_in_prompt
    if reading == "as_stated":
        return by_layer
    without = {layer: tuple(name for name in names if name != SCHEMA) for layer, names in by_layer.items()}
    if reading == "not_in_it":
        return without
    head = "messages" if rules.matching == "named" else "tools"
    return {**without, head: (*without.get(head, ()), SCHEMA)}


def schema_layer(rules: ModelRules) -> str | None:
    """The layer that a response schema is rendered into; None where it is not in the prompt.

    It is the layer whose start depends on the schema; behind an object that the caller made (`named`) none does.
    """
    if rules.salted_by is None:
        return rules.switches.structured_output_at
    read = _read(rules.salted_by, rules)
    follows = rules.matching == "named" and rules.switches.schema_in_prompt == "as_stated"
    return next((layer for layer in LAYERS if SCHEMA in read.get(layer, ())), "messages" if follows else None)


def model_of(rules: ModelRules) -> str:
    """Whose entries a model reads. Other makers' ids may name a way of caching ("gpt-6.1-sol-explicit"), too."""
    return rules.model if rules.salted_by is None else rules.model.removesuffix(f"-{rules.endpoint}")


def effort_asked(request: Request, rules: ModelRules) -> Any:
    """The effort; None where it is the model's default, as if left out (rule 2)."""
    effort = (request.params.get("output_config") or {}).get("effort")
    return None if effort == rules.default_effort else effort


def thinking_asked(request: Request, rules: ModelRules) -> Any:
    """The thinking configuration without `display`, the model's default where it is left out; None: off (rule 2)."""
    thinking = request.params.get("thinking") or {}
    kind = thinking.get("type") or rules.default_thinking
    if kind == "disabled":
        return None
    return sorted((key, value) for key, value in {**thinking, "type": kind}.items() if key != "display")


def skills_asked(request: Request) -> Any:
    """The skills of the container; None where there are none, an empty list included."""
    container = request.params.get("container")
    return (container.get("skills") or None) if isinstance(container, Mapping) else None


def _choice(request: Request) -> Any:
    choice = request.params.get("tool_choice") or {}
    return [choice.get("type") or "auto", choice.get("name")]


def _is_single(request: Request) -> bool:
    """Whether at most one tool may be called at a time, in OpenAI's words or in the Messages API's."""
    choice = request.params.get("tool_choice") or {}
    return choice.get("disable_parallel_tool_use") is True or request.params.get("parallel_tool_calls") is False


def _verbosity(request: Request) -> Any:
    """How long answers are to be; None where that is the default, as if left out."""
    verbosity = request.params.get("verbosity")
    return None if verbosity == DEFAULT_VERBOSITY else verbosity


def _cache_key(request: Request) -> Any:
    """What splits the cache of an account, under whichever name the host has for it; None: nothing does."""
    return next((request.params[name] for name in CACHE_KEYS if request.params.get(name)), None)


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
    "tool_choice": lambda request, rules: _choice(request),
    "parallel_tool_calls": lambda request, rules: _is_single(request),
    "verbosity": lambda request, rules: _verbosity(request),
    "cache_key": lambda request, rules: _cache_key(request),
    "images_detail": lambda request, rules: None,  # it stands in the image's own block
}
"""Parameters that a rule may name, in the Messages API's terms where it has them."""
