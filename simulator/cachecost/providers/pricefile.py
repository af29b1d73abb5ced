"""Price sheets: the table made from genai-prices, and the overlay, as dated rows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.providers.rulefile import catalogue

FOLDER = Path(__file__).with_name("prices")
SHIPPED_TABLE = FOLDER / "genai-prices.json"
OVERLAY = FOLDER / "overlay.toml"

CLASSES = ("input", "read", "write_5m", "write_1h", "output")
ANY_MODEL = "*"
DEFAULT_HOST = "anthropic"


def _within(start: date | None, day: date, end: date | None) -> bool:
    return (start is None or start <= day) and (end is None or day < end)


class PriceRow(NamedTuple):
    """Prices (USD per 10**6 tokens) of some token classes of a model, for prompts longer than `above` tokens."""

    start: date | None
    end: date | None
    above: int
    prices: Mapping[str, Decimal]
    source: str

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


class Modifier(NamedTuple):
    """What a way of calling multiplies all prices by, for some models and days."""

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
        named = model in self.models or ANY_MODEL in self.models
        return host == self.host and named and model not in self.exceptions

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


class Sheet(NamedTuple):
    """One layer of prices. Rows of a model are in the order in which they win: the last that fits."""

    name: str
    rows: Mapping[tuple[str, str], tuple[PriceRow, ...]]
    modifiers: tuple[Modifier, ...] = ()


@cache
def shipped() -> tuple[Sheet, Sheet]:
    """The public prices: the table made from genai-prices, and the overlay over it."""
    table = json.loads(SHIPPED_TABLE.read_text(encoding="utf-8"))
    name = f"genai-prices {table['genai_prices']}"
    rows = {
        (host, model): tuple(_table_row(row, name) for row in rows)
        for host, models in table["hosts"].items()
        for model, rows in models.items()
    }
    overlay = tomllib.loads(OVERLAY.read_text(encoding="utf-8"), parse_float=Decimal)
    return Sheet(name, rows), sheet_of(overlay, f"price overlay {overlay['data']['date']}")


def _table_row(row: dict[str, Any], source: str) -> PriceRow:
    start, end = (date.fromisoformat(row[key]) if row[key] else None for key in ("from", "to"))
    prices = {name: Decimal(row[name]) for name in CLASSES if name in row}
    return PriceRow(start, end, row["above"], prices, source)


def sheet_of(data: dict[str, Any], name: str) -> Sheet:
    """The rows of a parsed price file that is known to be valid."""
    titles = {key: f"{source['title']} ({source['date']})" for key, source in data.get("sources", {}).items()}
    rows: dict[tuple[str, str], list[PriceRow]] = {}
    for entry in data.get("price", []):
        host = entry.get("host", DEFAULT_HOST)
        source = titles.get(entry.get("source"), entry.get("source", name))
        prices = {name: Decimal(entry[name]) for name in CLASSES if name in entry}
        row = PriceRow(entry.get("from"), entry.get("to"), entry.get("above", 0), prices, source)
        rows.setdefault((host, catalogue(host).model(entry["model"]).id), []).append(row)
    ordered = {key: tuple(sorted(found, key=lambda row: row.above)) for key, found in rows.items()}
    return Sheet(name, ordered, tuple(_modifier(entry, titles, name) for entry in data.get("modifier", [])))


def _modifier(entry: dict[str, Any], titles: dict[str, str], name: str) -> Modifier:
    host = entry.get("host", DEFAULT_HOST)
    models, exceptions = (
        tuple(model if model == ANY_MODEL else catalogue(host).model(model).id for model in entry.get(key, ()))
        for key in ("models", "except")
    )
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
