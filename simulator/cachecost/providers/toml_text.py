"""A TOML file that a user wrote: its values, and the lines on which they stand."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.faults import Fault, InputError


def read_toml(path: Path) -> tuple[dict[str, Any], Lines]:
    """What is in the file, numbers with a point as Decimal. Raises InputError if it cannot be read or is no TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError([Fault(str(path), f"cannot be read: {reason}")]) from None
    return _toml(text, str(path)), Lines(text)


def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        message = str(error)[: place.start()] if place else str(error).removesuffix(" (at end of document)")
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, None)
        raise InputError([Fault(file, f"is not TOML: {message}", line, column)]) from None


class Lines:
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
