"""The complete list of requests that the API rejects, in its words (rule 6), checked on the request as sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.base.structs import value
from cachecost.prompts.blocks import Block, Layer, Part
from cachecost.prompts.request import LAYERS, TTL, Breakpoint, Request, block_at, place_as_sent, writes
from cachecost.providers.rules import ModelRules

AFTER_5M = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
    "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
)

THREAD_NOT_FOUND = (
    "No thread state was found for the requested `previous_message_id`. "
    'Replay the full conversation with thread: {"type": "create"} to start a new Thread.'
)
"""The API's words of a 404."""
THREAD_BREAKPOINTS = (
    "thread: a maximum of {most} blocks with cache_control may be provided when `thread` is set -- the fourth marker "
    "slot is reserved for the marker the server places on the conversation's last cache-eligible block. Found {found}."
)


@value
class SentBreakpoints:
    """The breakpoints of a request with the automatic one resolved; `fault` is why that fails.

    `breakpoints` are those that the cache uses, in prompt order; `idle` ones only count for rejections (rule 6).
    """

    breakpoints: tuple[Breakpoint, ...]
    fault: str | None = None
    idle: tuple[Breakpoint, ...] = ()

    @property
    def every(self) -> tuple[Breakpoint, ...]:
        """All breakpoints that the API sees."""
        return (*self.idle, *self.breakpoints)


def sent_breakpoints(request: Request) -> SentBreakpoints:
    """The breakpoints that the API sees (rule 5).

    The automatic breakpoint is placed on the last block that can have one; a no-op if that has one with its TTL.
    """
    target = last_breakpoint_place(request, request.automatic) if request.automatic else None
    if target is None:
        return _heed(request, request.breakpoints)
    there = next((breakpoint for breakpoint in request.breakpoints if breakpoint.block_key == target.block_key), None)
    if there is None:
        return _heed(request, (*request.breakpoints, target))
    if there.ttl == target.ttl:
        return _heed(request, request.breakpoints)
    return _heed(
        request,
        request.breakpoints,
        f"Top-level cache_control has ttl='{request.automatic}' but the target block already has "
        f"cache_control with ttl='{there.ttl}'",
    )


def _heed(request: Request, breakpoints: tuple[Breakpoint, ...], fault: str | None = None) -> SentBreakpoints:
    idle = tuple([breakpoint for breakpoint in breakpoints if not writes(request, breakpoint)])
    return SentBreakpoints(
        tuple([breakpoint for breakpoint in breakpoints if breakpoint not in idle]) if idle else breakpoints,
        fault,
        idle,
    )


def last_breakpoint_place(request: Request, ttl: TTL) -> Breakpoint | None:
    """A breakpoint on the last block that may have one: no thinking, no empty text."""
    for node in request.thread.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            if accepts_breakpoint(node.message.blocks[index]):
                return Breakpoint(Layer.MESSAGES, index, ttl, node)
    return _last_in(request.system, Layer.SYSTEM, ttl) or _last_in(request.tools, Layer.TOOLS, ttl)


def _last_in(part: Part, layer: Layer, ttl: TTL) -> Breakpoint | None:
    found = (index for index in range(len(part.blocks) - 1, -1, -1) if accepts_breakpoint(part.blocks[index]))
    return next((Breakpoint(layer, index, ttl) for index in found), None)


def accepts_breakpoint(block: Block) -> bool:
    """Whether this block may have a breakpoint: thinking and empty text may not."""
    return not block.is_thinking and not block.is_empty_text


EXTRA = "{name}: Extra inputs are not permitted"
NO_SYSTEM_MESSAGES = "role 'system' is not supported on this model"
NO_EFFORT = "This model does not support the effort parameter."
NO_EFFORT_LEVEL = "output_config.effort: '{effort}' is not supported on {model}; it takes {levels}."
NO_THINKING = (
    '"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" '
    "to control thinking behavior."
)
NO_ADAPTIVE = "{kind} thinking is not supported on this model"
THINKING_OFF = "thinking.type: 'disabled' is not supported on {model} with effort '{effort}', only with {levels}."
NO_PARAMETER = "'{model}' does not support the `{name}` parameter."
NO_CHOICE = "tool_choice: type '{kind}' is not supported on {model}; it answers to 'auto' and 'none' only."
THINKING_AND_CHOICE = "Thinking may not be enabled when tool_choice forces tool use."
TOGETHER = "{one} is not supported with `{other}`"
RefusedParameter = tuple[str, str]
"""Its path in the body, and why: in the API's words where they are known."""


def refusal(
    request: Request, sent: SentBreakpoints, rules: ModelRules, prompt_tokens: int = 0, is_batch: bool = False
) -> str | None:
    """Why the API rejects this request (the first reason of the list); None if it answers.

    `prompt_tokens` is the rendered length; 0 where it is unknown (`--tokens bytes`).
    """
    parameter = next((words for _, words in refused_parameters(request, rules, is_batch)), None)
    if not rules.uses_breakpoints:
        return request.fault or parameter or too_long(prompt_tokens, rules)
    breakpoints = as_sent(request, sent)
    if len(breakpoints) > rules.maximum_breakpoints:
        most = rules.maximum_breakpoints
        return f"A maximum of {most} blocks with cache_control may be provided. Found {len(breakpoints)}."
    return (
        request.fault
        or lacking_feature(request, rules)
        or _refused_thread(request, rules)
        or _host_lacks(request, breakpoints, rules)
        or sent.fault
        or _ttl_order(request, breakpoints)
        or parameter
        or too_long(prompt_tokens, rules)
    )


def lacking_feature(request: Request, rules: ModelRules) -> str | None:
    """Why a request is refused for a feature that the host does not have: threads, on-demand compaction."""
    if not rules.accepts_threads and (request.message_thread or request.params.get("thread")):
        return EXTRA.format(name="thread")
    if not rules.accepts_compaction and request.params.get("compaction"):
        return EXTRA.format(name="compaction")
    return None


def refused_parameters(request: Request, rules: ModelRules, is_batch: bool = False) -> Iterator[RefusedParameter]:
    """The parameters that this model refuses, alone or together. None where a bill shows that it answered."""
    if request.answering_model == request.model:
        return
    params, thread = request.params, request.thread
    if thread.system is not None and not rules.accepts_system_messages:
        yield f"messages.{thread.system.length - 1}.role", NO_SYSTEM_MESSAGES
    if thread.setting is not None and not rules.accepts_message_effort:
        path = f"messages.{thread.setting.length - 1}.output_config"
        yield path, EXTRA.format(name=path)
    if not params:
        return
    yield from _refused_thinking(params, rules)
    name = rules.name or rules.model
    if params.get("speed") == "fast" and not rules.accepts_fast:
        yield "speed", NO_PARAMETER.format(model=name, name="speed")
    if params.get("inference_geo") and not rules.accepts_inference_geo:
        yield "inference_geo", NO_PARAMETER.format(model=name, name="inference_geo")
    forced = _forced(params)
    if forced and not rules.accepts_forced_choice:
        yield "tool_choice", NO_CHOICE.format(kind=forced, model=rules.model)
    elif forced and rules.uses_breakpoints and _kind(params, "thinking") == "enabled":
        yield "tool_choice", THINKING_AND_CHOICE
    yield from _refused_together(request, rules, is_batch)


def _refused_thinking(params: Mapping[str, Any], rules: ModelRules) -> Iterator[RefusedParameter]:
    kind, effort = _kind(params, "thinking"), _inner(params, "output_config", "effort")
    efforts, kinds, off = rules.accepted_efforts, rules.accepted_thinking, rules.efforts_without_thinking
    if effort and efforts is not None and effort not in efforts:
        levels = ", ".join(efforts)
        words = NO_EFFORT_LEVEL.format(effort=effort, model=rules.model, levels=levels) if efforts else NO_EFFORT
        yield "output_config.effort", words
    if kind and kinds is not None and kind not in kinds:
        yield "thinking", (NO_ADAPTIVE if kind == "adaptive" else NO_THINKING).format(kind=kind)
    elif kind == "disabled" and off is not None and effort and effort not in off:
        yield "thinking", THINKING_OFF.format(model=rules.model, effort=effort, levels=", ".join(off))


def _refused_together(request: Request, rules: ModelRules, is_batch: bool) -> Iterator[RefusedParameter]:
    params, forced = request.params, _forced(request.params)
    output_format = _inner(params, "output_config", "format") or params.get("output_format")
    has = {
        "stream": params.get("stream"),
        "thinking.type: enabled": _kind(params, "thinking") == "enabled",
        "output_config.format": output_format,
        "tool_choice.type: any": forced == "any",
        "tool_choice.type: tool": forced == "tool",
        "batch": is_batch,
        "citations": output_format and (request.thread.has_citations or request.system.has_citations),
    }
    for path, one, is_set, excluded in (
        ("max_tokens", "max_tokens: 0", params.get("max_tokens") == 0, rules.prewarming_excludes),
        ("speed", "speed: fast", params.get("speed") == "fast", rules.fast_excludes),
        ("output_config.format", "output_config.format", output_format, rules.format_excludes),
    ):
        yield from ((path, TOGETHER.format(one=one, other=name)) for name in excluded if is_set and has.get(name))


def _inner(params: Mapping[str, Any], name: str, inner: str) -> Any:
    value = params.get(name)
    return value.get(inner) if isinstance(value, Mapping) else None


def _kind(params: Mapping[str, Any], name: str) -> Any:
    return _inner(params, name, "type")


def _forced(params: Mapping[str, Any]) -> str | None:
    """The type of a forced tool choice; None: the model chooses."""
    kind = _kind(params, "tool_choice")
    return kind if kind in ("any", "tool") else None


def _refused_thread(request: Request, rules: ModelRules) -> str | None:
    """Why a request in a message thread is refused."""
    thread = request.message_thread
    if thread is None:
        return None
    if thread.breakpoints > rules.thread_breakpoints:
        return THREAD_BREAKPOINTS.format(most=rules.thread_breakpoints, found=thread.breakpoints)
    return THREAD_NOT_FOUND if thread.idle_s > rules.thread_held_s else None


def _host_lacks(request: Request, breakpoints: tuple[Breakpoint, ...], rules: ModelRules) -> str | None:
    """A feature that this host's model does not have: top-level `cache_control`, or a TTL."""
    if request.automatic and not rules.accepts_automatic:
        return "cache_control: Extra inputs are not permitted"
    for breakpoint in breakpoints:
        if breakpoint.ttl not in rules.accepted_ttls:
            kind = block_at(request, breakpoint).kind
            return (
                f"{wire_path(request, breakpoint)}.{kind}.cache_control.ephemeral.ttl: Extra inputs are not permitted"
            )
    return None


def as_sent(request: Request, sent: SentBreakpoints) -> tuple[Breakpoint, ...]:
    """All breakpoints in the order of the request as sent."""
    if not sent.idle:
        return sent.breakpoints
    return tuple(sorted(sent.every, key=lambda breakpoint: _number(place_as_sent(request, breakpoint))))


def _number(place: tuple[Layer, int, int]) -> tuple[int, int, int]:
    layer, message, index = place
    return LAYERS.index(layer), message, index


def _ttl_order(request: Request, breakpoints: tuple[Breakpoint, ...]) -> str | None:
    seen_5m = False
    for breakpoint in breakpoints:
        if breakpoint.ttl == "1h" and seen_5m:
            return f"{wire_path(request, breakpoint)}.cache_control.ttl: {AFTER_5M}"
        seen_5m = seen_5m or breakpoint.ttl == "5m"
    return None


def wire_path(request: Request, breakpoint: Breakpoint) -> str:
    """The path of a breakpoint in the request as sent, as the API writes it: `messages.0.content.4`, `system.1`,
    `tools.3`.
    """
    layer, message, index = place_as_sent(request, breakpoint)
    return f"messages.{message - 1}.content.{index}" if message else f"{layer}.{index}"


def too_long(tokens: int, rules: ModelRules) -> str | None:
    """Why a prompt of this length is refused; None: it fits the context window."""
    if tokens <= rules.context_window:
        return None
    return f"prompt is too long: {tokens} tokens > {rules.context_window} maximum"
