"""How charts look, independent of the machine's matplotlib settings, and how they become bytes.

The fonts are matplotlib's own DejaVu, drawn as outlines, so a chart looks the same in every viewer;
ids are made with a fixed key and nothing states a date or a version, so the same figure is the
same bytes. The background is white paper, since viewers differ in what they put behind a picture.

matplotlib's SVG becomes part of a page (`inline`) or a file of its own for light and dark pages (`standalone_svg`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from textwrap import wrap
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from cachecost.views.bound_units import bind_units
from cachecost.views.charts.palette import (
    CLASS_COLOURS,
    DARK_COLOURS,
    INK,
    LINE_COLOURS,
    MUTED,
    PAGE_COLOURS,
    PAPER,
    RULE,
)

WIDTH = 9.6
"""Inches; 691 points, which a page of GitHub shows unscaled."""
MARGIN = 0.25
TITLE_SIZE = 12.5
TITLE_LINES = 3
TEXT_SIZE = 9.5
SMALL_SIZE = 8.5
POINTS_PER_INCH = 72

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT_SIZE,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.labelsize": SMALL_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": SMALL_SIZE,
    "ytick.labelsize": SMALL_SIZE,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "path",
    "svg.hashsalt": "cachecost",
}
VARIABLES = {
    **{colour: f"line{number}" for number, colour in enumerate(LINE_COLOURS)},
    **{colour: name for name, colour in CLASS_COLOURS.items()},
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    PAPER: "paper",
}
"""Colour as matplotlib writes it, to the page's name for it."""
COLOUR = re.compile("|".join(VARIABLES))
NUMBER = re.compile(r"(-?\d+\.\d)\d+")
NAMED = re.compile(r'(id="|(?:xlink:)?href="#|url\(#)([^")]+)')
PLACED = re.compile(r'( d="|translate\()([^")]*)')


@contextmanager
def house_style() -> Iterator[None]:
    """Our settings over matplotlib's own defaults, put back afterwards. Missing glyphs are boxes, not warnings."""
    defaults = {key: value for key, value in mpl.rcParamsDefault.items() if not key.startswith(("backend", "webagg"))}
    settings: Any = {**defaults, **SETTINGS}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def svg(figure: Figure) -> bytes:
    return _figure_bytes(figure, "svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})


def png(figure: Figure) -> bytes:
    """The figure as PNG at 160 dots an inch, the same bytes each time."""
    return _figure_bytes(figure, "png", metadata={"Software": None}, dpi=160)


def text_width(text: str, size: float = TEXT_SIZE, *, bold: bool = False) -> float:
    """Inches that `text` is wide."""
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / POINTS_PER_INCH


def wrap_text(text: str, inches: float, size: float = TEXT_SIZE, *, lines: int = 2, bold: bool = False) -> list[str]:
    """`text` in at most `lines` lines of at most `inches`; what does not fit is cut off with "…"."""
    letters = len(text)
    while letters > 8:
        broken = wrap(text, letters, max_lines=lines, placeholder="…", break_on_hyphens=False)
        if all(text_width(line, size, bold=bold) <= inches for line in broken):
            return broken
        letters -= 1
    return [text[:8]]


def cut(text: str, inches: float, size: float = TEXT_SIZE) -> str:
    """`text` in one line of `inches`; what is too long loses its middle, since names differ at their ends."""
    text = " ".join(text.split())
    kept, letters = text, len(text)
    while text_width(kept, size, bold=True) > inches and letters > 8:
        letters -= 1
        kept = f"{text[: letters - letters // 2].rstrip()}…{text[len(text) - letters // 2 :].lstrip()}"
    return kept


def draw_title(figure: Figure, title: str) -> float:
    """Write `title` at the top left; returns the inches it takes from the top."""
    lines = wrap_text(bind_units(title), WIDTH - 2 * MARGIN, TITLE_SIZE, lines=TITLE_LINES, bold=True)
    height = figure.get_size_inches()[1]
    figure.text(
        MARGIN / WIDTH, 1 - MARGIN / height, "\n".join(lines), size=TITLE_SIZE, weight="bold", va="top", linespacing=1.3
    )
    return MARGIN + title_height(title)


def title_height(title: str) -> float:
    lines = wrap_text(bind_units(title), WIDTH - 2 * MARGIN, TITLE_SIZE, lines=TITLE_LINES, bold=True)
    return len(lines) * TITLE_SIZE * 1.35 / POINTS_PER_INCH


def widest(texts: Sequence[str], size: float = TEXT_SIZE, *, bold: bool = False) -> float:
    return max((text_width(text, size, bold=bold) for text in texts), default=0.0)


def _figure_bytes(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = BytesIO()
    with house_style():
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def inline(figure: Figure, name: str, says: str) -> Markup:
    """The figure as an element of the page; `name` begins its ids, `says` is its alternative text."""
    text = svg(figure).decode("utf-8")
    text = re.sub(r"\s*<(metadata|style)\b.*?</\1>", "", text[text.index("<svg") :].strip(), flags=re.DOTALL)
    # a tenth of a point in coordinates, also in those of glyphs, whose units are small
    text = PLACED.sub(lambda found: found[1] + NUMBER.sub(r"\1", " ".join(found[2].split())), text)
    text = NAMED.sub(
        lambda found: f"{found[1].removeprefix('xlink:')}{name}-{found[2].replace('DejaVuSans', 'g')}", text
    )
    text = COLOUR.sub(lambda found: f"var(--{VARIABLES[found[0]]})", text)
    opening = Markup('<svg role="img" aria-label="{}" ').format(says)
    return opening + Markup(re.sub(r"\n\s*", "\n", text.removeprefix("<svg ")))


def dark_style() -> str:
    """CSS that changes the palette's colours where the reader's system is dark; elsewhere they stay as they are."""
    rules = [
        f'[style*="{part}: {PAGE_COLOURS[name]}"]{{{part}:{dark} !important}}'
        for name, dark in DARK_COLOURS.items()
        for part in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(dict.fromkeys(rules))}}}</style>"


def standalone_svg(figure: Figure, title: str) -> str:
    text = svg(figure).decode("utf-8")
    begin = text.index(">", text.index("<svg")) + 1
    opening = text[:begin].replace("<svg ", '<svg role="img" ', 1)
    return f"{opening}\n<title>{escape(title)}</title>\n{dark_style()}{text[begin:]}"


def annotate_beside(axes: Axes, text: str, at: tuple[float, float], inches: float, **style: Any) -> None:
    """Write `text` beside the point `at`, `inches` to its right."""
    offset = (inches * POINTS_PER_INCH, 0)
    axes.annotate(text, at, offset, textcoords="offset points", va="center_baseline", annotation_clip=False, **style)
