"""Dollars: what a token of each class costs on a host, for a model, on a day, in a prompt of a length.

Public prices come from genai-prices (as a table made by `refresh`, so that nothing of it is imported
here), then a small dated overlay, then a user's own file. Rows are data; no price stands in the code.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from cachecost.facts import fact
from cachecost.faults import CannotEvaluate, nearest
from cachecost.providers.pricefile import CLASSES, DEFAULT_HOST, Modifier, PriceRow, Sheet, shipped
from cachecost.providers.rulefile import Model, catalogue, hosts
from cachecost.providers.usage import Usage

ZERO = Decimal(0)
PER_TOKEN = -6
"""Prices are per 10**6 tokens."""
IN_WORDS = {
    "batch": "batch processing",
    "fast": "fast mode",
    "us": "US-only inference",
    "regional": "regional endpoint",
    "discount": "discount",
}
UNASKED = ("regional", "discount")
"""Modifiers that need no request: where no row has one, nothing is multiplied."""
CLASS_IN_WORDS = {"read": "cache reads", "write_5m": "5m cache writes", "write_1h": "1h cache writes"}


@fact
class Prices:
    """What each token class costs, in USD per 10**6 tokens, modifiers included. `source` says who says so."""

    read: Decimal
    write_5m: Decimal
    write_1h: Decimal
    input: Decimal
    output: Decimal
    source: str = ""

    def cost(self, usage: Usage) -> dict[str, Decimal]:
        """Dollars of `usage` by token class, exact: read, write_5m, write_1h, input, output."""
        return {
            "read": _dollars(usage.read, self.read),
            "write_5m": _dollars(usage.write_5m, self.write_5m),
            "write_1h": _dollars(usage.write_1h, self.write_1h),
            "input": _dollars(usage.input_tokens, self.input),
            "output": _dollars(usage.output_tokens, self.output),
        }


def _dollars(tokens: int, price: Decimal) -> Decimal:
    return (tokens * price).scaleb(PER_TOKEN) if tokens else ZERO


class _Quote(NamedTuple):
    """Prices of one way of calling a model on a day, by prompt length: `tiers[i]` from above `above[i - 1]` tokens."""

    above: tuple[int, ...]
    tiers: tuple[Prices, ...]

    def of(self, tokens: int) -> Prices:
        return self.tiers[bisect_left(self.above, tokens)]


class PriceBook:
    """Public prices with a user's own over them. Asking twice costs a dictionary look-up."""

    def __init__(self, own: Sheet | None = None, as_of: date | None = None) -> None:
        self._sheets = (*shipped(), own) if own else shipped()
        self._as_of = as_of
        self._quotes: dict[tuple[str, str, date | None, bool, bool, bool, bool | None], _Quote] = {}

    @classmethod
    def load(cls, own: Path | None = None, as_of: date | None = None) -> PriceBook:
        """The shipped prices, with those of the file `own` over them. Raises InputError with all its faults."""
        if own is None:
            return cls(None, as_of)
        from cachecost.providers.own_prices import own_sheet

        return cls(own_sheet(own), as_of)

    @property
    def versions(self) -> str:
        """What fixes the figures: "genai-prices 0.2.3 + price overlay 2026-11-21", then the user's file."""
        return " + ".join(sheet.name for sheet in self._sheets)

    def prices(
        self,
        host: str,
        model: str,
        day: date | None,
        total_input_tokens: int,
        *,
        batch: bool = False,
        fast: bool = False,
        us: bool = False,
        regional: bool | None = None,
    ) -> Prices:
        """Prices of a call of `model` (id or alias) whose prompt has `total_input_tokens` (uncached + read + written).

        `regional`: through a regional endpoint; None: as the id says, where the host's ids say it. `as_of`
        wins over `day`; without either, the date of the shipped data decides. Raises CannotEvaluate for an
        unknown host, model, day or token class, and for a way of calling that the model lacks.
        """
        key = (host, model, self._as_of or day, batch, fast, us, regional)
        quote = self._quotes.get(key)
        if quote is None:
            asked = [name for name, is_asked in (("batch", batch), ("fast", fast), ("us", us)) if is_asked]
            quote = self._quotes[key] = self._quote(host, model, key[2], asked, regional)
        return quote.of(total_input_tokens)

    def _quote(self, host: str, name: str, day: date | None, asked: list[str], regional: bool | None) -> _Quote:
        model, when = self._resolve(host, name, day)
        rows = self._rows(host, model.name, when)
        factor, sources = self._factor(host, model.name, when, _ways(asked, model.modifiers, regional))
        above = tuple(sorted({row.above for row in rows if row.above}))
        return _Quote(above, tuple(_tier(host, model.name, rows, length, factor, sources) for length in (0, *above)))

    def _resolve(self, host: str, name: str, day: date | None) -> tuple[Model, date]:
        """The model of `name`, and the day that decides."""
        if host not in hosts():
            raise CannotEvaluate(f"no prices for host '{host}'{nearest(host, hosts())}; known: {', '.join(hosts())}")
        book = catalogue(host)
        model = book.model(name)
        when = day or book.data_date
        if when < model.released:
            raise CannotEvaluate(f"{model.id} has no price on {when}: it was released on {model.released}")
        return model, when

    def _rows(self, host: str, model: str, day: date) -> list[PriceRow]:
        known = [row for sheet in self._sheets for row in sheet.rows.get((host, model), ())]
        rows = self._same(host, model, day, any(row.holds(day) for row in known))
        rows += [row for row in known if row.holds(day)]
        if not rows:
            when = f" on {day} (only {_spans(known)})" if known else ""
            raise CannotEvaluate(f"no price known for {model} on host {host}{when}; give one with --prices")
        return rows

    def _same(self, host: str, model: str, day: date, has_own: bool) -> list[PriceRow]:
        """Public rows of the host whose prices hold where this one's table is silent.

        Its length tiers count only where the host has no price of its own: else they would beat that.
        """
        same = [row for sheet in shipped() for row in sheet.same if row.covers(host, model, day)][-1:]
        rows = [(row, of) for of in same for sheet in shipped() for row in sheet.rows.get((of.base, model), ())]
        return [
            replace(row, source=f"as on {of.base} ({of.source}): {row.source}")
            for row, of in rows
            if row.holds(day) and not (has_own and row.above)
        ]

    def _factor(self, host: str, model: str, day: date, asked: list[str]) -> tuple[Decimal, list[str]]:
        """What all prices are multiplied by, and who says so."""
        factor, sources = Decimal(1), []
        for name in asked:
            modifier = self._modifier(name, host, model, day)
            if modifier:
                _check_together(modifier, asked, model)
                factor *= modifier.multiplier
                sources.append(f"{IN_WORDS[name]} × {modifier.multiplier}: {modifier.source}")
        return factor, sources

    def _modifier(self, name: str, host: str, model: str, day: date) -> Modifier | None:
        rows = [
            row for sheet in self._sheets for row in sheet.modifiers if row.name == name and row.covers(host, model)
        ]
        for row in reversed(rows):
            if row.holds(day):
                return row
        if name in UNASKED:
            return None
        where = "" if host == DEFAULT_HOST else f" on host {host}"
        when = f" on {day} (only {_spans(rows)})" if rows else ""
        raise CannotEvaluate(f"{model} has no {IN_WORDS[name]}{where}{when}")


def _ways(asked: list[str], of_endpoint: tuple[str, ...], regional: bool | None) -> list[str]:
    """What multiplies the prices: what was asked for, what the endpoint brings, and what needs no request."""
    brought = [name for name in of_endpoint if name != "regional" or regional is not False]
    return list(dict.fromkeys([*asked, *brought, *(["regional"] if regional else []), "discount"]))


def _spans(rows: Sequence[PriceRow | Modifier]) -> str:
    """The days that rows hold: "from 2026-02-07 until 2026-06-29"."""
    spans = [(f"from {row.start}" if row.start else "") + (f" until {row.end}" if row.end else "") for row in rows]
    return " and ".join(dict.fromkeys(span.strip() for span in spans))


def _check_together(modifier: Modifier, asked: list[str], model: str) -> None:
    for other in asked:
        if other in modifier.not_with:
            raise CannotEvaluate(f"{model} has no {IN_WORDS[modifier.name]} together with {IN_WORDS[other]}")


def _tier(host: str, model: str, rows: list[PriceRow], length: int, factor: Decimal, notes: list[str]) -> Prices:
    """Prices of prompts just above `length` tokens: of each class, the last row that names it."""
    chosen = {name: row for row in rows if row.above <= length for name in row.prices}
    for name in CLASSES:
        if name not in chosen:
            words = CLASS_IN_WORDS.get(name, f"{name} tokens")
            raise CannotEvaluate(f"no price of {words} known for {model} on host {host}; give one with --prices")
    sources = dict.fromkeys(chosen[name].source for name in CLASSES)
    return Prices(
        **{name: chosen[name].prices[name] * factor for name in CLASSES},
        source=", ".join([*sources, *notes]),
    )
