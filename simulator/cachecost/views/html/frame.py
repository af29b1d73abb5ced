"""The frame of every page: one template environment, and a file that is whole or absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cachecost.base.formatting import inert_text
from cachecost.views.bound_units import bind_units_in_html
from cachecost.views.charts.palette import CLASS_COLOURS, DARK_COLOURS, PAGE_COLOURS
from cachecost.views.tables.table import Table
from cachecost.views.timeline.picture import TimelineView

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: its anchor and heading, sentences, timelines, a table, and sentences below it."""

    anchor: str
    title: str
    sentences: list[str]
    table: Table | None = None
    after: list[str] = field(default_factory=list)
    timelines: Sequence[TimelineView] = ()


def render_page(template: str, **facts: Any) -> str:
    """The page as text, the same bytes each time; every fact is escaped and inert."""
    colours = {"colours": PAGE_COLOURS, "dark_colours": DARK_COLOURS, "class_colours": CLASS_COLOURS}
    text = inert_text(_environment().get_template(template).render(**colours, **facts))
    return bind_units_in_html(text)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("cachecost.views.html")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
