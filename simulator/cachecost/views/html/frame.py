"""The frame of every page: one template environment, and a file that is whole or absent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachecost.base.atomic_files import write_whole
from cachecost.base.inert import inert_text
from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Table:
    """A table as words: the first `names` columns of a row are flush left. `strong` are the rows to be seen first.

    `wraps`: its headers may be long.
    """

    caption: str
    headers: list[str]
    rows: list[list[str]]
    names: int = 1
    strong: frozenset[int] = frozenset()
    wraps: bool = False


def page(template: str, **facts: Any) -> str:
    """The page as text, the same bytes each time; every fact is escaped and inert."""
    colours = {"colours": CLASS_COLOURS, "line_colours": LINE_COLOURS}
    return inert_text(_environment().get_template(template).render(**colours, **facts))


def write_page(path: Path, text: str) -> None:
    """Write the page whole, or leave what was there. Raises OSError."""
    write_whole(path, text.encode("utf-8"))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("cachecost.views.html")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
