"""Which of many cases the suite runs; the others wait for `-m slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def mostly_slow(cases: Iterable[Any], quick: int) -> list[ParameterSet]:
    """The cases for `parametrize`, all but `quick` of them marked slow; the quick ones are evenly spread."""
    params = [_param(case) for case in cases]
    chosen = {number * len(params) // quick for number in range(quick)}
    return [
        param if number in chosen else pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.slow])
        for number, param in enumerate(params)
    ]


def _param(case: Any) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
