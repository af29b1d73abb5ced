"""Whether a missed read is probably an entry that became readable late (rule 14, dated)."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from cachecost.facts import fact
from cachecost.providers.rules import ModelRules

DEVIATIONS = 2
"""Of the logarithm of a lag: how far above the median it is still probable. 97.7 % of all lags are shorter."""


@fact
class Lag:
    """How late entries became readable, in seconds from their writer's start: log-normal."""

    median_s: float
    sigma: float

    @property
    def longest_s(self) -> float:
        """The longest that is still probable."""
        return self.median_s * math.exp(DEVIATIONS * self.sigma)


def lag_of(rules: ModelRules) -> Lag | None:
    """The lag of entries of this host and model on this day; None: they are readable from the first token."""
    for row in _rows():
        is_of = rules.host == row["host"] and rules.model in row["models"]
        if is_of and rules.day is not None and row["from"] <= rules.day < row["until"]:
            return Lag(row["median_s"], row["sigma"])
    return None


@cache
def _rows() -> list[dict[str, Any]]:
    text = files("cachecost.analysis").joinpath("visibility_lag.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["lag"])
