"""The time to the first token: what was published, and the line through it."""

from __future__ import annotations

import pytest

from tools.seed_claims.prefill_times import published_prefill, published_times

TIMES = [(10_000, 1.6, 1.1), (100_000, 11.5, 2.4), (187_371, 20.37, 2.92)]


def test_the_published_times_are_those_of_their_sources() -> None:
    assert [(time.tokens, time.unread_s, time.read_s) for time in published_times()] == TIMES
    assert [round(time.saving, 3) for time in published_times()] == [0.312, 0.791, 0.857]
    assert all("(20" in time.source for time in published_times())


def test_the_line_is_the_one_of_least_squares() -> None:
    """No other line near it has a smaller sum of squares, and its largest residual is what it says."""
    found = published_prefill()

    def misses(base: float, per_unread: float, per_read: float) -> list[float]:
        points = [(time.tokens, 0, time.unread_s) for time in published_times()]
        points += [(time.after, time.tokens - time.after, time.read_s) for time in published_times()]
        return [abs(base + per_unread * unread + per_read * read - seconds) for unread, read, seconds in points]

    best = misses(found.base_s, found.per_unread_s, found.per_read_s)
    assert max(best) == pytest.approx(found.worst_s) == pytest.approx(0.337, abs=0.001)
    for steps in ((0.01, 0, 0), (0, 1e-7, 0), (0, 0, 1e-7)):
        for sign in (1, -1):
            moved = (
                found.base_s + sign * steps[0],
                found.per_unread_s + sign * steps[1],
                found.per_read_s + sign * steps[2],
            )
            assert sum(miss**2 for miss in misses(*moved)) > sum(miss**2 for miss in best)


@pytest.mark.parametrize(("tokens", "saving"), [(1000, 0.1), (10_000, 0.48), (95_000, 0.81), (187_354, 0.85)])
def test_longer_prompts_save_a_larger_share(tokens: int, saving: float) -> None:
    assert published_prefill().saving(tokens) == pytest.approx(saving, abs=0.01)
    assert published_prefill().saving(tokens) < published_prefill().saving(2 * tokens)
