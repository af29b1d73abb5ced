"""The dated visibility lag: off by default, drawn per entry from its writer's start where it is switched on."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from bodies import RULES, Body, Engine, body, marked, text, user
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import lag_s
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.rules import RuleBook, VisibilityLag
from command_runs import printed

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


def recorded(folder: Path, day: str, read: int = 0) -> Path:
    """A log of two calls, two seconds apart: the second one's prompt begins with all that the first one wrote."""
    long = "word " * 3000
    asked = [{"role": "user", "content": [{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}]}]
    again = {"role": "user", "content": long}
    answered = {"role": "assistant", "content": "Yes."}
    last = {"role": "user", "content": [{"type": "text", "text": "More.", "cache_control": {"type": "ephemeral"}}]}
    calls = (0, asked, 0, 3005), (2, [again, answered, last], read, 3015 - read)
    path = folder / f"{day}-{read}.jsonl"
    path.write_text("".join(json.dumps(row(day, *call)) + "\n" for call in calls))
    return path


def row(day: str, second: int, messages: list[Any], read: int, write: int) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": write}
    request = {"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": messages}
    at = f"{day}T10:00:0{second}Z"
    return {"timestamp": at, "host": "anthropic", "request": request, "usage": {**usage, "output_tokens": 4}}


NAMED = "nothing was read; probable cause: visibility lag, as the longer entry was written 2 s before"


@pytest.mark.parametrize(
    ("day", "is_named"), [("2026-03-11", False), ("2026-03-12", True), ("2026-04-26", True), ("2026-04-27", False)]
)
def test_validate_names_it_where_a_miss_fits_it(day: str, is_named: bool, tmp_path: Path) -> None:
    said = " ".join(printed("validate", recorded(tmp_path, day)).split())
    assert (NAMED in said) is is_named
    assert ("1 miss is probably visibility lag" in said) is is_named
    assert "cold 1 of 2 exact" in said, "it still counts as a miss"
    assert "visibility lag" not in printed("validate", recorded(tmp_path, day, read=3005))


def test_replay_is_the_same_on_every_day_unless_the_lag_is_asked_for(tmp_path: Path) -> None:
    def simulated(day: str, *options: str) -> list[Any]:
        lines = printed("replay", recorded(tmp_path, day), *options, "--json").splitlines()
        return [json.loads(line)["usage"] for line in lines]

    assert simulated("2026-03-20") == simulated("2026-05-20")
    assert simulated("2026-03-20", "--rule", "visibility_lag_by_date=0") == simulated("2026-03-20")
    late = simulated("2026-03-20", "--rule", "visibility_lag_by_date=1", "--rule", "seed=3")
    assert [one["cache_read_input_tokens"] for one in late] == [0, 0]
