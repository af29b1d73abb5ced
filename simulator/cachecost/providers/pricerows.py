"""Price sheets as dated, sourced rows: the table made from genai-prices, the overlay, and special charges of hosts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cachecost.base.structs import replace
from cachecost.providers.hosts import DEFAULT_HOST, catalogue
from cachecost.providers.usage import PRICED_CLASSES

ANY_MODEL = "*"
ANY_HOST = "*"
Row = TypeVar("Row")


class DatedPrice(msgspec.Struct, frozen=True):
    """What holds from `start` until the day before `end`; None: without a beginning, or an end."""

    start: date | None
    end: date | None
    source: str

    def holds(self, day: date) -> bool:
        return (self.start is None or self.start <= day) and (self.end is None or day < self.end)


class PriceRow(DatedPrice, frozen=True):
    """Prices (USD per 10**6 tokens) of some token classes of a model, for prompts longer than `above` tokens."""

    above: int
    prices: Mapping[str, Decimal]


class HostPrice(DatedPrice, frozen=True):
    """What holds for some models of some hosts."""

    hosts: tuple[str, ...]
    models: tuple[str, ...]

    def covers(self, host: str, model: str, day: date) -> bool:
        return self.names(host, model) and self.holds(day)

    def names(self, host: str, model: str) -> bool:
        return host in self.hosts and (model in self.models or ANY_MODEL in self.models)


class Modifier(HostPrice, frozen=True):
    """A multiplier of all prices for a way of calling, for some models and days."""

    name: str
    multiplier: Decimal
    exceptions: tuple[str, ...]
    not_with: tuple[str, ...]

    def names(self, host: str, model: str) -> bool:
        return HostPrice.names(self, host, model) and model not in self.exceptions


class SamePrice(HostPrice, frozen=True):
    """Models that have the prices of the host `base` where their host has no price of its own."""

    base: str


class PriceSubstitute(HostPrice, frozen=True):
    """A class without a price of its own costs `times` what the class `like` costs there."""

    price: str
    like: str
    times: Decimal


class Storage(HostPrice, frozen=True):
    """The storage price of an explicit cache object, in USD per 10**6 tokens and hour."""

    usd_per_hour: Decimal


class Peak(HostPrice, frozen=True):
    """Hours (UTC; from, to, the latter excluded; 16.5 is 16:30) of weekdays (Monday is 0) that cost `multiplier` times
    as much.
    """

    multiplier: Decimal
    hours: tuple[tuple[float, float], ...]
    weekdays: tuple[int, ...]

    def is_at(self, moment: datetime) -> bool:
        """Whether `moment` (in UTC) is within the hours, holidays aside."""
        hour = moment.hour + moment.minute / 60
        return moment.weekday() in self.weekdays and any(start <= hour < end for start, end in self.hours)


class ToolFee(HostPrice, frozen=True):
    """USD a use of a server tool, beside its tokens."""

    tool: str
    usd: Decimal


class Holiday(msgspec.Struct, frozen=True):
    """Days without peak hours on a host."""

    host: str
    start: date
    end: date
    source: str


class TermName(msgspec.Struct, frozen=True):
    """What a host calls a tier or a region, and the modifier that this means ("": the standard one)."""

    host: str
    names: tuple[str, ...]
    means: str
    source: str


class Sheet(msgspec.Struct, frozen=True):
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
    rows: dict[tuple[str, str], tuple[PriceRow, ...]] = {}
    for host, models in table["hosts"].items():
        for model, entries in models.items():
            for row in entries:
                start, end = (date.fromisoformat(row[key]) if row[key] else None for key in ("from", "to"))
                prices = {kind: Decimal(row[kind]) for kind in PRICED_CLASSES if kind in row}
                rows[host, model] = (*rows.get((host, model), ()), PriceRow(start, end, name, row["above"], prices))
    overlay = tomllib.loads(OVERLAY.read_text(encoding="utf-8"), parse_float=Decimal)
    # the overlay uses ids only, so that it needs no rule file
    over = sheet_of(overlay, f"price overlay {overlay['data']['date']}", lambda host, model: model)
    return Sheet(name, rows), replace(over, **_host_charges())


def _titles(data: Mapping[str, Any]) -> dict[str, str]:
    """The sources by key: title and day."""
    return {key: f"{source['title']} ({source['date']})" for key, source in data.get("sources", {}).items()}


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
        row = PriceRow(entry.get("from"), entry.get("to"), source, entry.get("above", 0), prices)
        rows.setdefault((host, id_of(host, entry["model"])), []).append(row)
    ordered = {key: tuple(sorted(found, key=lambda row: row.above)) for key, found in rows.items()}
    modifiers = []
    for entry in data.get("modifier", []):
        host = entry.get("host", DEFAULT_HOST)
        models, exceptions = (tuple(id_of(host, model) for model in entry.get(key, ())) for key in ("models", "except"))
        modifiers.append(
            Modifier(
                entry.get("from"),
                entry.get("to"),
                titles.get(entry.get("source", ""), entry.get("source", name)),
                (host,),
                models,
                entry["name"],
                Decimal(entry["multiplier"]),
                exceptions,
                tuple(entry.get("not_with", ())),
            )
        )
    return Sheet(name, ordered, tuple(modifiers))


def _host_charges() -> dict[str, Any]:
    """The content of `prices/hosts.toml` as fields of a sheet; every row has its days and its source."""
    data = tomllib.loads(HOSTS.read_text(encoding="utf-8"), parse_float=Decimal)
    titles = _titles(data)

    def rows(kind: type[Row], table: str, **own: Callable[[dict[str, Any]], Any]) -> tuple[Row, ...]:
        """The rows of a table: what every row has, and its `own` fields."""
        made: list[Row] = []
        make: Any = kind
        for row in data[table]:
            hosts, models = tuple(row.get("hosts") or (row["host"],)), tuple(row["models"])
            fields = {name: read(row) for name, read in own.items()}
            days: dict[str, Any] = {"start": row["from"], "end": row.get("to"), "source": titles[row["source"]]}
            made.append(make(**days, hosts=hosts, models=models, **fields))
        return tuple(made)

    def decimal(name: str) -> Callable[[dict[str, Any]], Decimal]:
        return lambda row: Decimal(row.get(name, 1))

    def terms(table: str) -> tuple[TermName, ...]:
        return tuple(
            TermName(row["host"], tuple(row["names"]), row.get("means", ""), titles[row["source"]])
            for row in data[table]
        )

    return {
        "same": rows(SamePrice, "same", base=itemgetter("as")),
        "instead": rows(
            PriceSubstitute, "instead", price=itemgetter("price"), like=itemgetter("like"), times=decimal("times")
        ),
        "storage": rows(Storage, "storage", usd_per_hour=decimal("usd_per_hour")),
        "peaks": rows(
            Peak,
            "peak",
            multiplier=decimal("multiplier"),
            hours=lambda row: tuple((float(start), float(end)) for start, end in row["hours"]),
            weekdays=lambda row: tuple(row["weekdays"]),
        ),
        "fees": rows(ToolFee, "fee", tool=itemgetter("tool"), usd=lambda row: Decimal(row["usd_per_1000"]) / 1000),
        "disputes": tuple((row["host"], row["model"], row["says"]) for row in data["disputed"]),
        "tiers": terms("tier"),
        "regions": terms("region"),
        "holidays": tuple(
            Holiday(row["host"], days[0], days[1], titles[row["source"]])
            for row in data["holidays"]
            for days in row["days"]
        ),
    }
