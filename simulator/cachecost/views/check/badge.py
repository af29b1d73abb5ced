"""A badge from the JSON of a check: the cache hit rate, what a session costs, or both. Made here, without network."""

from __future__ import annotations

from decimal import Decimal
from xml.sax.saxutils import escape

from cachecost.base.formatting import UNKNOWN, dollars, percent
from cachecost.views.charts.palette import INK, MUTED, PAGE_COLOURS, PAPER
from cachecost.views.check.text import CheckObject

COLOURS = {"pass": PAGE_COLOURS["good"], "fail": PAGE_COLOURS["bad"], "not_comparable": MUTED}
HEIGHT, PADDING, RADIUS, BASELINE = 20, 7, 3, 14
SIZE = 11
WIDTHS = ((3.6, " .,:;|!'il·"), (4.6, "rtfj-"), (5.8, "csvxyzk"), (10.0, "mwMW%"))
"""Pixels of letters in Verdana and DejaVu Sans at that size; of all others USUAL_WIDTH."""
USUAL_WIDTH = 7.0


def badge_svg(check: CheckObject, shows: str) -> str:
    """The text of the SVG file. Its colour is that of the verdict."""
    label, value = badge_words(check, shows)
    left, right = (_width(text) + 2 * PADDING for text in (label, value))
    title, colour = escape(f"{label}: {value}"), COLOURS[check["verdict"]]
    shape = f"badge-{left + right}"
    clip = f'<clipPath id="{shape}"><rect width="{left + right}" height="{HEIGHT}" rx="{RADIUS}"/></clipPath>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img"'
        f' aria-label="{title}">\n<title>{title}</title>\n{clip}\n'
        f'<g clip-path="url(#{shape})"><rect width="{left}" height="{HEIGHT}" fill="{INK}"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{colour}"/></g>\n'
        f'<g fill="{PAPER}" font-family="Verdana,DejaVu Sans,sans-serif" font-size="{SIZE}">\n'
        f"{_text(label, PADDING)}\n{_text(value, left + PADDING)}\n</g>\n</svg>\n"
    )


def badge_words(check: CheckObject, shows: str) -> tuple[str, str]:
    """("cache hit rate", "94%"); of several scenarios, the rate of all their input and the mean cost of a session."""
    named = {(one["scenario"], one["strategy"]) for one in check["budgets"]}
    found: dict[str, CheckObject] = {}
    for is_named in (True, False):
        for one in check["sessions"]:
            if ((one["scenario"], one["strategy"]) in named) is is_named:
                found.setdefault(one["scenario"], one)
    sessions = list(found.values())
    read, total = (sum(one[name] for one in sessions) for name in ("cache_read_input_tokens", "input_tokens"))
    rate = percent(Decimal(read) / total) if total else UNKNOWN
    mean = sum((Decimal(one["cost_usd"]) for one in sessions), Decimal(0)) / len(sessions) if sessions else None
    cost = f"{dollars(mean)} a session"
    both = f"{rate} hits · {cost}"
    return {"hit-rate": ("cache hit rate", rate), "cost": ("prompts", cost), "both": ("cache", both)}[shows]


def _width(text: str) -> int:
    """Pixels of a text, roughly: `textLength` makes it exact in any font."""
    return round(sum(next((width for width, known in WIDTHS if one in known), USUAL_WIDTH) for one in text))


def _text(text: str, x: int) -> str:
    return f'<text x="{x}" y="{BASELINE}" textLength="{_width(text)}">{escape(text)}</text>'
