"""A strategy in a file of its own: what a scenario writes as one item of `strategies:`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cachecost.base import yaml_text
from cachecost.base.errors import InputError
from cachecost.base.schema_errors import faults_of, show_value
from cachecost.strategies.spec import StrategySpec


def load_strategy(path: Path) -> StrategySpec:
    """The strategy in a file. Raises InputError with every error of it, each at its line."""
    placed = yaml_text.read(path)
    if not isinstance(placed.value, dict):
        fault = placed.fault((), f"expected a strategy, a mapping with a name; got {show_value(placed.value)}")
        raise InputError([*placed.faults, fault])
    try:
        spec = StrategySpec.model_validate(placed.value)
    except ValidationError as error:
        raise InputError([*placed.faults, *faults_of(error, placed, StrategySpec.model_json_schema())]) from None
    if placed.faults:
        raise InputError(placed.faults)
    return spec
