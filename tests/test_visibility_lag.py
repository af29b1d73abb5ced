"""The dated visibility lag: off by default, drawn per entry from its writer's start where it is switched on."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from statistics import median

import pytest

from bodies import RULES, Body, Engine, body, marked, text, user
from cachecost.caches.breakpoints import lag_s
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.rules import RuleBook, VisibilityLag

MARCH = date(2026, 3, 20)
LAGGING = VisibilityLag(2.5, 0.35)


def engine(seed: int = 0, lag: VisibilityLag | None = LAGGING, share: float = 1.0) -> Engine:
    assumptions = assumptions_from({"visibility_lag_by_date": share, "seed": seed})
    return Engine(replace(RULES, visibility_lag=lag, assumptions=assumptions))


def request(name: str) -> Body:
    return body(user(marked(text(2_000, name)), text(60), marked(text(2_000, name))))


def read_after(wait_s: float, first_token_s: float = 0.0, **how: float) -> list[int]:
    """What a second call reads, for a hundred entries that were each written by a call of their own."""
    found = []
    for seed in range(100):
        one = engine(seed, **how)  # type: ignore[arg-type]
        one.call(request("a"), 0.0, first_token_s)
        found.append(one.call(request("a"), wait_s).read)
    return found


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert set(read_after(0.1, share=0.0)) == {4_060}
    assert RuleBook().rules("anthropic", "claude-sonnet-4-6", MARCH).assumptions.visibility_lag_by_date == 0.0


@pytest.mark.parametrize(("wait_s", "least", "most"), [(0.5, 0, 2), (2.5, 30, 70), (10.0, 98, 100)])
def test_the_longer_the_wait_the_more_is_readable(wait_s: float, least: int, most: int) -> None:
    assert least <= sum(read > 0 for read in read_after(wait_s)) <= most


def test_a_deeper_entry_is_never_readable_before_a_shallower_one() -> None:
    shallow = 2_000
    for wait_s in (1.5, 2.0, 2.5, 3.0, 4.0):
        assert set(read_after(wait_s)) <= {0, shallow, 4_060}
    assert shallow in read_after(2.5), "four of the recorded misses read the shallower entry of the same call"


def test_it_counts_from_the_writers_start_and_never_beats_the_first_token() -> None:
    assert not any(read_after(5.0, first_token_s=6.0))
    assert all(read_after(11.0, first_token_s=10.0)), "the lag is over long before"


def test_the_seed_decides() -> None:
    assert read_after(2.5) == read_after(2.5)
    assert read_after(2.5)[:50] != read_after(2.5)[50:]


def test_only_where_the_rules_of_the_writers_day_say_so() -> None:
    one = engine()
    one.call(request("a"), 0.0, visibility_lag=None)
    assert one.call(request("a"), 0.1).read == 4_060


def test_it_is_log_normal() -> None:
    shares = [(number + 0.5) / 1_000 for number in range(1_000)]
    lags = [lag_s(LAGGING, share) for share in shares]
    assert lags == sorted(lags) and median(lags) == pytest.approx(2.5, rel=1e-3)
    assert sum(1.76 < lag < 3.55 for lag in lags) == pytest.approx(683, abs=5), "within one sigma of the logarithm"
    assert lag_s(LAGGING, 0.0) > 0
    assert sum(lag > LAGGING.longest_s for lag in lags) == pytest.approx(23, abs=2)
