"""What does not vary with lifetimes: which entries each call may read and write, and how long they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cachecost.facts import thing
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.request import TTL
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import ModelRules
from cachecost.simulation import quoted
from cachecost.totals.plans import SOME_MODEL, Plan, Sent, Shape
from cachecost.totals.prompts import Reading, Side

TOO_LONG = -1
"""Instead of a number of prices: the prompt does not fit the model's window."""


class Spot(NamedTuple):
    """A mark: the number of the entry it writes, how deep it stands, its length in tokens, and how long it lasts."""

    entry: int
    depth: int
    size: int
    ttl: TTL


class Candidate(NamedTuple):
    """An entry that a call may find, in the order it looks (rule 9)."""

    entry: int
    depth: int
    size: int


class Visit(NamedTuple):
    """A call: what it may be refused for, at which prices, its whole length, its output, all in numbers and tokens."""

    start: float
    first_token_s: float
    sort: int
    prices: int
    total: int
    output: int
    spots: tuple[Spot, ...]
    candidates: tuple[Candidate, ...]


class Sort(NamedTuple):
    """Calls that are alike but for their content."""

    shape: Shape
    rules: ModelRules


@thing
class Structure:
    """All calls in order, how many entries they could write, and what they refer to by number."""

    visits: list[Visit]
    entries: int
    sorts: list[Sort]
    prices: list[Prices]


def structure_of(plan: Plan, reading: Reading, prices: PriceBook, model: str | None) -> Structure:
    """The structure of a plan on `model`. Raises Unusual, CannotEvaluate."""
    return _Building(plan, reading, prices, model).made()


class _Marked(NamedTuple):
    """A call as rendered: its model, its length, and the prefixes its marks end."""

    sent: Sent
    side: Side
    total: int
    prefixes: list[Prefix]


class _Building:
    def __init__(self, plan: Plan, reading: Reading, prices: PriceBook, model: str | None) -> None:
        self._plan = plan
        self._reading = reading
        self._book = prices
        self._model = model
        self._marked: set[Prefix] = set()
        self._above: dict[Prefix, Prefix | None] = {}
        self._entries: dict[Prefix, int] = {}
        self._sorts: dict[tuple[int, int], tuple[int, Sort]] = {}
        self._prices: dict[int, tuple[int, Prices]] = {}

    def made(self) -> Structure:
        calls = [self._rendered(sent) for sent in self._plan.sent]
        for call in calls:
            self._marked.update(call.prefixes)
        visits = list(map(self._visit, calls))
        sorts = [sort for _, sort in self._sorts.values()]
        return Structure(visits, len(self._entries), sorts, [prices for _, prices in self._prices.values()])

    def _rendered(self, sent: Sent) -> _Marked:
        call, name = sent.call, sent.request.model
        model = self._model if name is SOME_MODEL else name
        side = self._reading.side(call.host or self._reading.ground.host, str(model), call.workspace)
        return _Marked(sent, side, *side.prompt(sent))

    def _visit(self, call: _Marked) -> Visit:
        sent, side, total, prefixes = call
        planned, output = sent.call, sent.call.output_tokens
        candidates = tuple(self._candidates(prefixes, side.rules))
        return Visit(
            planned.start,
            planned.first_token_s or 0.0,
            self._sort(sent, side),
            self._quote(sent, side, total),
            total,
            sum(map(side.counter.block, planned.output)) if output is None else output,
            self._spots(sent, prefixes),
            candidates,
        )

    def _spots(self, sent: Sent, prefixes: Sequence[Prefix]) -> tuple[Spot, ...]:
        entries = self._entries
        return tuple(
            [
                Spot(entries.setdefault(prefix, len(entries)), prefix.depth, prefix.tokens, mark.ttl)
                for mark, prefix in zip(sent.marks.marks, prefixes, strict=True)
            ]
        )

    def _sort(self, sent: Sent, side: Side) -> int:
        key = (sent.shape, id(side.rules))
        found = self._sorts.get(key)
        if found is None:
            found = self._sorts[key] = (len(self._sorts), Sort(self._plan.shapes[sent.shape], side.rules))
        return found[0]

    def _quote(self, sent: Sent, side: Side, total: int) -> int:
        if total > side.rules.context_window and side.counter.name != "bytes":
            return TOO_LONG
        prices = quoted(self._book, sent.request, side.rules, total, sent.call.is_batch)
        return self._prices.setdefault(id(prices), (len(self._prices), prices))[0]

    def _candidates(self, prefixes: Sequence[Prefix], rules: ModelRules) -> Iterator[Candidate]:
        """The entries that rule 9 looks at, as far as an earlier call could have written them, each once."""
        seen: set[int] = set()
        for mark in reversed(prefixes):
            node: Prefix | None = mark
            while node is not None and _steps(mark, node, rules) < rules.lookback_positions:
                entry = self._entries.get(node)
                if entry is not None and entry not in seen:
                    seen.add(entry)
                    yield Candidate(entry, node.depth, node.tokens)
                node = self._above[node] if node in self._above else self._next(node, rules)

    def _next(self, prefix: Prefix, rules: ModelRules) -> Prefix | None:
        """The nearest prefix before this one that any call marks; None where that is out of sight from here."""
        node = prefix.parent
        while node is not None and node not in self._marked:
            node = node.parent if _steps(prefix, node, rules) < rules.lookback_positions else None
        self._above[prefix] = node
        return node


def _steps(mark: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Lookback steps from `mark` back to `node`."""
    return mark.position - node.position if rules.collapses_runs else mark.depth - node.depth
