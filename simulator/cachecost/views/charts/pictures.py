"""matplotlib's SVG made part of a page: the page's colours, ids of its own, no more digits than are seen."""

from __future__ import annotations

import re

from markupsafe import Markup
from matplotlib.figure import Figure

from cachecost.views.charts.palette import CLASS_COLOURS, INK, LINE_COLOURS, MUTED, PAPER, RULE
from cachecost.views.charts.style import svg

FIXED = {INK: "ink", MUTED: "muted", RULE: "rule", PAPER: "paper"}
VARIABLES = {
    **{colour: f"line{number}" for number, colour in enumerate(LINE_COLOURS)},
    **{colour: name for name, colour in CLASS_COLOURS.items()},
    **FIXED,
}
"""Colour as matplotlib writes it, to the page's name for it."""
COLOUR = re.compile("|".join(VARIABLES))
NUMBER = re.compile(r"(-?\d+\.\d)\d+")
DROPPED = re.compile(r"\s*<(metadata|style)\b.*?</\1>", re.DOTALL)
NAMED = re.compile(r'(id="|(?:xlink:)?href="#|url\(#)([^")]+)')
PLACED = re.compile(r'( d="|translate\()([^")]*)')


def inline(figure: Figure, name: str, says: str) -> Markup:
    """The figure as an element of the page; `name` begins its ids, `says` is its alternative text."""
    text = svg(figure).decode("utf-8")
    text = text[text.index("<svg") :].strip()
    text = DROPPED.sub("", text)
    text = NAMED.sub(lambda found: _prefix_id(found, name), PLACED.sub(_short, text))
    text = COLOUR.sub(lambda found: f"var(--{VARIABLES[found[0]]})", text)
    opening = Markup('<svg role="img" aria-label="{}" ').format(says)
    return opening + Markup(re.sub(r"\n\s*", "\n", text.removeprefix("<svg ")))


def _prefix_id(found: re.Match[str], name: str) -> str:
    return f"{found[1].removeprefix('xlink:')}{name}-{found[2].replace('DejaVuSans', 'g')}"


def _short(found: re.Match[str]) -> str:
    """A tenth of a point in coordinates, also in those of glyphs, whose units are small."""
    return found[1] + NUMBER.sub(r"\1", " ".join(found[2].split()))
