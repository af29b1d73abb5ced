"""The rows of a price sheet, dated and sourced. Like those of rules, they are named tuples.

Price sheets: the table made from genai-prices, and the overlay, as dated rows.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.base.structs import value
from cachecost.providers.hosts import DEFAULT_HOST, catalogue
from cachecost.providers.usage import PRICED_CLASSES

ANY_MODEL = "*"
ANY_HOST = "*"


def _within(start: date | None, day: date, end: date | None) -> bool:
    return (start is None or start <= day) and (end is None or day < end)


def _names(models: tuple[str, ...], model: str) -> bool:
    return model in models or ANY_MODEL in models


@value
class PriceRow:
    """Prices (USD per 10**6 tokens) of some token classes of a model, for prompts longer than `above` tokens."""

    start: date | None
    end: date | None
    above: int
    prices: Mapping[str, Decimal]
    source: str

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


@value
class Modifier:
    """A multiplier of all prices for a way of calling, for some models and days."""

    name: str
    host: str
    models: tuple[str, ...]
    exceptions: tuple[str, ...]
    multiplier: Decimal
    start: date | None
    end: date | None
    not_with: tuple[str, ...]
    source: str

    def covers(self, host: str, model: str) -> bool:
        return host == self.host and _names(self.models, model) and model not in self.exceptions

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


@value
class SamePrice:
    """Models that have the prices of the host `base` where `host` has no price of its own."""

    host: str
    base: str
    models: tuple[str, ...]
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host == self.host and _names(self.models, model) and _within(self.start, day, self.end)


@value
class PriceSubstitute:
    """A class without a price of its own on `host` costs `times` what the class `like` costs there."""

    host: str
    models: tuple[str, ...]
    price: str
    like: str
    times: Decimal
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host == self.host and _names(self.models, model) and _within(self.start, day, self.end)


@value
class Storage:
    """The storage price of an explicit cache object, in USD per 10**6 tokens and hour."""

    host: str
    models: tuple[str, ...]
    usd_per_hour: Decimal
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host == self.host and _names(self.models, model) and _within(self.start, day, self.end)


@value
class Peak:
    """Hours (UTC; from, to, the latter excluded; 16.5 is 16:30) of weekdays (Monday is 0) that cost `multiplier` times
    as much.
    """

    host: str
    models: tuple[str, ...]
    multiplier: Decimal
    hours: tuple[tuple[float, float], ...]
    weekdays: tuple[int, ...]
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date, moment: datetime) -> bool:
        """Whether a call at `moment` (in UTC) is one at peak by the rows of `day`, holidays aside."""
        if host != self.host or not _names(self.models, model) or not _within(self.start, day, self.end):
            return False
        hour = moment.hour + moment.minute / 60
        return moment.weekday() in self.weekdays and any(start <= hour < end for start, end in self.hours)


@value
class Holiday:
    """Days without peak hours on a host."""

    host: str
    start: date
    end: date
    source: str


@value
class ToolFee:
    """USD a use of a server tool, beside its tokens."""

    tool: str
    hosts: tuple[str, ...]
    models: tuple[str, ...]
    usd: Decimal
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        return host in self.hosts and _names(self.models, model) and _within(self.start, day, self.end)


@value
class TermName:
    """What a host calls a tier or a region, and the modifier that this means ("": the standard one)."""

    host: str
    names: tuple[str, ...]
    means: str
    source: str


@value
class Sheet:
    """One layer of prices. Among the rows of a model the last that matches wins."""

    name: str
    rows: Mapping[tuple[str, str], tuple[PriceRow, ...]]
    modifiers: tuple[Modifier, ...] = ()
    same: tuple[SamePrice, ...] = ()
    instead: tuple[PriceSubstitute, ...] = ()
    storage: tuple[Storage, ...] = ()
    peaks: tuple[Peak, ...] = ()
    holidays: tuple[Holiday, ...] = ()
    fees: tuple[ToolFee, ...] = ()
    disputes: tuple[tuple[str, str, str], ...] = ()
    """Host, model, and what public tables state differently."""
    tiers: tuple[TermName, ...] = ()
    regions: tuple[TermName, ...] = ()


FOLDER = Path(__file__).with_name("prices")
SHIPPED_TABLE = FOLDER / "genai-prices.json"
OVERLAY = FOLDER / "overlay.toml"
HOSTS = FOLDER / "hosts.toml"


@cache
def load_shipped() -> tuple[Sheet, Sheet]:
    """The public prices: the table made from genai-prices, and the overlay over it.

    The overlay includes the special charges of hosts (`prices/hosts.toml`).
    """
    table = json.loads(SHIPPED_TABLE.read_text(encoding="utf-8"))
    name = f"genai-prices {table['genai_prices']}"
    rows = {
        (host, model): tuple(_table_row(row, name) for row in rows)
        for host, models in table["hosts"].items()
        for model, rows in models.items()
    }
    overlay = tomllib.loads(OVERLAY.read_text(encoding="utf-8"), parse_float=Decimal)
    over = sheet_of(overlay, f"price overlay {overlay['data']['date']}", _as_it_is)
    return Sheet(name, rows), replace(over, **_of_hosts())


def _titles(data: Mapping[str, Any]) -> dict[str, str]:
    """The sources by key: title and day."""
    return {key: f"{source['title']} ({source['date']})" for key, source in data.get("sources", {}).items()}


def _table_row(row: dict[str, Any], source: str) -> PriceRow:
    start, end = (date.fromisoformat(row[key]) if row[key] else None for key in ("from", "to"))
    prices = {name: Decimal(row[name]) for name in PRICED_CLASSES if name in row}
    return PriceRow(start, end, row["above"], prices, source)


def _as_it_is(host: str, model: str) -> str:
    """The overlay uses ids only, so that it needs no rule file."""
    return model


def _id_of(host: str, model: str) -> str:
    """The id behind an alias. Prices belong to the model; an endpoint modifies them unless it has its own."""
    return model if model == ANY_MODEL else catalogue(host).model(model).price_names[-1]


def sheet_of(data: dict[str, Any], name: str, id_of: Callable[[str, str], str] = _id_of) -> Sheet:
    """The rows of a parsed and valid price file; `id_of` finds the id of a host's model."""
    titles = _titles(data)
    rows: dict[tuple[str, str], list[PriceRow]] = {}
    for entry in data.get("price", []):
        host = entry.get("host", DEFAULT_HOST)
        source = titles.get(entry.get("source"), entry.get("source", name))
        prices = {name: Decimal(entry[name]) for name in PRICED_CLASSES if name in entry}
        row = PriceRow(entry.get("from"), entry.get("to"), entry.get("above", 0), prices, source)
        rows.setdefault((host, id_of(host, entry["model"])), []).append(row)
    ordered = {key: tuple(sorted(found, key=lambda row: row.above)) for key, found in rows.items()}
    modifiers = tuple(_modifier(entry, titles, name, id_of) for entry in data.get("modifier", []))
    return Sheet(name, ordered, modifiers)


def _of_hosts() -> dict[str, Any]:
    """The content of `prices/hosts.toml` as fields of a sheet; every row has its days and its source."""
    data = tomllib.loads(HOSTS.read_text(encoding="utf-8"), parse_float=Decimal)
    titles = _titles(data)
    return {
        "same": tuple(
            SamePrice(row["host"], row["as"], tuple(row["models"]), row["from"], row.get("to"), titles[row["source"]])
            for row in data["same"]
        ),
        "instead": tuple(_instead(row, titles) for row in data["instead"]),
        "storage": tuple(_storage(row, titles) for row in data["storage"]),
        "peaks": tuple(_peak(row, titles) for row in data["peak"]),
        "disputes": tuple((row["host"], row["model"], row["says"]) for row in data["disputed"]),
        "fees": tuple(_fee(row, titles) for row in data["fee"]),
        "tiers": tuple(_term_name(row, titles) for row in data["tier"]),
        "regions": tuple(_term_name(row, titles) for row in data["region"]),
        "holidays": tuple(
            Holiday(row["host"], days[0], days[1], titles[row["source"]])
            for row in data["holidays"]
            for days in row["days"]
        ),
    }


def _fee(row: dict[str, Any], titles: dict[str, str]) -> ToolFee:
    usd = Decimal(row["usd_per_1000"]) / 1000
    hosts, models = tuple(row["hosts"]), tuple(row["models"])
    return ToolFee(row["tool"], hosts, models, usd, row["from"], row.get("to"), titles[row["source"]])


def _term_name(row: dict[str, Any], titles: dict[str, str]) -> TermName:
    return TermName(row["host"], tuple(row["names"]), row.get("means", ""), titles[row["source"]])


def _instead(row: dict[str, Any], titles: dict[str, str]) -> PriceSubstitute:
    host, models, times = row["host"], tuple(row["models"]), Decimal(row.get("times", 1))
    return PriceSubstitute(
        host, models, row["price"], row["like"], times, row["from"], row.get("to"), titles[row["source"]]
    )


def _storage(row: dict[str, Any], titles: dict[str, str]) -> Storage:
    price = Decimal(row["usd_per_hour"])
    return Storage(row["host"], tuple(row["models"]), price, row["from"], row.get("to"), titles[row["source"]])


def _peak(row: dict[str, Any], titles: dict[str, str]) -> Peak:
    return Peak(
        row["host"],
        tuple(row["models"]),
        Decimal(row["multiplier"]),
        tuple((float(start), float(end)) for start, end in row["hours"]),
        tuple(row["weekdays"]),
        row["from"],
        row.get("to"),
        titles[row["source"]],
    )


def _modifier(entry: dict[str, Any], titles: dict[str, str], name: str, id_of: Callable[[str, str], str]) -> Modifier:
    host = entry.get("host", DEFAULT_HOST)
    models, exceptions = (tuple(id_of(host, model) for model in entry.get(key, ())) for key in ("models", "except"))
    return Modifier(
        entry["name"],
        host,
        models,
        exceptions,
        Decimal(entry["multiplier"]),
        entry.get("from"),
        entry.get("to"),
        tuple(entry.get("not_with", ())),
        titles.get(entry.get("source", ""), entry.get("source", name)),
    )
