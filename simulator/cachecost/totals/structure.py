"""What does not vary with lifetimes: which entries each call may read and write, and how long they are."""

from __future__ import annotations

from typing import NamedTuple

from cachecost.facts import thing
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import ModelRules
from cachecost.simulation import quoted
from cachecost.totals.lookback import Entries, Look, Numbers, tree_of
from cachecost.totals.plans import SOME_MODEL, Goal, Plan, Sent, Shape
from cachecost.totals.prompts import Reading, Side

TOO_LONG = -1
"""Instead of a number of prices: the prompt does not fit the model's window."""
LONGEST = 10**12
"""Tokens of a prompt that is longer than any."""


class Visit(NamedTuple):
    """A call. Times are seconds, `total` and `output` tokens; all else are numbers of what the structure lists.

    `spots` are the entries that its marks write, in prompt order; `candidates` those that it may find, in the order it
    looks (rule 9).
    """

    start: float
    first_token_s: float
    sort: int
    prices: int
    total: int
    output: int
    spots: Numbers
    candidates: Numbers


class Sort(NamedTuple):
    """Calls that are alike but for their content."""

    shape: Shape
    rules: ModelRules


@thing
class Structure:
    """All calls in order, and what they name by number. An entry has a depth in blocks and a size in tokens."""

    visits: list[Visit]
    depths: list[int]
    sizes: list[int]
    sorts: list[Sort]
    prices: list[Prices]


def structure_of(plan: Plan, reading: Reading, prices: PriceBook, model: str | None) -> Structure:
    """The structure of a plan on `model`. Raises Unusual, CannotEvaluate."""
    return _Building(plan, reading, prices, model).made()


class _Building:
    def __init__(self, plan: Plan, reading: Reading, prices: PriceBook, model: str | None) -> None:
        self._plan = plan
        self._book = prices
        self._sides = [reading.side(_told(goal, model)) for goal in plan.goals]
        self._flat: dict[tuple[int, int, bool], int | None] = {}
        self._prices: dict[int, tuple[int, Prices]] = {}

    def made(self) -> Structure:
        entries, totals, looks = Entries(), [], []
        for sent in self._plan.sent:
            side = self._sides[sent.goal]
            total, prefixes = side.prompt(sent)
            totals.append(total)
            looks.append(Look(tuple([entries.number(prefix) for prefix in prefixes]), side.rules))
        tree = tree_of(entries, looks)
        visits = list(map(self._visit, self._plan.sent, totals, tree.looks, self._plan.candidates(tree)))
        sizes = [prefix.tokens for prefix in entries.prefixes]
        sorts = [Sort(shape, side.rules) for side in self._sides for shape in self._plan.shapes]
        return Structure(visits, tree.depths, sizes, sorts, [prices for _, prices in self._prices.values()])

    def _visit(self, sent: Sent, total: int, spots: Numbers, candidates: Numbers) -> Visit:
        call, side = sent.call, self._sides[sent.goal]
        output = call.output_tokens
        if output is None:
            output = sum(map(side.counter.block, call.output))
        sort = sent.goal * len(self._plan.shapes) + sent.shape
        prices = self._number(sent, side, total)
        return Visit(call.start, call.first_token_s or 0.0, sort, prices, total, output, spots, candidates)

    def _number(self, sent: Sent, side: Side, total: int) -> int:
        """The number of a call's prices. Where they are the same for the shortest and the longest prompt, for all."""
        if total > side.rules.context_window and side.counter.name != "bytes":
            return TOO_LONG
        way = (sent.goal, sent.params, sent.call.is_batch)
        if way not in self._flat:
            least, most = self._quoted(sent, side, 0), self._quoted(sent, side, LONGEST)
            self._flat[way] = least if least == most else None
        flat = self._flat[way]
        return self._quoted(sent, side, total) if flat is None else flat

    def _quoted(self, sent: Sent, side: Side, total: int) -> int:
        prices = quoted(self._book, sent.request, side.rules, total, sent.call.is_batch)
        return self._prices.setdefault(id(prices), (len(self._prices), prices))[0]


def _told(goal: Goal, model: str | None) -> Goal:
    """Where calls go, once the agent's model is known."""
    return goal._replace(model=str(model)) if goal.model is SOME_MODEL else goal
