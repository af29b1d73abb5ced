"""Prices: USD per token class, by host, model, day and prompt length.

Public prices come from genai-prices (as a table that `make prices` writes, so that the package is not imported
here), then from a small dated overlay, then from a user's own file. The code contains no price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace, value
from cachecost.providers.hosts import DEFAULT_HOST, Model, catalogue, host_of, hosts, unknown_host
from cachecost.providers.pricerows import (
    ANY_HOST,
    ANY_MODEL,
    Modifier,
    Peak,
    PriceRow,
    PriceSubstitute,
    Sheet,
    load_shipped,
)
from cachecost.providers.usage import ModelPricing, ObjectStorage, Prices, Quote

__all__ = ["STANDARD", "CallTerms", "NoPrice", "PriceBook", "Prices", "moment_of", "terms_of"]

NAMED = "named"
"""The way of matching whose objects are paid for by the hour."""
IN_WORDS = {
    "batch": "batch processing",
    "flex": "flex processing",
    "fast": "fast mode",
    "us": "US-only inference",
    "regional": "regional endpoint",
    "discount": "discount",
}
UNASKED = ("regional", "discount")
"""Modifiers that need no request: where no row has one, nothing is multiplied."""
US, REGIONAL, WORLDWIDE = "us", "regional", "global"
REGION = "in "
"""What a mode begins with that is a region other than the US."""


@value
class CallMoment:
    """When a call was made: its `day` picks the rows, its time `at` decides whether it is one of the peak hours."""

    day: date | None
    at: datetime


Moment = CallMoment | date | None
"""When a call was made; the day alone if its time is unknown, so off-peak; None: the day of the shipped data."""


@value
class CallTerms:
    """What decides the prices of a call besides its host, its model and the moment.

    `tiers` are how it is processed, as the API spells it ("batch", "flex", "fast", "priority" …; (): the standard
    way), `region` is where ("": as the model's id says, "us" …, "regional": an endpoint of one region, "global": none).
    """

    tiers: tuple[str, ...]
    region: str

    @classmethod
    def of_modes(cls, modes: Sequence[str]) -> CallTerms:
        """The terms of a `BilledCall`."""
        regions = [mode.removeprefix(REGION) for mode in modes if mode == US or mode.startswith(REGION)]
        tiers = tuple(mode for mode in modes if mode != US and not mode.startswith(REGION))
        return cls(tiers, regions[0] if regions else "")

    @property
    def modes(self) -> tuple[str, ...]:
        """The terms as the modes of a `BilledCall`."""
        region = self.region if self.region in ("", US) else f"{REGION}{self.region}"
        return (*self.tiers, region) if region else self.tiers

    @property
    def params(self) -> dict[str, str]:
        """Parameters of a request that has these terms, but for a batch."""
        tier = next((name for name in self.tiers if name not in ("batch", "fast")), "")
        named = {"speed": "fast" if "fast" in self.tiers else "", "service_tier": tier, "inference_geo": self.region}
        return {name: value for name, value in named.items() if value}


STANDARD = CallTerms((), "")


def terms_of(params: Mapping[str, Any], is_batch: bool) -> CallTerms:
    """The terms that the parameters of a request, or the fields of its usage, state."""
    tier, speed, region = params.get("service_tier"), params.get("speed"), params.get("inference_geo")
    if tier is None and speed is None and region is None and not is_batch:
        return STANDARD
    names = ["batch"] if is_batch else []
    names += [str(name) for name in (tier, speed) if name and str(name) not in standard_tiers()]
    named = "" if region is None or region in (WORLDWIDE, *standard_regions()) else str(region)
    return CallTerms(tuple(dict.fromkeys(names)), named)


def served_params(params: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of a request, with the service tier and the region that its answer (or usage) names."""
    named = {name: answer[name] for name in ("service_tier", "inference_geo") if isinstance(answer.get(name), str)}
    served = {**params, **named}
    return params if terms_of(served, False) == terms_of(params, False) else served


def moment_of(start: float | None, day: date | None) -> Moment:
    """The moment of a call that starts at `start` (seconds since the epoch; None: unknown) on `day` (None: that of its
    start)."""
    if start is None:
        return day
    at = datetime.fromtimestamp(start, UTC)
    return CallMoment(day or at.date(), at)


class NoPrice(CannotEvaluate):
    """A self-hosted model without a price; its calls can still be reported in tokens."""


class PriceBook:
    """Public prices, overridden by the user's own. A repeated query costs a dictionary look-up."""

    def __init__(self, own: Sheet | None = None, as_of: date | None = None) -> None:
        self._sheets = (*load_shipped(), own) if own else load_shipped()
        self._as_of = as_of
        self._peaks = tuple(peak for sheet in self._sheets for peak in sheet.peaks)
        self._with_peaks = frozenset(host for peak in self._peaks for host in peak.hosts)
        self._quotes: dict[tuple[str, str, date | None, CallTerms, Peak | None], Quote] = {}

    @classmethod
    def load(cls, own: Path | None = None, as_of: date | None = None) -> PriceBook:
        """The shipped prices, with those of the file `own` over them. Raises InputError with all its faults."""
        if own is None:
            return cls(None, as_of)
        from cachecost.providers.served_models import own_sheet

        return cls(own_sheet(own), as_of)

    @property
    def versions(self) -> str:
        """The versions that determine the figures: "genai-prices 0.2.3 + price overlay 2026-11-21", then the user's
        file.
        """
        return " + ".join(sheet.name for sheet in self._sheets)

    def quote(self, host: str, model: str, moment: Moment, terms: CallTerms) -> Quote:
        """The prices of a call of `model` (id or alias), for every length of its prompt (uncached + read + written).

        All dollars come from here, those of bills and those of simulations. `as_of` wins over the day of `moment`, not
        over its hour. Raises CannotEvaluate for an unknown host, model, day or token class, and for a tier or region
        that the model has no price of.
        """
        host = host_of(None, host, model)
        at = moment.at if isinstance(moment, CallMoment) else None
        day = self._as_of or (moment.day if isinstance(moment, CallMoment) else moment)
        peak: Peak | None = None  # the peak hours that contain the moment, of those in force on the day
        if at and day and host in self._with_peaks:
            name = catalogue(host).model(model, day).name
            off = (row for sheet in self._sheets for row in sheet.holidays if row.host == host)
            if not any(row.start <= at.date() <= row.end for row in off):
                peak = next((one for one in self._peaks if one.covers(host, name, day) and one.is_at(at)), None)
        key = (host, model, day, terms, peak)
        quote = self._quotes.get(key)
        if quote is None:
            quote = self._quotes[key] = self._quote(host, model, day, terms, peak)
        return quote

    def has_hours(self, host: str) -> bool:
        """Whether the host has peak hours."""
        return host in self._with_peaks

    def _quote(self, host: str, name: str, day: date | None, terms: CallTerms, peak: Peak | None) -> Quote:
        if host not in hosts():
            raise unknown_host("prices", host)
        book = catalogue(host)
        model, when = book.model(name, day), day or book.data_date
        if when < model.released:
            known = f"known from {model.released}: --as-of {model.released}"
            raise CannotEvaluate(f"{model.id} has no price on {when}; {known}")
        rows = self._rows(host, model, when)
        factor, sources = self._factor(host, model, when, terms)
        if peak:
            kind = "peak" if peak.multiplier > 1 else "discount"
            sources = [*sources, f"{kind} hours × {peak.multiplier}: {peak.source}"]
            factor *= peak.multiplier
        disputes = (row for sheet in self._sheets for row in sheet.disputes)
        sources = [*sources, *(says for *whose, says in disputes if whose == [host, model.name])]
        above = tuple(sorted({row.above for row in rows if row.above}))
        kept, instead = None, dict[str, PriceSubstitute]()
        if "matching" in book.rules and book.value(model, "matching", when) == NAMED:
            storage = [row for sheet in self._sheets for row in sheet.storage if row.covers(host, model.name, when)]
            kept = ObjectStorage(storage[-1], book.value(model, "ttl_s", when)) if storage else None
        else:
            substitutes = (row for sheet in self._sheets for row in sheet.instead)
            instead = {row.price: row for row in substitutes if row.covers(host, model.name, when)}
        fees = (row for sheet in self._sheets for row in sheet.fees if row.covers(host, model.name, when))
        pricing = ModelPricing(host, model.id, rows, instead, kept, tuple({row.tool: row.usd for row in fees}.items()))
        return Quote(above, tuple(pricing.tier(length, factor, sources) for length in (0, *above)))

    def _rows(self, host: str, model: Model, day: date) -> list[PriceRow]:
        """The rows in force, the stated price of its rule file first: all price files go over it."""
        names = (ANY_MODEL, *model.price_names)
        known = [row for sheet in self._sheets for name in names for row in sheet.rows.get((host, name), ())]
        has_own, shipped = any(row.holds(day) for row in known), load_shipped()
        # Public rows of the other host whose prices hold where this one has none. Its length tiers would override a
        # price of this host's own.
        same = [row for sheet in shipped for row in sheet.same if row.covers(host, model.name, day)][-1:]
        rows = [
            replace(row, source=f"as on {of.base} ({of.source}): {row.source}")
            for of in same
            for sheet in shipped
            for row in sheet.rows.get((of.base, model.name), ())
            if row.holds(day) and not (has_own and row.above)
        ]
        if model.price:
            base, source = catalogue(host).base, f"{model.source.title} ({model.source.date})"
            prices = {name: Decimal(str(price)) for name, price in model.price.items()}
            rows.insert(0, PriceRow(None, None, f"as on {base} ({source})" if base else source, 0, prices))
        rows += [row for row in known if row.holds(day)]
        if not rows:
            when = f" on {day} (only {_spans(known)}{_other_day(known)})" if known else ""
            fault, own = CannotEvaluate, "give one"
            if not catalogue(host).is_priced:
                fault, own = (fault if known else NoPrice), "it is a self-hosted server: give its [[gpu]]"
            raise fault(f"no price known for {model.name} on host {host}{when}; {own} with --prices")
        return rows

    def _factor(self, host: str, model: Model, day: date, terms: CallTerms) -> tuple[Decimal, list[str]]:
        """The factor of all prices, and its sources: of tiers and region, of the endpoint, of what needs no request."""
        # What a host calls a tier is the name of its modifier; "" for its standard tier.
        renamed = [row for row in load_shipped()[1].tiers if row.host in (host, ANY_HOST)]
        asked = [next((row.means for row in renamed if name in row.names), name) for name in terms.tiers]
        asked += [terms.region] if terms.region not in ("", WORLDWIDE) else []
        asked += [name for name in model.modifiers if name != REGIONAL or terms.region != WORLDWIDE]
        asked = list(dict.fromkeys([*filter(None, asked), "discount"]))
        factor, sources = Decimal(1), []
        modifiers = [row for sheet in self._sheets for row in sheet.modifiers if row.names(host, model.name)]
        for name in asked:
            rows = [row for row in modifiers if row.name == name]
            modifier = next((row for row in reversed(rows) if row.holds(day)), None)
            if modifier is None and name in UNASKED:
                continue
            if modifier is None:
                where = "" if host == DEFAULT_HOST else f" on host {host}"
                when = f" on {day} (only {_spans(rows)}{_other_day(rows)})" if rows else ""
                what = IN_WORDS.get(name, f"price of '{name}' (service tier or region)")
                raise CannotEvaluate(f"{model.name} has no {what}{where}{when}")
            for other in asked:
                if other in modifier.not_with:
                    both = f"{_in_words(modifier.name)} together with {_in_words(other)}"
                    raise CannotEvaluate(f"{model.name} has no {both}")
            factor *= modifier.multiplier
            sources.append(f"{_in_words(name)} × {modifier.multiplier}: {modifier.source}")
        return factor, sources


@cache
def standard_tiers() -> frozenset[str]:
    """What APIs call their standard tier."""
    return frozenset(name for row in load_shipped()[1].tiers if not row.means for name in row.names)


@cache
def standard_regions() -> frozenset[str]:
    """What APIs call it that no region was asked for."""
    return frozenset(name for row in load_shipped()[1].regions for name in row.names)


def _spans(rows: Sequence[PriceRow | Modifier]) -> str:
    """The days that rows hold: "from 2026-02-07 until 2026-06-29"."""
    spans = [(f"from {row.start}" if row.start else "") + (f" until {row.end}" if row.end else "") for row in rows]
    return " and ".join(dict.fromkeys(span.strip() for span in spans))


def _other_day(rows: Sequence[PriceRow | Modifier]) -> str:
    """The --as-of of the last day on which one of the rows holds: its end is the first day without it."""
    days = [row.end - timedelta(days=1) if row.end else row.start for row in rows]
    known = [day for day in days if day]
    return f": --as-of {max(known)}" if known else ""


def _in_words(name: str) -> str:
    return IN_WORDS.get(name, f"service tier '{name}'")
