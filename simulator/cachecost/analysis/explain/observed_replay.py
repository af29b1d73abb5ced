"""A replay of steps, with what each call lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.fixes.scopes import Conversation, Conversations, conversation_of
from cachecost.analysis.replays.incremental import ChangedReplay, TrackedReplay
from cachecost.analysis.replays.replays import Replays
from cachecost.analysis.replays.steps import NO_CALL, ReplayStep
from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.ledger.results import ZERO, CallRow
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.simulation.engine import SimulatedCall


@dataclass(frozen=True, slots=True)
class LoneCall:
    """The only call of a conversation, and the longest prefix that it wrote: wasted if no other call reads it.

    `tokens` are those that it wrote after what it read or after its last breakpoint but one.
    """

    call: int
    written: Prefix
    tokens: int


@dataclass(frozen=True, slots=True)
class RenderedCall:
    """A call that lost something, as the cache saw it."""

    prompt: Prompt
    rules: ModelRules


@dataclass(slots=True)
class ObservedReplay:
    """What a replay of steps recorded. Steps are numbered from 1 in their order, as `Loss.call` is.

    `rows` are those of the steps, `prices` and `rendered` those of the calls that could be evaluated and that lost
    something. `lone` wrote what no call read. `tracked` is the replay that others are derived from.
    """

    steps: Sequence[ReplayStep]
    tracked: TrackedReplay
    rows: list[CallRow] = field(default_factory=list)
    prices: dict[int, Prices] = field(default_factory=dict)
    rendered: dict[int, RenderedCall] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    lone: list[LoneCall] = field(default_factory=list)
    conversations: Conversations = field(default_factory=Conversations)

    def number(self, position: int) -> int:
        """The recorded call of a step; 0 for an extra one."""
        return self.steps[position - 1].number

    def call(self, position: int) -> Call:
        return self.steps[position - 1].call

    def paid_again(self, loss: Loss) -> Decimal:
        """USD above the price of a read that the tokens of a loss cost."""
        row, prices = self.rows[loss.call - 1], self.prices.get(loss.call)
        unread = row.usage.total_input - row.usage.read
        if prices is None or not unread:
            return ZERO
        read = replace(row.usage, input_tokens=0, write_5m=0, write_1h=0, read=row.usage.total_input)
        return (row.cost.total - prices.total_cost(read)) * min(unread, max(0, loss.tokens)) / unread

    def add(self, made: SimulatedCall) -> None:
        """The next step as simulated. Held losses are the bill's, and extra calls lose nothing that matters."""
        self.rows.append(made.row)
        position = len(self.rows)
        if made.prices:
            self.prices[position] = made.prices
        step = self.steps[position - 1]
        if made.passes and made.rules and step.number != NO_CALL and step.call.most_read is None:
            first = made.passes[0]
            self.losses += first.losses
            if first.losses:
                self.rendered[position] = RenderedCall(first.prompt, made.rules)
            for loss in first.losses:
                if loss.since and codes()[loss.cause].fixed_in == "prompt":
                    self.conversations.join(step.call, self.call(loss.since.number))


def observe_replay(
    replays: Replays, steps: Sequence[ReplayStep], earlier: TrackedReplay | None = None
) -> ObservedReplay:
    """Replay the steps, and record what each call paid for again. Of those that an `earlier` replay also has, only
    those are made anew whose outcome can differ."""
    matches = earlier.match(steps) if earlier else None
    if earlier is None or matches is None:
        tracked = replays.tracked_replay(steps)
        return _observe(steps, tracked, tracked.run())
    return _observe(steps, earlier, ChangedReplay(earlier, steps, matches).run())


def _observe(steps: Sequence[ReplayStep], tracked: TrackedReplay, calls: Iterator[SimulatedCall]) -> ObservedReplay:
    observed, writers = ObservedReplay(steps, tracked), _LoneWriters()
    for step, made in zip(steps, calls, strict=True):
        observed.add(made)
        writers.add(step, made)
    observed.lone = list(writers.unread())
    return observed


class _LoneWriters:
    """The calls that are alone in their conversation, and all prefixes that some call read."""

    def __init__(self) -> None:
        self._lone: dict[Conversation, LoneCall | None] = {}
        self._hits: set[Prefix] = set()
        self._position = 0

    def add(self, step: ReplayStep, made: SimulatedCall) -> None:
        self._position += 1
        self._hits.update(one.outcome.hit for one in made.passes if one.outcome.hit)
        if step.number == NO_CALL or not made.passes:
            return
        conversation = conversation_of(step.call)
        self._lone[conversation] = None if conversation in self._lone else self._writer(made)

    def _writer(self, made: SimulatedCall) -> LoneCall | None:
        outcome, sizes = made.passes[0].outcome, made.passes[0].sizes
        depth = outcome.hit.depth if outcome.hit else 0
        written = [sizes.of(one.prefix) for one in outcome.breakpoints if one.prefix.depth > depth]
        if not written:
            return None
        before = written[-2] if len(written) > 1 else outcome.read
        return LoneCall(self._position, outcome.breakpoints[-1].prefix, written[-1] - before)

    def unread(self) -> Iterator[LoneCall]:
        """The calls that wrote what no call read."""
        for one in self._lone.values():
            if one is not None and one.written not in self._hits:
                yield one
