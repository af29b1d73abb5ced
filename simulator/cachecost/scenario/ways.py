"""Values of a scenario's text by their path from the top: as keys and numbers, or dotted, with names of strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.base.schema_errors import one_of
from cachecost.base.yaml_text import PlacedValue, Way, value_at
from cachecost.scenario.models import Scenario
from cachecost.strategies.spec import StrategySpec

NO_COST = (
    *("name", "question", "question_about", "compare_to", "conclusion", "variants", "published_figures"),
    *("assumptions", "budget"),
)
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


def item_names(placed: PlacedValue, key: str) -> dict[Way, str]:
    """Where each item of the list at `key` has its name."""
    items = get(placed, (key,))
    names: dict[Way, str] = {}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        own = "name" if isinstance(item, dict) and "name" in item else "preset"
        way: Way = (key, number, own) if isinstance(item, dict) else (key, number)
        if isinstance(name := get(placed, way), str):
            names[way] = name
    return names


def numbered_paths(scenario: Scenario, paths: Sequence[str]) -> list[str]:
    """Dotted paths with strategies named by their numbers. Raises LookupError."""
    return [numbered_path(path, [strategy.name for strategy in scenario.strategies]) for path in paths]


def value_as_written(scenario: Scenario, path: str) -> Any:
    """The value at a dotted path, as `numbered_paths` has it: that of the file, else its default; None if unknown."""
    assert scenario._placed is not None
    way: Way = tuple(int(word) if word.isdecimal() else word for word in path.split("."))
    written = get(scenario._placed, way)
    return _default(scenario, way) if written is None else written


def _default(scenario: Scenario, way: Way) -> Any:
    """What a scenario has where its file has nothing: of a strategy that is a preset, the preset's."""
    value: Any = scenario
    for step in way:
        if isinstance(value, StrategySpec):
            value = value.resolve()
        value = _item(value, step)
    return value if isinstance(value, str | int | float | bool) else None


def _item(value: Any, step: str | int) -> Any:
    """An item of a list or a mapping, or an attribute; None where there is none."""
    if isinstance(value, list):
        return value[step] if isinstance(step, int) and step < len(value) else None
    return value.get(step) if isinstance(value, Mapping) else getattr(value, str(step), None)


def strategy_names(placed: PlacedValue) -> list[str]:
    """The names of the strategies by their numbers; "" for one without."""
    items = get(placed, ("strategies",))
    names = {way[1]: name for way, name in item_names(placed, "strategies").items()}
    return [names.get(number, "") for number in range(len(items) if isinstance(items, list) else 0)]
