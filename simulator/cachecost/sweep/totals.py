"""Totals of many strategies, models, TTLs and prices over the same conversations, without rows per call.

What agents send is planned once for all models and TTLs, and each prompt is rendered once under one set of assumptions.
What no TTL changes is a table: the entries that each call may read and write, and their lengths. A walk through it with
known TTLs says what the cache does at each call (rules 7 to 16).
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple, cast

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Writer, divide, write_at_breakpoints
from cachecost.caches.expiry import CacheEntry
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Human, Inquiry, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Block, Prefix, Thread
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import TTL, Breakpoint, Request, SentBreakpoints, as_sent, refusal, sent_breakpoints
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.hosts import host_of
from cachecost.providers.prices import PriceBook, Prices, terms_of
from cachecost.providers.rules import ModelRules, OwnRules, RuleBook
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.agent import Agent
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.entries import EntryIndex, EntryTree, Numbers, build_tree

UNSAID = cast("TTL", "as the placement says")
"""The TTL of breakpoints that have none of their own."""
MOST_CALLS = 50_000
"""Calls that are kept as planned, about a kilobyte each, and in tables, a quarter of that; what was used least recently
goes first."""
SOME_MODEL = "as the agent is told"
"""The model of requests that name no other."""


class NotShared(Exception):
    """Raised for what cannot be shared: it is replayed call by call instead."""


class PlannedRequest(NamedTuple):
    """A planned request; `breakpoints` are those the API sees. All else are numbers: what calls, plans and models
    share.

    `content` is of all but breakpoints, `places` of where these stand; `shape` and `way` are of the plan's lists.
    """

    request: Request
    breakpoints: tuple[Breakpoint, ...]
    content: int
    places: Numbers
    shape: int
    route: int


class CallTarget(NamedTuple):
    """Where a call goes, and what its prices depend on besides its length; `params` are numbered.

    No host is that of the comparison; the model may be SOME_MODEL.
    """

    host: str | None
    model: str
    workspace: str
    params: int
    is_batch: bool


class RequestExample(NamedTuple):
    """A request as an example for all that are refused, or not, for the same reasons (rule 6), length apart."""

    request: Request
    breakpoints: SentBreakpoints

    def lasting(self, ttl: TTL) -> tuple[Request, SentBreakpoints]:
        """The request with `ttl` on breakpoints that have no TTL of their own."""
        automatic = ttl if self.request.automatic is UNSAID else self.request.automatic
        breakpoints, idle = (
            tuple(replace(breakpoint, ttl=ttl) if breakpoint.ttl is UNSAID else breakpoint for breakpoint in some)
            for some in (self.breakpoints.breakpoints, self.breakpoints.idle)
        )
        return replace(self.request, automatic=automatic), SentBreakpoints(breakpoints, self.breakpoints.fault, idle)


class AgentPlan(msgspec.Struct, frozen=True, eq=False):
    """The calls of an agent in the order they start, as columns; times are seconds.

    `window` is what its questions are cut to, in tokens. `outputs` are tokens, or blocks to be counted. `looked` is
    what its calls may find, for every way that their prompts stood to each other so far; `unusual` are grounds and
    models for which it must be replayed call by call.
    """

    agent: Agent
    window: int | None
    shapes: list[RequestExample]
    routes: list[CallTarget]
    sent: list[PlannedRequest] = msgspec.field(default_factory=list)
    starts: list[float] = msgspec.field(default_factory=list)
    first_tokens: list[float] = msgspec.field(default_factory=list)
    outputs: list[int | tuple[Block, ...]] = msgspec.field(default_factory=list)
    looked: list[tuple[EntryTree, list[Numbers]]] = msgspec.field(default_factory=list)
    unusual: list[tuple[Any, str | None]] = msgspec.field(default_factory=list)

    def candidates(self, tree: EntryTree) -> list[Numbers]:
        """Of each call the entries that it may find: the same on models whose prompts stand alike."""
        for known, found in self.looked:
            if known == tree:
                return found
        self.looked.append((tree, tree.find_candidates()))
        return self.looked[-1][1]


class Numbering(dict[tuple[Any, ...], int]):
    """Numbers from 0, in the order things are met."""

    def of(self, thing: tuple[Any, ...]) -> int:
        return self.setdefault(thing, len(self))


class PlanStore:
    """The plans of some conversations. Threads of agents that cannot see each other's grow in one tree."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._root = Thread()
        self._known: list[AgentPlan] = []
        self._are_plain = are_plain(conversations)
        self._params, self._contents, self._places = Numbering(), Numbering(), Numbering()

    def of(self, agent: Agent) -> AgentPlan:
        """What `agent` sends. Raises Unusual, CannotEvaluate."""
        if agent.changes or not self._are_plain:
            raise NotShared
        # what decides where breakpoints stand: not whose they are, who says so, on which model, nor how long most last
        unnamed: dict[str, Any] = {"name": "", "what": "", "source": "", "date": "", "remarks": (), "rules": {}}
        model, placement = None if agent.model is None else SOME_MODEL, replace(agent.placement, ttl=UNSAID)
        bare = replace(agent, **unnamed, facts=None, model=model, placement=placement)
        window = agent.window()
        for number, known in enumerate(self._known):
            if known.window == window and known.agent == bare:
                self._known.append(self._known.pop(number))
                return known
        root = Thread() if agent.sees_forks else self._root
        plan = AgentPlan(bare, window, [], [])
        self._add_calls(plan, plan_calls(replace(bare, facts=agent.facts), self._conversations, root))
        self._known.append(plan)
        while len(self._known) > 1 and sum(len(known.sent) for known in self._known) > MOST_CALLS:
            self._known.pop(0)
        return plan

    def _add_calls(self, plan: AgentPlan, calls: Iterator[Call]) -> None:
        """Raises NotShared where the API edits a request, or which breakpoints it accepts depends on their TTLs."""
        shapes, routes = Numbering(), Numbering()
        last: Mapping[str, Any] | None = None
        params = 0
        for call in calls:
            request = call.request
            if request.params is not last:
                last, params = request.params, self._params.of((repr(request.params),))
            sent = sent_breakpoints(request)
            if (
                call.tool_uses
                or request.fault is not None
                or request.thread.compaction
                or "context_management" in request.params
            ):
                raise NotShared
            if sent.fault and UNSAID in (request.automatic, *(one.ttl for one in request.breakpoints)):
                raise NotShared
            ttls = tuple([breakpoint.ttl for breakpoint in as_sent(request, sent)])
            shape = shapes.of((params, ttls, request.automatic, sent.fault))
            if shape == len(plan.shapes):
                plan.shapes.append(RequestExample(request, sent))
            target = CallTarget(call.host, request.model, call.workspace, params, call.is_batch)
            route = routes.of(target)
            if route == len(plan.routes):
                plan.routes.append(target)
            content = self._contents.of((request.thread, request.tools.digest, request.system.digest, params))
            places = tuple([self._places.of((one.layer, one.node, one.index)) for one in sent.breakpoints])
            plan.sent.append(PlannedRequest(request, sent.breakpoints, content, places, shape, route))
            plan.starts.append(call.start)
            plan.first_tokens.append(call.first_token_s or 0.0)
            plan.outputs.append(call.output if call.output_tokens is None else call.output_tokens)


def are_plain(conversations: Sequence[Conversation]) -> bool:
    """Whether blocks of one digest are of one length, so that it does not matter who sends which of them first."""
    known: dict[bytes, Block] = {}
    for conversation in conversations:
        for block in _blocks(conversation):
            first = known.setdefault(block.digest, block)
            if (first.tokens, first.size, first.counts) != (block.tokens, block.size, block.counts):
                return False
    return True


def _blocks(conversation: Conversation) -> Iterator[Block]:
    for event in conversation.events:
        if isinstance(event, Human | Reply | Results):
            yield from event.blocks
        elif isinstance(event, ThreadRewrite):
            for message in event.messages:
                yield from message.blocks
        elif isinstance(event, Inquiry):
            yield from (event.question, event.answer)


PromptSetup = tuple[str, date | None, Assumptions, frozenset[str], OwnRules, str]
"""What prompts depend on besides requests: host, day, assumptions and those that the user set, own rules, counter."""


class ModelPrompts:
    """The prompts for one model on one host in one workspace."""

    def __init__(self, rules: ModelRules, renderer: Renderer, workspace: str) -> None:
        self.rules = rules
        self.counter = renderer.counter
        self._renderer = renderer
        self._workspace = workspace
        self._bare: dict[int, tuple[int, dict[int, Prefix]]] = {}
        """By content, the length of a prompt in tokens, and the prefixes that breakpoints may end, by the numbers of
        their places: one place is another prefix under another head, and where another human message leaves less
        thinking."""
        self._prefixes: dict[tuple[Prefix, Thread | None], dict[int, Prefix]] = {}

    def prompt(self, sent: PlannedRequest) -> tuple[int, list[Prefix]]:
        """The length in tokens, and the prefixes that breakpoints end. Raises CannotEvaluate."""
        bare = self._bare.get(sent.content)
        if bare is not None:
            try:
                return bare[0], [bare[1][place] for place in sent.places]
            except KeyError:
                pass
        made = self._renderer.render(sent.request, sent.breakpoints, self.rules, self._workspace)
        prefixes = self._prefixes.setdefault((made.head, sent.request.thread.human), {})
        self._bare[sent.content] = made.total_tokens, prefixes
        found = [breakpoint.prefix for breakpoint in made.breakpoints]
        prefixes.update(zip(sent.places, found, strict=True))
        return made.total_tokens, found


class PromptStore:
    """All prompts on one ground, in one tree a tokenizer generation."""

    def __init__(self, terms: ReplaySetup, book: RuleBook) -> None:
        self.setup = prompt_setup(terms, book)
        self._book = book
        self._terms = terms
        self._renderers: dict[str, Renderer] = {}
        self._sides: dict[tuple[str, str, str], ModelPrompts] = {}

    def side(self, host: str | None, model: str, workspace: str) -> ModelPrompts:
        """The prompts for a model in a workspace. Raises CannotEvaluate for one that is not known, Unusual."""
        key = (host_of(host, self._terms.host, model), model, workspace)
        if key not in self._sides:
            rules = self._book.rules(key[0], model)
            if not rules.uses_breakpoints:
                raise NotShared
            self._sides[key] = ModelPrompts(rules, self._renderer(rules.generation), workspace)
        return self._sides[key]

    def _renderer(self, generation: str) -> Renderer:
        if generation not in self._renderers:
            self._renderers[generation] = Renderer(self._terms.counter(generation))
        return self._renderers[generation]


def prompt_setup(terms: ReplaySetup, book: RuleBook) -> PromptSetup:
    assumptions = book.assumptions
    return terms.host, book.as_of, assumptions, assumptions.given, book.own, terms.tokens


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


class CallTable(msgspec.Struct, frozen=True, eq=False):
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
