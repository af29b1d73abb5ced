"""Breakpoints where calls could have read on, as the API allows them: at most four, 1h before 5m."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter

from cachecost.analysis.explain.fixes.conversations import in_scopes, replaced
from cachecost.analysis.explain.fixes.fix import Fix, FixContext
from cachecost.analysis.explain.fixes.parts import with_part
from cachecost.analysis.explain.fixes.scopes import in_static_prefix
from cachecost.analysis.optimum.places import BlockPlace, places
from cachecost.analysis.optimum.planner import find_markable
from cachecost.analysis.replays.steps import PartPool, ReplayStep
from cachecost.base.structs import replace
from cachecost.caches.alignment import ancestor, common
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer, Prefix, given_block
from cachecost.prompts.refusals import last_breakpoint_place, sent_breakpoints
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.providers.rules import ModelRules


def place_breakpoints(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A breakpoint at the end of what was sent again, in this call and in the one that sent it before."""
    found = _Placements(context)
    for loss in losses:
        rendered = context.observed.rendered[loss.call]
        found.place(loss.call, rendered.prompt, rendered.rules, loss.depth)
        if loss.since is not None and loss.cause != "lookback_exceeded":
            found.place(loss.since.number, loss.since.prompt, loss.since.rules, loss.depth)
    yield Fix(replaced(context.steps, found.steps()))


def place_missing_breakpoints(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """Breakpoints on the last block of these calls and of those that sent it before; or where the next call can read.

    The first is what automatic caching does. It also writes what is new, for the call after.
    """
    rules_of = {loss.call: context.observed.rendered[loss.call].rules for loss in losses}
    rules_of |= {loss.since.number: loss.since.rules for loss in losses if loss.since and not _has_entry(loss)}
    ended = [_end_with_breakpoint(context.steps[position - 1], rules) for position, rules in rules_of.items()]
    yield Fix(replaced(context.steps, ended))
    yield from place_breakpoints(context, losses)


def _has_entry(loss: Loss) -> bool:
    """Whether the earlier call wrote at least as much as was lost."""
    return bool(loss.since and loss.since.entry and loss.since.entry.depth >= loss.depth)


def _end_with_breakpoint(step: ReplayStep, rules: ModelRules) -> ReplayStep:
    last = last_breakpoint_place(step.call.request, "5m")
    return step.with_request(with_breakpoint(step.call.request, last, rules)) if last else step


def place_where_prompts_part(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A breakpoint where the prompts part: before the first block that is dropped or replaced nothing moves."""
    found = _Placements(context)
    for loss in losses:
        rendered, since = context.observed.rendered[loss.call], loss.since
        shared = common(since.prompt.end, rendered.prompt.end) if since else None
        if since is not None and shared is not None:
            found.place(loss.call, rendered.prompt, rendered.rules, shared.depth)
            found.place(since.number, since.prompt, since.rules, shared.depth)
    yield Fix(replaced(context.steps, found.steps()))


class _Placements:
    """Requests with more breakpoints, by the position of their step."""

    def __init__(self, context: FixContext) -> None:
        self._context = context
        self._requests: dict[int, Request] = {}

    def place(self, position: int, prompt: Prompt, rules: ModelRules, depth: int) -> None:
        """A breakpoint at the block that ends the first `depth` blocks, or at the nearest one before that allows it."""
        request = self._requests.get(position, self._context.observed.call(position).request)
        prefix = find_markable(ancestor(prompt.end, min(depth, prompt.end.depth)))
        place = _find_place(prompt, self._context.observed.call(position).request, prefix)
        if place is not None:
            made = Breakpoint(place.layer, place.index, "5m", place.node)
            self._requests[position] = with_breakpoint(request, made, rules)

    def steps(self) -> list[ReplayStep]:
        return [self._context.steps[number - 1].with_request(one) for number, one in self._requests.items()]


def _find_place(prompt: Prompt, request: Request, prefix: Prefix | None) -> BlockPlace | None:
    return next((place for place in places(prompt, request) if place.prefix is prefix), None)


def with_breakpoint(request: Request, made: Breakpoint, rules: ModelRules) -> Request:
    """The request with one more breakpoint, its TTL chosen. Where that is too many, the first ones go."""
    sent = sent_breakpoints(request).every
    if any(one.block_key == made.block_key for one in sent):
        return request
    most = rules.maximum_breakpoints - bool(request.automatic)
    kept = _keep(request.breakpoints, most - 1)
    made = replace(made, ttl=_ttl(made, kept, request.automatic, rules))
    return replace(request, breakpoints=tuple(sorted((*kept, made), key=attrgetter("prompt_order"))))


def _keep(breakpoints: Sequence[Breakpoint], most: int) -> Sequence[Breakpoint]:
    """The last breakpoints: those before them are reached by the lookback or were read with them."""
    return breakpoints[len(breakpoints) - most :] if len(breakpoints) > most else breakpoints


def _ttl(made: Breakpoint, others: Sequence[Breakpoint], automatic: TTL | None, rules: ModelRules) -> TTL:
    """1h where one after it has it (rule 6) or all others do, else 5m."""
    after = {one.ttl for one in others if one.prompt_order > made.prompt_order} | ({automatic} - {None})
    is_hour = "1h" in after or {one.ttl for one in others} == {"1h"}
    wanted: TTL = "1h" if is_hour else "5m"
    if wanted in rules.accepted_ttls:
        return wanted
    return "1h" if wanted == "5m" else "5m"


def lengthen_prefix(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """A static prefix of the model's minimum length: what it lacks is added before its breakpoint, and paid for."""
    parts, padded = PartPool(), list[ReplayStep]()
    for loss in losses:
        rendered = context.observed.rendered[loss.call]
        pad = partial(_pad, tokens=max(1, loss.minimum - rendered.prompt.system_tokens), parts=parts)
        known = {step.number for step in padded}
        same = in_scopes(context, [loss], in_static_prefix)
        padded += [step.with_change(pad) for step in same if step.number not in known]
    yield Fix(replaced(context.steps, [_with_static_breakpoint(context, step) for step in padded]))


def _pad(call: Call, tokens: int, parts: PartPool) -> Call:
    """The call with so many more tokens at the start of its system prompt."""
    padding = given_block("text", "system", f"{tokens} tokens of examples", tokens)
    return with_part(call, Layer.SYSTEM, parts.of((padding, *call.request.system.blocks)))


def _with_static_breakpoint(context: FixContext, step: ReplayStep) -> ReplayStep:
    request, rules = step.call.request, context.replays.traffic.setup.rules_for(step.call)
    last = len(request.system.blocks) - 1
    return step.with_request(with_breakpoint(request, Breakpoint(Layer.SYSTEM, last), rules))
