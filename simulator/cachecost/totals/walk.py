"""One way through a structure: what the cache does at each call, for lifetimes that are known now (rules 7 to 16)."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from cachecost.cache import Entry
from cachecost.prompts.refusals import refusal
from cachecost.prompts.request import TTL
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.totals.plans import UNSAID
from cachecost.totals.structure import TOO_LONG, Candidate, Spot, Structure, Visit

ZERO = Decimal(0)


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
        self._structure = structure
        self._ttl = ttl
        self._entries: list[Entry | None] = [None] * structure.entries
        self._errors = 0
        self._rules: list[ModelRules | None] = [
            None if refusal(*shape.lasting(ttl), rules) else rules for shape, rules in structure.sorts
        ]

    def totals(self) -> Totals:
        bills = [_Bill(prices) for prices in self._structure.prices]
        for visit in self._structure.visits:
            rules = self._rules[visit.sort]
            if rules is None or visit.prices == TOO_LONG:
                self._errors += 1
            else:
                self._call(visit, rules, bills[visit.prices])
        used = [(bill.usage(), bill.prices) for bill in bills]
        cost = sum((dollars for usage, prices in used for dollars in prices.cost(usage).values()), ZERO)
        usage = sum((usage for usage, _ in used), Usage())
        return Totals(len(self._structure.visits), self._errors, usage, cost)

    def _call(self, visit: Visit, rules: ModelRules, bill: _Bill) -> None:
        start, wait, _, _, total, output, spots, candidates = visit
        hit = self._found(candidates, start)
        if hit is None:
            depth = a = 0
        else:
            _, depth, a = hit
            self._read(hit, visit, rules)
        b = c = a
        for entry, below, size, said in spots:
            if below > depth:
                ttl = self._ttl if said is UNSAID else said
                minimum = rules.minimum_tokens
                self._entries[entry] = Entry(minimum, ttl, rules.ttl_s[ttl], start, start, start + wait)
                if size >= minimum:
                    c = size
                    if ttl == "1h":
                        b = size
        bill.read += a
        bill.write_1h += b - a
        bill.write_5m += c - b
        bill.input += total - c
        bill.output += output

    def _found(self, candidates: tuple[Candidate, ...], now: float) -> Candidate | None:
        """Rule 9: the first entry that lives, can be read and is long enough."""
        entries = self._entries
        for candidate in candidates:
            entry = entries[candidate[0]]
            if entry is not None and candidate[2] >= entry.minimum and entry.state(now) == "live":
                return candidate
        return None

    def _read(self, hit: Candidate, visit: Visit, rules: ModelRules) -> None:
        """Rule 13: the hit and what stands before it are refreshed, or written again at no charge."""
        now, found = visit.start, self._entries[hit.entry]
        assert found is not None
        found.touched = max(found.touched, now)
        reading = rules.switches.shallow_marks
        for spot in visit.spots if reading != "ignore" else ():
            if spot.depth <= hit.depth:
                entry = self._entries[spot.entry]
                if entry is not None and entry.state(now) == "live":
                    entry.touched = max(entry.touched, now)
                elif reading == "rewrite":
                    self._rewrite(spot, found, visit, rules)

    def _rewrite(self, spot: Spot, hit: Entry, visit: Visit, rules: ModelRules) -> None:
        said = self._ttl if spot.ttl is UNSAID else spot.ttl
        ttl = min(said, hit.ttl, key=lambda one: rules.ttl_s[one])
        readable_at = visit.start + visit.first_token_s
        self._entries[spot.entry] = Entry(
            rules.minimum_tokens, ttl, rules.ttl_s[ttl], visit.start, visit.start, readable_at
        )
