"""The codes of explain as data: `codes.toml`, one table a code, one code a cause."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from cachecost.caches.causes import Cause


@dataclass(frozen=True, slots=True)
class CauseCode:
    """A code: what it means, why it costs, how to fix it, and the source.

    `fixed_in` says what its fix changes (see the head of `codes.toml`).
    `sentence` is that of one finding, with places to fill in; `word` is that of Anthropic's cache diagnostics.
    """

    code: str
    name: str
    cause: Cause
    fixed_in: Literal["prompt", "time", "breakpoints", "bill"]
    word: str
    what: str
    sentence: str
    why: str
    fix: str
    source: str


@cache
def codes() -> Mapping[str, CauseCode]:
    """Every code by its cause."""
    text = files("cachecost.analysis.explain").joinpath("codes.toml").read_text(encoding="utf-8")
    return {row["cause"]: CauseCode(code, **row) for code, row in tomllib.loads(text).items()}
