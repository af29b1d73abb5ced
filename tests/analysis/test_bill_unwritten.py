"""Calls that no transcript contains, from what the client counted itself: their usage, their price, and where the sums
say nothing of them.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.bill.account import account_for
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.summary import UnwrittenUsage, find_unwritten, unwritten_cost
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.conversations.readers.claude_code.steps import read_sessions
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from conversations.test_transcript_reader import SAYS, answer, user

OPUS, HAIKU = "claude-opus-4-5", "claude-haiku-4-5"
PRICES = CallPrices(PriceBook.load(), RuleBook())
CALL = (10, 0, 5000, 0, 30)
START = 1767348000.0


def session(
    name: str, calls: Sequence[tuple[int, ...]], sums: dict[str, Any], path: str = "", **more: Any
) -> SessionFile:
    made = [
        BilledCall(number, number, OPUS, tokens, START + number, session=name, id=f"{name} {number}", **more)  # type: ignore[arg-type]
        for number, tokens in enumerate(calls, 1)
    ]
    return SessionFile(path or f"{name}.jsonl", "claude-code", calls=made, client_sums=sums)


def unwritten(*files: SessionFile, since: float = 0.0) -> list[UnwrittenUsage]:
    return find_unwritten(account_for(files, PRICES, lambda call: (call.start or 0.0) >= since))


def test_the_rest_of_the_sums_is_priced() -> None:
    """claude-opus-4-5: 5 in, 25 out, 0.5 read, 6.25 written; claude-haiku-4-5: 1 in, 5 out; USD per million."""
    sums = {OPUS: (2010, 5000, 5040, 0, 40), HAIKU: (100, 0, 0, 0, 10)}
    compaction, title = unwritten(session("s", [CALL], sums))
    assert (compaction.session, compaction.model, compaction.usage) == ("s", OPUS, Usage(2000, 5000, 40, 0, 10))
    assert compaction.cost == (2000 * 5 + 5000 * Decimal("0.5") + 40 * Decimal("6.25") + 10 * 25) / Decimal(10**6)
    assert (title.model, title.usage, title.cost) == (HAIKU, Usage(100, 0, 0, 0, 10), Decimal("0.00015"))
    assert unwritten_cost([compaction, title]) == Decimal("0.013") + Decimal("0.00015")


def test_sub_agents_are_in_the_sums_of_their_session() -> None:
    main = session("s", [CALL], {OPUS: (20, 0, 10000, 0, 60)})
    side = session("s", [CALL], {}, path="agent.jsonl", agent="x")
    side.calls[0].id = "other"
    assert unwritten(main, side) == []
    (found,) = unwritten(main)
    assert found.usage == Usage(*CALL)


@pytest.mark.parametrize("number", range(5))
def test_sums_that_lack_a_token_of_the_transcript_say_nothing(number: int) -> None:
    """The client was ended before it wrote them."""
    sums = [2010, 5000, 6000, 100, 40]
    call = list(CALL)
    call[number] = sums[number] + 1
    assert unwritten(session("s", [tuple(call)], {OPUS: tuple(sums)})) == []
    call[number] -= 1
    assert len(unwritten(session("s", [tuple(call)], {OPUS: tuple(sums)}))) == 1


def test_a_fork_goes_on_from_the_sums_of_another_session() -> None:
    parent = session("s", [CALL], {OPUS: CALL})
    fork = session("f", [CALL, CALL], {OPUS: (40, 0, 20000, 0, 90)})
    fork.calls[0].id = parent.calls[0].id
    fork.calls[0].start = fork.calls[1].start
    assert unwritten(parent, fork) == []


def test_a_session_that_began_before_the_period_is_left_out() -> None:
    one = session("s", [CALL, CALL], {OPUS: (2020, 0, 10000, 0, 60)})
    assert len(unwritten(one, since=START)) == 1
    assert unwritten(one, since=START + 2) == []


def test_an_unknown_model_has_no_price() -> None:
    (found,) = unwritten(session("s", [CALL], {"claude-unheard-of": (5, 0, 0, 0, 5)}))
    assert found.cost is None
    assert unwritten_cost([found]) == 0


def test_the_last_sums_of_a_transcript_count(tmp_path: Path) -> None:
    def sums(read: int) -> dict[str, Any]:
        counted = {
            "inputTokens": 1,
            "cacheReadInputTokens": read,
            "cacheCreationInputTokens": 30,
            "cacheCreationEphemeral5mInputTokens": 10,
            "cacheCreationEphemeral1hInputTokens": 20,
            "outputTokens": 4,
            "costUSD": 0.5,
        }
        return {"type": "cost-state", "sessionId": "s", "modelUsage": {f"{OPUS}[1m]": counted}}

    lines = [user("a", None, 0), sums(2), answer("b", "a", 3, (10, 0, 5000, 30), SAYS, sessionId="s"), sums(3)]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ((file,), _) = read_sessions(path)
    assert file.client_sums == {OPUS: (1, 3, 10, 20, 4)}
    assert len(file.calls) == 1


def test_a_copy_with_a_usage_of_zero_is_no_call(tmp_path: Path) -> None:
    counters = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    zero = {**dict.fromkeys(counters, 0), "cache_creation": {"ephemeral_5m_input_tokens": 60}}
    lines = [
        user("a", None, 0, "in short", isCompactSummary=True),
        answer("b", "a", 3, zero, SAYS),
        user("z", "b", 7, "and now"),
        answer("c", "z", 9, (2, 5010, 400, 55), SAYS, "msg_2", "req_2"),
    ]
    path = tmp_path / "fork.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ((file,), _) = read_sessions(path)
    assert [(call.tokens, call.before, call.events) for call in file.calls] == [
        ((2, 5010, 400, 0, 55), 0, ("compaction", "human"))
    ]


@pytest.mark.parametrize("wrong", [-1, 10**12 + 1, 10**30, 1.5, "1", True])
def test_counts_that_cannot_be(tmp_path: Path, wrong: Any) -> None:
    """The sums are left out; a call that has one is damaged."""
    sums = {"type": "cost-state", "sessionId": "s", "modelUsage": {OPUS: {"inputTokens": wrong}}}
    lines = [user("a", None, 0), sums, answer("b", "a", 3, (wrong, 0, 0, 0), SAYS)]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, answer("c", "b", 4, (1, 0, 0, 0), SAYS, "m")]))
    ((file,), _) = read_sessions(path)
    assert file.client_sums == {}
    assert ([call.tokens[0] for call in file.calls], [line for line, _ in file.damaged]) == ([1], [3])
