"""Distributions: what is written down is what is drawn; what cannot be is told."""

from __future__ import annotations

from collections import Counter
from random import Random
from statistics import fmean, pstdev
from typing import Any

import pytest

from cachecost.conversations.distributions import Choice, LogNormal, Uniform, draw, draw_whole, parse_distribution


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (3, 3),
        (0.5, 0.5),
        ([1, 4], Uniform(1, 4)),
        ((2, 2), Uniform(2, 2)),
        ({"mean": 900, "sd": 300}, LogNormal(900, 300)),
        ({"mean": 900, "sd": 300, "min": 1, "max": 9000}, LogNormal(900, 300, 1, 9000)),
        ({"choices": [1, 2], "weights": [3, 0]}, Choice((1, 2), (3, 0))),
        ({"choices": [1, 2]}, Choice((1, 2), (1, 1))),
        (Uniform(1, 2), Uniform(1, 2)),
    ],
)
def test_every_shape_is_understood(written: Any, expected: Any) -> None:
    assert parse_distribution(written) == expected


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (-1, "expected SHAPES; got -1"),
        (True, "expected SHAPES; got True"),
        (float("nan"), "expected SHAPES; got nan"),
        ("5", "expected SHAPES; got '5'"),
        (None, "expected SHAPES; got None"),
        ([4, 1], "expected [low, high], low first, both from 0; got [4, 1]"),
        ([1, 2, 3], "expected [low, high], low first, both from 0; got [1, 2, 3]"),
        ([1, "2"], "expected [low, high], low first, both from 0; got [1, '2']"),
        ({"mean": 3}, "expected SHAPES; sd is missing in {'mean': 3}"),
        ({"mean": 3, "std": 1}, "std: unknown key (did you mean 'sd'?); expected SHAPES"),
        ({"mean": 3, "sd": -1}, "expected a number from 0; got -1"),
        ({"choices": []}, "expected choices, one number or more; got []"),
        ({"choices": [1, 2], "weights": [1]}, "expected as many weights as choices, 2; got [1]"),
        ({"choices": [1, 2], "weights": [0, 0]}, "expected a weight above 0; got none"),
        ({"choices": ["a"]}, "expected a number from 0; got 'a'"),
    ],
)  # fmt: skip
def test_what_is_no_distribution_is_told(written: Any, told: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_distribution(written)
    assert str(error.value) == told.replace("SHAPES", "a number, [low, high], {mean, sd} or {choices, weights}")


def test_uniform_whole_numbers_are_equally_likely_ends_included() -> None:
    random = Random(1)
    drawn = Counter(draw_whole(Uniform(1, 4), random) for _ in range(8000))
    assert set(drawn) == {1, 2, 3, 4}
    assert all(1850 < times < 2150 for times in drawn.values())
    assert all(1 <= draw(Uniform(1, 4), random) <= 4 for _ in range(100))


def test_lognormal_has_the_mean_and_deviation_it_is_given() -> None:
    random = Random(2)
    drawn = [draw(LogNormal(900, 300), random) for _ in range(20_000)]
    assert fmean(drawn) == pytest.approx(900, rel=0.02)
    assert pstdev(drawn) == pytest.approx(300, rel=0.05)


def test_lognormal_is_cut_at_its_ends() -> None:
    random = Random(3)
    drawn = [draw(LogNormal(10, 100, 2, 20), random) for _ in range(2000)]
    assert (min(drawn), max(drawn)) == (2, 20)
    assert draw(LogNormal(0, 5), random) == 0


def test_choices_come_by_weight() -> None:
    random = Random(4)
    drawn = Counter(draw_whole(Choice((1, 5, 9), (6, 3, 0)), random) for _ in range(9000))
    assert set(drawn) == {1, 5}
    assert 5750 < drawn[1] < 6250


def test_a_number_is_itself() -> None:
    assert (draw(2.5, Random(0)), draw_whole(2.6, Random(0)), draw_whole(7, Random(0))) == (2.5, 3, 7)
