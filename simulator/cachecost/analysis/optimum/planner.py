"""A legal plan, made call by call: what the floor's dynamic programme says of each block, within what the API allows.

At each call the deepest live entry is known, as the plan so far is run against a cache. Of all ends of the blocks
after it the planner tries which to write for an hour and which for five minutes, counts the price now and what the
blocks would cost from then on by themselves, and takes the cheapest. Marks that are left keep alive what other calls
will need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.optimum.entries import Entries, markable, reaches
from cachecost.analysis.optimum.future_use import Outlook, Stretch
from cachecost.analysis.optimum.plan_evaluator import Bench, Marks, Sent, Step, can_mark
from cachecost.analysis.optimum.tree import Event, Tree
from cachecost.analysis.optimum.ttls import READABLE, Held, Lifetimes, written
from cachecost.caches.breakpoints import PrefixCache
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import MarkedPrefix
from cachecost.prompts.request import TTL
from cachecost.providers.quotes import ZERO

NOTHING_FIXED: Mapping[Sent, Marks] = {}


@dataclass(frozen=True, slots=True)
class Habits:
    """How the planner fills what the programme leaves open.

    `shares_first`: marks left over go to what is needed soonest by other calls, else to the deepest such blocks.
    `writes_all`: every call writes its end, also where nothing is known to read it.
    `only`: the one lifetime that is used; None: both.
    """

    shares_first: bool = True
    writes_all: bool = False
    only: TTL | None = None


class Planner:
    """Plans the calls of a bench in their order. `lifetimes` tells what blocks cost by themselves from a call on."""

    def __init__(self, bench: Bench, tree: Tree, lifetimes: Lifetimes, habits: Habits = Habits()) -> None:
        self._bench = bench
        self._lifetimes = lifetimes
        self._habits = habits
        self._outlook = Outlook(tree)
        self._events = {event.sent: event for event in reversed(tree.events)}
        self._entries = Entries()
        self._cache = PrefixCache()

    def steps(self, extra: Sequence[Step] = (), fixed: Mapping[Sent, Marks] = NOTHING_FIXED) -> list[Step]:
        """The plan, with the `extra` calls where they start and the marks that are `fixed`."""
        waiting = sorted(extra, key=lambda step: step.sent.start)
        made: list[Step] = []
        for sent in self._bench.sent:
            while waiting and waiting[0].sent.start < sent.start:
                made.append(self._made(waiting.pop(0)))
            marks = fixed[sent] if sent in fixed else self._marks(sent)
            made.append(self._made(Step(sent, marks)))
        return made + [self._made(step) for step in waiting]

    def _made(self, step: Step) -> Step:
        """Run a step and take down what it wrote and touched."""
        sent = step.sent
        done = self._bench.done(self._cache, step)
        hit = done.outcome.hit
        depth = hit.depth if hit else 0
        read = self._entries.alive(hit, sent) if hit else None
        if hit and read:
            self._entries.held[hit] = Held(sent.start, read.ttl, READABLE, False)
        event = self._events.get(sent)
        for mark in step.marks:
            if mark.prefix.depth > depth:
                self._entries.held[mark.prefix] = self._written(sent, event, mark.ttl)
            elif read:
                self._shallow(mark, read, sent, event)
        return step

    def _written(self, sent: Sent, event: Event | None, ttl: TTL) -> Held:
        if event is not None:
            return written(event, ttl)
        first = sent.call.first_token_s
        return Held(sent.start, ttl, sent.start + first, first <= 0)

    def _shallow(self, mark: MarkedPrefix, read: Held, sent: Sent, event: Event | None) -> None:
        alive = self._entries.alive(mark.prefix, sent)
        if alive:
            self._entries.held[mark.prefix] = Held(sent.start, alive.ttl, READABLE, False)
        else:
            shorter: TTL = "1h" if mark.ttl == read.ttl == "1h" else "5m"
            self._entries.held[mark.prefix] = self._written(sent, event, shorter)

    def _marks(self, sent: Sent) -> Marks:
        event = self._events[sent]
        if event.deepest is None:
            return ()
        stretches = self._outlook.stretches(event)
        hit = self._deepest_alive(event)
        ends = list(self._ends(event, stretches, hit))
        hour, last = self._best(event, stretches, hit, ends)
        return tuple(self._filled(event, stretches, hit, hour, last))

    def _deepest_alive(self, event: Event) -> Prefix | None:
        node = event.deepest
        while node is not None:
            if node in self._entries.held and self._entries.alive(node, event.sent):
                return node
            node = node.parent
        return None

    def _ends(self, event: Event, stretches: Sequence[Stretch], hit: Prefix | None) -> Iterator[Prefix]:
        """Where a write could end: the deepest block, where calls part, and the first block after the hit."""
        least, depth = event.sent.rules.minimum_tokens, hit.depth if hit else 0
        found = [node for one in stretches if (node := markable(one.end.prefix)) is not None]
        first: Prefix | None = None
        node = event.deepest
        while node is not None and node.depth > depth and event.tokens(node) >= least:
            first = node if can_mark(node) else first
            node = node.parent
        if first is not None:
            found.append(first)
        yield from (node for node in dict.fromkeys(found) if node.depth > depth and event.tokens(node) >= least)

    def _best(
        self, event: Event, stretches: Sequence[Stretch], hit: Prefix | None, ends: Sequence[Prefix]
    ) -> tuple[Prefix | None, Prefix | None]:
        """The last block written for an hour and the last one written at all; None: none is."""
        if self._habits.writes_all and ends:
            options: list[tuple[Prefix | None, Prefix | None]] = [(hour, ends[0]) for hour in (None, *ends)]
        else:
            options = [(None, None)]
            options += [
                (hour, last) for last in ends for hour in (None, *ends) if hour is None or hour.depth <= last.depth
            ]
        options = [(hour, last) for hour, last in options if self._fits(event, hour, last)]
        return min(options, key=lambda one: self._price(event, stretches, hit, *one), default=(None, None))

    def _fits(self, event: Event, hour: Prefix | None, last: Prefix | None) -> bool:
        accepted = [self._habits.only] if self._habits.only else list(event.sent.rules.accepted_ttls)
        if hour is not None and "1h" not in accepted:
            return False
        return last is None or last is hour or "5m" in accepted

    def _price(
        self,
        event: Event,
        stretches: Sequence[Stretch],
        hit: Prefix | None,
        hour: Prefix | None,
        last: Prefix | None,
    ) -> Decimal:
        """Price now and outlook of the blocks of a call, USD per 10**6 tokens x tokens."""
        held = self._entries.alive(hit, event.sent) if hit else None
        depths = [node.depth if node else 0 for node in (hit, hour, last)]
        total = ZERO
        for stretch in stretches:
            total += self._stretch(event, stretch, hit, hour, last, depths, held)
        return total

    def _stretch(
        self,
        event: Event,
        stretch: Stretch,
        hit: Prefix | None,
        hour: Prefix | None,
        last: Prefix | None,
        depths: Sequence[int],
        held: Held | None,
    ) -> Decimal:
        """A stretch, cut where it turns from read to written, and from one lifetime to the other."""
        prices = event.sent.prices
        begin = event.tokens(stretch.start.prefix) if stretch.start else 0
        end = event.tokens(stretch.end.prefix)
        a, b, c = (min(max(event.tokens(node), begin), end) if node else begin for node in (hit, hour, last))
        b, c = max(a, b), max(a, b, c)
        is_hour = hour is not None or (held is not None and held.ttl == "1h")
        parts = (
            (a - begin, prices.read, Held(event.start, "1h" if is_hour else "5m", READABLE, False)),
            (b - a, prices.write_1h, written(event, "1h")),
            (c - b, prices.write_5m, written(event, "5m")),
            (end - c, prices.input, None),
        )
        return sum(
            ((price + self._lifetimes.cost(stretch.later, state)) * count for count, price, state in parts if count),
            ZERO,
        )

    def _filled(
        self,
        event: Event,
        stretches: Sequence[Stretch],
        hit: Prefix | None,
        hour: Prefix | None,
        last: Prefix | None,
    ) -> list[MarkedPrefix]:
        """The marks that write, the mark that finds the hit, then marks that keep alive what others need."""
        wanted: list[Prefix] = list(dict.fromkeys(node for node in (last, hour) if node is not None))
        if hit is not None and can_mark(hit) and not reaches(event, wanted, hit):
            wanted.append(hit)
        for node in self._shared(event, stretches, last, hit):
            if node not in wanted:
                wanted.append(node)
        if hit is not None and can_mark(hit) and hit not in wanted:
            wanted.append(hit)
        kept = wanted[: event.sent.rules.maximum_marks]
        return self._timed(event, sorted(kept, key=lambda node: node.depth), hit, hour)

    def _shared(
        self, event: Event, stretches: Sequence[Stretch], last: Prefix | None, hit: Prefix | None
    ) -> list[Prefix]:
        """Blocks up to the last mark where a later call will part, the most wanted first."""
        depth = max((node.depth for node in (last, hit) if node), default=0)
        least = event.sent.rules.minimum_tokens
        found: list[tuple[float, int, Prefix]] = []
        for one in stretches[1:]:
            node = markable(one.end.prefix)
            if node is None or one.parting_s is None or node.depth > depth or event.tokens(node) < least:
                continue
            found.append((one.parting_s, -event.tokens(node), node))
        if not self._habits.shares_first:
            return [node for _, _, node in sorted(found, key=lambda one: one[1])]
        return [node for _, _, node in sorted(found, key=lambda one: one[:2])]

    def _timed(
        self, event: Event, nodes: Sequence[Prefix], hit: Prefix | None, hour: Prefix | None
    ) -> list[MarkedPrefix]:
        """Lifetimes in the order the API wants: an hour up to the last block that needs it, five minutes after it."""
        accepted = [self._habits.only] if self._habits.only else list(event.sent.rules.accepted_ttls)
        if len(accepted) == 1:
            return [MarkedPrefix(node, "1h" if accepted[0] == "1h" else "5m") for node in nodes]
        held = self._entries.alive(hit, event.sent) if hit else None
        limit = hour.depth if hour else 0
        if hit is not None and held is not None and held.ttl == "1h":
            limit = max(limit, hit.depth)
        return [MarkedPrefix(node, "1h" if node.depth <= limit else "5m") for node in nodes]
