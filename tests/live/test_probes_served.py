"""Probes through all that a real run has: the official SDK, the budget, and the simulated API on the other side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal

import pytest
from probe_bench import DAY, PRICES, FakeClock
from server_fakes import KEY, Says, served_by

from cachecost.live.driver.budget import CallPricing, DollarBudget
from cachecost.live.driver.sending import RetryPolicy, sender_to
from cachecost.live.server.app import app_of
from cachecost.live.server.state import Meter, faults_from
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from loopback import Loopback
from slow_cases import mostly_slow
from tools.probes import PricedProbe, ProbeFinding, plan, rules_text, select_probes, verify

MODEL = "claude-sonnet-4-6"
OTHERWISE = {
    "tool_choice_invalidation": "any_change",
    "thinking_rendered_at": "tools",
    "structured_output_at": "tools",
    "lookback_runs": "counted",
    "shallow_breakpoints": "refresh",
    "ttl_in_key": True,
}


def _planned() -> list[PricedProbe]:
    return plan(MODEL, PRICES, RuleBook(), select_probes(), day=DAY)


def _defaults() -> dict[str, object]:
    """The readings that hold unasked; on this day runs are collapsed."""
    default = assumptions_from({})
    return {name: getattr(default, name) for name in OTHERWISE} | {"lookback_runs": "collapsed"}


def _run(budget: DollarBudget, assumptions: dict[str, object], faults: Sequence[str] = ()) -> list[ProbeFinding]:
    clock = FakeClock()
    meter = Meter(ReplaySetup(RuleBook(assumptions_from(assumptions)), PRICES, "anthropic", "auto"))
    served = served_by(Says(first=0.5, seconds=1.5), meter, clock=clock, faults=faults_from(faults, 3))

    async def run() -> list[ProbeFinding]:
        transport = Loopback(app_of(served))
        pricing, retries = CallPricing(PRICES), RetryPolicy(4, "5f1d")
        async with sender_to(KEY, "http://test", pricing, budget, clock, retries, transport=transport) as sender:
            return await verify(sender, MODEL, clock, _planned(), "5f1d")

    return asyncio.run(run())


@pytest.mark.parametrize("assumptions", mostly_slow([OTHERWISE, {}], 1))
def test_every_reading_is_found(assumptions: dict[str, object]) -> None:
    budget = DollarBudget(sum((one.dollars for one in _planned()), Decimal(0)))
    findings = _run(budget, assumptions)
    assert {one.switch: one.value for one in findings if one.switch} == {**_defaults(), **assumptions}
    assert budget.billed == sum(one.dollars for one in findings)
    assert budget.unknown == 0


def test_a_small_budget_is_kept_and_what_is_missing_is_said() -> None:
    budget = DollarBudget(Decimal("0.05"))
    findings = _run(budget, {})
    assert budget.billed + budget.unknown <= Decimal("0.05")
    assert findings[0].value == 1024
    assert [one.explanation for one in findings[2:]] == ["not run: the budget was exhausted"] * 9
    assert findings[1].explanation.startswith("stopped: ")


@pytest.mark.slow
def test_failures_on_the_way_settle_nothing_wrong() -> None:
    budget = DollarBudget(Decimal(20))
    findings = _run(budget, OTHERWISE, ["429:0.1", "529:0.05"])
    assert all(one.value in (OTHERWISE[one.switch], None) for one in findings if one.switch)
    assert len([one for one in findings if one.value is not None]) >= 8


@pytest.mark.slow
def test_the_key_is_nowhere_in_the_file() -> None:
    assert KEY not in rules_text(_run(DollarBudget(Decimal(1)), {}), DAY)
