"""The lower bound as it is defined: each block by itself, each of its calls, every state. Nothing is shared."""

from __future__ import annotations

from decimal import Decimal

from cachecost.analysis.optimum.lower_bound import BlocksByCall, added_tokens, cheapest, fixed_usd, proved_reads
from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator
from cachecost.analysis.optimum.tree import BlockTree, CallPass, Tail
from cachecost.analysis.optimum.ttl_costs import BlockState, TTLCosts
from cachecost.prompts.blocks import Prefix
from cachecost.providers.usage import PER_TOKEN


def naive_bound(evaluator: PlanEvaluator, pings: bool) -> Decimal:
    """USD, answers included."""
    tree, proved = BlockTree(evaluator.sent), proved_reads(evaluator)
    blocks, ttls = BlocksByCall(evaluator, proved), TTLCosts(cheapest(evaluator), pings)
    costs = (_cost(prefix, events, blocks, ttls) for prefix, events in _calls_of_blocks(tree).items())
    answers = sum((sent.output_usd for sent in evaluator.sent), Decimal(0))
    return sum(costs, Decimal(0)).scaleb(PER_TOKEN) + fixed_usd(tree, proved) + answers


def _calls_of_blocks(tree: BlockTree) -> dict[Prefix, list[CallPass]]:
    found: dict[Prefix, list[CallPass]] = {}
    for event in tree.events:
        node = event.deepest
        while node is not None:
            found.setdefault(node, []).append(event)
            node = node.parent
    return found


def _cost(prefix: Prefix, events: list[CallPass], blocks: BlocksByCall, ttls: TTLCosts) -> Decimal:
    lengths = [added_tokens(event.sent.passes[event.index].sizes, prefix) for event in events]
    least = blocks.least(min(lengths), prefix, _list_of(events))
    known: dict[BlockState, Decimal] = {None: Decimal(0)}
    for event, tokens in zip(events, lengths, strict=True):
        block = blocks.block_in_call(event, prefix, tokens, least if ttls.pings else tokens)
        is_end = event.deepest is prefix
        one = Tail(event, not is_end, not is_end and event.known is not prefix, None, block)
        after: dict[BlockState, Decimal] = {}
        for state, paid in known.items():
            for more, left in ttls.options(one, state):
                after[left] = min(paid + more, after.get(left, paid + more))
        known = after
    return min(known.values())


def _list_of(events: list[CallPass]) -> Tail:
    made: Tail | None = None
    for event in reversed(events):
        made = Tail(event, True, True, made)
    assert made is not None
    return made
