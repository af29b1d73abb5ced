"""One way through a structure: what the cache does at each call, for lifetimes that are known now (rules 7 to 16)."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from cachecost.caches.breakpoints import Entry
from cachecost.prompts.refusals import refusal
from cachecost.prompts.request import TTL
from cachecost.providers.prices import Prices
from cachecost.providers.quotes import ZERO
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.sweep.totals.lookback import Numbers
from cachecost.sweep.totals.structure import TOO_LONG, Sort, Structure

HOUR = "1h"


class Totals(NamedTuple):
    """What all calls of a strategy use and cost in USD; `errors` counts those without usage."""

    calls: int
    errors: int
    usage: Usage
    cost_usd: Decimal


def walked(structure: Structure, ttl: TTL) -> Totals:
    """The totals where marks that name no lifetime last for `ttl`."""
    return _Walk(structure, ttl).totals()


class _Bill:
    """What calls at the same prices use: tokens, summed up before they are priced."""

    __slots__ = ("input", "output", "prices", "read", "write_1h", "write_5m")

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.input = self.read = self.write_5m = self.write_1h = self.output = 0

    def usage(self) -> Usage:
        return Usage(self.input, self.read, self.write_5m, self.write_1h, self.output)


class _Walk:
    def __init__(self, structure: Structure, ttl: TTL) -> None:
        self._told = structure
        self._depths = structure.depths
        self._sizes = structure.sizes
        self._entries: list[Entry | None] = [None] * len(structure.depths)
        self._answers = [_answer(sort, ttl) for sort in structure.sorts]
        self._bills = [_Bill(prices) for prices in structure.prices]

    def totals(self) -> Totals:
        errors = self._walk()
        used = [(bill.usage(), bill.prices) for bill in self._bills]
        cost = sum((dollars for usage, prices in used for dollars in prices.cost(usage).values()), ZERO)
        return Totals(len(self._told.starts), errors, sum((usage for usage, _ in used), Usage()), cost)

    def _walk(self) -> int:
        """Make all calls; how many are refused."""
        told, errors = self._told, 0
        calls = zip(
            *(told.starts, told.first_tokens, told.sort, told.price),
            *(told.totals, told.outputs, told.spots, told.looks),
            strict=True,
        )
        for start, first_token_s, sort, price, total, output, spots, looks in calls:
            answer = self._answers[sort]
            if answer is None or price == TOO_LONG:
                errors += 1
                continue
            a, b, c = self._call(start, first_token_s, answer, spots, looks)
            bill = self._bills[price]
            bill.read += a
            bill.write_1h += b - a
            bill.write_5m += c - b
            bill.input += total - c
            bill.output += output
        return errors

    def _call(
        self, start: float, first_token_s: float, answer: _Answer, spots: Numbers, looks: Numbers
    ) -> tuple[int, int, int]:
        """A, B and C of rule 15: what is read, up to where an hour is paid for, and up to where anything is written."""
        depths, sizes, entries = self._depths, self._sizes, self._entries
        hit = self._found(looks, start)
        depth = a = 0
        if hit is not None:
            depth, a = depths[hit], sizes[hit]
            self._read(hit, start, first_token_s, answer, spots)
        b = c = a
        for spot, ttl in zip(spots, answer.ttls, strict=True):
            if depths[spot] > depth:
                entries[spot] = answer.entry(ttl, start, first_token_s)
                if sizes[spot] >= answer.minimum:
                    c = sizes[spot]
                    b = c if ttl == HOUR else b
        return a, b, c

    def _found(self, looks: Numbers, now: float) -> int | None:
        """Rule 9: the first entry that lives, can be read and is long enough."""
        for number in looks:
            entry = self._entries[number]
            if entry is not None and self._sizes[number] >= entry.minimum and entry.state(now) == "live":
                return number
        return None

    def _read(self, hit: int, now: float, first_token_s: float, answer: _Answer, spots: Numbers) -> None:
        """Rule 13: the hit and what stands before it are refreshed, or written again at no charge."""
        found, depth = self._entries[hit], self._depths[hit]
        assert found is not None
        if now > found.touched:
            found.touched = now
        if answer.reading == "ignore":
            return
        for spot, ttl in zip(spots, answer.ttls, strict=True):
            if self._depths[spot] <= depth:
                entry = self._entries[spot]
                if entry is not None and entry.state(now) == "live":
                    if now > entry.touched:
                        entry.touched = now
                elif answer.reading == "rewrite":
                    self._entries[spot] = answer.entry(answer.shorter(ttl, found.ttl), now, first_token_s)


class _Answer:
    """How calls of a sort are answered, their lifetimes known."""

    __slots__ = ("_ttl_s", "minimum", "reading", "ttls")

    def __init__(self, rules: ModelRules, ttls: tuple[str, ...]) -> None:
        self.reading = rules.switches.shallow_marks
        self.minimum = rules.minimum_tokens
        self.ttls = ttls
        self._ttl_s = rules.ttl_s

    def entry(self, ttl: str, start: float, first_token_s: float) -> Entry:
        """What a call that starts now writes."""
        return Entry(self.minimum, ttl, self._ttl_s[ttl], start, start, start + first_token_s)

    def shorter(self, one: str, other: str) -> str:
        return min(one, other, key=self._ttl_s.__getitem__)


def _answer(sort: Sort, ttl: TTL) -> _Answer | None:
    """None: calls of this sort are refused."""
    request, sent = sort.shape.lasting(ttl)
    if refusal(request, sent, sort.rules):
        return None
    return _Answer(sort.rules, tuple([mark.ttl for mark in sent.marks]))
