"""The grid: axes over paths of a scenario, their values, and seeds. A cell's key is its values and its seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import MOST_SWEPT
from cachecost.base.yaml_text import ExactNumber, PlacedValue, SourcePlace
from cachecost.conversations.input_files import is_url, shown_name

RECORDING = "conversation.recording"
NOT_IN_CELLS = (
    *("variants", "published_figures", "sweep", "budget", "compare_to", "question_about", "assumptions"),
    "conclusion",
)
"""What no row depends on."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A dotted path of a scenario and the plain values it takes; `labels` are those values in words."""

    path: str
    values: tuple[Any, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(map(label, self.values))


def label(value: Any) -> str:
    """A value as tables write it: text as it is, numbers with the digits they came with, the rest as JSON.

    Of a URL, what may be a secret is left out.
    """
    if isinstance(value, str | ExactNumber):
        return shown_name(str(value))
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def axis_of(text: str) -> Axis:
    """`a.b=V1,V2` as an axis; values are YAML, as items of a list. Raises InputError."""
    path, equals, values = text.partition("=")
    place = f"--grid {text}:"
    if not equals or not path or not values.strip():
        raise InputError([Fault(place, "expected a.b=V1,V2")])
    try:
        found = yaml_text.parse(f"[{values}]", place)
    except InputError as error:
        raise InputError([Fault(place, fault.message) for fault in error.faults]) from None
    if found.faults or not isinstance(found.value, list):
        raise InputError(
            [Fault(place, fault.message) for fault in found.faults] or [Fault(place, "expected a.b=V1,V2")]
        )
    return Axis(path, tuple(found.value))


def axes_of(own: Mapping[str, Sequence[Any]], grid: Sequence[str], folder: Path) -> list[Axis]:
    """The scenario's own axes, those of `--grid` over and after them. Raises InputError with every fault."""
    axes = {path: Axis(path, tuple(values)) for path, values in own.items()}
    faults: list[Fault] = []
    for text in grid:
        try:
            axis = axis_of(text)
            axes[axis.path] = axis
        except InputError as error:
            faults += error.faults
    found = [_expand_recordings(axis, folder, faults) for axis in axes.values()]
    for axis in found:
        place, seen = f"--grid {axis.path}:", set[str]()
        if len(axis.values) > MOST_SWEPT:
            words = f"expected at most {MOST_SWEPT:,} values on an axis; got {len(axis.values):,}"
            faults.append(Fault(place, words))
        for name in axis.labels:
            if name in seen:
                faults.append(Fault(place, f"expected each value once; got {name!r} twice"))
            seen.add(name)
    if faults:
        raise InputError(faults)
    return found


def _expand_recordings(axis: Axis, folder: Path, faults: list[Fault]) -> Axis:
    """An axis of recordings with `*` in them as one of the files that are meant, in the order of their names."""
    if axis.path != RECORDING:
        return axis
    values: list[Any] = []
    for value in axis.values:
        is_wild = isinstance(value, str) and not set("*?[").isdisjoint(value)
        found = [value]
        if is_wild and not is_url(value):
            found = sorted(path.relative_to(folder).as_posix() for path in folder.glob(value))
        elif is_wild:
            from cachecost.conversations.remote_files import WEB, matching_paths

            found = [value] if value.startswith(WEB) else list(map(str, matching_paths(value)))
        if not found:
            where = "" if is_url(value) else f" in {folder}"
            faults.append(Fault(f"--grid {axis.path}={label(value)}:", f"expected a file; nothing matches{where}"))
        values += found
    return Axis(axis.path, tuple(values))


def put_value(placed: PlacedValue, path: str, value: Any) -> PlacedValue:
    """A scenario with `value` at a dotted path; a strategy that is a bare preset opens to take options.

    Raises LookupError saying why nothing can stand there.
    """
    words = path.split(".")
    if words[0] == "strategies" and len(words) > 2:
        way = placed.way_of(".".join(words[:2]))
        preset = yaml_text.value_at(placed.value, way)
        if isinstance(preset, str):
            placed = placed.put(way, PlacedValue({"preset": preset}, {(): placed.place(way)}))
    return placed.put(placed.way_of(path), PlacedValue(value, {(): SourcePlace(f"--grid {path}={label(value)}:")}))


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the grid: of each axis the number of its value."""

    numbers: tuple[int, ...]

    def labels(self, axes: Sequence[Axis]) -> tuple[str, ...]:
        """The values in words: with the seed, a cell's key."""
        return tuple(label(axis.values[number]) for axis, number in zip(axes, self.numbers, strict=True))

    def apply_to(self, placed: PlacedValue, axes: Sequence[Axis]) -> PlacedValue:
        """The scenario at this point. Raises LookupError."""
        for axis, number in zip(axes, self.numbers, strict=True):
            placed = put_value(placed, axis.path, axis.values[number])
        return placed


def points_of(axes: Sequence[Axis]) -> Iterator[Point]:
    """All points, the last axis running fastest."""
    return (Point(numbers) for numbers in product(*(range(len(axis.values)) for axis in axes)))


class CellOrder:
    """Where each cell stands in the grid: its number, from 0; seeds run fastest."""

    def __init__(self, axes: Sequence[Axis], seeds: Sequence[int]) -> None:
        self._labels = [{label: number for number, label in enumerate(axis.labels)} for axis in axes]
        self._seeds = {seed: number for number, seed in enumerate(seeds)}

    def __len__(self) -> int:
        return prod(map(len, self._labels)) * len(self._seeds)

    def __call__(self, labels: Sequence[str], seed: int) -> int | None:
        """The number of a cell; None for one of another grid."""
        place = 0
        for label, known in zip(labels, self._labels, strict=True):
            if label not in known:
                return None
            place = place * len(known) + known[label]
        return place * len(self._seeds) + self._seeds[seed] if seed in self._seeds else None
