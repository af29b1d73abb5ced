"""Numbers that never break from their unit or sign: "3 ×", "6 min", "±$0.043"; and the last line of a log's account."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

UNITS = r"×|%|s|min|h|days?|ms|k?B|[MG]i?B|KiB|tokens?"
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
BEFORE_UNIT = re.compile(rf"(?<=[\d]) (?=(?:{UNITS}|{MONTHS})(?![\w-]))|(?<=\d[kMB]) (?=(?:{UNITS})(?![\w-]))")
BREAKING = re.compile(
    r"(?:[±+−<≈]|&lt;)+\\?\$[\d.,]*\d(?:–[\d.,]*\d)?%?|\\?\$[\d.,]*\d–[\d.,]*\d|\d[\d.,]*–[\d.,]*\d%?"
)
"""A sign before a dollar sign, and a range: browsers break lines there."""
MARKUP = re.compile(r"<(style|script|pre|title|code)\b.*?</\1>|<[^>]*>", re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
ADDS = {
    "explain": "why it costs this",
    "optimize": "cheapest plan",
    "whatif": "other models, TTLs, hosts",
    "lint": "static checks",
}
"""Commands that take a log, and what each of them adds."""
NOTHING_KNOWN: Mapping[str, str] = {}


def bind_units(text: str) -> str:
    """`text` with no-break spaces before units."""
    return BEFORE_UNIT.sub("\u00a0", text)


def bind_units_in_html(page: str) -> str:
    """The page; numbers that a browser would break are in spans that do not wrap. Code and titles stay as they are."""
    return _outside(MARKUP, page, lambda text: BREAKING.sub(r'<span class="number">\g<0></span>', bind_units(text)))


def bind_units_in_markdown(text: str) -> str:
    """The same with no-break spaces alone, so that "±$0.04" can be searched for. Code and links stay as they are."""
    return _outside(CODE, text, bind_units)


def _outside(kept: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    made, start = [], 0
    for found in kept.finditer(text):
        made += [change(text[start : found.start()]), found[0]]
        start = found.end()
    return "".join([*made, change(text[start:])])


def see_also(command: str, arguments: str, known: Mapping[str, str] = NOTHING_KNOWN, is_scenario: bool = False) -> str:
    """A line on the commands besides `command`; `known` are dollars of theirs, like {"explain": "$0.36 avoidable"},
    `arguments` the paths as on a command line."""
    others = [name for name in ADDS if name != command and not (is_scenario and name in ("whatif", "lint"))]
    parts = [f"{name} ({known[name] if name in known else ADDS[name]})" for name in others]
    return f"see also   cachecost COMMAND {arguments}: " + ", ".join(parts)
