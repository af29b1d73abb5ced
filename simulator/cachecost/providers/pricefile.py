"""Price sheets: the table made from genai-prices, and the overlay, as dated rows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.facts import fact
from cachecost.providers.rulefile import catalogue

FOLDER = Path(__file__).with_name("prices")
SHIPPED_TABLE = FOLDER / "genai-prices.json"
OVERLAY = FOLDER / "overlay.toml"
HOSTS = FOLDER / "hosts.toml"

CLASSES = ("input", "read", "write_5m", "write_1h", "output")
ANY_MODEL = "*"
DEFAULT_HOST = "anthropic"


def _within(start: date | None, day: date, end: date | None) -> bool:
    return (start is None or start <= day) and (end is None or day < end)


@fact
class PriceRow:
    """Prices (USD per 10**6 tokens) of some token classes of a model, for prompts longer than `above` tokens."""

    start: date | None
    end: date | None
    above: int
    prices: Mapping[str, Decimal]
    source: str

    def holds(self, day: date) -> bool:
        return _within(self.start, day, self.end)


@fact
class Modifier:
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


@fact
class SameAs:
    """Models that cost on `host` what they cost on the host `base`, where `host` has no price of its own."""

    host: str
    base: str
    models: tuple[str, ...]
    start: date | None
    end: date | None
    source: str

    def covers(self, host: str, model: str, day: date) -> bool:
        named = model in self.models or ANY_MODEL in self.models
        return host == self.host and named and _within(self.start, day, self.end)


@fact
class Sheet:
    """One layer of prices. Rows of a model are in the order in which they win: the last that fits."""

    name: str
    rows: Mapping[tuple[str, str], tuple[PriceRow, ...]]
    modifiers: tuple[Modifier, ...] = ()
    same: tuple[SameAs, ...] = ()


@cache
def shipped() -> tuple[Sheet, Sheet]:
    """The public prices: the table made from genai-prices, and the overlay over it.

    The overlay brings along which host charges what another does (`prices/hosts.toml`).
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
    return Sheet(name, rows), Sheet(over.name, over.rows, over.modifiers, _same_prices())


def _same_prices() -> tuple[SameAs, ...]:
    data = tomllib.loads(HOSTS.read_text(encoding="utf-8"))
    titles = _titles(data)
    return tuple(
        SameAs(row["host"], row["as"], tuple(row["models"]), row["from"], row.get("to"), titles[row["source"]])
        for row in data["same"]
    )


def _titles(data: Mapping[str, Any]) -> dict[str, str]:
    """Sources by key as they are told: title and day."""
    return {key: f"{source['title']} ({source['date']})" for key, source in data.get("sources", {}).items()}


def _table_row(row: dict[str, Any], source: str) -> PriceRow:
    start, end = (date.fromisoformat(row[key]) if row[key] else None for key in ("from", "to"))
    prices = {name: Decimal(row[name]) for name in CLASSES if name in row}
    return PriceRow(start, end, row["above"], prices, source)


def _as_it_is(host: str, model: str) -> str:
    """The overlay writes ids only, so that no rule file has to be read for it."""
    return model


def _id_of(host: str, model: str) -> str:
    """The id behind an alias; prices are the model's, an endpoint's are modifiers of them."""
    return model if model == ANY_MODEL else catalogue(host).model(model).name


def sheet_of(data: dict[str, Any], name: str, id_of: Callable[[str, str], str] = _id_of) -> Sheet:
    """The rows of a parsed price file that is known to be valid; `id_of` finds the id of a host's model."""
    titles = _titles(data)
    rows: dict[tuple[str, str], list[PriceRow]] = {}
    for entry in data.get("price", []):
        host = entry.get("host", DEFAULT_HOST)
        source = titles.get(entry.get("source"), entry.get("source", name))
        prices = {name: Decimal(entry[name]) for name in CLASSES if name in entry}
        row = PriceRow(entry.get("from"), entry.get("to"), entry.get("above", 0), prices, source)
        rows.setdefault((host, id_of(host, entry["model"])), []).append(row)
    ordered = {key: tuple(sorted(found, key=lambda row: row.above)) for key, found in rows.items()}
    modifiers = tuple(_modifier(entry, titles, name, id_of) for entry in data.get("modifier", []))
    return Sheet(name, ordered, modifiers)


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
