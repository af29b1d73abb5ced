"""What was measured of each tokenizer generation: ratios, structure constants, error bands (`calibration.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from cachecost.faults import CannotEvaluate, nearest

DATA = "calibration.toml"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured facts of one tokenizer generation.

    `ratio` is Claude tokens per cl100k token by content kind; `structure` tokens per fact of a block
    (and `format`, for a request with structured output); `tool_prompt_head` how many tokens of the
    tool-use system prompt stand before the tool definitions, the rest standing after the system prompt.
    `band` is, by counter name, the relative error of a prompt's length at the 95th percentile, on
    sources that were held out of the fit.
    """

    generation: str
    ratio: Mapping[str, float]
    structure: Mapping[str, float]
    tool_prompt_head: int
    band: Mapping[str, float]
    fitted: date


def calibration(generation: str) -> Calibration:
    """The calibration of a tokenizer generation. Raises CannotEvaluate naming the nearest."""
    known = _shipped()
    if generation not in known:
        raise CannotEvaluate(
            f"tokenizer generation '{generation}' is not calibrated: expected one of {', '.join(known)}"
            f"{nearest(generation, known)}"
        )
    return known[generation]


@cache
def _shipped() -> dict[str, Calibration]:
    data = tomllib.loads(files("cachecost.tokens").joinpath(DATA).read_text(encoding="utf-8"))
    return {name: _read(name, row, data["fit"]["date"]) for name, row in data["generations"].items()}


def _read(generation: str, row: Mapping[str, Any], fitted: date) -> Calibration:
    errors = row["error"]
    return Calibration(
        generation,
        ratio=row["ratio"],
        structure=row["structure"],
        tool_prompt_head=row["tool_prompt_head"],
        band={counter: errors[counter]["p95"] for counter in errors},
        fitted=fitted,
    )
