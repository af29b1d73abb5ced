"""The lower bound: no legal choice of breakpoints and TTLs makes these calls cheaper. A bound that is proved, not a
plan.

Why it is a lower bound. A call's input divides into what was read, written for an hour, written for five minutes
and sent as it is, in this order (rule 15), so a call's cost is a sum over its blocks: tokens of the block x price
of the class it falls in. Each block, under its whole prefix, is looked at by itself here, over all calls that
contain it. In any legal plan the following holds for it, with any breakpoints:

- It is read in a call only if an entry at it or deeper lives then (rules 9, 11, 12), which an earlier call with this
  block wrote; in that call it was read, or written for 1h (a 1h breakpoint at it or deeper), or for five minutes. So an
  entry that holds it lives five minutes or an hour from the last call that read or wrote the block. An hour without
  the block being written for 1h takes a 1h breakpoint deeper in a call that reads it: granted free of charge where the
  call has anything deeper that can have one.
- A write at no charge (rule 13) happens in a call that reads the block, for no longer than what was read lives.
- A call in which nothing at or after the block may have a breakpoint, or everything that may is shorter than the
  model's minimum, neither reads nor writes it (rules 6, 8).

`TTLCosts` takes the cheapest of all histories that obey these, so the sum over the blocks is no more than any plan
costs. What is left out only restricts plans further: four breakpoints a call, the reach of the lookback, the order
of TTLs, that a block is read only with all before it, that an entry is replaced while it cannot be read. What
stands after the last block that may be marked, and the answers, cost the same in every plan. Lag and early eviction
only shorten lives.

What was cached before the recording began is there for the first call that sends it, as in the simulation
(`setup.may_start_warm`), and with any TTL before its end, where a breakpoint of the call might have written it. In a
call whose loss is held, what it was billed as read costs a read, whatever the plan cached, and it reads nothing more.
What a bill read and the simulation of the same calls does not was cached by somebody: it costs a read in any plan.

With pings: a ping repeats what an earlier call sent, pre-warming sends a call's beginning before it; each costs at
least the least price of the model's tokens for every block in it that is kept or written, on the days of the calls.
Pre-warming of a prefix that it partly reads writes for five minutes; otherwise the bound would not hold.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import takewhile
from math import inf
from operator import attrgetter
from typing import Literal, NamedTuple

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator, simulation_of
from cachecost.analysis.optimum.tree import ANY_CALL, BlockInCall, BlockNode, BlockTree, CallPass, Tail
from cachecost.analysis.optimum.ttl_costs import CheapestPrices, TTLCosts
from cachecost.base.structs import replace
from cachecost.caches.fixed_blocks import Recency
from cachecost.caches.reporting import reported_read
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.compare import path
from cachecost.prompts.render import BreakpointPrefix, Place, PrefixSizes
from cachecost.prompts.request import TTL
from cachecost.providers.usage import PER_TOKEN, ZERO, Usage
from cachecost.simulation.engine import CallPreparer, UnpreparedCall, output_tokens, request_quote
from cachecost.simulation.setup import ReplaySetup
from cachecost.strategies.changes.keepalive import filler_thread


@dataclass(frozen=True, slots=True)
class ProvedRead:
    """The tokens of a call from `start` to `end` were read by its bill. `end` None: which ones they were is unknown,
    since the bill is the sum of several passes."""

    start: int
    end: int | None

    def tokens(self, start: int, end: int) -> int:
        """How many of the tokens from `start` to `end` were read."""
        return max(0, min(end, end if self.end is None else self.end) - max(start, self.start))


def proved_reads(evaluator: PlanEvaluator, simulated: Iterable[CallRow] | None = None) -> dict[BareCall, ProvedRead]:
    """The reads that only bills know of, by call, where bills may show what was cached before the first call.

    `simulated` are the rows of the calls as they were sent; None: they are simulated here, if a bill read anything.
    """
    terms, found = evaluator.terms, dict[BareCall, ProvedRead]()
    if not terms.bills or not terms.may_start_warm or terms.rules.assumptions.warm_start != "as_billed":
        return found
    bills = [one.billed.read if one.billed else 0 for one in evaluator.calls]
    if not any(bills):
        return found
    rows = map(simulation_of(terms).row, evaluator.calls) if simulated is None else simulated
    for sent, billed, row in zip(evaluator.sent, bills, rows, strict=True):
        if billed > row.usage.read:
            found[sent] = ProvedRead(row.usage.read, billed) if len(sent.passes) == 1 else ProvedRead(0, None)
    return found


class _SameLengths(NamedTuple):
    """Calls that know the same lengths up to a place, by the `sizes` of one of them; then the other calls."""

    key: object
    place: Place
    sizes: PrefixSizes
    others: _SameLengths | None


class _Special(NamedTuple):
    event: CallPass
    later: _Special | None


class _Rest(NamedTuple):
    lengths: _SameLengths
    special: _Special | None


class RestOfCalls:
    """Lengths and special calls of lists, which share their ends. A list costs work for what is new in it."""

    def __init__(self, special: Container[BareCall]) -> None:
        self._is_special = special
        self._known: dict[Tail, _Rest] = {}

    def is_special(self, tail: Tail) -> bool:
        """Whether a bill says more of the blocks of this call than their lengths."""
        return tail.event.sent in self._is_special

    def special(self, tail: Tail) -> list[CallPass]:
        """The special calls of a list, in its order."""
        found, one = list[CallPass](), self._rest(tail).special
        while one is not None:
            found.append(one.event)
            one = one.later
        return found

    def tokens(self, tail: Tail, prefix: Prefix) -> int | None:
        """The tokens that a block adds to each call of a list; None where that is not known to be the same in all."""
        place, asked = (prefix.tokens, prefix.depth), set[object]()
        found: int | None = None
        lengths: _SameLengths | None = self._rest(tail).lengths
        while lengths is not None:
            if lengths.key not in asked:
                tokens = added_tokens(lengths.sizes, prefix)
                if found not in (None, tokens):
                    return None
                found = tokens
                asked.add(lengths.key)
            if place > lengths.place:
                return None
            lengths = lengths.others
        return found

    def _rest(self, tail: Tail) -> _Rest:
        new: list[Tail] = []
        one: Tail | None = tail
        while one is not None and one not in self._known:
            new.append(one)
            one = one.next
        rest = self._known[one] if one is not None else None
        for one in reversed(new):
            event = one.event
            special = rest.special if rest else None
            if self.is_special(one):
                special = _Special(event, special)
            sizes = event.sent.passes[event.index].sizes
            key, place = sizes.shared()
            others = rest.lengths if rest else None
            if others is not None and others.key == key:
                place, others = min(place, others.place), others.others
            rest = self._known[one] = _Rest(_SameLengths(key, place, sizes, others), special)
        assert rest is not None
        return rest


def tokens_in(calls: Sequence[Tail], prefix: Prefix) -> list[int]:
    """The tokens that a block adds to each of the calls. Those that know the same lengths are asked once."""
    found: list[int] = []
    known: dict[object, int] = {}
    own = prefix.tokens, prefix.depth
    for call in calls:
        sizes = call.event.sent.passes[call.event.index].sizes
        key, place = sizes.shared()
        tokens = known.get(key) if own <= place else None
        if tokens is None:
            tokens = added_tokens(sizes, prefix)
            if own <= place:
                known[key] = tokens
        found.append(tokens)
    return found


def added_tokens(sizes: PrefixSizes, prefix: Prefix) -> int:
    """The tokens that a block adds to its prompt."""
    return sizes.of(prefix) - (sizes.of(prefix.parent) if prefix.parent is not None else 0)


class _CallEffects(NamedTuple):
    """What the special calls of a list do to a block: the first of them, and the rest by their number."""

    block: BlockInCall
    rest: int


NO_MARKS = 0


class BlocksByCall:
    """What sets the calls of an evaluator apart, for each block that they share."""

    def __init__(self, evaluator: PlanEvaluator, proved: Mapping[BareCall, ProvedRead]) -> None:
        warm = evaluator.warm.copy()
        self._evaluator = evaluator
        self._warm: dict[BareCall, BreakpointPrefix | None] = {
            sent: warm.pop(sent.prompt) if len(warm) else None for sent in evaluator.sent
        }
        self._proved = proved
        self._rest = RestOfCalls(
            {
                sent
                for sent in evaluator.sent
                if self._warm[sent] or sent in self._proved or sent.call.most_read is not None
            }
        )
        self._head_sizes: dict[Prefix, PrefixSizes | None] = {}
        self._heads_of: dict[Tail, list[PrefixSizes]] = {}
        self._numbers: dict[_CallEffects, int] = {}
        self._marks: list[_CallEffects] = [_CallEffects(ANY_CALL, NO_MARKS)]
        self._made: dict[tuple[Tail, int], Tail] = {}

    def list_for(self, node: BlockNode, tail: Tail, pings: bool) -> tuple[Tail, int]:
        """The list of the calls of a block, one token of which costs a share of the block, and the number of shares.

        With `pings`, also what the block adds to these counts. The last calls, in which it is equally long, are shared
        with other blocks, as those of one token.
        """
        prefix = node.prefix
        tokens = self._rest.tokens(tail, prefix)
        if tokens is not None and not (pings and self.least(tokens, prefix, tail) != tokens):
            return self._marked(tail, prefix), tokens
        calls = list(tail)
        lengths = tokens_in(calls, prefix)
        least = self.least(min(lengths), prefix, tail) if pings else None
        times, at = lengths[-1], len(calls)
        made: Tail | None = None
        if least is None or least == times:
            while at and lengths[at - 1] == times:
                at -= 1
            made = self._marked(calls[at], prefix)
        for one, count in zip(reversed(calls[:at]), reversed(lengths[:at]), strict=True):
            block = self.block_in_call(one.event, prefix, count, count if least is None else least)
            made = Tail(one.event, one.may_extend, one.may_be_extended, made, block, times)
            times = 1
        assert made is not None
        return made, times

    def least(self, tokens: int, prefix: Prefix, tail: Tail) -> int:
        """The fewest tokens of a block in any call, these, or ping. Of a block of the static prefix, pings send no more
        than that."""
        if prefix.layer is Layer.MESSAGES:
            return tokens
        if tail not in self._heads_of:
            found = self._heads_of[tail] = []
            for head, sent in {one.event.sent.prompt.head: one.event.sent for one in tail}.items():
                if head not in self._head_sizes:
                    request = replace(sent.call.request, thread=filler_thread())
                    call = replace(sent.call, request=request, most_read=None)
                    made = self._evaluator.render_call(call, is_extra=True)
                    self._head_sizes[head] = made.sizes if isinstance(made, BareCall) else None
                if (sizes := self._head_sizes[head]) is not None:
                    found.append(sizes)
        return min([tokens, *(added_tokens(one, prefix) for one in self._heads_of[tail])])

    def _marked(self, tail: Tail, prefix: Prefix) -> Tail:
        marks = NO_MARKS
        for event in reversed(self._rest.special(tail)):
            effects = _CallEffects(self.block_in_call(event, prefix, 1, 1), marks)
            if effects == self._marks[NO_MARKS]:  # these calls do nothing to the block
                marks = NO_MARKS
                continue
            if effects not in self._numbers:
                self._numbers[effects] = len(self._marks)
                self._marks.append(effects)
            marks = self._numbers[effects]
        walked: list[tuple[Tail, int]] = []
        now: Tail | None = tail
        while marks and now is not None and (now, marks) not in self._made:
            walked.append((now, marks))
            marks = self._marks[marks].rest if self._rest.is_special(now) else marks
            now = now.next
        made = self._made[now, marks] if marks and now is not None else now
        for one, number in reversed(walked):
            block = self._marks[number].block if self._rest.is_special(one) else ANY_CALL
            made = self._made[one, number] = Tail(one.event, one.may_extend, one.may_be_extended, made, block)
        assert made is not None
        return made

    def block_in_call(self, event: CallPass, prefix: Prefix, tokens: int, least: int) -> BlockInCall:
        """A block with so many tokens in a call, `least` in a ping, and what bills say of it there."""
        sent = event.sent
        warm = self._warm[sent] if event.index == 0 else None
        warm_ttl: TTL | None = None
        if warm is not None and (prefix.tokens, prefix.depth) <= (warm.prefix.tokens, warm.prefix.depth):
            # Before the end of what was cached, a breakpoint may have chosen the TTL.
            is_hour = prefix.depth < warm.prefix.depth and "1h" in sent.rules.accepted_ttls
            warm_ttl = "1h" if is_hour else warm.ttl
        held: Literal["read", "lost"] | None = None
        most, proved = sent.call.most_read, self._proved.get(sent)
        if most is not None and event.index == 0:
            held = "lost" if _tokens_before(event, prefix) >= most else "read"
        elif proved is not None and proved.tokens(_tokens_before(event, prefix), event.tokens(prefix)) > 0:
            held = "read"
        return BlockInCall(tokens, least, warm_ttl, held)


def _tokens_before(event: CallPass, prefix: Prefix) -> int:
    return event.tokens(prefix.parent) if prefix.parent is not None else 0


NO_READS: Mapping[BareCall, ProvedRead] = {}


class LowerBound:
    """USD that these calls cost at least, answers included: without extra calls, and with keep-alives and pre-warming.

    Each is worked out when it is asked for. `fixed_usd` is the part that no plan changes: answers, and what can never
    be cached.
    """

    def __init__(self, evaluator: PlanEvaluator, simulated: Iterable[CallRow] | None = None) -> None:
        """The lower bound of calls that are rendered already; `simulated` are their rows, where there are any."""
        self.calls = len(evaluator.sent)
        self._evaluator = evaluator
        self._tree, self._proved = BlockTree(evaluator.sent), proved_reads(evaluator, simulated)
        answers = sum((sent.output_usd for sent in evaluator.sent), ZERO)
        self.fixed_usd = fixed_usd(self._tree, self._proved) + answers

    @cached_property
    def usd(self) -> Decimal:
        return self.fixed_usd + self._cost(pings=False)

    @cached_property
    def with_pings_usd(self) -> Decimal:
        return self.fixed_usd + self._cost(pings=True)

    def _cost(self, pings: bool) -> Decimal:
        """The cost of all blocks that can be cached; those with the same calls are one."""
        evaluator, tokens = self._evaluator, dict[Tail, int]()
        blocks = None if are_alike(evaluator) else BlocksByCall(evaluator, self._proved)
        for node in self._tree.nodes.values():
            if node.own is not None:
                same = node.own, own_tokens(node)
                tail, count = blocks.list_for(node, node.own, pings) if blocks else same
                tokens[tail] = tokens.get(tail, 0) + count
        ttls = TTLCosts(cheapest(evaluator), pings)
        return sum((ttls.cost(tail) * count for tail, count in tokens.items()), ZERO).scaleb(PER_TOKEN)


def lower_bound_of(
    calls: Iterable[Call],
    terms: ReplaySetup,
    simulated: Iterable[CallRow] | None = None,
    preparer: CallPreparer | None = None,
) -> LowerBound:
    """The lower bound of `calls`, with any breakpoints. Raises CannotEvaluate for a cache without breakpoints.

    `simulated` are the rows of these calls as they were sent, in this order, where they have been simulated already;
    `preparer` has learned how long they are, where they are not those that were billed.
    """
    given = list(calls)
    evaluator = PlanEvaluator.of(given, terms, preparer)
    for sent in evaluator.sent:
        sent.rules.require_support("the lower bound")
    if simulated is None:
        return LowerBound(evaluator)
    rows = dict(zip(map(id, given), simulated, strict=True))
    return LowerBound(evaluator, [rows[id(call)] for call in evaluator.calls])


def automatic_bound(calls: Iterable[Call], preparer: CallPreparer) -> Decimal:
    """USD that calls to caches that match by themselves cost at least, whatever the pauses between them.

    Each reads all that any call before it sent, and the answers to these; where its bill says that it read more, that.
    """
    least, sent, answered = ZERO, dict[tuple[str, str], Recency](), dict[Prefix, None]()
    for moment, call in enumerate(calls):
        made, now = preparer.prepare(call), float(moment)
        if isinstance(made, UnpreparedCall):
            continue
        rules, usage = made.rules, Usage(output_tokens=output_tokens(call, made.counter), tool_uses=call.tool_uses)
        recency = sent.setdefault((rules.host, rules.model), Recency())
        for prompt, sizes in zip(made.prompts, made.sizes, strict=True):
            shared = prompt.counter.shared if prompt.counter else None
            matched, total = recency.record_call(prompt.end, now, now, inf, None, True, shared), sizes.total(prompt)
            end = prompt.end
            while end.tokens > matched and end.parent is not None:
                end = end.parent
            after = list(takewhile(attrgetter("is_of_assistant"), path(prompt.end, end.depth)))
            if after and end in answered:
                matched = max(matched, after[-1].tokens)
            answered[prompt.end] = None
            most = reported_read(sizes.at(matched), total, rules)
            read = min(total, max(most, call.billed.read if call.billed else 0))
            usage += Usage(total - read, read)
        least += made.prices.total_cost(usage)
    return least


def fixed_usd(tree: BlockTree, proved: Mapping[BareCall, ProvedRead] = NO_READS) -> Decimal:
    """USD of what stands after the last block that can be cached, in all passes, less what bills read all the same."""
    dollars = ZERO
    for event in tree.events:
        one = event.sent.passes[event.index]
        cacheable = event.tokens(event.deepest) if event.deepest is not None else 0
        total = one.sizes.total(one.prompt)
        read = proved[event.sent].tokens(cacheable, total) if event.sent in proved else 0
        prices = event.sent.prices
        dollars += (total - cacheable - read) * prices.input + read * min(prices.read, prices.input)
    return dollars.scaleb(PER_TOKEN)


def are_alike(evaluator: PlanEvaluator) -> bool:
    """Whether a block is the same in every call: as long, and with no more or less to be read."""
    return not evaluator.terms.bills and all(sent.call.most_read is None for sent in evaluator.sent)


def own_tokens(node: BlockNode) -> int:
    """Tokens that a block adds, as counted."""
    return node.prefix.tokens - (node.prefix.parent.tokens if node.prefix.parent else 0)


def cheapest(evaluator: PlanEvaluator) -> dict[str, CheapestPrices]:
    """The least prices of each model on the days of the calls, also those of shorter prompts."""
    found: dict[str, CheapestPrices] = {}
    for sent in evaluator.sent:
        short = request_quote(evaluator.terms.prices, sent.call, sent.rules).of(1)
        both = (sent.prices, short)
        now = CheapestPrices(*(min(getattr(one, name) for one in both) for name in ("read", "write_5m", "write_1h")))
        known = found.get(sent.rules.model, now)
        found[sent.rules.model] = CheapestPrices(
            min(known.read, now.read), min(known.write_5m, now.write_5m), min(known.write_1h, now.write_1h)
        )
    return found
