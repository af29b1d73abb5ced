"""What no TTL changes: the entries that each call may read and write, and their lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cachecost.base.structs import identity_struct
from cachecost.prompts.blocks import Block
from cachecost.providers.prices import PriceBook, Prices, terms_of
from cachecost.providers.rules import ModelRules
from cachecost.sweep.lookback import EntryIndex, Numbers, build_tree
from cachecost.sweep.totals.plans import SOME_MODEL, AgentPlan, CallTarget, PlannedRequest, RequestExample
from cachecost.sweep.totals.prompts import ModelPrompts, PromptStore

TOO_LONG = -1
"""Instead of a number of prices: the prompt does not fit the model's window."""
LONGEST = 10**12
"""Tokens of a prompt that is longer than any."""


class CallKind(NamedTuple):
    """Calls that are alike but for their content."""

    shape: RequestExample
    rules: ModelRules


@identity_struct
class CallTable:
    """All calls in order, as columns. Times are seconds; `totals`, `outputs` and `sizes` tokens; `depths` blocks.

    `writes` are the entries that the breakpoints of each call write, in prompt order; `candidates` those that it
    may find, in the order it looks (rule 9). `depths` and `sizes` are those of the entries. `sort` and `price` are
    indices into `sorts` and `prices`.
    """

    starts: list[float]
    first_tokens: list[float]
    sort: list[int]
    price: list[int]
    totals: list[int]
    outputs: list[int]
    writes: list[Numbers]
    candidates: list[Numbers]
    depths: list[int]
    sizes: list[int]
    sorts: list[CallKind]
    prices: list[Prices]


def build_call_table(plan: AgentPlan, reading: PromptStore, prices: PriceBook, model: str | None) -> CallTable:
    """The structure of a plan on `model`. Raises Unusual, CannotEvaluate."""
    sides = [reading.side(route.host, _model_name(route.model, model), route.workspace) for route in plan.routes]
    entries, totals, writes = EntryIndex(), [], []
    for sent in plan.sent:
        tokens, prefixes = sides[sent.route].prompt(sent)
        totals.append(tokens)
        writes.append(tuple([entries.number(prefix) for prefix in prefixes]))
    tree = build_tree(entries, writes, [side.rules for side in sides], [sent.route for sent in plan.sent])
    quotes = _Quotes(prices, plan.routes, sides)
    shapes = len(plan.shapes)
    return CallTable(
        plan.starts,
        plan.first_tokens,
        [sent.route * shapes + sent.shape for sent in plan.sent],
        list(map(quotes.number, plan.sent, totals)),
        totals,
        [_output(one, sides[sent.route]) for one, sent in zip(plan.outputs, plan.sent, strict=True)],
        writes,
        plan.candidates(tree),
        tree.depths,
        [prefix.tokens for prefix in entries.prefixes],
        [CallKind(shape, side.rules) for side in sides for shape in plan.shapes],
        [one for _, one in quotes.known.values()],
    )


def _model_name(name: str, model: str | None) -> str:
    """The model of calls, once the agent's is known."""
    return str(model) if name is SOME_MODEL else name


def _output(output: int | tuple[Block, ...], side: ModelPrompts) -> int:
    return output if isinstance(output, int) else sum(map(side.counter.block, output))


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
