"""What stands in a scenario that its own file does not state: defaults of the project, with their places."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cachecost.base.yaml_text import PlacedValue, Way
from cachecost.scenario.ways import get

FileDefaults = Mapping[Way, PlacedValue]
"""Values by their way in a scenario; paths in them start at the current folder."""
NO_DEFAULTS: FileDefaults = {}
PATHS = frozenset({("prices",)})
MISSING = object()


def with_defaults(placed: PlacedValue, defaults: FileDefaults, folder: Path) -> PlacedValue:
    """The scenario of a file in `folder`, with each default that it has no value for."""
    for way, part in defaults.items():
        if _may_stand(placed, way):
            placed = placed.put(way, _from_folder(part, folder) if way in PATHS else part)
    return placed


def _may_stand(placed: PlacedValue, way: Way) -> bool:
    """Whether there is no value at `way`, and a mapping or nothing around it."""
    above = get(placed, way[:-1], {}) if len(way) > 1 else {}
    return isinstance(above, dict) and get(placed, way, MISSING) is MISSING


def _from_folder(part: PlacedValue, folder: Path) -> PlacedValue:
    return PlacedValue(Path(os.path.relpath(part.value, folder)).as_posix(), part.places)
