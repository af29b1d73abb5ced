"""Retries at a rate p, at most two a question: p + p² of them are expected, and a higher rate never has fewer."""

from __future__ import annotations

from fractions import Fraction

import pytest
from case_files import Run, json_of
from hypothesis import given
from hypothesis import strategies as st

from cachecost.strategies.changes.base import FailedAttempts

CASE = "54-retry-rate"
QUESTIONS = 36


def retries(rate: float, questions: int, most: int = 2) -> int:
    fails = FailedAttempts(rate, most)
    return sum(_of_question(fails, most) for _ in range(questions))


def _of_question(fails: FailedAttempts, most: int) -> int:
    return next(attempt for attempt in range(most + 1) if not fails(attempt))


def test_a_scenario_pays_for_the_expected_retries(run_case: Run) -> None:
    rows = json_of(run_case(CASE, "run", "retry.yaml", "--json"))["strategies"]
    assert [row["calls"] - 48 - QUESTIONS for row in rows] == [0, 11, 27, 47]
    first, *costs = [float(row["cost_usd"]) for row in rows]
    each = [(cost - first) / number for cost, number in zip(costs, (11, 27, 47), strict=True)]
    assert first < costs[0] < costs[1] < costs[2]
    assert max(each) < 1.1 * min(each), "a retry costs what another one costs"


@pytest.mark.parametrize(
    ("rate", "expected"), [(0, 0), (0.05, 2), (0.1, 4), (0.25, 11), (0.5, 27), (0.75, 47), (1, 72)]
)
def test_retries_of_36_questions(rate: float, expected: int) -> None:
    assert retries(rate, QUESTIONS) == expected


@given(st.integers(0, 100), st.integers(0, 300), st.integers(0, 3))
def test_they_are_what_is_expected(percent: int, questions: int, most: int) -> None:
    """Each number is rounded; one that is due waits for a question that has failed before."""
    rate = Fraction(percent, 100)
    expected = sum(questions * rate**attempt for attempt in range(1, most + 1))
    assert abs(retries(percent / 100, questions, most) - expected) <= Fraction(3 * most, 4)


@given(st.integers(0, 99), st.integers(0, 200))
def test_a_higher_rate_never_has_fewer(percent: int, questions: int) -> None:
    assert retries(percent / 100, questions) <= retries((percent + 1) / 100, questions)
