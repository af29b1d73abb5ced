"""Values of a scenario's text by their path from the top."""

from __future__ import annotations

from typing import Any

from cachecost.base.yaml_text import PlacedValue, Way, value_at


def get(placed: PlacedValue, way: Way, default: Any = None) -> Any:
    """The value at `way`; `default` where there is none."""
    try:
        return value_at(placed.value, way)
    except LookupError:
        return default
