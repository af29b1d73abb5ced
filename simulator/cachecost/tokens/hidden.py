"""Places of the hidden prompt tokens (rule 4).

Measured on recorded calls whose last breakpoint, or last 1h breakpoint before a 5m one, ends a layer:

- The tool-use prompt has two parts, as Anthropic's template says (instructions, definitions, system prompt,
  tool configuration): `tool_prompt_head` before the definitions, the rest after the system prompt.
- A forced choice lengthens the second part, and adds some tokens after the last block (`forced_tail`).
- Thinking adds a prefix and a tail; the place of the prefix is the assumption `thinking_rendered_at`.
- Structured output adds a constant and the schema, indented by 2, in the layer of `structured_output_at`; for other
  providers in the layer whose cache depends on the schema, and nothing where none does.
- Citations, enabled on any block, add a prompt of their own to the system prompt.
- Results of parallel calls have an additional overhead, once for all of them (`parallel`).
- Interleaved thinking (a beta header, or `anthropic_beta` in the body) adds to the messages.
- A prompt that ends with a tool result has other tokens than the answer's frame at its end; they are cached with the
  next block (`after_results`).
- A turn's frame opens each run of equal roles, and the answer to come: that last one is never cached.

Where a host's rules state no frame, that of the tokenizer generation holds, if it has one (`turn`, `end`), and its
overhead of tool definitions (`tools`): other providers publish a format, not bills. There, each message has a frame,
also after one of the same role (OpenAI's cookbook; bills of 12 and more in a row). `hidden.toml` lists single models
that differ.
"""

from __future__ import annotations

from cachecost.prompts.counting import Hidden
from cachecost.prompts.host_cache_keys import schema_layer
from cachecost.prompts.request import Request
from cachecost.providers.rules import HiddenTokens, ModelRules
from cachecost.tokens.calibration import Calibration
from cachecost.tokens.model_places import ModelPlaces, model_places

BETAS = ("anthropic_beta", "betas")
"""Where a body names betas: as Bedrock and Google Cloud take them, and as SDKs do. Readers put the header there."""
INTERLEAVED = "interleaved-thinking"
SINGLE = "auto+disable_parallel_tool_use"
"""Optional key of `tool_prompt`: the prompt's length when parallel calls are switched off."""


def hidden_tokens(request: Request, rules: ModelRules, measured: Calibration, format_tokens: int) -> Hidden:
    """The hidden tokens of `request` by place; `format_tokens` are those of its structured output."""
    told = rules.hidden
    layers = {"tools": told.frame_const, "system": 0, "messages": 0}
    places = model_places(rules)
    head, rest, after = _tool_prompt(request, rules, places, measured.tool_prompt_head)
    prefix, tail = _thinking(request, rules)
    layers["tools"] += head + (round(measured.structure.get("tools", 0)) if _has_tools(request) else 0)
    between = min(places.before_system, rest) if head else 0
    layers["system"] += between
    layers["messages"] += rest - between + (places.interleaved if _is_interleaved(request) else 0)
    layers[rules.assumptions.thinking_rendered_at] += prefix
    schema_at = schema_layer(rules)
    if schema_at:
        layers[schema_at] += format_tokens
    layers["system"] += round(measured.structure.get("citations", 0)) if has_citations(request) else 0
    opening = _opening(request, told, measured)
    after_results = _after_results(request, places, told.frame_turn + tail)
    return Hidden(
        **layers,
        turn=told.frame_turn or round(measured.structure.get("turn", 0)),
        tail=opening + after + tail + (after_results if _ends_with_result(request) else 0),
        parallel=round(measured.structure.get("parallel", 0)),
        after_results=after_results,
        each_message=not told.frame_turn and bool(measured.structure.get("turn")),
        format=format_tokens if schema_at else 0,
    )


def has_citations(request: Request) -> bool:
    """Whether citations are enabled on any block."""
    return request.thread.has_citations or request.system.has_citations


def _opening(request: Request, told: HiddenTokens, measured: Calibration) -> int:
    """The frame of the answer, unless the request ends with a prefilled answer."""
    last = request.thread.message
    frame = told.frame_turn or round(measured.structure.get("end", 0))
    return 0 if last and last.role == "assistant" else frame


def _thinks(request: Request) -> bool:
    """Whether thinking is on with a budget (`enabled`)."""
    return (request.params.get("thinking") or {}).get("type") == "enabled"


def _is_interleaved(request: Request) -> bool:
    return _thinks(request) and any(INTERLEAVED in str(request.params.get(name, "")) for name in BETAS)


def _ends_with_result(request: Request) -> bool:
    last = request.thread.message
    return last is not None and bool(last.blocks) and last.blocks[-1].kind == "tool_result"


def _after_results(request: Request, places: ModelPlaces, usual: int) -> int:
    """How many more tokens than `usual` follow tool results at the end of a prompt."""
    stated = places.result_tail_thinking if _thinks(request) else places.result_tail
    return 0 if stated is None else stated - usual


def _tool_prompt(request: Request, rules: ModelRules, places: ModelPlaces, head: int) -> tuple[int, int, int]:
    """(before the definitions, at the head of the messages, after the last block).

    If a forced choice is assumed to invalidate nothing, all its tokens come after the last block.
    """
    told, prompts = rules.hidden, rules.hidden.tool_prompt
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
    longer = prompts.get("any", prompts[forced]) - auto - told.forced_tail.get("any", 0)
    longer += places.single_forced if is_single else 0
    after = told.forced_tail.get(forced, 0)
    if rules.assumptions.tool_choice_invalidation == "never":
        return before, auto - before, longer + after
    return before, auto - before + longer, after


def _has_tools(request: Request) -> bool:
    """Whether the request has tool definitions, web search and web fetch in the system layer included."""
    return bool(request.tools.blocks) or any(block.kind == "tool" for block in request.system.blocks)


def _thinking(request: Request, rules: ModelRules) -> tuple[int, int]:
    told, kind = rules.hidden, (request.params.get("thinking") or {}).get("type") or rules.default_thinking
    if kind == "enabled":
        return told.thinking_prefix, told.thinking_tail
    return (told.adaptive_prefix, told.adaptive_tail) if kind == "adaptive" else (0, 0)
