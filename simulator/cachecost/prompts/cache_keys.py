"""The cache keys of a request, where they are by layer: what each depends on besides its blocks (rule 2)."""

from __future__ import annotations

from collections.abc import Callable
from json import JSONEncoder
from typing import Any

from cachecost.prompts.host_cache_keys import (
    effort_asked,
    effort_layer,
    host_cache_keys,
    skills_asked,
    thinking_asked,
)
from cachecost.prompts.output_format import output_format
from cachecost.prompts.request import Request
from cachecost.providers.rules import Assumptions, ModelRules

CacheKeys = tuple[str, str, str]
ENCODER = JSONEncoder(separators=(",", ":"))


def cache_keys_of(request: Request, rules: ModelRules) -> CacheKeys:
    """The cache keys of tools, system and messages: what each depends on besides its blocks (rule 2, `keyed_by`)."""
    if rules.keyed_by is not None:
        return host_cache_keys(request, rules, rules.keyed_by)
    params = request.params
    assumptions = rules.assumptions
    tools: list[Any] = [rules.model, params.get("speed") == "fast"]
    system: list[Any] = [
        _has_citations(request),
        skills_asked(request),
        (params.get("output_config") or {}).get("task_budget"),
    ]
    messages: list[Any] = [_choice(params, assumptions), request.thread.has_image, *thread_key(request, rules)]
    where = {"tools": tools, "system": system, "messages": messages}
    where[assumptions.structured_output_at].append(output_format(request.params))
    where[assumptions.thinking_rendered_at].append(thinking_asked(request, rules))
    where[effort_layer(rules)].append(effort_asked(request, rules))
    return _text(tools), _text(system), _text(messages)


def thread_key(request: Request, rules: ModelRules) -> tuple[str, ...]:
    """The message thread, where its messages are not shared with other requests; else nothing."""
    thread = request.message_thread
    return (thread.id,) if thread is not None and thread.id and rules.thread_reads == "system" else ()


def _text(cache_key: list[Any]) -> str:
    return ENCODER.encode(cache_key)


def _has_citations(request: Request) -> bool:
    return request.thread.has_citations or request.system.has_citations


def _choice(params: Any, assumptions: Assumptions) -> Any:
    choice = params.get("tool_choice") or {}
    single = choice.get("disable_parallel_tool_use") is True
    kind, name = choice.get("type") or "auto", choice.get("name")
    readings: dict[str, Callable[[], Any]] = {
        "rendered_class": lambda: None if kind in ("auto", "none") else [kind, name],
        "any_change": lambda: None if kind == "auto" else [kind, name],
        "never": lambda: None,
    }
    return [readings[assumptions.tool_choice_invalidation](), single]
