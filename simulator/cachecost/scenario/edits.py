"""Other values put into the text of a scenario: those of `--set`, of variants, of sweeps and of assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError
from cachecost.base.yaml_text import PlacedValue, SourcePlace, Way
from cachecost.scenario.ways import get, numbered_path, strategy_names

ALTERNATIVES = (("recording", "synthetic", "command"), ("tokens", "blocks"))
"""Keys of which a variant's replaces the scenario's other one."""


def with_set(placed: PlacedValue, text: str, faults: list[Fault]) -> PlacedValue:
    """`placed` under one `--set`; what is wrong with that is added to `faults`."""
    place = SourcePlace(f"--set {text}:")
    dotted, equals, value = text.partition("=")
    try:
        if not equals:
            raise LookupError("expected a.b=VALUE")
        part = yaml_text.parse(value, place.file) if value.strip() else PlacedValue(None, {(): place})
        faults += [Fault(place.file, fault.message) for fault in part.faults]
        return put(placed, dotted, replace(part, places=dict.fromkeys(part.places, place)))
    except LookupError as error:
        faults.append(Fault(place.file, str(error.args[0])))
    except InputError as error:
        faults += [Fault(place.file, fault.message) for fault in error.faults]
    return placed


def put(placed: PlacedValue, dotted: str, part: PlacedValue) -> PlacedValue:
    """`part` at a dotted path; a strategy that is a bare preset opens to take options. Raises LookupError."""
    way = placed.way_of(".".join(dotted.split(".")[:2]))
    preset = get(placed, way)
    if way[0] == "strategies" and isinstance(preset, str) and dotted.count(".") > 1:
        placed = placed.put(way, PlacedValue({"preset": preset}, {(): placed.place(way)}))
    return placed.put(placed.way_of(dotted), part)


def merge(base: PlacedValue, changes: PlacedValue, way: Way = ()) -> PlacedValue:
    """`changes` over `base`: mappings key by key, everything else as a whole."""
    for key, value in get(changes, way).items():
        inner = (*way, key)
        others = {name for group in ALTERNATIVES if key in group for name in group} - {key}
        base = base.put(way, base.at(way).without(*others)) if way and others & set(get(base, way)) else base
        both = isinstance(value, dict) and isinstance(get(base, inner), dict)
        base = merge(base, changes, inner) if both else base.put(inner, changes.at(inner))
    return base


def put_all(placed: PlacedValue, paths: Sequence[str], part: PlacedValue) -> PlacedValue:
    """`part` at each path, whose strategy may be named by its name. Raises LookupError."""
    for path in paths:
        placed = put(placed, numbered_path(path, strategy_names(placed)), part)
    return placed
