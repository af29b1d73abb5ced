"""Lint: what is wrong with a request, or with a request and the one after it, without a cache.

`lint(body)`, `lint(body, next_body)`; `lint_log` for recordings. The codes are data: `codes.toml`.
"""

from __future__ import annotations

from cachecost.analysis.lint.finding import LintCode, LintFinding, codes, sort_findings
from cachecost.analysis.lint.linter import MARGIN, LintedLog, lint, lint_bodies, lint_log
from cachecost.analysis.lint.loaded_request import RequestLoader

__all__ = [
    "MARGIN",
    "LintCode",
    "LintFinding",
    "LintedLog",
    "RequestLoader",
    "codes",
    "lint",
    "lint_bodies",
    "lint_log",
    "sort_findings",
]
