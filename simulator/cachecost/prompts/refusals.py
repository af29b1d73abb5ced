"""The complete list of requests that the API rejects, in its words (rule 6), checked on the request as sent."""

from __future__ import annotations

from cachecost.base.structs import value
from cachecost.prompts.blocks import Block, Layer, Part
from cachecost.prompts.request import TTL, Mark, Request, block_at, place_as_sent, writes
from cachecost.providers.rules import ModelRules

AFTER_5M = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
    "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
)


LAYERS = tuple(Layer)


@value
class SentMarks:
    """The breakpoints of a request with the automatic one resolved; `fault` is why that fails.

    `marks` are those that the cache uses, in prompt order; `idle` ones only count for rejections (rule 6).
    """

    marks: tuple[Mark, ...]
    fault: str | None = None
    idle: tuple[Mark, ...] = ()

    @property
    def every(self) -> tuple[Mark, ...]:
        """All breakpoints that the API sees."""
        return (*self.idle, *self.marks)


def marks_sent(request: Request) -> SentMarks:
    """The breakpoints that the API sees (rule 5).

    The automatic breakpoint is placed on the last block that can have one; a no-op if that has one with its TTL.
    """
    target = last_markable(request, request.automatic) if request.automatic else None
    if target is None:
        return _heed(request, request.marks)
    there = next((mark for mark in request.marks if mark.block_key == target.block_key), None)
    if there is None:
        return _heed(request, (*request.marks, target))
    if there.ttl == target.ttl:
        return _heed(request, request.marks)
    return _heed(
        request,
        request.marks,
        f"Top-level cache_control has ttl='{request.automatic}' but the target block already has "
        f"cache_control with ttl='{there.ttl}'",
    )


def _heed(request: Request, marks: tuple[Mark, ...], fault: str | None = None) -> SentMarks:
    idle = tuple([mark for mark in marks if not writes(request, mark)])
    return SentMarks(tuple([mark for mark in marks if mark not in idle]) if idle else marks, fault, idle)


def last_markable(request: Request, ttl: TTL) -> Mark | None:
    """A breakpoint on the last block that may have one: no thinking, no empty text."""
    for node in request.thread.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            if is_markable(node.message.blocks[index]):
                return Mark(Layer.MESSAGES, index, ttl, node)
    return _last_in(request.system, Layer.SYSTEM, ttl) or _last_in(request.tools, Layer.TOOLS, ttl)


def _last_in(part: Part, layer: Layer, ttl: TTL) -> Mark | None:
    found = (index for index in range(len(part.blocks) - 1, -1, -1) if is_markable(part.blocks[index]))
    return next((Mark(layer, index, ttl) for index in found), None)


def is_markable(block: Block) -> bool:
    """Whether this block may have a breakpoint: thinking and empty text may not."""
    return not block.is_thinking and not block.is_empty_text


def refusal(request: Request, sent: SentMarks, rules: ModelRules, prompt_tokens: int = 0) -> str | None:
    """Why the API rejects this request (the first reason of the list); None if it answers.

    `prompt_tokens` is the rendered length; 0 where it is unknown (`--tokens bytes`).
    """
    if not rules.uses_breakpoints:
        return request.fault or _refused_choice(request, rules) or _too_long(prompt_tokens, rules)
    marks = as_sent(request, sent)
    if len(marks) > rules.maximum_marks:
        return f"A maximum of {rules.maximum_marks} blocks with cache_control may be provided. Found {len(marks)}."
    return (
        request.fault
        or _host_lacks(request, marks, rules)
        or sent.fault
        or _ttl_order(request, marks)
        or _forced_choice(request, rules)
        or _too_long(prompt_tokens, rules)
    )


def _host_lacks(request: Request, marks: tuple[Mark, ...], rules: ModelRules) -> str | None:
    """A feature that this host's model does not have: top-level `cache_control`, or a TTL."""
    if request.automatic and not rules.accepts_automatic:
        return "cache_control: Extra inputs are not permitted"
    for mark in marks:
        if mark.ttl not in rules.accepted_ttls:
            kind = block_at(request, mark).kind
            return f"{wire_path(request, mark)}.{kind}.cache_control.ephemeral.ttl: Extra inputs are not permitted"
    return None


def as_sent(request: Request, sent: SentMarks) -> tuple[Mark, ...]:
    """All breakpoints in the order of the request as sent."""
    if not sent.idle:
        return sent.marks
    return tuple(sorted(sent.every, key=lambda mark: _number(place_as_sent(request, mark))))


def _number(place: tuple[Layer, int, int]) -> tuple[int, int, int]:
    layer, message, index = place
    return LAYERS.index(layer), message, index


def _ttl_order(request: Request, marks: tuple[Mark, ...]) -> str | None:
    seen_5m = False
    for mark in marks:
        if mark.ttl == "1h" and seen_5m:
            return f"{wire_path(request, mark)}.cache_control.ttl: {AFTER_5M}"
        seen_5m = seen_5m or mark.ttl == "5m"
    return None


def wire_path(request: Request, mark: Mark) -> str:
    """The path of a breakpoint in the request as sent, as the API writes it: `messages.0.content.4`, `system.1`,
    `tools.3`.
    """
    layer, message, index = place_as_sent(request, mark)
    return f"messages.{message - 1}.content.{index}" if message else f"{layer}.{index}"


def _forced_choice(request: Request, rules: ModelRules) -> str | None:
    if refused := _refused_choice(request, rules):
        return refused
    if _is_forced(request) and (request.params.get("thinking") or {}).get("type") == "enabled":
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None


def _is_forced(request: Request) -> bool:
    return (request.params.get("tool_choice") or {}).get("type") in ("any", "tool")


def _refused_choice(request: Request, rules: ModelRules) -> str | None:
    if rules.accepts_forced_choice or not _is_forced(request):
        return None
    kind = request.params["tool_choice"]["type"]
    return f"tool_choice: type '{kind}' is not supported on {rules.model}; it answers to 'auto' and 'none' only."


def _too_long(tokens: int, rules: ModelRules) -> str | None:
    if tokens <= rules.context_window:
        return None
    return f"prompt is too long: {tokens} tokens > {rules.context_window} maximum"
