"""Reads a user's TOML file: its values and the lines of its tables and keys."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import DEEPEST, MOST_FILE, TOO_DEEP, OutOfLimits, check_depth, read_whole, within_limits

NAMED = re.compile(r"[^\W\d]\.")
"""A name, and the dot of a dotted key after it."""


def read_toml(path: Path) -> tuple[dict[str, Any], TomlLines]:
    """The file's values, decimals as Decimal. Raises InputError if it cannot be read or is not TOML."""
    value, text = read_toml_text(path)
    return value, TomlLines(text)


def read_toml_text(path: Path, most: int = MOST_FILE) -> tuple[dict[str, Any], str]:
    """The file's values and its text. Raises InputError as `read_toml`, and for a file of more than `most` bytes."""
    data, file = read_whole(path, most), str(path)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError([Fault(file, "cannot be read: it is not UTF-8 text")]) from None
    lines = text.splitlines()
    try:
        for line in lines:  # tomllib takes the square of a dotted key: an upper bound of the levels that a line opens
            key, _, value = line.partition("=")
            if 1 + max(key.count("."), len(NAMED.findall(value))) > DEEPEST:
                raise OutOfLimits(*TOO_DEEP)
        with within_limits():
            found = tomllib.loads(text, parse_float=Decimal)
        check_depth(found)
        return found, text
    except OutOfLimits as error:  # parsers do not say where: most likely it is the longest line
        longest = 1 + max(range(len(lines)), key=lambda number: len(lines[number]))
        raise InputError([Fault(file, str(error), longest)]) from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        message = str(error)[: place.start()] if place else str(error).removesuffix(" (at end of document)")
        number, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, None)
        raise InputError([Fault(file, f"is not TOML: {message}", number, column)]) from None


class TomlLines:
    """Line numbers of the tables and keys of a TOML text; tomllib reports lines only for syntax errors."""

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
