"""Price sheets: the table made from genai-prices, and the overlay, as dated rows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.providers.hosts import DEFAULT_HOST
from cachecost.providers.pricerows import (
    ANY_MODEL,
    Holiday,
    Modifier,
    Peak,
    PriceRow,
    PriceSubstitute,
    SamePrice,
    Sheet,
    Storage,
    TermName,
    ToolFee,
)
from cachecost.providers.rulefile import catalogue
from cachecost.providers.usage import PRICED_CLASSES

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
        "same": tuple(_same(row, titles) for row in data["same"]),
        "instead": tuple(_instead(row, titles) for row in data["instead"]),
        "storage": tuple(_storage(row, titles) for row in data["storage"]),
        "peaks": tuple(_peak(row, titles) for row in data["peak"]),
        "disputes": tuple((row["host"], row["model"], row["says"]) for row in data["disputed"]),
        "fees": tuple(_fee(row, titles) for row in data["fee"]),
        "tiers": tuple(_term_name(row, titles) for row in data["tier"]),
        "regions": tuple(_term_name(row, titles) for row in data["region"]),
        "holidays": tuple(_holiday(row, days, titles) for row in data["holidays"] for days in row["days"]),
    }


def _same(row: dict[str, Any], titles: dict[str, str]) -> SamePrice:
    return SamePrice(row["host"], row["as"], tuple(row["models"]), row["from"], row.get("to"), titles[row["source"]])


def _holiday(row: dict[str, Any], days: tuple[date, date], titles: dict[str, str]) -> Holiday:
    return Holiday(row["host"], days[0], days[1], titles[row["source"]])


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
