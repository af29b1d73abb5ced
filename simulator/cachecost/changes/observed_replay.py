"""A replay of steps, with what each call lost, what it wrote and nobody read, and what it wrote for too long.

Calls are grouped by what they have in common: those that are fixed together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cachecost.account.causes import causes
from cachecost.base.structs import replace
from cachecost.caches.expiry import has_expired
from cachecost.caches.losses import Loss
from cachecost.changes.steps import NO_CALL, ChangedReplay, Replays, ReplayStep, TrackedReplay
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer, Prefix, Thread
from cachecost.prompts.compare import path
from cachecost.prompts.render import Prompt
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import AS_RECORDED, SimulatedCall

Conversation = tuple[Thread, bool]
"""The first message of a conversation, and whether it is in a batch."""
Kind = tuple[str, str, bytes, bool]
"""Host, model and tools of a conversation, and whether it is in a batch: what is known when it begins."""
StaticPrefix = tuple[str, str, str, bytes, bytes]
"""Host, workspace, model, tools and system prompt."""


def conversation_of(call: Call) -> Conversation:
    """The conversation of a call, whatever its host, workspace and model."""
    return call.request.thread.up_to(1), call.is_batch


def static_prefix_of(call: Call) -> StaticPrefix:
    """The static prefix that a call sends."""
    return call.host or "", call.workspace, call.request.model, call.request.tools.digest, call.request.system.digest


def kind_of(call: Call) -> Kind:
    """The kind of conversation that a call is of."""
    return call.host or "", call.request.model, call.request.tools.digest, call.is_batch


class Conversations:
    """The conversations of calls. Where a change of the first message made two of one, they are joined."""

    def __init__(self) -> None:
        self._joined: dict[Conversation, Conversation] = {}

    def conversation_of(self, call: Call) -> Conversation:
        found = conversation_of(call)
        while found in self._joined:
            found = self._joined[found]
        return found

    def join(self, call: Call, earlier: Call) -> None:
        """Both calls are of one conversation."""
        one, other = self.conversation_of(call), self.conversation_of(earlier)
        if one != other:
            self._joined[one] = other


ScopeOf = Callable[[Conversations, Call], Hashable]
"""What the calls have in common that a fix is made for."""


def in_kind(conversations: Conversations, call: Call) -> Hashable:
    return kind_of(call)


def in_static_prefix(conversations: Conversations, call: Call) -> Hashable:
    return static_prefix_of(call)


@dataclass(frozen=True, slots=True)
class RenderedCall:
    """A call that lost something, as the cache saw it."""

    prompt: Prompt
    rules: ModelRules


@dataclass(slots=True)
class ObservedReplay:
    """What a replay of steps recorded. Steps are numbered from 1 in their order, as `Loss.call` is.

    `rows` are those of the steps, `prices` and `rendered` those of the calls that could be evaluated and that lost
    something. `unused` are writes that no call read, and 1h writes where 5m would have lasted. `tracked` is the replay
    that others are derived from.
    """

    steps: Sequence[ReplayStep]
    tracked: TrackedReplay
    rows: list[CallRow] = field(default_factory=list)
    prices: dict[int, Prices] = field(default_factory=dict)
    rendered: dict[int, RenderedCall] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    unused: list[Loss] = field(default_factory=list)
    conversations: Conversations = field(default_factory=Conversations)

    def number(self, position: int) -> int:
        """The recorded call of a step; 0 for an extra one."""
        return self.steps[position - 1].number

    @property
    def refused(self) -> set[int]:
        """The recorded calls that have no usage."""
        return {step.number for step, row in zip(self.steps, self.rows, strict=True) if row.error}

    def call(self, position: int) -> Call:
        return self.steps[position - 1].call

    def paid_again(self, loss: Loss) -> Decimal:
        """USD above the price of a read that the tokens of a loss cost; of a 1h write above that of a 5m write."""
        row, prices = self.rows[loss.call - 1], self.prices.get(loss.call)
        if prices is not None and loss.cause == "hour_unused":
            tokens = min(loss.tokens, row.usage.write_1h)
            shorter = replace(row.usage, write_1h=row.usage.write_1h - tokens, write_5m=row.usage.write_5m + tokens)
            return row.cost.total - prices.total_cost(shorter)
        unread = row.usage.unread
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
        if made.passes and made.rules and step.number != NO_CALL:
            if step.call.most_read is not None and not step.call.is_lost_by_change:
                return
            first = made.passes[0]
            self.losses += first.losses
            if first.losses:
                self.rendered[position] = RenderedCall(first.prompt, made.rules)
            for loss in first.losses:
                if loss.since and causes()[loss.cause].fixed_in == "prompt":
                    self.conversations.join(step.call, self.call(loss.since.number))


def observe_replay(
    replays: Replays, steps: Sequence[ReplayStep], earlier: TrackedReplay | None = None
) -> ObservedReplay:
    """Replay the steps, and record what each call paid for again. Of those that an `earlier` replay also has, only
    those are made anew whose outcome can differ."""
    matches = earlier.match(steps) if earlier else None
    if earlier is None or matches is None:
        tracked = replays.tracked_replay(steps)
        return _record(steps, tracked, tracked.run())
    return _record(steps, earlier, ChangedReplay(earlier, steps, matches).run())


def _record(steps: Sequence[ReplayStep], tracked: TrackedReplay, calls: Iterator[SimulatedCall]) -> ObservedReplay:
    traffic = tracked.traffic
    observed, writers, hours = ObservedReplay(steps, tracked), _LoneWriters(), _HourWriters(traffic.calls)
    is_timed = traffic.strategy != AS_RECORDED or any(step.call.timestamp is not None for step in steps)
    for step, made in zip(steps, calls, strict=True):
        observed.add(made)
        writers.add(step, made)
        if is_timed:
            hours.add(step, made)
    unread = list(writers.unread())
    observed.unused = [*hours.idle(), *(unread if len(unread) > 1 else ())]  # once may be chance
    return observed


class _LoneWriters:
    """The calls that are alone in their conversation, and all prefixes that some call read or could have read."""

    def __init__(self) -> None:
        self._lone: dict[Conversation, Loss | None] = {}
        self._hits: set[Prefix] = set()
        self._written: dict[Prefix, tuple[float, float]] = {}
        """When a prefix was written last, and its TTL, in seconds."""
        self._position = 0

    def add(self, step: ReplayStep, made: SimulatedCall) -> None:
        self._position += 1
        self._hits.update(one.outcome.hit for one in made.passes if one.outcome.hit)
        if step.number == NO_CALL or not made.passes or made.rules is None:
            return
        for breakpoint in made.passes[0].outcome.breakpoints:
            before = self._written.get(breakpoint.prefix)
            if before is not None and not has_expired(step.call.start, *before):
                self._hits.add(breakpoint.prefix)  # it was sent again in time: other causes say why it was not read
            self._written[breakpoint.prefix] = step.call.start, made.rules.ttl_s[breakpoint.ttl]
        conversation = conversation_of(step.call)
        is_lone, outcome, sizes = conversation not in self._lone, made.passes[0].outcome, made.passes[0].sizes
        depth = outcome.hit.depth if outcome.hit else 0
        written = [sizes.of(one.prefix) for one in outcome.breakpoints if one.prefix.depth > depth] if is_lone else []
        self._lone[conversation] = None
        if written:
            last = outcome.breakpoints[-1].prefix
            tokens = written[-1] - (written[-2] if len(written) > 1 else outcome.read)
            self._lone[conversation] = Loss(self._position, "written_never_read", last, last.depth, tokens=tokens)

    def unread(self) -> Iterator[Loss]:
        """The longest prefix that each of the calls wrote, if no call read it."""
        return (one for one in self._lone.values() if one is not None and one.first not in self._hits)


class _HourWriters:
    """What calls write for an hour, by kind of call and on static prefix or messages, and whether 5m would have lasted.

    What a kind of call never reads tells nothing of its pauses. `sent` are the calls before any fix: a 1h TTL that a
    fix chose is none of theirs.
    """

    def __init__(self, sent: Sequence[Call]) -> None:
        self._sent = sent
        self._written: dict[tuple[Kind, bool], list[Loss]] = {}
        self._used: dict[Prefix, float] = {}
        self._pauses: dict[tuple[Kind, bool], float] = {}
        """The longest time between two uses of an entry, in seconds."""
        self._short_s: dict[Kind, float] = {}
        self._position = 0

    def add(self, step: ReplayStep, made: SimulatedCall) -> None:
        self._position += 1
        if not made.passes or made.rules is None or "1h" not in made.rules.accepted_ttls:
            return
        outcome, kind, now = made.passes[0].outcome, kind_of(step.call), step.call.start
        self._short_s[kind] = made.rules.ttl_s["5m"]
        hit = outcome.hit
        if hit is not None and hit in self._used:
            key = kind, hit.layer is not Layer.MESSAGES
            self._pauses[key] = max(self._pauses.get(key, 0.0), now - self._used[hit])
        depth = hit.depth if hit else 0
        if outcome.write_1h and step.number != NO_CALL:
            sent = self._sent[step.number - 1].request
            if sent.automatic == "1h" or any(breakpoint.ttl == "1h" for breakpoint in sent.breakpoints):
                end, sizes = outcome.read, made.passes[0].sizes
                for one in outcome.breakpoints:
                    if one.prefix.depth > depth and one.ttl == "1h":
                        tokens, first = sizes.of(one.prefix) - end, path(one.prefix, depth)[0]
                        loss = Loss(self._position, "hour_unused", first, one.prefix.depth, ttl="1h", tokens=tokens)
                        self._written.setdefault((kind, one.prefix.layer is not Layer.MESSAGES), []).append(loss)
                        end, depth = end + tokens, one.prefix.depth
        self._used.update((one.prefix, now) for one in outcome.breakpoints)
        if hit is not None:
            self._used[hit] = now

    def idle(self) -> Iterator[Loss]:
        """The writes of each kind of call whose entries were read, and always within 5 minutes; one a call."""
        found: dict[int, Loss] = {}
        for (kind, is_static), losses in self._written.items():
            pauses = [self._pauses[kind, one] for one in {is_static, False} if (kind, one) in self._pauses]
            if not pauses or max(pauses) >= self._short_s[kind]:
                continue
            for loss in losses:
                before = found.get(loss.call)
                tokens = loss.tokens + (before.tokens if before else 0)
                found[loss.call] = replace(before or loss, tokens=tokens, gap_s=max(pauses))
        yield from (found[call] for call in sorted(found))
