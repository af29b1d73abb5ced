"""Hidden tokens of single models that differ from their generation's: dated rows of `hidden.toml`."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from cachecost.base.structs import value
from cachecost.providers.rules import ModelRules

FIELDS = (
    *("tool_prompt_head", "before_system", "single_auto", "single_forced", "interleaved"),
    *("result_tail", "result_tail_thinking"),
)


@value
class ModelPlaces:
    """The row of `hidden.toml` for a model on a day, in tokens; None: as in its generation and its host's rules."""

    tool_prompt_head: int | None = None
    before_system: int = 0
    single_auto: int | None = None
    single_forced: int = 0
    interleaved: int = 0
    result_tail: int | None = None
    result_tail_thinking: int | None = None


def model_places(rules: ModelRules) -> ModelPlaces:
    """The rows that hold for this model on this day, together; on each host, however it spells the id."""
    return _together(rules.name or rules.model, rules.day)


@cache
def _together(model: str, day: date | None) -> ModelPlaces:
    found: dict[str, Any] = {}
    for row in _rows():
        is_begun = day is None or (row["from"] <= day and ("until" not in row or day < row["until"]))
        if model in row["models"] and is_begun:
            found |= {name: row[name] for name in FIELDS if name in row}
    return ModelPlaces(**found)


@cache
def _rows() -> list[dict[str, Any]]:
    data = tomllib.loads(Path(__file__).with_name("hidden.toml").read_text(encoding="utf-8"))
    return list(data["row"])
