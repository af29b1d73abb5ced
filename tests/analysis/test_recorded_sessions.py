"""Recorded Claude Code sessions, planned anew: what was billed comes back, and the rest is told beside it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from cachecost.conversations.calls import BillTotal, Call
from cachecost.conversations.readers.call_recording import calls
from cachecost.conversations.sessions import conversations_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy

RECORDING = Path(__file__).parents[2] / "scenarios" / "recordings" / "sessions" / "claude-code.jsonl"
PRICES = PriceBook.load(None, None)


@pytest.fixture(scope="module")
def sessions() -> list[Call]:
    return list(calls(RECORDING))


@pytest.fixture(scope="module")
def bill(sessions: list[Call]) -> BillTotal:
    bill = BillTotal(PRICES)
    for call in sessions:
        bill.add(call)
    return bill


def cost(sessions: list[Call], strategy: str) -> tuple[int, Decimal]:
    ledger = replay_strategy(strategy, conversations_of(sessions), ReplaySetup(RuleBook(), PRICES, bills=sessions))
    assert ledger.errors == 0
    return ledger.usage.total_input, ledger.cost.total


def test_the_bill_is_that_of_the_transcripts(bill: BillTotal) -> None:
    """Counted by another way than the reader's; at 3, 15, 0.30 and 3.75 dollars per million (Sonnet 4)."""
    usage = bill.usage
    assert (bill.calls, usage.read, usage.write, usage.input_tokens) == (287, 8_377_717, 405_045, 1_333)
    assert bill.dollars.quantize(Decimal("0.0001")) == Decimal("5.1737")


def test_uncached_it_costs_each_input_token_that_was_billed_once(sessions: list[Call], bill: BillTotal) -> None:
    tokens, _ = cost(sessions, "none")
    assert tokens == bill.usage.total_input


@pytest.mark.parametrize(("strategy", "least", "most"), [("claude-code", "1.00", "1.03"), ("none", "5.2", "5.4")])
def test_planned_as_it_was_sent_it_costs_what_was_billed(
    sessions: list[Call], bill: BillTotal, strategy: str, least: str, most: str
) -> None:
    """Above the bill by the heads that calls before the recording had written."""
    tokens, dollars = cost(sessions, strategy)
    assert tokens == bill.usage.total_input
    assert Decimal(least) <= dollars / bill.dollars <= Decimal(most)


def test_sessions_and_sub_agents_are_apart(sessions: list[Call]) -> None:
    conversations = conversations_of(sessions)
    assert len(conversations) == 13
    assert sum(len(conversation.replies) for conversation in conversations) + sum(
        type(event).__name__ == "Aside" for conversation in conversations for event in conversation.events
    ) == len(sessions)


@pytest.mark.parametrize("strategy", ["claude-code", "system-only", "aider", "llama-index-cache-idx"])
def test_layers_add_up_to_the_usage_and_to_the_dollars(sessions: list[Call], strategy: str) -> None:
    """Sizes that bills tell hold for the ends of layers, too."""
    ledger = replay_strategy(strategy, conversations_of(sessions), ReplaySetup(RuleBook(), PRICES, bills=sessions))
    for row in ledger.rows:
        parts = row.by_layer.values()
        usage = row.usage
        assert sum(part.read for part in parts) == usage.read
        assert sum(part.write_5m + part.write_1h for part in parts) == usage.write
        assert sum(part.input for part in parts) == usage.input_tokens
        assert sum(row.cost_by_layer.values()) == row.cost.total - row.cost.output
