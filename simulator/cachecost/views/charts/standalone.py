"""matplotlib's SVG as a file of its own, for light and dark pages, with a title for who cannot see it."""

from __future__ import annotations

from xml.sax.saxutils import escape

from matplotlib.figure import Figure

from cachecost.views.charts.palette import DARK_COLOURS, PAGE_COLOURS
from cachecost.views.charts.style import svg


def dark_style() -> str:
    """CSS that changes the palette's colours where the reader's system is dark; elsewhere they stay as they are."""
    rules = [
        f'[style*="{part}: {PAGE_COLOURS[name]}"]{{{part}:{dark} !important}}'
        for name, dark in DARK_COLOURS.items()
        for part in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(dict.fromkeys(rules))}}}</style>"


def standalone_svg(figure: Figure, title: str) -> str:
    """The text of the file; the same figure gives the same bytes."""
    text = svg(figure).decode("utf-8")
    begin = text.index(">", text.index("<svg")) + 1
    opening = text[:begin].replace("<svg ", '<svg role="img" ', 1)
    return f"{opening}\n<title>{escape(title)}</title>\n{dark_style()}{text[begin:]}"
