"""What does not vary with lifetimes: which entries each call may read and write, and how long they are."""

from __future__ import annotations

from typing import NamedTuple

from cachecost.facts import thing
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import ModelRules
from cachecost.simulation import quoted
from cachecost.totals.lookback import Entries, Look, Numbers, tree_of
from cachecost.totals.plans import SOME_MODEL, Plan, Sent, Shape
from cachecost.totals.prompts import Reading, Side

TOO_LONG = -1
"""Instead of a number of prices: the prompt does not fit the model's window."""


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
        self._reading = reading
        self._book = prices
        self._model = model
        self._sides: dict[tuple[str, str | None, str], tuple[Side, list[int]]] = {}
        self._sorts: list[Sort] = []
        self._prices: dict[int, tuple[int, Prices]] = {}

    def made(self) -> Structure:
        entries = Entries()
        called = [self._rendered(sent, entries) for sent in self._plan.sent]
        tree = tree_of(entries, [Look(spots, side.rules) for side, _, spots in called])
        found = self._plan.candidates(tree)
        visits = [
            self._visit(sent, side, total, spots, candidates)
            for sent, (side, total, spots), candidates in zip(self._plan.sent, called, found, strict=True)
        ]
        sizes = [prefix.tokens for prefix in entries.prefixes]
        return Structure(visits, tree.depths, sizes, self._sorts, [prices for _, prices in self._prices.values()])

    def _rendered(self, sent: Sent, entries: Entries) -> tuple[Side, int, Numbers]:
        """A call's side, length, and the entries that its marks write."""
        side, _ = self._side(sent)
        total, prefixes = side.prompt(sent)
        return side, total, tuple([entries.number(prefix) for prefix in prefixes])

    def _side(self, sent: Sent) -> tuple[Side, list[int]]:
        """Where a call is rendered, and its sorts by the number of its shape."""
        call, name = sent.call, sent.request.model
        key = (call.host or self._reading.ground.host, self._model if name is SOME_MODEL else name, call.workspace)
        found = self._sides.get(key)
        if found is None:
            side = self._reading.side(key[0], str(key[1]), key[2])
            first = len(self._sorts)
            self._sorts += [Sort(shape, side.rules) for shape in self._plan.shapes]
            found = self._sides[key] = (side, list(range(first, len(self._sorts))))
        return found

    def _visit(self, sent: Sent, side: Side, total: int, spots: Numbers, candidates: Numbers) -> Visit:
        call = sent.call
        output = call.output_tokens
        return Visit(
            call.start,
            call.first_token_s or 0.0,
            self._side(sent)[1][sent.shape],
            self._quote(sent, side, total),
            total,
            sum(map(side.counter.block, call.output)) if output is None else output,
            spots,
            candidates,
        )

    def _quote(self, sent: Sent, side: Side, total: int) -> int:
        if total > side.rules.context_window and side.counter.name != "bytes":
            return TOO_LONG
        prices = quoted(self._book, sent.request, side.rules, total, sent.call.is_batch)
        return self._prices.setdefault(id(prices), (len(self._prices), prices))[0]
