"""Where an hour begins to pay, what pauses are, and readings under which a verdict turns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from whatif_logs import Row, told, traffic, two_calls

from bodies import assistant, body, marked, text, tool_result, tool_use, user
from cachecost.analysis.whatif.pricing import other_assumptions
from cachecost.analysis.whatif.report import near, what_if
from cachecost.analysis.whatif.results import YES, rewrites_to_break_even
from cachecost.changes.option import measure_pauses, pings_worth
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import read_workload
from price_queries import prices_of

DAY = datetime(2026, 10, 5, tzinfo=UTC).date()


def prices(read: str, write_5m: str = "1.25", write_1h: str = "2") -> Prices:
    return Prices(Decimal(read), Decimal(write_5m), Decimal(write_1h), Decimal(1), Decimal(5))


def test_the_edge_by_the_usual_multipliers() -> None:
    assert rewrites_to_break_even(prices("0.1")) == Decimal("0.75") / Decimal("1.15")
    assert rewrites_to_break_even(prices("1.25")) is None


@pytest.mark.parametrize(("read", "pings"), [("0.1", 11), ("0.125", 9), ("0.05", 24), ("1.25", 0), ("0", None)])
def test_how_many_pings_a_pause_is_worth(read: str, pings: int | None) -> None:
    assert pings_worth(prices(read)) == pings


# 2,000 tokens are written again, 2,000 + new are new: at 0.652 an hour begins to pay, between 1,066 and 1,067 new ones.
@pytest.mark.parametrize(("new", "pays"), [(1_066, True), (1_067, False)])
def test_both_sides_of_the_edge(tmp_path: Path, new: int, pays: bool) -> None:
    found = told(tmp_path, two_calls(400, answer=100, second=new - 100))
    edge = found.break_even
    saving = found.find("ttl=1h").saving
    assert edge is not None and edge.here is not None and saving is not None
    assert edge.here == Decimal(2_000) / (2_000 + new)
    assert (edge.here > edge.needed) is pays
    assert (saving > 0) is pays


def test_the_edge_as_pauses(tmp_path: Path) -> None:
    edge = told(tmp_path, two_calls(400)).break_even
    assert edge is not None and edge.needed_pauses is not None
    assert edge.pauses == (0, 1, 0)
    assert edge.needed_pauses == edge.needed * 2_300 / 2_000  # one of them has 2,000 tokens written again
    assert edge.needed_an_hour == edge.needed_pauses / Decimal(str(400 / 3600))
    assert edge.longest_s == 400


@pytest.mark.parametrize(
    ("pause", "counts"),
    [(299.9, (1, 0, 0)), (300, (0, 1, 0)), (3_599.9, (0, 1, 0)), (3_600, (0, 0, 1))],
)
def test_pauses_by_length(tmp_path: Path, pause: float, counts: tuple[int, int, int]) -> None:
    edge = told(tmp_path, two_calls(pause)).break_even
    assert edge is not None
    assert edge.pauses == counts


def test_a_conversation_that_shares_the_head_alone_goes_on_with_its_last_use(tmp_path: Path) -> None:
    head = {"system": [marked(text(2_000, "s"))]}
    rows: list[Row] = [(at, body(user(text(100, name)), **head)) for at, name in ((0, "a"), (40, "b"), (90, "c"))]
    found = measure_pauses(traffic(tmp_path, rows).calls)
    assert list(found.seconds) == [40, 50]
    assert found.hours == 90 / 3600


def burst() -> list[Row]:
    """Thirty parallel results, marked in the midst as well: one breakpoint at the end is enough if runs count as
    one.
    """
    uses = [tool_use(90, f"t{number}") for number in range(30)]
    results = [tool_result(200, f"t{number}") for number in range(30)]
    first = user(marked(text(2_000, "a")))
    middle = marked(results[14])
    return [
        (0, body(first)),
        (10, body(first, assistant(*uses), user(*results[:14], middle, *results[15:29], marked(results[29])))),
    ]


def test_a_verdict_that_turns_under_another_reading(tmp_path: Path) -> None:
    """Counted block by block, the breakpoint at the end alone does not find the 2,000 tokens: 3.75 - 0.3 for each."""
    found = told(tmp_path, burst()).find("breakpoints=automatic")
    assert found.saving == 0
    assert found.depends_on == ("with lookback_runs=counted it costs $0.0069 more",)


def test_a_verdict_that_does_not_turn(tmp_path: Path) -> None:
    found = told(tmp_path, two_calls(400))
    assert found.assumptions == ["ttl_in_key=true"]
    assert all(one.depends_on == () for one in found.alternatives)


def test_only_readings_that_can_matter_are_asked(tmp_path: Path) -> None:
    plain = {name for name, _ in other_assumptions(traffic(tmp_path, two_calls(10)))}
    assert plain == {"ttl_in_key"}
    chosen = two_calls(10, tool_choice={"type": "any"}, tools=[tool_use(90, "x")])
    assert "tool_choice_invalidation" in {name for name, _ in other_assumptions(traffic(tmp_path, chosen))}
    assert "lookback_runs" in {name for name, _ in other_assumptions(traffic(tmp_path, burst()))}


def test_shipped_prices_have_the_edge_of_the_docstring() -> None:
    shipped = prices_of(PriceBook(), "anthropic", "claude-sonnet-4-5", DAY, 0)
    limit = rewrites_to_break_even(shipped)
    assert limit is not None
    assert round(limit, 3) == Decimal("0.652")


@pytest.mark.parametrize(("simulated", "is_near"), [("90", True), ("89.99", False), ("110", True), ("110.01", False)])
def test_a_bill_that_is_not_reproduced_supports_nothing(simulated: str, is_near: bool) -> None:
    assert near(Decimal(simulated), Decimal(100)) is is_near


@pytest.mark.parametrize(("read", "is_near"), [(0, True), (1_900, False)])
def test_a_cache_that_was_warm_before_the_recording(tmp_path: Path, read: int, is_near: bool) -> None:
    """What was written before it began cannot be simulated: the dollars are the simulation's, no promise holds."""
    usage = {"input_tokens": 0, "cache_creation_input_tokens": 2_000 - read, "cache_read_input_tokens": read}
    line = {"timestamp": DAY.isoformat() + "T09:00:00Z", "usage": {**usage, "output_tokens": 0}}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({**line, "request": body(user(marked(text(9_000, "a"))))}) + "\n", encoding="utf-8")
    found = what_if(read_workload(path, ReplaySetup(RuleBook(), PriceBook())))
    assert found.billed is not None
    assert found.cost == (found.billed if is_near else found.simulated)
    told_of = found.find("model=claude-opus-5").supported
    assert (told_of == YES) is is_near
    if not is_near:
        assert told_of == "not supported by the data: the simulation is more than 10% off the bill"
