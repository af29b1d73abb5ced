"""What does not vary with lifetimes: which entries each call may read and write, and how long they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cachecost.base.structs import thing
from cachecost.prompts.blocks import Block
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import ModelRules
from cachecost.replay.simulation import request_prices
from cachecost.sweep.totals.lookback import Entries, Numbers, tree_of
from cachecost.sweep.totals.plans import SOME_MODEL, Plan, Sent, Shape, Way
from cachecost.sweep.totals.prompts import Reading, Side

TOO_LONG = -1
"""Instead of a number of prices: the prompt does not fit the model's window."""
LONGEST = 10**12
"""Tokens of a prompt that is longer than any."""


class Sort(NamedTuple):
    """Calls that are alike but for their content."""

    shape: Shape
    rules: ModelRules


@thing
class Structure:
    """All calls in order, as columns. Times are seconds, `totals`, `outputs` and `sizes` tokens, depths blocks.

    Of each call `spots` are the entries that its marks write, in prompt order; `looks` those that it may find, in the
    order it looks (rule 9). `depths` and `sizes` are those of the entries; `sort` and `price` are numbers of `sorts`
    and `prices`.
    """

    starts: list[float]
    first_tokens: list[float]
    sort: list[int]
    price: list[int]
    totals: list[int]
    outputs: list[int]
    spots: list[Numbers]
    looks: list[Numbers]
    depths: list[int]
    sizes: list[int]
    sorts: list[Sort]
    prices: list[Prices]


def structure_of(plan: Plan, reading: Reading, prices: PriceBook, model: str | None) -> Structure:
    """The structure of a plan on `model`. Raises Unusual, CannotEvaluate."""
    sides = [reading.side(way.host, _told(way.model, model), way.workspace) for way in plan.ways]
    entries, totals, spots = Entries(), [], []
    for sent in plan.sent:
        tokens, prefixes = sides[sent.way].prompt(sent)
        totals.append(tokens)
        spots.append(tuple([entries.number(prefix) for prefix in prefixes]))
    tree = tree_of(entries, spots, [side.rules for side in sides], [sent.way for sent in plan.sent])
    quotes = _Quotes(prices, plan.ways, sides)
    shapes = len(plan.shapes)
    return Structure(
        plan.starts,
        plan.first_tokens,
        [sent.way * shapes + sent.shape for sent in plan.sent],
        list(map(quotes.number, plan.sent, totals)),
        totals,
        [_output(one, sides[sent.way]) for one, sent in zip(plan.outputs, plan.sent, strict=True)],
        spots,
        plan.candidates(tree),
        tree.depths,
        [prefix.tokens for prefix in entries.prefixes],
        [Sort(shape, side.rules) for side in sides for shape in plan.shapes],
        [one for _, one in quotes.known.values()],
    )


def _told(name: str, model: str | None) -> str:
    """The model of calls, once the agent's is known."""
    return str(model) if name is SOME_MODEL else name


def _output(told: int | tuple[Block, ...], side: Side) -> int:
    return told if isinstance(told, int) else sum(map(side.counter.block, told))


class _Quotes:
    """The prices of calls, each numbered once. Those that are the same for no tokens and the most, are for all."""

    def __init__(self, book: PriceBook, ways: Sequence[Way], sides: Sequence[Side]) -> None:
        self._book = book
        self._ways = ways
        self._sides = sides
        self._flat: dict[int, int | None] = {}
        self.known: dict[int, tuple[int, Prices]] = {}

    def number(self, sent: Sent, tokens: int) -> int:
        """The number of a call's prices, or TOO_LONG."""
        side = self._sides[sent.way]
        if tokens > side.rules.context_window and side.counter.name != "bytes":
            return TOO_LONG
        if sent.way not in self._flat:
            least, most = self._quoted(sent, 0), self._quoted(sent, LONGEST)
            self._flat[sent.way] = least if least == most else None
        flat = self._flat[sent.way]
        return self._quoted(sent, tokens) if flat is None else flat

    def _quoted(self, sent: Sent, tokens: int) -> int:
        prices = request_prices(
            self._book, sent.request, self._sides[sent.way].rules, tokens, self._ways[sent.way].is_batch
        )
        return self.known.setdefault(id(prices), (len(self.known), prices))[0]
