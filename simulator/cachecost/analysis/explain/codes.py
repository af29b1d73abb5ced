"""The codes of findings: stable, one a cause, with what, why, fix and source. They are data."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("codes.toml")


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table. `what` has places to fill in; `word` is that of Anthropic's cache diagnostics."""

    code: str
    cause: str
    title: str
    what: str
    why: str
    fix: str
    word: str
    source: str


@cache
def codes() -> dict[str, Code]:
    """Every code by its cause, in the order of the table, which is that of the prompt and then of time."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["code"]
    return {row["cause"]: Code(**row) for row in rows}
