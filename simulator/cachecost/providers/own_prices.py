"""A user's own price file: read, checked whole, every fault with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.faults import CannotEvaluate, Fault, InputError, nearest
from cachecost.providers.pricefile import ANY_MODEL, CLASSES, DEFAULT_HOST, Sheet, sheet_of
from cachecost.providers.rulefile import catalogue, hosts

MODIFIERS = ("batch", "fast", "us", "regional", "discount")
DAYS = ("from", "to")
PRICE_KEYS = ("host", "model", *DAYS, "above", *CLASSES, "source")
MODIFIER_KEYS = ("name", "host", "models", "except", "multiplier", *DAYS, "not_with", "source")
SHAPES = {"price": PRICE_KEYS, "modifier": MODIFIER_KEYS}


def own_sheet(path: Path) -> Sheet:
    """A user's price file (`--prices`; its format is at the head of `prices/overlay.toml`).

    Raises InputError with every fault, each with file and line, if it cannot be read or is not valid.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError([Fault(str(path), f"cannot be read: {reason}")]) from None
    data = _toml(text, str(path))
    faults = list(_Checker(data, text, str(path)).faults())
    if faults:
        raise InputError(sorted(faults, key=lambda fault: fault.line or 0))
    return sheet_of(data, str(path))


def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        message = str(error)[: place.start()] if place else str(error).removesuffix(" (at end of document)")
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, None)
        raise InputError([Fault(file, f"is not TOML: {message}", line, column)]) from None


class _Checker:
    """Everything that is wrong with a price file, with the line of each."""

    def __init__(self, data: dict[str, Any], text: str, file: str) -> None:
        self._data = data
        self._lines = _Lines(text)
        self._file = file

    def faults(self) -> Iterator[Fault]:
        yield from self._table_faults()
        for kind, keys in SHAPES.items():
            entries = self._data.get(kind)
            for number, entry in enumerate(_tables(entries)):
                for key, message in _entry_faults(kind, keys, entry):
                    where = f"{kind}[{number}]" + (f".{key}" if key else "")
                    yield Fault(self._file, f"{where}: {message}", self._lines.of(kind, number, key))

    def _table_faults(self) -> Iterator[Fault]:
        for key, value in self._data.items():
            line = self._lines.top(key)
            if key not in SHAPES:
                yield Fault(self._file, f"{key}: expected [[price]] or [[modifier]]{nearest(key, SHAPES)}", line)
            elif not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
                yield Fault(self._file, f"{key}: expected [[{key}]], one table a row", line)


def _tables(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _entry_faults(kind: str, keys: tuple[str, ...], entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((key, f"unknown key{nearest(key, keys)}") for key in entry if key not in keys)
    yield from _day_faults(entry)
    yield from _name_faults(entry)
    yield from _price_faults(entry) if kind == "price" else _modifier_faults(entry)


def _day_faults(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    days = {key: entry[key] for key in DAYS if key in entry}
    wrong = [key for key, day in days.items() if type(day) is not date]
    yield from ((key, f"expected a day like 2026-03-07; got {_shown(days[key])}") for key in wrong)
    if len(days) == len(DAYS) and not wrong and days["to"] <= days["from"]:
        yield "to", f"expected a day after from = {days['from']}; got {days['to']}"


def _price_faults(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in CLASSES:
        if name in entry and not _is_amount(entry[name]):
            yield name, f"expected USD per 10**6 tokens, a number from 0; got {_shown(entry[name])}"
    above = entry.get("above", 0)
    if type(above) is not int or above < 0:
        yield "above", f"expected tokens, a whole number from 0; got {_shown(above)}"
    if "model" not in entry:
        yield "", "model is missing"
    if not any(name in entry for name in CLASSES):
        yield "", f"no price in it; expected one of {', '.join(CLASSES)}"


def _modifier_faults(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from (("", f"{key} is missing") for key in ("name", "models", "multiplier") if key not in entry)
    name = entry.get("name", MODIFIERS[0])
    if name not in MODIFIERS:
        yield "name", f"expected one of {', '.join(MODIFIERS)}; got {_shown(name)}{nearest(str(name), MODIFIERS)}"
    if not _is_amount(entry.get("multiplier", 1)):
        yield "multiplier", f"expected a number from 0; got {_shown(entry['multiplier'])}"
    excluded = entry.get("not_with", [])
    if not isinstance(excluded, list) or any(other not in MODIFIERS for other in excluded):
        yield "not_with", f"expected a list of {', '.join(MODIFIERS)}; got {_shown(excluded)}"


def _name_faults(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Faults of host and models: an unknown name would be a row that never fits."""
    host = entry.get("host", DEFAULT_HOST)
    if host not in hosts():
        yield "host", f"no rules for host {_shown(host)}{nearest(str(host), hosts())}; known: {', '.join(hosts())}"
        return
    if "source" in entry and not isinstance(entry["source"], str):
        yield "source", f"expected text; got {_shown(entry['source'])}"
    if "model" in entry:
        yield from _model_faults("model", host, [entry["model"]])
    for key in ("models", "except"):
        value = entry.get(key, [])
        if isinstance(value, list):
            yield from _model_faults(key, host, [name for name in value if (key, name) != ("models", ANY_MODEL)])
        else:
            yield key, f'expected a list of models, or ["{ANY_MODEL}"]; got {_shown(value)}'


def _model_faults(key: str, host: str, names: list[Any]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            catalogue(host).model(str(name))
        except CannotEvaluate as error:
            yield key, str(error)


def _is_amount(value: object) -> bool:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return is_number and Decimal(str(value)).is_finite() and Decimal(str(value)) >= 0


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Decimal | date) else repr(value)


class _Lines:
    """Where the tables and keys of a TOML text stand: tomllib tells only of text that is not TOML."""

    def __init__(self, text: str) -> None:
        self._tables: dict[str, list[dict[str, int]]] = {}
        self._top: dict[str, int] = {}
        current: dict[str, int] = self._top
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[\[?\s*\"?([\w-]+)", line):
                current = {"": number}
                self._tables.setdefault(header[1], []).append(current)
                self._top.setdefault(header[1], number)
            elif key := re.match(r"\s*\"?([\w-]+)\"?\s*=", line):
                current.setdefault(key[1], number)

    def top(self, key: str) -> int | None:
        return self._top.get(key)

    def of(self, kind: str, number: int, key: str) -> int | None:
        tables = self._tables.get(kind, [])
        table = tables[number] if number < len(tables) else {}
        return table.get(key, table.get(""))
