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

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property

from cachecost.analysis.optimum.blocks_by_call import BlocksByCall
from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator
from cachecost.analysis.optimum.proved_reads import ProvedRead, proved_reads
from cachecost.analysis.optimum.tree import BlockNode, BlockTree, Tail
from cachecost.analysis.optimum.ttls import CheapestPrices, TTLCosts
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.providers.quotes import PER_TOKEN
from cachecost.providers.usage import ZERO
from cachecost.simulation.call_preparer import CallPreparer, request_quote
from cachecost.simulation.setup import ReplaySetup

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
        sent.rules.require_breakpoints("the lower bound")
    if simulated is None:
        return LowerBound(evaluator)
    rows = dict(zip(map(id, given), simulated, strict=True))
    return LowerBound(evaluator, [rows[id(call)] for call in evaluator.calls])


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
        found[sent.rules.model] = _least(known, now)
    return found


def _least(one: CheapestPrices, other: CheapestPrices) -> CheapestPrices:
    return CheapestPrices(
        min(one.read, other.read), min(one.write_5m, other.write_5m), min(one.write_1h, other.write_1h)
    )
