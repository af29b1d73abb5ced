"""What another TTL would have saved is what a plain simulation of the cache with it costs less."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.random_bills import START
from tests.analysis.test_bill_account import prices

from cachecost.analysis.bill.account import BillAccount, account_for
from cachecost.analysis.bill.savings import is_main, is_sub_agent, saved_by_five_minutes, saved_by_hour
from cachecost.conversations.input_files import BilledCall, SessionFile

SEEDS = settings(max_examples=250)
MODEL = "claude-opus-4-5"
READ, FIVE, HOUR, INPUT, OUTPUT = (Decimal(price) / 10**6 for price in ("0.5", "6.25", "10", "5", "25"))
PAUSES = (1, 60, 299.9, 300, 500, 3599.9, 3600, 7080, 9000, 100_000)


class Turn(NamedTuple):
    """A call: seconds since the one before, and the tokens that it adds to the cached prefix and sends uncached."""

    pause: float
    new: int
    uncached: int


class Plan(NamedTuple):
    """How a chain is cached: the first `hour` tokens have 1h, the rest 5m."""

    hour: float = 0


ALL = float("inf")


def random_chain(random: Random) -> list[Turn]:
    new = [random.choice((10, 5_000, 40_000)), *random.choices((0, 0, 10, 5_000, 40_000), k=random.randint(0, 6))]
    return [Turn(random.choice(PAUSES), count, random.choice((0, 2))) for count in new]


class Simulation:
    """A chain of calls and its bills, at one plan."""

    def __init__(self, chain: Sequence[Turn], plan: Plan) -> None:
        self.plan = plan
        self.bills: list[tuple[int, int, int, int, int]] = []
        self.cost = Decimal(0)
        self.cached = 0
        for number, turn in enumerate(chain):
            self._call(turn, turn.pause if number else 0.0)

    def _call(self, turn: Turn, idle: float) -> None:
        hour = int(min(self.plan.hour, self.cached))
        read = self.cached if idle < (300 if self.cached > hour else 3600) else hour if idle < 3600 else 0
        self.cached += turn.new
        in_hour = int(min(self.plan.hour, self.cached))
        by_hour = max(0, in_hour - read)
        bill = (turn.uncached, read, self.cached - read - by_hour, by_hour, 7)
        self.bills.append(bill)
        each = (INPUT, READ, FIVE, HOUR, OUTPUT)
        self.cost += sum((count * price for count, price in zip(bill, each, strict=True)), Decimal(0))


def calls_of(chain: Sequence[Turn], plan: Plan, agent: str = "") -> list[BilledCall]:
    at, calls = START, []
    for number, (turn, bill) in enumerate(zip(chain, Simulation(chain, plan).bills, strict=True), 1):
        at += turn.pause
        name = f"{agent} {number}"
        calls.append(BilledCall(number, number, MODEL, bill, at, before=number - 1, session="s", agent=agent, id=name))
    return calls


def account_of(*files: list[BilledCall]) -> BillAccount:
    return account_for(
        [SessionFile(f"{n}.jsonl", "claude-code", "x", calls) for n, calls in enumerate(files)], prices()
    )


def saved(chain: Sequence[Turn], before: Plan, after: Plan) -> Decimal:
    return Simulation(chain, before).cost - Simulation(chain, after).cost


def plans(random: Random) -> Plan:
    return Plan(random.choice((0, 10, 5_000, ALL)))


@SEEDS
@given(st.integers(0, 10**9))
def test_the_bill_of_a_simulation_is_its_cost(seed: int) -> None:
    """So the prices here are those of the model, and the only cause is time."""
    random = Random(seed)
    chain, plan = random_chain(random), plans(random)
    found = account_of(calls_of(chain, plan))
    cost = sum((prices().prices(call).total_cost(call.usage) for _, call in found.calls()), Decimal(0))  # type: ignore[union-attr]
    assert cost == Simulation(chain, plan).cost
    assert {one.cause for one in found.rewrites} <= {"ttl_expired"}


@SEEDS
@given(st.integers(0, 10**9))
def test_a_1h_ttl(seed: int) -> None:
    random = Random(seed)
    chain, plan = random_chain(random), plans(random)
    assert saved_by_hour(account_of(calls_of(chain, plan)), is_main) == saved(chain, plan, Plan(ALL))


@SEEDS
@given(st.integers(0, 10**9))
def test_a_5m_ttl(seed: int) -> None:
    random = Random(seed)
    chain, plan = random_chain(random), plans(random)
    assert saved_by_five_minutes(account_of(calls_of(chain, plan)), is_main) == saved(chain, plan, Plan(0))


@settings(max_examples=100)
@given(st.integers(0, 10**9))
def test_each_scope_is_apart(seed: int) -> None:
    random = Random(seed)
    main, side = random_chain(random), random_chain(random)
    found = account_of(calls_of(main, Plan(0)), calls_of(side, Plan(0), "a1"))
    if not any(one.cause == "cold_start" for one in found.rewrites):
        assert saved_by_hour(found, is_main) == saved(main, Plan(0), Plan(ALL))
        assert saved_by_hour(found, is_sub_agent) == saved(side, Plan(0), Plan(ALL))


def test_what_others_kept_alive_needs_no_1h_ttl() -> None:
    """A prefix that was read after 6 minutes with 5m writes only was not alive for its 1h TTL."""
    calls = [
        BilledCall(1, 1, MODEL, (0, 20_000, 5_000, 0, 7), START),
        BilledCall(2, 2, MODEL, (0, 20_000, 5_100, 0, 7), START + 360, before=1),
    ]
    assert saved_by_five_minutes(account_of(calls), is_main) == 0


def test_a_host_without_1h_saves_nothing_by_it() -> None:
    gpt = [
        BilledCall(1, 1, "gpt-4o", (50_000, 0, 0, 0, 7), START, host="openai"),
        BilledCall(2, 2, "gpt-4o", (50_000, 0, 0, 0, 7), START + 400, before=1, host="openai"),
    ]
    found = account_of(gpt)
    assert [one.cause for one in found.rewrites] == ["ttl_expired"]
    assert saved_by_hour(found, is_main) == 0


def test_a_chain_has_pauses_on_both_sides_of_each_edge() -> None:
    edges = (300, 3600)
    assert all(any(low < edge <= high for low, high in pairwise(PAUSES)) for edge in edges)
