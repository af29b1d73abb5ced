"""Markdown as the reference pages need it: tables and code that nothing in a cell can break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(_one_line(cell) for cell in line) + " |\n" for line in lines)


def code(text: str) -> str:
    """`text` as code in a line; nothing for an empty text."""
    return f"`{text}`" if text else ""


def prose(text: str) -> str:
    """A plain text as Markdown: what stands between back-ticks stays, and no other character is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _plain(part) for part in parts)


def _plain(text: str) -> str:
    return re.sub(r"([<*$]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _one_line(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
