"""Totals of many strategies, models, TTLs and prices over the same conversations.

What no TTL changes is a table: the entries that each call may read and write, and their lengths. A walk through it with
known TTLs says what the cache does at each call (rules 7 to 16).
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import identity_struct
from cachecost.caches.breakpoints import Writer, divide, write_at_breakpoints
from cachecost.caches.expiry import CacheEntry
from cachecost.conversations.model import Conversation
from cachecost.prompts.request import TTL, refusal
from cachecost.providers.prices import PriceBook, Prices, terms_of
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.strategies.agent import Agent
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.entries import EntryIndex, Numbers, build_tree
from cachecost.sweep.totals.plans import (
    SOME_MODEL,
    AgentPlan,
    CallTarget,
    ModelPrompts,
    NotShared,
    PlannedRequest,
    PlanStore,
    PromptStore,
    RequestExample,
    prompt_setup,
)

MOST_CALLS = 50_000
"""Calls whose structure is kept, about a quarter of a kilobyte each; the structure used least recently goes first."""
MOST_READINGS = 8
"""Readings of the rules whose prompts are kept; the one used least recently goes first."""


class _Key(NamedTuple):
    """What a structure depends on; all but `model` are compared by identity, and kept by it."""

    plan: AgentPlan
    prompts: PromptStore
    prices: PriceBook
    model: str | None


class SharedTotals:
    """What all comparisons of the same conversations share: plans, prompts and structures."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._plans = PlanStore(conversations)
        self._prompt_stores: list[PromptStore] = []
        self._tables: OrderedDict[_Key, CallTable] = OrderedDict()

    def totals(self, spec: StrategySpec | str, terms: ReplaySetup) -> Totals | None:
        """The exact sums of `replay_strategy` under the same terms; None where only that function can compute them."""
        agent = terms.build_strategy(spec)
        if not isinstance(agent, Agent) or agent.inquiry_by_host or terms.bills or terms.day is None:
            return None
        read = terms.for_strategy(agent).rules
        if read.assumptions.is_drawn or read.assumptions.ttl_in_key:
            return None
        collects = gc.isenabled()
        try:
            for rules in terms.models(self._conversations):
                terms.counter(rules.generation)
            gc.disable()  # nothing made here is garbage, and it would scan all of it again and again
            plan = self._plans.of(agent)
            setup = prompt_setup(terms, read)
            known = next((one for one in self._prompt_stores if one.setup == setup), None)
            if known is not None:
                self._prompt_stores.remove(known)
            self._prompt_stores = [*self._prompt_stores, known or PromptStore(terms, read)][-MOST_READINGS:]
            table = self._table(_Key(plan, self._prompt_stores[-1], terms.prices, agent.model))
        except (CannotEvaluate, NotShared):
            return None
        finally:
            if collects:
                gc.enable()
        return compute_totals(table, agent.placement.ttl)

    def _table(self, key: _Key) -> CallTable:
        found = self._tables.pop(key, None)
        if found is None:
            tried = (key.prompts.setup, key.model)
            if tried in key.plan.unusual:
                raise NotShared
            try:
                found = build_call_table(key.plan, key.prompts, key.prices, key.model)
            except NotShared:
                key.plan.unusual.append(tried)
                raise
        self._tables[key] = found
        while len(self._tables) > 1 and sum(len(one.starts) for one in self._tables.values()) > MOST_CALLS:
            self._tables.popitem(last=False)
        return found


TOO_LONG = -1
"""Instead of a number of prices: the prompt does not fit the model's window."""
LONGEST = 10**12
"""Tokens of a prompt that is longer than any."""


@identity_struct
class CallTable:
    """All calls in order, as columns. Times are seconds; `totals`, `outputs` and `sizes` tokens; `depths` blocks.

    `writes` are the entries that the breakpoints of each call write, in prompt order; `candidates` those that it
    may find, in the order it looks (rule 9). `depths` and `sizes` are those of the entries. `kind` and `price` are
    indices into `kinds` and `prices`.
    """

    starts: list[float]
    first_tokens: list[float]
    kind: list[int]
    price: list[int]
    totals: list[int]
    outputs: list[int]
    writes: list[Numbers]
    candidates: list[Numbers]
    depths: list[int]
    sizes: list[int]
    kinds: list[tuple[RequestExample, ModelRules]]
    """Calls that are alike but for their content."""
    prices: list[Prices]


def build_call_table(plan: AgentPlan, reading: PromptStore, prices: PriceBook, model: str | None) -> CallTable:
    """The structure of a plan on `model`. Raises Unusual, CannotEvaluate."""
    sides = [
        reading.side(route.host, str(model) if route.model is SOME_MODEL else route.model, route.workspace)
        for route in plan.routes
    ]
    entries, totals, writes = EntryIndex(), [], []
    for sent in plan.sent:
        tokens, prefixes = sides[sent.route].prompt(sent)
        totals.append(tokens)
        writes.append(tuple([entries.number(prefix) for prefix in prefixes]))
    outputs = [
        output if isinstance(output, int) else sum(map(sides[sent.route].counter.block, output))
        for output, sent in zip(plan.outputs, plan.sent, strict=True)
    ]
    tree = build_tree(entries, writes, [side.rules for side in sides], [sent.route for sent in plan.sent])
    quotes = _Quotes(prices, plan.routes, sides)
    shapes = len(plan.shapes)
    return CallTable(
        plan.starts,
        plan.first_tokens,
        [sent.route * shapes + sent.shape for sent in plan.sent],
        list(map(quotes.number, plan.sent, totals)),
        totals,
        outputs,
        writes,
        plan.candidates(tree),
        tree.depths,
        [prefix.tokens for prefix in entries.prefixes],
        [(shape, side.rules) for side in sides for shape in plan.shapes],
        [one for _, one in quotes.known.values()],
    )


class _Quotes:
    """The prices of calls, each numbered once. Those that are the same for no tokens and the most, are for all."""

    def __init__(self, book: PriceBook, routes: Sequence[CallTarget], sides: Sequence[ModelPrompts]) -> None:
        self._book = book
        self._routes = routes
        self._sides = sides
        self._flat: dict[int, int | None] = {}
        self.known: dict[int, tuple[int, Prices]] = {}

    def number(self, sent: PlannedRequest, tokens: int) -> int:
        """The number of a call's prices, or TOO_LONG."""
        side = self._sides[sent.route]
        if tokens > side.rules.context_window and side.counter.name != "bytes":
            return TOO_LONG
        if sent.route not in self._flat:
            least, most = self._price_number(sent, 0), self._price_number(sent, LONGEST)
            self._flat[sent.route] = least if least == most else None
        flat = self._flat[sent.route]
        return self._price_number(sent, tokens) if flat is None else flat

    def _price_number(self, sent: PlannedRequest, tokens: int) -> int:
        rules, route = self._sides[sent.route].rules, self._routes[sent.route]
        terms = terms_of(sent.request.params, route.is_batch)
        prices = self._book.quote(rules.host, rules.model, rules.day, terms).of(tokens)
        return self.known.setdefault(id(prices), (len(self.known), prices))[0]


class Totals(NamedTuple):
    """What all calls of a strategy use and cost in USD; `errors` counts those without usage."""

    calls: int
    errors: int
    usage: Usage
    cost_usd: Decimal


def compute_totals(table: CallTable, ttl: TTL) -> Totals:
    """The totals when breakpoints without a TTL of their own get `ttl`."""
    bills = [_Bill(prices) for prices in table.prices]
    kinds: list[tuple[ModelRules, tuple[str, ...]] | None] = []
    for shape, rules in table.kinds:  # the rules of calls of this kind and the TTLs of their breakpoints; None: refused
        request, sent = shape.lasting(ttl)
        ttls = tuple([breakpoint.ttl for breakpoint in sent.breakpoints])
        kinds.append(None if refusal(request, sent, rules) else (rules, ttls))
    errors = _walk(table, kinds, bills)
    used = [(bill.usage(), bill.prices) for bill in bills]
    cost = sum((prices.total_cost(usage) for usage, prices in used), ZERO)
    return Totals(len(table.starts), errors, sum((usage for usage, _ in used), Usage()), cost)


class _Bill:
    """What calls at the same prices use: tokens, summed up before they are priced."""

    __slots__ = ("input", "output", "prices", "read", "write_1h", "write_5m")

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.input = self.read = self.write_5m = self.write_1h = self.output = 0

    def usage(self) -> Usage:
        return Usage(self.input, self.read, self.write_5m, self.write_1h, self.output)


def _walk(table: CallTable, kinds: Sequence[tuple[ModelRules, tuple[str, ...]] | None], bills: Sequence[_Bill]) -> int:
    """Make all calls against one cache, whose entries are numbers; how many are refused."""
    depths, sizes, errors = table.depths, table.sizes, 0
    entries: dict[int, CacheEntry] = {}
    calls = zip(
        *(table.starts, table.first_tokens, table.kind, table.price),
        *(table.totals, table.outputs, table.writes, table.candidates),
        strict=True,
    )
    for start, first_token_s, kind, price, total, output, written, candidates in calls:
        accepted = kinds[kind]
        if accepted is None or price == TOO_LONG:
            errors += 1
            continue
        rules, ttls = accepted
        hit, depth, hit_end = None, 0, 0
        for number in candidates:
            entry = entries.get(number)
            if entry is not None and entry.is_hit(start, sizes[number]):
                hit, depth, hit_end = entry, depths[number], sizes[number]
                break
        writes = [(number, depths[number], ttl) for number, ttl in zip(written, ttls, strict=True)]
        write_at_breakpoints(entries, hit, depth, writes, Writer(rules, start, start + first_token_s))
        minimum = rules.minimum_tokens
        after = [(sizes[n], ttl) for n, at, ttl in writes if at > depth and sizes[n] >= minimum]
        hour_end, end = divide(hit_end, after)
        bill = bills[price]
        bill.read += hit_end
        bill.write_1h += hour_end - hit_end
        bill.write_5m += end - hour_end
        bill.input += total - end
        bill.output += output
    return errors
