"""Planted faults keep their code, calls and place where bills count a layer up to 8% otherwise than the estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pytest

from planted.catalogue import FAULTS, base_of
from planted.fault import sent
from planted.miscounted import explained_by_bills
from slow_cases import mostly_slow

BY_LENGTH = {"too short"}
"""Whether its fix pays depends on how far the prefix is from the minimum."""
COUNTED = [name for name, fault in FAULTS.items() if "recorded" not in fault.base and name not in BY_LENGTH]
"""Recordings without content cannot be counted."""
MISCOUNTS = list(product(["tools", "system", "messages"], [-0.08, -0.04, 0.08]))


def problem(name: str, factors: Mapping[str, float]) -> str:
    """What differs from the fault as planted; "": nothing."""
    fault = FAULTS[name]
    found = explained_by_bills(sent(base_of(fault.base), [(fault, "planted")]), factors)
    own = [one for one in found.findings if one.code in fault.codes]
    calls = {one.call for one in own}
    first = min(own, key=lambda one: (fault.codes.index(one.code), one.call), default=None)
    if not set(fault.calls) <= calls <= {*fault.calls, *fault.echo}:
        return f"at calls {sorted(calls)}"
    if first and fault.block not in ("", first.block):
        return f"at {first.block}"
    others = {one.code for one in (*found.findings, *found.not_explained)} - set(fault.codes)
    return f"beside {sorted(others)}" if others else ""


def problems(names: Sequence[str], layer: str, share: float) -> dict[str, str]:
    found = {name: problem(name, {layer: 1 + share}) for name in names}
    return {name: words for name, words in found.items() if words}


@pytest.mark.parametrize(
    ("number", "layer", "share"), mostly_slow([(number, *case) for number, case in enumerate(MISCOUNTS)], 3)
)
def test_a_part_of_the_faults_is_found_under_each_miscount(number: int, layer: str, share: float) -> None:
    assert problems(COUNTED[number :: len(MISCOUNTS)], layer, share) == {}


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "share"), MISCOUNTS)
def test_faults_are_found_where_a_layer_is_billed_shorter_or_longer(layer: str, share: float) -> None:
    assert problems(COUNTED, layer, share) == {}
