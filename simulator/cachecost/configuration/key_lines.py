"""The line of each table and key of a TOML text; tomllib gives lines only for syntax errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

KeyPath = tuple[str, ...]
"""The names that lead to a table or key."""
TOKEN = re.compile(
    r'(?P<string>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<newline>\n)|(?P<other>[^\"'#\[\]{}\n]+)",
    re.DOTALL,
)
BARE = re.compile(r"[A-Za-z0-9_.-]+")
HEADER = re.compile(r"\s*\[\[?(.*?)\]\]?\s*", re.DOTALL)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The first line of each table and key, by the names that lead to it. `text` is valid TOML.

    The keys of an inline table stand on the line of the key that it is the value of; they have no entry.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in _statements(text):
        if header := HEADER.fullmatch(statement) if statement.lstrip().startswith("[") else None:
            table = _names(header[1])
            lines.setdefault(table, line)
        else:
            lines.setdefault(table + _names(_key_of(statement)), line)
    return lines


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a key, or of the nearest value around it."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The first line and the text of each table header and each `key = value`, without comments."""
    line, begun, depth, parts = 1, 1, 0, list[str]()
    for token in TOKEN.finditer(text):
        kind, found = token.lastgroup, token[0]
        depth += (kind == "open") - (kind == "close")
        if not "".join(parts[:1]).strip():
            begun, parts = line, []
        if kind == "newline" and depth == 0:
            if "".join(parts[:1]).strip():
                yield begun, "".join(parts)
            parts = []
        elif kind != "comment":
            parts.append(found)
        line += found.count("\n")
    if "".join(parts).strip():
        yield begun, "".join(parts)


def _key_of(statement: str) -> str:
    """What stands before the `=`; a quoted key may contain one."""
    end = re.match(r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^=\"'])*", statement)
    return end[0] if end else statement


def _names(key: str) -> KeyPath:
    """A dotted key as names."""
    bare = key.strip()
    if BARE.fullmatch(bare):
        return tuple(bare.split("."))
    value: Any = tomllib.loads(f"{bare} = 0")
    names: list[str] = []
    while isinstance(value, dict):
        name, value = next(iter(value.items()))
        names.append(name)
    return tuple(names)
