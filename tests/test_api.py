"""The library as a notebook uses it: one way to read, whatever was recorded."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import cachecost
from cachecost.conversations.model import Conversation

RECORDINGS = Path(__file__).parents[1] / "scenarios" / "recordings"


def test_a_log_of_calls_is_compared_as_one_and_sized_by_its_bills() -> None:
    sessions = cachecost.read(RECORDINGS / "sessions" / "claude-code-56-minutes.jsonl")
    assert isinstance(sessions, cachecost.Recording)
    assert (len(sessions.conversations), len(sessions.calls)) == (1, 62)
    result = cachecost.compare(sessions, ["none", "claude-code@1h"])
    billed = sum(call.billed.total_input for call in sessions.calls if call.billed)
    assert [ledger.usage.total_input for ledger in result.comparison.ledgers] == [billed, billed]
    assert result["claude-code@1h"].cost.total < result["none"].cost.total / 5


def test_on_another_model_the_bills_no_longer_size_it() -> None:
    sessions = cachecost.read(RECORDINGS / "sessions" / "claude-code-56-minutes.jsonl")
    ledger = cachecost.replay(sessions, "none", model="claude-haiku-4-5", as_of="2026-03-07")
    assert {row.model for row in ledger.rows} == {"claude-haiku-4-5"}
    assert ledger.cost.total > Decimal(0)


def test_a_conversation_gets_the_head_that_it_lacks() -> None:
    talk = cachecost.read(RECORDINGS / "jp-17727484633.jsonl", tools_tokens=500, system_tokens=300)
    assert isinstance(talk, Conversation)
    assert [sum(block.tokens or 0 for block in part.blocks) for part in (talk.tools, talk.system)] == [500, 300]
    assert len(cachecost.replay(talk).rows) == 7


def test_a_conversation_without_a_model_needs_one() -> None:
    talk = cachecost.read(RECORDINGS / "jp-17758406187.jsonl")
    with pytest.raises(cachecost.CannotEvaluate, match=r"jp-17758406187 names no model: say model='claude-…'"):
        cachecost.replay(talk)
    assert cachecost.replay(talk, model="claude-opus-4-6").errors == 0
