"""Markdown as the reference pages need it: tables and code that nothing in a cell can break, and the pages' files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


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


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Write all pages, by name, into a folder; one that is none of them any more is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in folder.glob("*.md")} - pages.keys():
        (folder / stale).unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def _plain(text: str) -> str:
    return re.sub(r"([<*$]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _one_line(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
