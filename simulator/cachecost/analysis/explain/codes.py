"""The codes of explain as data: `codes.toml`, one table a code, one code a cause."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means, in general: what, why, the fix, and who says so.

    `told` is the sentence of one finding, with places to fill in; `word` is that of Anthropic's cache diagnostics.
    """

    code: str
    name: str
    cause: str
    word: str
    what: str
    told: str
    why: str
    fix: str
    source: str


@cache
def codes() -> Mapping[str, Code]:
    """Every code by its cause, in the order of the prompt, then of time, then of marks."""
    text = files("cachecost.analysis.explain").joinpath("codes.toml").read_text(encoding="utf-8")
    return {row["cause"]: Code(code, **row) for code, row in tomllib.loads(text).items()}
