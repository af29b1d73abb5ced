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

    `removal` says how a replay removes the cause (see the head of `codes.toml`).
    `told` is the sentence of one finding, with places to fill in; `word` is that of Anthropic's cache diagnostics.
    """

    code: str
    name: str
    cause: Cause
    removal: Literal["restore", "place", "drop", "bill"]
    word: str
    what: str
    told: str
    why: str
    fix: str
    source: str


@cache
def codes() -> Mapping[str, CauseCode]:
    """Every code by its cause, in the order of removal: causes in the prompt, then in time, then in breakpoints."""
    text = files("cachecost.analysis.explain").joinpath("codes.toml").read_text(encoding="utf-8")
    return {row["cause"]: CauseCode(code, **row) for code, row in tomllib.loads(text).items()}
