"""Every colour of this program: token classes, lines, inks and terminal styles. Charts, HTML and the terminal read it.

Read is quiet, written is warm, uncached is strong. Classes differ in lightness as well as in hue, so they stay apart
for colour-blind readers and in grey print; a test measures that.
"""

from __future__ import annotations

CLASS_COLOURS = {
    "read": "#c9d8e3",
    "write_5m": "#f2a93b",
    "write_1h": "#c4551a",
    "input": "#9c1558",
    "output": "#8395a6",
}

INK = "#1f2933"
MUTED = "#5a6673"
RULE = "#d9dee3"
PAPER = "#ffffff"

LINE_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#b8860b", "#7a5fb0", "#8a8f98", "#8c3b2a", "#2b3a4a"),
)
"""After Okabe and Ito; lines beyond the tenth are drawn dashed in the same colours. Labels do not need them."""

PAGE_COLOURS = {
    "ink": INK,
    "muted": MUTED,
    "rule": RULE,
    "paper": PAPER,
    "panel": "#f4f6f8",
    "good": "#00694f",
    "bad": "#a3210f",
    "focus": "#0050a0",
    **CLASS_COLOURS,
    **{f"line{number}": colour for number, colour in enumerate(LINE_COLOURS)},
}
"""The variables of a page's CSS, in light and on paper."""

DARK_COLOURS = {
    "ink": "#e6eaee",
    "muted": "#a3afbb",
    "rule": "#37424d",
    "paper": "#14191f",
    "panel": "#1c232b",
    "good": "#54c79c",
    "bad": "#ff9b8f",
    "focus": "#8ec5ff",
    "read": "#3f5364",
    "write_1h": "#d9682a",
    "input": "#e0529b",
    "line0": "#4ea3dd",
    "line6": "#a48ddb",
    "line8": "#c8705c",
    "line9": "#c3cfdb",
}
"""Those of them that differ on a dark page."""

ERROR_STYLE = "red"
SEVERITY_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold"}
"""Styles of the terminal, in rich's words, which take the terminal's own colours."""
