"""Prices: USD per token class, by host, model, day and prompt length.

Public prices come from genai-prices (as a table that `make prices` writes, so that the package is not imported
here), then from a small dated overlay, then from a user's own file. The code contains no price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.hosts import DEFAULT_HOST, host_of
from cachecost.providers.pricefile import load_shipped
from cachecost.providers.pricerows import ANY_MODEL, Modifier, Peak, PriceRow, PriceSubstitute, Sheet
from cachecost.providers.quotes import ModelPricing, ObjectStorage, Prices, Quote
from cachecost.providers.rulefile import Catalogue, Model, catalogue, hosts, unknown_host

__all__ = ["NoPrice", "PriceBook", "Prices", "ways_of"]

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


FAST_TIERS = ("priority", "fast")
"""What `service_tier` calls fast mode, which it may ask for in the place of `speed`."""


class Ways(TypedDict):
    """The options of a request that change its prices."""

    fast: bool
    us: bool
    flex: bool


def ways_of(params: Mapping[str, Any]) -> Ways:
    """The options in these parameters that change prices."""
    tier = params.get("service_tier")
    return {
        "fast": params.get("speed") == "fast" or tier in FAST_TIERS,
        "us": params.get("inference_geo") == "us",
        "flex": tier == "flex",
    }


class Options(NamedTuple):
    """The options of a call that change its prices; `regional` None: as the model's id says."""

    batch: bool = False
    fast: bool = False
    us: bool = False
    flex: bool = False
    regional: bool | None = None


class NoPrice(CannotEvaluate):
    """A self-hosted model without a price; its calls can still be reported in tokens."""


class PriceBook:
    """Public prices, overridden by the user's own. A repeated query costs a dictionary look-up."""

    def __init__(self, own: Sheet | None = None, as_of: date | None = None) -> None:
        self._sheets = (*load_shipped(), own) if own else load_shipped()
        self._as_of = as_of
        self._peaks = tuple(peak for sheet in self._sheets for peak in sheet.peaks)
        self._with_peaks = frozenset(peak.host for peak in self._peaks)
        self._quotes: dict[tuple[str, str, date | None, Options, Peak | None], Quote] = {}

    @classmethod
    def load(cls, own: Path | None = None, as_of: date | None = None) -> PriceBook:
        """The shipped prices, with those of the file `own` over them. Raises InputError with all its faults."""
        if own is None:
            return cls(None, as_of)
        from cachecost.providers.own_prices import own_sheet

        return cls(own_sheet(own), as_of)

    @property
    def versions(self) -> str:
        """The versions that determine the figures: "genai-prices 0.2.3 + price overlay 2026-11-21", then the user's
        file.
        """
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
        flex: bool = False,
        regional: bool | None = None,
        moment: datetime | None = None,
    ) -> Prices:
        """Prices of a call of `model` (id or alias) whose prompt has `total_input_tokens` (uncached + read + written).

        `regional`: through a regional endpoint; None: as the id says, if the host's ids say so. `as_of`
        wins over `day`; without either, the date of the shipped data decides. `moment` is when the call was made:
        a few hosts have peak hours; without it, the call is off-peak. Raises CannotEvaluate for an unknown host,
        model, day or token class, and for an option that the model does not have.
        """
        options = Options(batch, fast, us, flex, regional)
        return self.quote(host, model, day, options, moment).of(total_input_tokens)

    def quote(self, host: str, model: str, day: date | None, options: Options, moment: datetime | None = None) -> Quote:
        """The prices of a call for every prompt length; arguments and errors as those of `prices`."""
        host = host_of(None, host, model)
        peak = self._peak(host, model, moment) if moment and host in self._with_peaks else None
        key = (host, model, self._as_of or day, options, peak)
        quote = self._quotes.get(key)
        if quote is None:
            ways = {"batch": options.batch, "flex": options.flex, "fast": options.fast, "us": options.us}
            asked = [name for name, is_asked in ways.items() if is_asked]
            quote = self._quotes[key] = self._quote(host, model, key[2], asked, options.regional, peak)
        return quote

    def has_hours(self, host: str) -> bool:
        """Whether the host has peak hours."""
        return host in self._with_peaks

    def _peak(self, host: str, name: str, moment: datetime) -> Peak | None:
        """The peak hours that contain the moment; a moment without a zone is UTC."""
        when = moment.astimezone(UTC) if moment.tzinfo else moment
        day = when.date()
        model = catalogue(host).model(name, day).name
        off = (row for sheet in self._sheets for row in sheet.holidays if row.host == host)
        if any(row.start <= day <= row.end for row in off):
            return None
        return next((peak for peak in self._peaks if peak.covers(host, model, when)), None)

    def _quote(
        self, host: str, name: str, day: date | None, asked: list[str], regional: bool | None, peak: Peak | None
    ) -> Quote:
        model, when = self._resolve(host, name, day)
        rows = self._rows(host, model, when)
        factor, sources = self._factor(host, model.name, when, _ways(asked, model.modifiers, regional))
        if peak:
            kind = "peak" if peak.multiplier > 1 else "discount"
            told = f"{kind} hours × {peak.multiplier}: {peak.source}"
            factor, sources = factor * peak.multiplier, [*sources, told]
        above = tuple(sorted({row.above for row in rows if row.above}))
        named = _has_objects(model, when, catalogue(host))
        kept = self._kept(host, model, when) if named else None
        pricing = ModelPricing(host, model.id, rows, {} if named else self._instead(host, model.name, when), kept)
        return Quote(above, tuple(pricing.tier(length, factor, sources) for length in (0, *above)))

    def _instead(self, host: str, model: str, day: date) -> dict[str, PriceSubstitute]:
        """The substitutes for classes without a price of their own, by class."""
        rows = (row for sheet in self._sheets for row in sheet.instead)
        return {row.price: row for row in rows if row.covers(host, model, day)}

    def _kept(self, host: str, model: Model, day: date) -> ObjectStorage | None:
        """The storage of a cache object of this model until it expires; None where no price is known."""
        rows = [row for sheet in self._sheets for row in sheet.storage if row.covers(host, model.name, day)]
        return ObjectStorage(rows[-1], catalogue(host).value(model, "ttl_s", day)) if rows else None

    def _resolve(self, host: str, name: str, day: date | None) -> tuple[Model, date]:
        """The model of `name`, and the day whose rows apply."""
        if host not in hosts():
            raise unknown_host("prices", host)
        book = catalogue(host)
        model = book.model(name, day)
        when = day or book.data_date
        if when < model.released:
            known = f"known from {model.released}: --as-of {model.released}"
            raise CannotEvaluate(f"{model.id} has no price on {when}; {known}")
        return model, when

    def _rows(self, host: str, model: Model, day: date) -> list[PriceRow]:
        names = (ANY_MODEL, *model.price_names)
        known = [row for sheet in self._sheets for name in names for row in sheet.rows.get((host, name), ())]
        rows = [*_stated(host, model), *self._same(host, model.name, day, any(row.holds(day) for row in known))]
        rows += [row for row in known if row.holds(day)]
        if not rows:
            when = f" on {day} (only {_spans(known)}{_other_day(known)})" if known else ""
            fault, own = CannotEvaluate, "give one"
            if not catalogue(host).is_priced:
                fault, own = (fault if known else NoPrice), "it is a self-hosted server: give its [[gpu]]"
            raise fault(f"no price known for {model.name} on host {host}{when}; {own} with --prices")
        return rows

    def _same(self, host: str, model: str, day: date, has_own: bool) -> list[PriceRow]:
        """Public rows of the other host whose prices hold where this one has none.

        Its length tiers apply only where the host has no price of its own; otherwise they would override it.
        """
        same = [row for sheet in load_shipped() for row in sheet.same if row.covers(host, model, day)][-1:]
        rows = [(row, of) for of in same for sheet in load_shipped() for row in sheet.rows.get((of.base, model), ())]
        return [
            replace(row, source=f"as on {of.base} ({of.source}): {row.source}")
            for row, of in rows
            if row.holds(day) and not (has_own and row.above)
        ]

    def _factor(self, host: str, model: str, day: date, asked: list[str]) -> tuple[Decimal, list[str]]:
        """The factor of all prices, and its sources."""
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
        when = f" on {day} (only {_spans(rows)}{_other_day(rows)})" if rows else ""
        raise CannotEvaluate(f"{model} has no {IN_WORDS[name]}{where}{when}")


def _stated(host: str, model: Model) -> list[PriceRow]:
    """The price that its rule file states, which all price files go over."""
    prices = {name: Decimal(str(price)) for name, price in model.price.items()}
    base, source = catalogue(host).base, f"{model.source.title} ({model.source.date})"
    return [PriceRow(None, None, 0, prices, f"as on {base} ({source})" if base else source)] if prices else []


def _has_objects(model: Model, day: date, book: Catalogue) -> bool:
    """Whether this model caches explicit objects, which are charged by the hour."""
    return "matching" in book.rules and book.value(model, "matching", day) == NAMED


def _ways(asked: list[str], of_endpoint: tuple[str, ...], regional: bool | None) -> list[str]:
    """The modifiers that apply: requested, implied by the endpoint, or automatic."""
    brought = [name for name in of_endpoint if name != "regional" or regional is not False]
    return list(dict.fromkeys([*asked, *brought, *(["regional"] if regional else []), "discount"]))


def _spans(rows: Sequence[PriceRow | Modifier]) -> str:
    """The days that rows hold: "from 2026-02-07 until 2026-06-29"."""
    spans = [(f"from {row.start}" if row.start else "") + (f" until {row.end}" if row.end else "") for row in rows]
    return " and ".join(dict.fromkeys(span.strip() for span in spans))


def _other_day(rows: Sequence[PriceRow | Modifier]) -> str:
    """The --as-of of the last day on which one of the rows holds: its end is the first day without it."""
    days = [row.end - timedelta(days=1) if row.end else row.start for row in rows]
    known = [day for day in days if day]
    return f": --as-of {max(known)}" if known else ""


def _check_together(modifier: Modifier, asked: list[str], model: str) -> None:
    for other in asked:
        if other in modifier.not_with:
            raise CannotEvaluate(f"{model} has no {IN_WORDS[modifier.name]} together with {IN_WORDS[other]}")
