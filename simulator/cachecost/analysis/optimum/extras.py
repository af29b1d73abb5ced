"""Additional calls: keep-alives that refresh an entry, and calls that write a prefix before it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import takewhile

from cachecost.analysis.optimum.plan_evaluator import (
    BareCall,
    Breakpoints,
    PlanCache,
    PlanEvaluator,
    PlanStep,
    StepResult,
    deepest,
)
from cachecost.analysis.optimum.tree import BlockTree
from cachecost.base.structs import replace
from cachecost.caches.expiry import CacheEntry, ttl_s_of
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.changes.places import find_markable
from cachecost.conversations.calls import derive_call
from cachecost.prompts.blocks import Layer, Message, Prefix, Thread
from cachecost.prompts.compare import begins_with, prefixes_back
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import TTL, text_block
from cachecost.strategies.changes.keepalive import needs_output

MOST_PINGS = 60
"""In one pause: more have never paid off at any price so far (a 1h entry through two and a half days)."""
WARM_S = 5.0


class TouchTrackingCache(PlanCache):
    """A cache that records in `last` which step used each entry last, and the entry after it."""

    def __init__(self, warm: WarmPrefixes) -> None:
        super().__init__(warm)
        self.last: dict[Prefix, tuple[PlanStep, TTL, CacheEntry]] = {}

    def record(self, done: StepResult) -> None:
        """Record what a step used: its breakpoints, and its hit."""
        rules, hit = done.step.sent.rules, done.outcome.hit
        touched = [(breakpoint.prefix, breakpoint.ttl) for breakpoint in done.step.breakpoints]
        if hit is not None and hit in self.last:
            touched.append((hit, self.last[hit][1]))
        for prefix, ttl in touched:
            if self.state(prefix, ttl, rules, done.step.sent.start) != "absent":
                self.last[prefix] = (done.step, ttl, copy(self.entry(prefix, ttl, rules)))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Additional calls that may pay off, and the breakpoints that calls of the plan need then."""

    extra: list[PlanStep]
    fixed: dict[BareCall, Breakpoints] = field(default_factory=dict)


def proposals(evaluator: PlanEvaluator, tree: BlockTree, steps: Sequence[PlanStep]) -> Iterator[Proposal]:
    """What may pay off: keep-alives for each entry that expired, and a call ahead of calls that start together."""
    cache = TouchTrackingCache(evaluator.warm.copy())
    known = {event.sent: event.known for event in reversed(tree.events)}
    before: PlanStep | None = None
    warmed: set[Prefix] = set()
    for step in steps:
        done = evaluator.run_step(cache, step)
        sent = step.sent
        if not sent.is_extra:
            yield from _find_trains(evaluator, cache, done)
            # Whether the call starts too early to read what the one before writes.
            is_together = before is not None and (
                sent.start < before.sent.start + before.sent.call.ready_s or sent.start <= before.sent.start
            )
            node = find_markable(known[sent]) if is_together else None
            least = max(sent.rules.minimum_tokens, done.outcome.read + 1)
            if before is not None and node is not None and node not in warmed and sent.sizes.of(node) >= least:
                warmed.add(node)
                at = before.sent.start - max(WARM_S, before.sent.call.first_token_s + 1)
                ttl: TTL = "5m" if "5m" in before.sent.rules.accepted_ttls else "1h"
                if warm := extra(evaluator, before.sent, (BreakpointPrefix(node, ttl),), at, "warm"):
                    yield Proposal([warm])
            before = before if is_together else step
        cache.record(done)


def _find_trains(evaluator: PlanEvaluator, cache: TouchTrackingCache, done: StepResult) -> Iterator[Proposal]:
    now, stop = done.step.sent.start, done.outcome.hit
    for node in takewhile(lambda node: node is not stop, prefixes_back(done.step.sent.prompt.end)):
        if (used := cache.last.get(node)) and used[2].state(now) == "expired":
            last, _, entry = used
            break
    else:
        return
    ttl: TTL = "1h" if entry.ttl == "1h" else "5m"
    # The breakpoints before the block stay as they are, or for 1h where its own is (rule 6).
    before = [
        BreakpointPrefix(one.prefix, "1h") if ttl == "1h" else one
        for one in last.breakpoints
        if one.prefix.depth < node.depth
    ]
    breakpoints = (*before, BreakpointPrefix(node, ttl))
    if train := keep_alive_train(evaluator, last.sent, breakpoints, entry.touched, now, entry.ttl_s):
        yield Proposal(train)
    end = deepest(last.sent.passes[0], last.sent.rules)
    if ttl == "5m" and end is not None and "1h" in last.sent.rules.accepted_ttls and not last.sent.is_extra:
        nodes = sorted({*(breakpoint.prefix for breakpoint in last.breakpoints), end}, key=lambda one: one.depth)
        hours = tuple(BreakpointPrefix(one, "1h") for one in nodes[-last.sent.rules.maximum_breakpoints :])
        ttl_s = ttl_s_of(last.sent.rules, "1h")
        if train := keep_alive_train(evaluator, last.sent, hours, last.sent.start, now, ttl_s):
            yield Proposal(train, {last.sent: hours})


def keep_alive_train(
    evaluator: PlanEvaluator, sent: BareCall, breakpoints: Breakpoints, since: float, now: float, life: float
) -> list[PlanStep]:
    """Keep-alives spread evenly from `since` to `now`; none if so many reads cost more than a write."""
    gap = now - since
    count = int(gap // life)
    if not 0 < count <= MOST_PINGS or count * sent.prices.read >= sent.prices.write_1h:
        return []
    times = [since + gap * number / (count + 1) for number in range(1, count + 1)]
    return [ping for at in times if (ping := extra(evaluator, sent, breakpoints, at, "ping")) is not None]


def extra(
    evaluator: PlanEvaluator, sent: BareCall, breakpoints: Breakpoints, start: float, purpose: str
) -> PlanStep | None:
    """A call that repeats `sent`, or only its tools and system if the breakpoints are there, with no output.

    None if the API refuses it, or if the prefix would differ.
    """
    request, last = sent.call.request, breakpoints[-1].prefix
    short = replace(request, thread=Thread().then(Message.of("user", (text_block("user", "."),))))
    output = int(needs_output(request.params))
    budget = (request.params.get("thinking") or {}).get("budget_tokens", 0)
    params = {name: value for name, value in request.params.items() if name != "stream"}
    for asked in (request,) if last.layer is Layer.MESSAGES else (short, request):
        quiet = replace(asked, params={**params, "max_tokens": output + budget})
        made = evaluator.render_extra(derive_call(sent.call, quiet, start, output, purpose))
        if made is not None and begins_with(made.prompt.end, last):
            return PlanStep(made, breakpoints)
    return None
