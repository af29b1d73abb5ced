"""Calls beside the real ones: pings that keep an entry alive, and calls that write a beginning before it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from cachecost.analysis.optimum.plan_evaluator import Bench, Done, Marks, Sent, Step, can_mark, deepest
from cachecost.analysis.optimum.tree import Tree
from cachecost.analysis.optimum.ttls import lifetime
from cachecost.caches.breakpoints import Entry, PrefixCache
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import MarkedPrefix
from cachecost.prompts.request import TTL, Request
from cachecost.replay.simulation import added_call
from cachecost.strategies.changes.quiet import filler, needs_output

MOST_PINGS = 60
"""In one pause: more never paid at any price there was (a 1h entry through two days and a half)."""
WARM_S = 5.0


class Watched(PrefixCache):
    """A cache that knows who touched its entries last, and how they stood after that."""

    def __init__(self) -> None:
        super().__init__()
        self._by: dict[Prefix, tuple[Step, TTL, Entry]] = {}

    def take(self, done: Done) -> None:
        """Note what a step touched: its marks, and what it hit."""
        rules, hit = done.step.sent.rules, done.outcome.hit
        touched = [(mark.prefix, mark.ttl) for mark in done.step.marks]
        if hit is not None and hit in self._by:
            touched.append((hit, self._by[hit][1]))
        for prefix, ttl in touched:
            if self.state(prefix, ttl, rules, done.step.sent.start) != "absent":
                self._by[prefix] = (done.step, ttl, copy(self.entry(prefix, ttl, rules)))

    def before(self, prefix: Prefix) -> Entry | None:
        """The entry at `prefix` as the last step but this one left it."""
        return self._by[prefix][2] if prefix in self._by else None

    def toucher(self, prefix: Prefix) -> Step | None:
        return self._by[prefix][0] if prefix in self._by else None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Calls that may pay beside a plan, and real calls that are then to be marked so."""

    extra: list[Step]
    fixed: dict[Sent, Marks] = field(default_factory=dict)


def proposals(bench: Bench, tree: Tree, steps: Sequence[Step]) -> Iterator[Proposal]:
    """What may pay beside a plan: pings for each entry that ran out, a call ahead of those that start together."""
    cache, known = Watched(), {event.sent: event.known for event in reversed(tree.events)}
    before: Step | None = None
    warmed: set[Prefix] = set()
    for step in steps:
        done = bench.done(cache, step)
        if not step.sent.is_extra:
            yield from _trains(bench, cache, done)
            node = _shared(done, before, known)
            if node is not None and before is not None and node not in warmed:
                warmed.add(node)
                yield from _warm(bench, before, node)
            before = before if before is not None and _together(before, step) else step
        cache.take(done)


def _together(first: Step, step: Step) -> bool:
    """Whether a call cannot read what the first one of them writes."""
    start, sent = step.sent.start, first.sent
    return start < sent.start + sent.call.first_token_s or start <= sent.start


def _shared(done: Done, before: Step | None, known: Mapping[Sent, Prefix | None]) -> Prefix | None:
    """What a call shares with one that started with it, if that is more than it read."""
    if before is None or not _together(before, done.step):
        return None
    sent = done.step.sent
    node = known[sent]
    while node is not None and not can_mark(node):
        node = node.parent
    is_long = node is not None and sent.sizes.of(node) >= max(sent.rules.minimum_tokens, done.outcome.read + 1)
    return node if is_long else None


def _trains(bench: Bench, cache: Watched, done: Done) -> Iterator[Proposal]:
    """Pings that bridge the pause before a call, as the entry is and with an hour for it."""
    now = done.step.sent.start
    lost = _lost(cache, done)
    last = cache.toucher(lost[0]) if lost is not None else None
    if lost is None or last is None:
        return
    node, entry = lost
    ttl: TTL = "1h" if entry.ttl == "1h" else "5m"
    marks = (*(mark for mark in last.marks if mark.prefix.depth < node.depth), MarkedPrefix(node, ttl))
    yield from _proposed(_train(bench, last.sent, marks, entry.touched, now, entry.ttl_s), {})
    end = deepest(last.sent.passes[0], last.sent.rules)
    if ttl == "5m" and end is not None and "1h" in last.sent.rules.accepted_ttls and not last.sent.is_extra:
        nodes = sorted({*(mark.prefix for mark in last.marks), end}, key=lambda one: one.depth)
        hours = tuple(MarkedPrefix(one, "1h") for one in nodes[-last.sent.rules.maximum_marks :])
        train = _train(bench, last.sent, hours, last.sent.start, now, lifetime(last.sent, "1h"))
        yield from _proposed(train, {last.sent: hours})


def _proposed(extra: list[Step], fixed: dict[Sent, Marks]) -> Iterator[Proposal]:
    if extra:
        yield Proposal(extra, fixed)


def _lost(cache: Watched, done: Done) -> tuple[Prefix, Entry] | None:
    """The deepest entry on the way of a call that ran out before it; None where there is none."""
    sent, stop = done.step.sent, done.outcome.hit
    node: Prefix | None = sent.prompt.end
    while node is not None and node is not stop:
        entry = cache.before(node)
        if entry is not None and entry.state(sent.start) == "expired":
            return node, entry
        node = node.parent
    return None


def _train(bench: Bench, sent: Sent, marks: Marks, since: float, now: float, life: float) -> list[Step]:
    """Pings that bridge the time from `since` to `now`, evenly; none where reading that often costs over a write."""
    gap = now - since
    count = int(gap // life)
    if not 0 < count <= MOST_PINGS or count * sent.prices.read >= sent.prices.write_1h:
        return []
    times = [since + gap * number / (count + 1) for number in range(1, count + 1)]
    return [ping for at in times if (ping := extra(bench, sent, marks, at, "ping")) is not None]


def _warm(bench: Bench, first: Step, node: Prefix) -> Iterator[Proposal]:
    """The beginning up to `node`, sent a little before the first of the calls that share it."""
    at = first.sent.start - max(WARM_S, first.sent.call.first_token_s + 1)
    ttl: TTL = "5m" if "5m" in first.sent.rules.accepted_ttls else "1h"
    warm = extra(bench, first.sent, (MarkedPrefix(node, ttl),), at, "warm")
    yield from _proposed([warm] if warm else [], {})


def extra(bench: Bench, sent: Sent, marks: Marks, start: float, purpose: str) -> Step | None:
    """A call that sends what `sent` did, or only its head where the marks are there, and wants no answer.

    None where the API refuses it, or where it would not be the same prefix.
    """
    request = sent.call.request
    in_head = marks[-1].prefix.layer is not Layer.MESSAGES
    made = _rendered(bench, sent, replace(request, thread=filler()), start, purpose) if in_head else None
    if made is None or not _contains(made, marks):
        made = _rendered(bench, sent, request, start, purpose)
    return Step(made, marks) if made is not None and _contains(made, marks) else None


def _contains(sent: Sent, marks: Marks) -> bool:
    node: Prefix | None = sent.prompt.end
    while node is not None and node is not marks[-1].prefix:
        node = node.parent
    return node is not None


def _rendered(bench: Bench, sent: Sent, request: Request, start: float, purpose: str) -> Sent | None:
    output = int(needs_output(request.params))
    budget = (request.params.get("thinking") or {}).get("budget_tokens", 0)
    params = {name: value for name, value in request.params.items() if name != "stream"}
    asked = replace(request, params={**params, "max_tokens": output + budget})
    quiet = replace(added_call(sent.call, asked, start, output, purpose), is_batch=False)
    found = bench.rendered(quiet, is_extra=True)
    return found if isinstance(found, Sent) else None
