"""Values of a scenario's text by their path from the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachecost.base.schema_errors import one_of
from cachecost.base.yaml_text import PlacedValue, Way, value_at

NO_COST = ("name", "question", "question_about", "compare_to", "variants", "published_figures", "assumptions", "budget")
"""Keys of a scenario that no cost depends on."""


def get(placed: PlacedValue, way: Way, default: Any = None) -> Any:
    """The value at `way`; `default` where there is none."""
    try:
        return value_at(placed.value, way)
    except LookupError:
        return default


STRATEGIES = "strategies."


def numbered_path(dotted: str, names: Sequence[str]) -> str:
    """A dotted path with the strategy that it names by its name (which may contain dots) named by its number.

    Raises LookupError for a path that changes no cost, or to a strategy that there is not.
    """
    if dotted.partition(".")[0] in NO_COST:
        raise LookupError(f"expected a path to what changes a cost; got {dotted!r}, which is only reported")
    rest = dotted.removeprefix(STRATEGIES)
    found = [name for name in names if rest.startswith(f"{name}.")] if rest != dotted else []
    if not found and rest != dotted and names and not rest.partition(".")[0].isdecimal():
        raise LookupError(one_of([*names, *map(str, range(len(names)))], rest))
    if not found:
        return dotted
    name = max(found, key=len)
    return f"{STRATEGIES}{names.index(name)}{rest[len(name) :]}"
