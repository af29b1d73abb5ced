"""The files of a report."""

from __future__ import annotations

REPORT = "report.md"
PAGE = "index.html"
DOLLARS = "dollars.svg"
CUMULATIVE = "cumulative.svg"
QUESTION = "question.svg"
PROVIDERS = "providers.svg"
README_PICTURE = "chart.png"
CALLS = "calls.csv"
RESULT = "result.json"

OURS = (REPORT, PAGE, DOLLARS, CUMULATIVE, QUESTION, PROVIDERS, README_PICTURE, CALLS, RESULT)
"""The files a run may write; anything else in its folder (a baseline …) is left alone."""
