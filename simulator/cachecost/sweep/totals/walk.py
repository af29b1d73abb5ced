"""Walks through a call table with known TTLs: what the cache does at each call (rules 7 to 16)."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from cachecost.caches.breakpoints import CacheEntry, new_entry, refresh_before_hit
from cachecost.prompts.refusals import refusal
from cachecost.prompts.request import TTL
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO, Usage
from cachecost.sweep.lookback import Numbers
from cachecost.sweep.totals.call_table import TOO_LONG, CallKind, CallTable

HOUR = "1h"


class Totals(NamedTuple):
    """What all calls of a strategy use and cost in USD; `errors` counts those without usage."""

    calls: int
    errors: int
    usage: Usage
    cost_usd: Decimal


def compute_totals(table: CallTable, ttl: TTL) -> Totals:
    """The totals when breakpoints without a TTL of their own get `ttl`."""
    return _TotalsWalk(table, ttl).totals()


class _Bill:
    """What calls at the same prices use: tokens, summed up before they are priced."""

    __slots__ = ("input", "output", "prices", "read", "write_1h", "write_5m")

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.input = self.read = self.write_5m = self.write_1h = self.output = 0

    def usage(self) -> Usage:
        return Usage(self.input, self.read, self.write_5m, self.write_1h, self.output)


class _TotalsWalk:
    def __init__(self, table: CallTable, ttl: TTL) -> None:
        self._table = table
        self._depths = table.depths
        self._sizes = table.sizes
        self._entries: list[CacheEntry | None] = [None] * len(table.depths)
        self._answers = [_call_rules(sort, ttl) for sort in table.sorts]
        self._bills = [_Bill(prices) for prices in table.prices]

    def totals(self) -> Totals:
        errors = self._walk()
        used = [(bill.usage(), bill.prices) for bill in self._bills]
        cost = sum((prices.total_cost(usage) for usage, prices in used), ZERO)
        return Totals(len(self._table.starts), errors, sum((usage for usage, _ in used), Usage()), cost)

    def _walk(self) -> int:
        """Make all calls; how many are refused."""
        table, errors = self._table, 0
        calls = zip(
            *(table.starts, table.first_tokens, table.sort, table.price),
            *(table.totals, table.outputs, table.writes, table.candidates),
            strict=True,
        )
        for start, first_token_s, sort, price, total, output, writes, candidates in calls:
            rules = self._answers[sort]
            if rules is None or price == TOO_LONG:
                errors += 1
                continue
            a, b, c = self._call(start, first_token_s, rules, writes, candidates)
            bill = self._bills[price]
            bill.read += a
            bill.write_1h += b - a
            bill.write_5m += c - b
            bill.input += total - c
            bill.output += output
        return errors

    def _call(
        self, start: float, first_token_s: float, rules: _CallRules, writes: Numbers, candidates: Numbers
    ) -> tuple[int, int, int]:
        """A, B and C of rule 15: what is read, up to where an hour is paid for, and up to where anything is written."""
        depths, sizes, entries = self._depths, self._sizes, self._entries
        hit = self._find(candidates, start)
        depth = a = 0
        if hit is not None:
            depth, a = depths[hit], sizes[hit]
            self._read(hit, start, first_token_s, rules, writes)
        b = c = a
        for write, ttl in zip(writes, rules.ttls, strict=True):
            if depths[write] > depth:
                entries[write] = rules.entry(ttl, start, first_token_s)
                if sizes[write] >= rules.minimum:
                    c = sizes[write]
                    b = c if ttl == HOUR else b
        return a, b, c

    def _find(self, candidates: Numbers, now: float) -> int | None:
        """Rule 9: the first entry that is alive, readable and long enough."""
        for number in candidates:
            entry = self._entries[number]
            if entry is not None and self._sizes[number] >= entry.minimum and entry.state(now) == "live":
                return number
        return None

    def _read(self, hit: int, now: float, first_token_s: float, rules: _CallRules, writes: Numbers) -> None:
        """Rule 13: the hit and what stands before it are refreshed, or written again at no charge."""
        found, depth = self._entries[hit], self._depths[hit]
        assert found is not None
        found.read(now, rules.rules)
        for write, ttl in zip(writes, rules.ttls, strict=True):
            if self._depths[write] <= depth:
                again = refresh_before_hit(self._entries[write], ttl, found.ttl, now, rules.rules)
                if again is not None:
                    self._entries[write] = rules.entry(again, now, first_token_s)


class _CallRules:
    """How the cache answers calls of one kind, once their TTLs are known."""

    __slots__ = ("minimum", "rules", "ttls")

    def __init__(self, rules: ModelRules, ttls: tuple[str, ...]) -> None:
        self.rules = rules
        self.minimum = rules.minimum_tokens
        self.ttls = ttls

    def entry(self, ttl: str, start: float, first_token_s: float) -> CacheEntry:
        """What a call that starts now writes."""
        return new_entry(self.rules, ttl, self.rules.ttl_s[ttl], start, start + first_token_s)


def _call_rules(sort: CallKind, ttl: TTL) -> _CallRules | None:
    """None: the API refuses calls of this kind."""
    request, sent = sort.shape.lasting(ttl)
    if refusal(request, sent, sort.rules):
        return None
    return _CallRules(sort.rules, tuple([breakpoint.ttl for breakpoint in sent.breakpoints]))
