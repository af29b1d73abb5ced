"""Which of many cases the suite runs; the others wait for `-m slow` or `-m long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

FULL = 100
"""The examples of hypothesis itself, and of CI."""


def mostly_slow(
    cases: Iterable[Any], quick: int, others: pytest.MarkDecorator = pytest.mark.slow
) -> list[ParameterSet]:
    """The cases for `parametrize`, all but `quick` of them marked as `others`; the quick ones are evenly spread."""
    params = [_param(case) for case in cases]
    chosen = {number * len(params) // quick for number in range(quick)}
    return [
        param if number in chosen else pytest.param(*param.values, id=param.id, marks=[*param.marks, others])
        for number, param in enumerate(params)
    ]


def _param(case: Any) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)


def examples(most: int) -> int:
    """How many examples a property is tried with: `most`; under the profile of `make test`, no more than it takes."""
    usual = settings().max_examples
    return most if usual >= FULL else min(most, usual)
