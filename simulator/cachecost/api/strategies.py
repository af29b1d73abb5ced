"""Strategies as arguments: a preset's name, or a mapping with the keys of a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from cachecost.base.errors import Fault, InputError
from cachecost.base.schema_errors import faults_of
from cachecost.base.yaml_text import PlacedValue, SourcePlace
from cachecost.simulation.engine import AS_RECORDED
from cachecost.strategies.spec import StrategySpec

StrategyLike = str | Mapping[str, Any]
"""A preset's name (`cachecost strategies`), a mapping with the keys of a scenario's strategy, or "as recorded"."""
SpecOrRecorded = StrategySpec | None
"""None: a log's calls as they were sent."""


def spec_of(strategy: StrategyLike) -> SpecOrRecorded:
    """Parse a strategy. Raises InputError with every error, each with the nearest name."""
    return _parse_specs([strategy], "strategy:")[0]


def specs_of(strategies: Sequence[StrategyLike]) -> list[SpecOrRecorded]:
    """Parse strategies with distinct names. Raises InputError with every error."""
    if isinstance(strategies, str):
        raise InputError(
            [Fault("strategies:", f"expected a list; got '{strategies}' (did you mean ['{strategies}']?)")]
        )
    specs = _parse_specs(strategies, "strategies[{}]:")
    if not specs:
        raise InputError([Fault("strategies:", "expected at least one; got none")])
    if twice := list(_twice([spec.name if spec else AS_RECORDED for spec in specs])):
        raise InputError(twice)
    return specs


def _parse_specs(strategies: Sequence[StrategyLike], label: str) -> list[SpecOrRecorded]:
    specs, faults = list[SpecOrRecorded](), list[Fault]()
    for number, given in enumerate(strategies):
        if given == AS_RECORDED:
            specs.append(None)
            continue
        value = given if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else given
        try:
            specs.append(StrategySpec.model_validate(value))
        except ValidationError as error:
            placed = PlacedValue(value, {(): SourcePlace(label.format(number))})
            faults += faults_of(error, placed, StrategySpec.model_json_schema())
    if faults:
        raise InputError(faults)
    return specs


def _twice(names: Sequence[str]) -> Iterator[Fault]:
    for number, name in enumerate(names):
        if (first := names.index(name)) != number:
            yield Fault(f"strategies[{number}]:", f"expected a name of its own; got '{name}', as strategies[{first}]")
