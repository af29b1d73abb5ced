"""The places of the hidden prompt tokens (rule 4); `hidden.toml` has the models that differ from their generation."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cachecost.prompts.output_format import schema_layer
from cachecost.prompts.render import Hidden, thread_traits
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.tokens.calibration import Calibration

FIELDS = (
    *("tool_prompt_head", "before_system", "single_auto", "single_forced", "interleaved"),
    *("result_tail", "result_tail_thinking", "deferred", "deferred_search"),
)


class ModelPlaces(msgspec.Struct, frozen=True):
    """The row of `hidden.toml` for a model on a day, in tokens; None: as in its generation and its host's rules."""

    tool_prompt_head: int | None = None
    before_system: int = 0
    single_auto: int | None = None
    single_forced: int = 0
    interleaved: int = 0
    result_tail: int | None = None
    result_tail_thinking: int | None = None
    deferred: int = 0
    deferred_search: int = 0


def model_places(rules: ModelRules) -> ModelPlaces:
    """The rows that hold for this model on this day, together; on each host, however it spells the id."""
    return _places_on(rules.name or rules.model, rules.day)


@cache
def _places_on(model: str, day: date | None) -> ModelPlaces:
    found: dict[str, Any] = {}
    for row in _place_rows():
        is_begun = day is None or (row["from"] <= day and ("until" not in row or day < row["until"]))
        if model in row["models"] and is_begun:
            found |= {name: row[name] for name in FIELDS if name in row}
    return ModelPlaces(**found)


@cache
def _place_rows() -> list[dict[str, Any]]:
    data = tomllib.loads(Path(__file__).with_name("hidden.toml").read_text(encoding="utf-8"))
    return list(data["row"])


BETAS = ("anthropic_beta", "betas")
"""Where a body names betas: as Bedrock and Google Cloud take them, and as SDKs do. Readers put the header there."""
INTERLEAVED = "interleaved-thinking"
SINGLE = "auto+disable_parallel_tool_use"
"""Optional key of `tool_prompt`: the prompt's length when parallel calls are switched off."""


def hidden_tokens(request: Request, rules: ModelRules, measured: Calibration, format_tokens: int) -> Hidden:
    """The hidden tokens of `request` by place; `format_tokens` are those of its structured output."""
    added = rules.hidden
    layers = {"tools": added.frame_const, "system": 0, "messages": 0}
    places = model_places(rules)
    head, rest, after = _tool_prompt(request, rules, places, measured.tool_prompt_head)
    thinking = (request.params.get("thinking") or {}).get("type")
    is_budgeted, prefix, tail = thinking == "enabled", 0, 0
    if (thinking or rules.default_thinking) == "enabled":
        prefix, tail = added.thinking_prefix, added.thinking_tail
    elif (thinking or rules.default_thinking) == "adaptive":
        prefix, tail = added.adaptive_prefix, added.adaptive_tail
    layers["tools"] += head + (round(measured.structure.get("tools", 0)) if _has_tools(request) else 0)
    if request.deferred:
        types = [str((block.content or {}).get("type")) for block in request.tools.blocks]
        is_searched = any(kind.startswith("tool_search_tool_") for kind in types)
        layers["tools"] += places.deferred_search if is_searched else places.deferred
    between = min(places.before_system, rest) if head else 0
    is_interleaved = is_budgeted and any(INTERLEAVED in str(request.params.get(name, "")) for name in BETAS)
    layers["system"] += between
    layers["messages"] += rest - between + (places.interleaved if is_interleaved else 0)
    layers[rules.assumptions.thinking_rendered_at] += prefix
    schema_at = schema_layer(rules)
    if schema_at:
        layers[schema_at] += format_tokens
    layers["system"] += round(measured.structure.get("citations", 0)) if has_citations(request) else 0
    layers["system" if request.system.blocks else "messages"] -= rules.closing_tokens
    _, last_role, last_kind = thread_traits(request.thread)
    opening = 0 if last_role == "assistant" else added.frame_turn or round(measured.structure.get("end", 0))
    stated = places.result_tail_thinking if is_budgeted else places.result_tail
    after_results = 0 if stated is None else stated - added.frame_turn - tail
    return Hidden(
        **layers,
        turn=added.frame_turn or round(measured.structure.get("turn", 0)),
        tail=opening + after + tail + (after_results if last_kind == "tool_result" else 0),
        parallel=round(measured.structure.get("parallel", 0)),
        after_results=after_results,
        each_message=not added.frame_turn and bool(measured.structure.get("turn")),
        format=format_tokens if schema_at else 0,
    )


def has_citations(request: Request) -> bool:
    """Whether citations are enabled on any block."""
    return request.thread.has_citations or request.system.has_citations


def _tool_prompt(request: Request, rules: ModelRules, places: ModelPlaces, head: int) -> tuple[int, int, int]:
    """(before the definitions, at the head of the messages, after the last block: all, if a choice changes nothing)."""
    added, prompts = rules.hidden, rules.hidden.tool_prompt
    if not prompts or not _has_tools(request):
        return 0, 0, 0
    choice = request.params.get("tool_choice") or {}
    forced = str(choice.get("type")) if choice.get("type") in ("any", "tool") else ""
    auto, is_single = prompts["auto"], choice.get("disable_parallel_tool_use") is True
    if is_single and not forced:
        auto = prompts.get(SINGLE, places.single_auto or auto)
    before = min(head if places.tool_prompt_head is None else places.tool_prompt_head, auto)
    if forced not in prompts:
        return before, auto - before, 0
    # A tool's name is added to the tokens of `any`, all after the last block.
    longer = prompts.get("any", prompts[forced]) - auto - added.forced_tail.get("any", 0)
    longer += places.single_forced if is_single else 0
    after = added.forced_tail.get(forced, 0)
    if rules.assumptions.tool_choice_invalidation == "never":
        return before, auto - before, longer + after
    return before, auto - before + longer, after


def _has_tools(request: Request) -> bool:
    return bool(request.tools.blocks) or any(block.kind == "tool" for block in request.system.blocks)
