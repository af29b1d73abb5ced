"""Limits: both sides of every edge, and what cannot be judged."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.budgets.check import BudgetResult, CheckOptions, check_scenarios
from cachecost.budgets.verdicts import Verdict, against, percent_apart
from check_projects import (
    BREAKPOINT,
    Body,
    Spoil,
    bodies,
    fifth_breakpoint,
    modified_tool,
    project,
    reordered,
    spoiled,
    timestamp,
)

COST = Decimal("0.20451125")
"""Dollars of the six calls of the project."""


def only(
    folder: Path, limit: str, spoil: Spoil | None = None, strategy: str = "as recorded", calls: int = 6
) -> Verdict:
    path = project(folder, spoil, f"  - {{strategy: {strategy}, {limit}}}\n", calls)
    (verdict,) = check_scenarios([path], CheckOptions(folder / "reports")).budgets
    return verdict


EDGES = [
    ("max_cost_usd: 0.20451125", "pass", "costs $0.20451125; the limit is $0.20451125."),
    ("max_cost_usd: 0.204511249", "fail", "costs $0.20451125, $0.000000001 more than the limit of $0.204511249."),
    ("max_cost_usd: 1", "pass", "costs $0.20; the limit is $1.00."),
    ("max_cost_usd: 0.1", "fail", "costs $0.20, $0.10 more than the limit of $0.10."),
    ("max_cost_per_call_usd: 0.03408520834", "pass", "costs $0.0341 a call; the limit is $0.03408520834."),
    ("max_cost_per_call_usd: 0.03408520833", "fail", "costs $0.0341 a call, $0.00000000000333 more than the limit"),
    ("max_cost_per_turn_usd: 0.0341", "pass", "costs $0.0341 a turn; the limit is $0.0341."),
    ("max_cost_per_turn_usd: 0.034", "fail", "costs $0.0341 a turn, $0.0000852 more than the limit of $0.034."),
    ("min_cache_hit_rate: 81%", "pass", "has a cache hit rate of 82%; the minimum is 81%."),
    ("min_cache_hit_rate: 82%", "fail", "has a cache hit rate of 81.9%; the minimum is 82%."),
    ("max_breakpoints: 2", "pass", "places 2 breakpoints in call 1; the limit is 2."),
    ("max_breakpoints: 1", "fail", "places 2 breakpoints in call 1; the limit is 1."),
    ("min_lookback_margin: 17", "pass", "has 17 lookback positions left in call 2; the minimum is 17."),
    ("min_lookback_margin: 18", "fail", "has 17 lookback positions left in call 2; the minimum is 18."),
    ("no_write_never_read: true", "pass", "writes nothing that no later call reads."),
    ("prefix_stable: [tools, system]", "pass", "does not change tools and system within a conversation."),
    ("prefix_stable: [messages]", "pass", "does not change messages within a conversation."),
]


@pytest.mark.parametrize(("limit", "state", "message"), EDGES)
def test_what_equals_its_limit_passes(tmp_path: Path, limit: str, state: str, message: str) -> None:
    verdict = only(tmp_path, limit)
    assert (verdict.verdict, verdict.budget) == (state, limit.split(":")[0])
    assert verdict.message.removeprefix("as recorded ").startswith(message), verdict.message


def test_the_dollars_of_the_project(tmp_path: Path) -> None:
    assert only(tmp_path, "max_cost_usd: 1").actual == COST


def edited_history(number: int, body: Body) -> None:
    """From call 4 on the first question is another one."""
    if number >= 4:
        body["messages"][0]["content"][0]["text"] += "!"


def fresh_each(number: int, body: Body) -> None:
    """Every call is a conversation of its own, and the last system block is its own as well."""
    body["system"][1]["text"] += str(number)
    body["messages"] = body["messages"][-1:]


BROKEN: list[tuple[str, Spoil, str]] = [
    ("prefix_stable: [system]", timestamp, "changes system in calls 2, 3, 4 and 2 more within a conversation"),
    ("prefix_stable: [tools, system]", reordered, "changes tools in calls 2, 3, 4 and 2 more within a conversation"),
    ("prefix_stable: [tools]", modified_tool, "changes tools in call 4 within a conversation; tools must not change."),
    ("no_write_never_read: true", timestamp, "writes 100,995 tokens that no later call reads, in calls 1, 2, 3 and 2"),
    (
        "no_write_never_read: true",
        modified_tool,
        "writes 696 tokens that no later call reads, in call 3: $0.00087 more",
    ),
    ("max_breakpoints: 4", fifth_breakpoint, "places 5 breakpoints in call 3; the limit is 4."),
    (
        "max_cost_usd: 9",
        fifth_breakpoint,
        "sends 4 of 6 calls that the API refuses, first call 3: A maximum of 4 blocks",
    ),
    (
        "min_cache_hit_rate: 1%",
        fifth_breakpoint,
        "sends 4 of 6 calls that the API refuses, first call 3: A maximum of 4 blocks",
    ),
]


@pytest.mark.parametrize(("limit", "spoil", "message"), BROKEN)
def test_what_breaks_a_limit(tmp_path: Path, limit: str, spoil: Spoil, message: str) -> None:
    verdict = only(tmp_path, limit, spoil)
    assert verdict.verdict == "fail"
    assert verdict.message.removeprefix("as recorded ").startswith(message), verdict.message


def test_layers_that_are_not_named_may_change(tmp_path: Path) -> None:
    assert only(tmp_path, "prefix_stable: [tools]", timestamp).verdict == "pass"


def test_a_conversation_of_its_own_is_not_a_changed_layer(tmp_path: Path) -> None:
    assert only(tmp_path, "prefix_stable: [tools, system]", fresh_each).verdict == "pass"


def test_conversations_of_one_call_that_nobody_follows_write_in_vain(tmp_path: Path) -> None:
    assert only(tmp_path / "many", "no_write_never_read: true", fresh_each).verdict == "fail"
    assert only(tmp_path / "one", "no_write_never_read: true", fresh_each, calls=1).verdict == "pass"


def test_an_average_names_the_share_of_each(tmp_path: Path) -> None:
    actual = only(tmp_path, "max_cost_per_call_usd: 1").actual
    assert actual is not None and abs(actual * 6 - COST) < Decimal("1e-100")


UNKNOWN = [
    ("max_cost_per_inquiry_usd: 1", "has no questions, so it has no cost per question."),
    ("max_regression: 5%", "has no baseline yet: write one with `cachecost check --update`."),
]


@pytest.mark.parametrize(("limit", "message"), UNKNOWN)
def test_what_cannot_be_judged_is_no_pass(tmp_path: Path, limit: str, message: str) -> None:
    verdict = only(tmp_path, limit)
    assert (verdict.verdict, verdict.actual, verdict.message) == ("not_comparable", None, f"as recorded {message}")


def uncached(number: int, body: Body) -> None:
    body["system"][1].pop("cache_control")
    body["messages"][-1]["content"][-1].pop("cache_control")


def test_nothing_read_has_no_margin(tmp_path: Path) -> None:
    verdict = only(tmp_path, "min_lookback_margin: 1", uncached)
    assert verdict.message == "as recorded reads nothing from the cache, so it has no lookback margin."
    assert verdict.verdict == "not_comparable"


def many_blocks(number: int, body: Body) -> None:
    """Call 2 sends so many more blocks that the breakpoint of call 1 is out of reach; the system breakpoint is left
    out.
    """
    body["system"][1].pop("cache_control")
    if number == 2:
        more = [{"type": "text", "text": f"part {part}"} for part in range(25)]
        body["messages"][-1]["content"] = [*more, {"type": "text", "text": "end", "cache_control": BREAKPOINT}]


def test_an_entry_out_of_reach_breaks_every_margin(tmp_path: Path) -> None:
    verdict = only(tmp_path, "min_lookback_margin: 0", many_blocks, calls=2)
    lost = "misses in call 2 what an earlier call wrote, because the lookback ends before it"
    assert (verdict.verdict, verdict.message) == ("fail", f"as recorded {lost}; the minimum is 0.")


def test_a_budget_without_a_strategy_holds_each_but_the_recorded_one(tmp_path: Path) -> None:
    budgets = "  - {max_cost_usd: 0.1}\n  - {strategy: as recorded, max_breakpoints: 4}\n"
    path = project(tmp_path, None, budgets)
    path.write_text(path.read_text().replace("[progressive]", "[progressive, none]"))
    found = check_scenarios([path], CheckOptions(tmp_path / "reports")).budgets
    assert [(one.strategy, one.budget, one.verdict) for one in found] == [
        ("progressive", "max_cost_usd", "fail"),
        ("none", "max_cost_usd", "fail"),
        ("as recorded", "max_breakpoints", "pass"),
    ]


def test_a_limit_has_its_line(tmp_path: Path) -> None:
    path = project(tmp_path, None, "  - strategy: as recorded\n    max_breakpoints: 4\n    max_cost_usd: 9\n")
    places = [one.place for one in check_scenarios([path], CheckOptions(tmp_path / "reports")).budgets]
    assert [(place.file, place.line, place.column) for place in places if place] == [
        (str(path), 11, 5),
        (str(path), 10, 5),
    ]


def test_questions_have_a_cost_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "asked.yaml"
    path.write_text(
        "format: 1\nname: asked\nmodel: claude-opus-4-6\nas_of: 2026-03-07\ntokens: bytes\n"
        "conversation: {synthetic: {turns: 3, inquiries: {rate: 1}}}\nstrategies:\n"
        "  - {name: asking, breakpoints: [automatic], inquiry: {through: structured_output}}\n"
        "budget: {max_cost_per_inquiry_usd: 9, max_cost_per_turn_usd: 9}\n"
    )
    turn, question = check_scenarios([path], CheckOptions(tmp_path)).budgets
    assert question.actual and turn.actual and question.actual < turn.actual
    assert question.message.endswith(" a question; the limit is $9.00.")
    assert turn.place and turn.place.line == 9


# ------------------------------------------------------------------------------------------ sentences

money = st.decimals("0.000001", "10000", places=6)


@given(money, st.integers(0, 2_000))
def test_a_share_is_told_on_its_side_of_the_limit(share: Decimal, hundredths: int) -> None:
    limit = Decimal(hundredths) / 10_000
    text = percent_apart(share, limit).removesuffix("%").replace(",", "")
    if share != limit and text == f"{limit * 100:f}":
        pytest.fail(f"{share} is told as its limit {text}%")


AGAINST = [
    ("24.10", "24.10", "costs $24.10, the same as the baseline of 2026-11-20"),
    ("26.028", "24.10", "costs $26.03, 8% more than the baseline of 2026-11-20 ($24.10)"),
    ("12", "24", "costs $12.00, 50% less than the baseline of 2026-11-20 ($24.00)"),
    ("100.000001", "100", "costs $100.000001, 0.000001% more than the baseline of 2026-11-20 ($100.00)"),
    ("105.0000000001", "100", "costs $105.00, 5.0000000001% more than the baseline of 2026-11-20 ($100.00)"),
    ("104.9999999999", "100", "costs $105.00, 4.9999999999% more than the baseline of 2026-11-20 ($100.00)"),
]


@pytest.mark.parametrize(("now", "before", "expected"), AGAINST)
def test_dollars_against_a_baseline(now: str, before: str, expected: str) -> None:
    from datetime import date

    total, old = Decimal(now), Decimal(before)
    words = against(total, old, total / old - 1, Decimal("0.05"), date(2026, 11, 20))
    assert f"costs {words}" == expected


def test_nothing_in_the_baseline() -> None:
    assert against(Decimal(1), Decimal(0), None, Decimal(5), None) == "$1.00, up from $0 in the baseline"


EXITS: list[tuple[list[str], str, int]] = [
    ([], "pass", 0),
    (["pass"], "pass", 0),
    (["pass", "not_comparable"], "not_comparable", 3),
    (["fail", "pass"], "fail", 1),
    (["not_comparable", "fail"], "fail", 1),
]


@pytest.mark.parametrize(("states", "whole", "code"), EXITS)
def test_the_exit_code_is_that_of_the_worst(states: list[str], whole: str, code: int) -> None:
    found = [Verdict("mine", "s", "max_breakpoints", Decimal(4), None, state, "") for state in states]  # type: ignore[arg-type]
    result = BudgetResult(found)
    assert (result.verdict, result.exit_code) == (whole, code)


def test_the_project_is_one_conversation() -> None:
    assert [len(body["messages"]) for body in bodies(3)] == [1, 3, 5]


def test_changes_of_a_strategy_add_up_to_what_it_costs_more(tmp_path: Path) -> None:
    for number, spoil in enumerate((timestamp, reordered, modified_tool, edited_history)):
        result = spoiled(tmp_path / str(number), spoil, "  - {strategy: as recorded, max_regression: 1%}\n")
        (verdict,), cost = result.budgets, next(one for one in result.costs if one.strategy == "as recorded")
        assert verdict.verdict == "fail" and cost.before is not None
        assert sum(change.cost for change in verdict.changes) == cost.cost - cost.before
