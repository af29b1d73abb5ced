"""The codes of lint as data: `codes.toml`, one table a code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first. error: the API refuses. warning: it costs money. note: nothing is lost for sure."""


@dataclass(frozen=True, slots=True)
class LintCode:
    """What a code means, in general: what, why, the fix, and who says so."""

    code: str
    name: str
    severity: Severity
    what: str
    why: str
    fix: str
    source: str


@cache
def codes() -> Mapping[str, LintCode]:
    """Every code of lint, by its id, in order."""
    text = files("cachecost.analysis.lint").joinpath("codes.toml").read_text(encoding="utf-8")
    return {code: LintCode(code, **row) for code, row in tomllib.loads(text).items()}
