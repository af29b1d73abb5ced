"""Clocks: real, faster, or a step a call."""

from __future__ import annotations

import asyncio

import pytest

from cachecost.live.clock import ScaledClock, SteppingClock, clock_from


def test_a_scaled_clock_runs_so_many_times_as_fast() -> None:
    wall = iter([100.0, 101.0, 103.5])
    clock = ScaledClock(60.0, 1_000.0, lambda: next(wall))
    assert [clock.now(), clock.now()] == [1_060.0, 1_210.0]


def test_a_stepping_clock_asks_no_wall() -> None:
    clock = SteppingClock(2.0, 10.0)
    assert [clock.now(), clock.now()] == [10.0, 12.0]
    asyncio.run(clock.sleep(400.0))
    assert clock.now() == 414.0


@pytest.mark.parametrize("text", ["x60", "x0.5", "real", "+2s", "+0.25s"])
def test_clocks_by_name(text: str) -> None:
    assert clock_from(text, 5.0).now() >= 5.0


@pytest.mark.parametrize("text", ["", "x0", "x-1", "2s", "+2", "fast"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected 'real', a factor like 'x60'"):
        clock_from(text)
