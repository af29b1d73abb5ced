"""Whatever goes wrong, the budget holds, no answer is paid twice, and the journal reads."""

from __future__ import annotations

import asyncio
import shutil
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from driver_fake import FAULTS, FakeApi, FakeClock, Killed, driven, small_plan

from cachecost.conversations.readers.request_log import calls
from cachecost.live.driver.budget import DollarBudget, OverBilled, OverBudget
from cachecost.live.driver.run import LiveResult
from cachecost.live.driver.sending import read_journal

PLAN = small_plan()
ALL = Decimal("0.20")
"""Dollars: more than the whole plan costs without faults (about 0.12), and less than its worst case."""
KILLS = ("kill before", "kill after")


def run_to_the_end(seed: int, folder: Path) -> None:
    """One run with random faults, budget and interruptions, gone on with until nothing more is to be had."""
    random = Random(seed)
    limit = ALL * random.randint(1, 100) / 50
    trouble = random.choice((0.0, 0.1, 0.3, 0.6))
    names = (*FAULTS, "slow", *(KILLS * 3 if random.random() < 0.7 else ()))
    api = FakeApi(FakeClock(), lambda number: random.choice(names) if random.random() < trouble else "")
    for _ in range(4):
        result = attempt(api, folder, limit, random.choice((1, 1, 2)))
        story = read_journal(folder / "journal.jsonl")
        assert api.billed <= story.billed_usd + story.unknown <= limit
        assert set(api.answered.values()) <= {1}
        assert len(story.done) == len(api.answered)
        if result is not None and not result.ended.undone:
            break
    if trouble == 0.0 and result is not None:
        assert all(call.predicted == call.sent.usage for outcome in result.outcomes for call in outcome.calls)
        assert result.billed == api.billed
    if result is not None and story.done:
        assert sum(call.billed is not None for call in calls(result.recording)) == len(story.done)


def attempt(api: FakeApi, folder: Path, limit: Decimal, parallel: int) -> LiveResult | None:
    try:
        return driven(PLAN, api, folder, str(limit), parallel=parallel)
    except BaseExceptionGroup as caught:
        assert caught.subgroup(Killed) is not None
        return None


def test_the_budget_is_never_exceeded(tmp_path: Path) -> None:
    for seed in range(20):
        run_to_the_end(seed, tmp_path / str(seed))


@pytest.mark.slow
def test_the_budget_is_never_exceeded_in_a_thousand_runs(tmp_path: Path) -> None:
    for seed in range(1_000, 2_000):
        run_to_the_end(seed, tmp_path / "run")
        shutil.rmtree(tmp_path / "run")


def test_the_last_dollar_can_be_reserved_and_none_after_it() -> None:
    async def both() -> None:
        budget = DollarBudget(Decimal("1.00"))
        kept = await budget.reserve(Decimal("1.00"))
        budget.settle(kept, Decimal("0.40"))
        await budget.reserve(Decimal("0.60"))
        assert budget.remaining_usd == 0

    asyncio.run(both())


def test_a_cent_too_much_is_not_reserved() -> None:
    async def over() -> None:
        budget = DollarBudget(Decimal("1.00"), Decimal("0.30"), Decimal("0.20"))
        await budget.reserve(Decimal("0.51"))

    with pytest.raises(OverBudget, match=r"^the next call may cost \$0.51; \$0.50 of \$1.00 is left$"):
        asyncio.run(over())


def test_a_call_waits_for_those_under_way_where_that_may_help() -> None:
    async def waits() -> list[str]:
        budget, order = DollarBudget(Decimal("1.00")), []
        first = await budget.reserve(Decimal("0.70"))

        async def second() -> None:
            await budget.reserve(Decimal("0.60"))
            order.append("second")

        task = asyncio.create_task(second())
        await asyncio.sleep(0)
        order.append("first is settled")
        budget.settle(first, Decimal("0.10"))
        await task
        return order

    assert asyncio.run(waits()) == ["first is settled", "second"]


def test_a_call_does_not_wait_for_what_cannot_help() -> None:
    async def over() -> None:
        budget = DollarBudget(Decimal("1.00"))
        await budget.reserve(Decimal("0.70"))
        await budget.reserve(Decimal("1.01"))

    with pytest.raises(OverBudget):
        asyncio.run(over())


def test_a_bill_may_equal_its_worst_case_and_not_exceed_it() -> None:
    async def settle(billed: str) -> None:
        budget = DollarBudget(Decimal(1))
        budget.settle(await budget.reserve(Decimal("0.10")), Decimal(billed))

    asyncio.run(settle("0.10"))
    with pytest.raises(OverBilled, match=r"was billed \$0.11, above its upper bound of \$0.10;"):
        asyncio.run(settle("0.11"))
