"""Nothing stands below the lower bound: no plan, no preset, no recording as simulated, no bill; nor is it negative.

On random logs whose bills contradict one another, begin warm and lose what was cached, and on cases that it missed.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from billed_logs import random_workload
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_bound import naive_bound

from cachecost.analysis.bill.explanation import hold_losses
from cachecost.analysis.optimum.lower_bound import LowerBound, lower_bound_of
from cachecost.analysis.optimum.online_rule import try_presets
from cachecost.analysis.optimum.optimum import optimum_of
from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Message, Part, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload
from slow_cases import examples

START = 1_790_000_000.0
FAST = (0, 1, 3, 5, 8, 24, 28, 55)
SEEDS = [pytest.param(seed, marks=() if seed in FAST else pytest.mark.slow) for seed in (*FAST, *range(60, 160))]


def rows_of(work: Workload) -> list[CallRow]:
    return list(work.simulation().rows(work.calls))


def usd(rows: list[CallRow]) -> Decimal:
    return sum((row.cost.total for row in rows), Decimal(0))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_stands_below_it(seed: int) -> None:
    recorded = random_workload(seed)
    for work in (recorded, hold_losses(recorded)[0]):
        evaluator = PlanEvaluator.of(work.calls, work.setup)
        found = LowerBound(evaluator)
        presets = [one.usd for one in try_presets(evaluator, lambda *_: None) if not one.refused]
        assert 0 <= found.with_pings_usd <= found.usd <= min(*presets, usd(rows_of(work)))


@given(st.integers(0, 100_000), st.booleans())
@settings(max_examples=examples(60))
def test_it_is_the_sum_of_the_costs_of_each_block_by_itself(seed: int, loses: bool) -> None:
    """What blocks share, states that are one and writes that are certain change nothing."""
    recorded = random_workload(seed)
    work = hold_losses(recorded)[0] if loses else recorded
    evaluator = PlanEvaluator.of(work.calls, work.setup)
    found = LowerBound(evaluator)
    assert [found.usd, found.with_pings_usd] == [naive_bound(evaluator, pings) for pings in (False, True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_calls_that_are_simulated_already_serve_it(seed: int) -> None:
    work = random_workload(seed)
    anew, known = (lower_bound_of(work.calls, work.setup, rows) for rows in (None, rows_of(work)))
    assert (anew.usd, anew.fixed_usd) == (known.usd, known.fixed_usd)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_bill_that_its_lengths_meet_is_below_it(seed: int) -> None:
    work = random_workload(seed)
    sent = PlanEvaluator.of(work.calls, work.setup).sent
    bills = [call.billed for call in work.calls if call.billed]
    if [row.usage.total_input for row in rows_of(work)] == [bill.total_input for bill in bills]:
        billed = sum((one.prices.total_cost(bill) for one, bill in zip(sent, bills, strict=True)), Decimal(0))
        assert lower_bound_of(work.calls, work.setup).usd <= billed


@pytest.mark.parametrize("seed", [3, pytest.param(7, marks=pytest.mark.slow), pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pings", [False, True])
def test_no_plan_is_below_it(seed: int, pings: bool) -> None:
    work = random_workload(seed)
    found = optimum_of(work.calls, work.setup, pings)
    assert found.lower_bound_usd <= found.usd <= found.best_preset.usd
    assert found.recorded_usd is None or found.recorded_usd == usd(rows_of(work))


def test_every_plan_of_a_search_is_one_of_its_phase() -> None:
    tried = Counter[tuple[str, int]]()
    workload = random_workload(3)
    optimum_of(workload.calls, workload.setup, progress=lambda what, plans: tried.update([(what, plans)]))
    assert len(tried) == len({what for what, _ in tried}) >= 4
    assert all(0 < count <= plans for (_, plans), count in tried.items())


def conversation(*bills: Usage | None, gap: float = 20.0, first_token_s: float = 0.0) -> Workload:
    """Calls that each add a question and an answer of 5,000 tokens, with a breakpoint at the end; None: no bill."""
    system = Part((given_block("text", "system", "rules", 6_000),))
    thread, calls = Thread(), list[Call]()
    for number, bill in enumerate(bills):
        thread = thread.then(Message.of("user", (given_block("text", "user", f"{number}", 5_000),)))
        call = Call(
            Request("claude-opus-4-6", thread, system=system, automatic="5m"),
            START + gap * number,
            first_token_s=first_token_s,
            billed=bill,
            output_tokens=0,
        )
        calls.append(call)
        thread = thread.then(Message.of("assistant", (given_block("text", "assistant", f"a{number}", 5_000),)))
    setup = ReplaySetup(RuleBook(), PriceBook()).with_recorded(calls, None)
    return recorded_workload("log", calls, setup)


def written(tokens: int) -> Usage:
    return Usage(3, write_5m=tokens)


def bound(work: Workload) -> LowerBound:
    return lower_bound_of(work.calls, work.setup)


def test_bills_that_contradict_one_another_make_no_block_lighter_than_nothing() -> None:
    """The client took out 80,000 tokens without a trace in the log."""
    work = conversation(written(100_000), written(110_000), written(30_000), written(40_000))
    assert usd(rows_of(work)) >= bound(work).usd > 0
    assert [row.usage.total_input for row in rows_of(work)] == [100_003, 110_003, 30_003, 40_003]


def test_it_grants_what_was_cached_before_the_recording_began() -> None:
    work = conversation(Usage(3, 11_000), Usage(3, 11_000, 10_000))
    cold = replace(work, setup=work.setup.with_assumptions({"warm_start": "cold"}))
    # Two reads of 11,000 tokens, 10,000 sent once, and two tails of 3 tokens.
    assert bound(work).usd == Decimal("0.5") * 22_000 / 10**6 + Decimal(5) * 10_006 / 10**6
    assert bound(cold).usd > bound(work).usd
    assert usd(rows_of(cold)) >= bound(cold).usd


def test_a_held_loss_cannot_be_avoided() -> None:
    whole, lost = (conversation(written(11_000), Usage(3, read, 21_000 - read)) for read in (11_000, 0))
    held, losses = hold_losses(lost)
    assert (len(losses), len(hold_losses(whole)[1])) == (1, 0)
    # Nothing is written for a call that cannot read it.
    assert bound(held).usd == Decimal(5) * (11_003 + 21_003) / 10**6
    assert bound(whole).usd < bound(held).usd


def test_it_grants_what_a_bill_read_and_nothing_recorded_wrote() -> None:
    """The second call read 4,000 tokens more than the first one wrote, without which 4,000 would be sent."""
    more, known = (conversation(written(11_000), Usage(3, read, 21_000 - read)) for read in (15_000, 11_000))
    assert [row.usage.read for row in rows_of(more)] == [0, 11_000]
    assert bound(more).usd <= Decimal("6.25") * 17_000 / 10**6 + Decimal("0.5") * 15_000 / 10**6 + Decimal(30) / 10**6
    assert bound(more).usd < bound(known).usd


def test_a_later_pass_reads_what_the_first_one_wrote_however_late_that_answers() -> None:
    """The bound took the second pass to start before the first one's entry could be read."""
    kinds = ("server_tool_use", "web_search_tool_result", "text")
    answer = tuple(given_block(kind, "assistant", kind, 400) for kind in kinds)
    work = conversation(None, first_token_s=3.0)
    calls = [replace(call, response=answer) for call in work.calls]
    rows = list(replace(work, calls=calls).simulation().rows(calls))
    assert rows[0].usage.read > 11_000
    assert lower_bound_of(calls, work.setup).usd <= usd(rows)


def test_it_holds_for_caches_with_breakpoints_only() -> None:
    work = conversation(None)
    calls = [replace(call, host="openai", request=replace(call.request, model="gpt-5")) for call in work.calls]
    with pytest.raises(CannotEvaluate, match=r"^the lower bound supports breakpoint caches with a lookback only"):
        lower_bound_of(calls, work.setup)
