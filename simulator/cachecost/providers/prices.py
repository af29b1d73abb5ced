"""Prices: USD per token class, by host, model, day and prompt length.

Public prices come from genai-prices (as a table that `make prices` writes, so that the package is not imported
here), then from a small dated overlay, then from a user's own file. The code contains no price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.limits import is_amount, is_tokens
from cachecost.base.structs import replace
from cachecost.base.toml_text import TomlLines, read_toml
from cachecost.providers.hosts import DEFAULT_HOST, Model, catalogue, host_of, hosts, unknown_host, unknown_model
from cachecost.providers.pricerows import (
    ANY_HOST,
    ANY_MODEL,
    Modifier,
    Peak,
    PriceRow,
    PriceSubstitute,
    Sheet,
    load_shipped,
    sheet_of,
)
from cachecost.providers.usage import PRICED_CLASSES, ModelPricing, ObjectStorage, Prices, Quote

Check = tuple[Callable[[Any], bool], str]
MODIFIERS = ("batch", "flex", "fast", "priority", "ultrafast", "us", "regional", "discount", "free", "ft")
DAYS = ("from", "to")
PRICE_KEYS = ("host", "model", *DAYS, "above", *PRICED_CLASSES, "source")
MODIFIER_KEYS = ("name", "host", "models", "except", "multiplier", *DAYS, "not_with", "source")
GPU_NEEDS = ("host", "usd_per_hour", "prefill_tokens_per_s")
GPU_KEYS = (*GPU_NEEDS, "model", *DAYS, "output", "source")
SHAPES = {"price": PRICE_KEYS, "modifier": MODIFIER_KEYS, "gpu": GPU_KEYS}
NEEDS = {"price": ("model",), "modifier": ("name", "models", "multiplier"), "gpu": GPU_NEEDS}
USD: Check = (is_amount, "USD, a number from 0")
VALUES: dict[str, dict[str, Check]] = {
    "price": {
        **dict.fromkeys(PRICED_CLASSES, (is_amount, "USD per 10**6 tokens, a number from 0")),
        "above": (is_tokens, "tokens, a whole number from 0"),
    },
    "modifier": {
        "name": (lambda name: name in MODIFIERS, f"one of {', '.join(MODIFIERS)}"),
        "multiplier": (is_amount, "a number from 0"),
        "not_with": (
            lambda names: isinstance(names, list) and all(name in MODIFIERS for name in names),
            f"a list of {', '.join(MODIFIERS)}",
        ),
    },
    "gpu": {
        "usd_per_hour": USD,
        "output": USD,
        "prefill_tokens_per_s": (lambda speed: is_amount(speed) and bool(speed), "tokens a second, a number above 0"),
    },
}
"""By kind of table, what each value must be, and in words."""
SECONDS_PER_HOUR = 3600
MEGATOKENS = 6
SMALLEST = Decimal("0.000001")


def own_sheet(path: Path) -> Sheet:
    """A user's price file (`--prices`; its format is at the head of `prices/overlay.toml`).

    Raises InputError with every fault, each with file and line, if it cannot be read or is not valid.
    """
    data, lines = read_toml(path)
    faults = list(_find_faults(data, lines, str(path)))
    if faults:
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    sheet = sheet_of(data, str(path))
    rows = {key: list(found) for key, found in sheet.rows.items()}
    for entry in data.get("gpu", []):
        file = str(path)
        seconds = Decimal(entry["usd_per_hour"]) / SECONDS_PER_HOUR
        price = (seconds / Decimal(entry["prefill_tokens_per_s"])).scaleb(MEGATOKENS).quantize(SMALLEST)
        prices = {"input": price, "read": Decimal(0), "write_5m": price, "write_1h": price}
        prices["output"] = Decimal(entry.get("output", 0))
        rows.setdefault((entry["host"], entry.get("model", ANY_MODEL)), []).insert(
            0, PriceRow(entry.get("from"), entry.get("to"), entry.get("source", file), 0, prices)
        )
    return replace(sheet, rows={key: tuple(found) for key, found in rows.items()})


def _find_faults(data: dict[str, Any], lines: TomlLines, file: str) -> Iterator[Fault]:
    for key, entries in data.items():
        if key not in SHAPES:
            yield Fault(
                file, f"{key}: expected [[price]], [[modifier]] or [[gpu]]{nearest(key, SHAPES)}", lines.top(key)
            )
        elif not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            yield Fault(file, f"{key}: expected [[{key}]], one table a row", lines.top(key))
    for kind, keys in SHAPES.items():
        entries = data.get(kind)
        tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        for number, entry in enumerate(tables):
            unknown = ((key, f"unknown key{nearest(key, keys)}") for key in entry if key not in keys)
            for key, message in (*unknown, *_day_and_name_faults(entry), *_value_faults(kind, entry)):
                where = f"{kind}[{number}]" + (f".{key}" if key else "")
                yield Fault(file, f"{where}: {message}", lines.of(kind, number, key))


def _value_faults(kind: str, entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from (("", f"{key} is missing") for key in NEEDS[kind] if key not in entry)
    if kind == "price" and not any(name in entry for name in PRICED_CLASSES):
        yield "", f"no price in it; expected one of {', '.join(PRICED_CLASSES)}"
    for key, (is_right, expected) in VALUES[kind].items():
        if key in entry and not is_right(entry[key]):
            near = nearest(str(entry[key]), MODIFIERS) if key == "name" else ""
            yield key, f"expected {expected}; got {_show(entry[key])}{near}"
    host = entry.get("host")
    if kind == "gpu" and host in hosts() and catalogue(str(host)).is_priced:
        own = ", ".join(name for name in hosts() if not catalogue(name).is_priced)
        yield "host", f"{host} is not a self-hosted server; expected one of {own}"


def _day_and_name_faults(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Errors of days, host and models: a row with an unknown name would never match."""
    days = {key: entry[key] for key in DAYS if key in entry}
    wrong = [key for key, day in days.items() if type(day) is not date]
    yield from ((key, f"expected a day like 2026-03-07; got {_show(days[key])}") for key in wrong)
    if len(days) == len(DAYS) and not wrong and days["to"] <= days["from"]:
        yield "to", f"expected a day after from = {days['from']}; got {days['to']}"
    host = entry.get("host", DEFAULT_HOST)
    if host not in hosts():
        yield "host", f"no rules for host {_show(host)}{nearest(str(host), hosts())}; known: {', '.join(hosts())}"
        return
    if "source" in entry and not isinstance(entry["source"], str):
        yield "source", f"expected text; got {_show(entry['source'])}"
    named = [("model", entry["model"])] if "model" in entry else []
    for key in ("models", "except"):
        value = entry.get(key, [])
        if isinstance(value, list):
            named += [(key, name) for name in value if (key, name) != ("models", ANY_MODEL)]
        else:
            yield key, f'expected a list of models, or ["{ANY_MODEL}"]; got {_show(value)}'
    yield from ((key, why) for key, name in named if (why := unknown_model(host, name)))


def _show(value: object) -> str:
    return str(value) if isinstance(value, Decimal | date) else repr(value)


CLAUDE_API = "anthropic"


def is_offered(model: Model, host: str, day: date | None) -> bool:
    """Whether `host` serves the model on `day` (None: that of the shipped data). It does while no end is known."""
    when = day or catalogue(host).data_date
    retired = _retirement_day(model)
    return model.released <= when and not (retired and retired <= when)


def list_models(host: str, *days: date | None) -> Iterator[Model]:
    """The models that `host` serves on each of these days, as `is_offered` has them."""
    for model in catalogue(host).models.values():
        if all(is_offered(model, host, day) for day in days):
            yield model


def withdrawn(host: str, name: str, day: date | None) -> str:
    """Why `host` does not serve a model that it has no longer; "" where it does, or never had it."""
    try:
        model = catalogue(host).model(name, day)
    except CannotEvaluate:
        return ""
    retired = _retirement_day(model)
    if not retired or retired > (day or catalogue(host).data_date):
        return ""
    known = "" if model.retired else f" from the Claude API, and no later day is known for {host}"
    return f"{model.name} was retired on {retired}{known}"


def must_be_served(host: str, name: str, day: date | None) -> None:
    """Raise CannotEvaluate unless `host` serves the model on `day`; the text names the --as-of that would do."""
    book = catalogue(host)
    model, when = book.model(name, day), day or book.data_date
    if is_offered(model, host, when):
        return
    if when < model.released:
        came = f"{model.name} was released on {model.released}, after the date of this replay ({when})"
        raise CannotEvaluate(f"{came}; add --as-of {model.released} or a later day")
    why, before = withdrawn(host, name, when), last_day(model)
    raise CannotEvaluate(f"{why}; the date of this replay is {when}; add --as-of {before} or an earlier day")


def last_day(model: Model) -> date | None:
    """The last day on which the model is served; None: no end is known."""
    retired = _retirement_day(model)
    return retired - timedelta(days=1) if retired else None


def _retirement_day(model: Model) -> date | None:
    """The first day without the model; the Claude API's where the host states none, as it may end there too."""
    ours = catalogue(CLAUDE_API).models.get(model.name)
    return model.retired or (ours.retired if ours else None)


__all__ = ["STANDARD", "CallTerms", "NoPrice", "PriceBook", "Prices", "moment_of", "terms_of"]

NAMED = "named"
"""The way of matching whose objects are paid for by the hour."""
IN_WORDS = {
    "batch": "batch processing",
    "flex": "flex processing",
    "fast": "fast mode",
    "free": "free variant",
    "ft": "fine-tuning",
    "us": "US-only inference",
    "regional": "regional endpoint",
    "discount": "discount",
}
UNASKED = ("regional", "discount")
"""Modifiers that need no request: where no row has one, nothing is multiplied."""
US, REGIONAL, WORLDWIDE = "us", "regional", "global"
REGION = "in "
"""What a mode begins with that is a region other than the US."""


class CallMoment(msgspec.Struct, frozen=True):
    """When a call was made: its `day` picks the rows, its time `at` decides whether it is one of the peak hours."""

    day: date | None
    at: datetime


Moment = CallMoment | date | None
"""When a call was made; the day alone if its time is unknown, so off-peak; None: the day of the shipped data."""


class CallTerms(msgspec.Struct, frozen=True):
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
        from cachecost.providers.prices import own_sheet

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
