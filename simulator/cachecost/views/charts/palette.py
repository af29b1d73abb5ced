"""The colours of the token classes and of lines, the same in the terminal and in charts.

Read is quiet, written is warm, uncached is strong. Classes differ in lightness as well as in
hue, so they stay apart for colour-blind readers and in grey print; a test measures that.
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
MUTED = "#5f6c7a"
RULE = "#d9dee3"
PAPER = "#ffffff"

LINE_COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#b8860b",
    "#7a5fb0",
    "#8a8f98",
    "#8c3b2a",
    "#2b3a4a",
)
"""After Okabe and Ito; lines beyond the tenth are drawn dashed in the same colours. Labels do not need them."""
