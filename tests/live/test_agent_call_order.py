"""The order of a run's calls, whatever order parallel calls arrive in; and the ids of their answers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cachecost.conversations.calls import Call
from cachecost.live.agent_runs.recording import ArrivedCall, Exchange, stable_order, with_stable_ids
from cachecost.prompts.intake import Intake


def conversation(name: str, calls: int) -> list[list[dict[str, Any]]]:
    """The messages of each call of a conversation, which grows by two from call to call."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"{name} {n}"} for n in range(2 * calls)]
    return [messages[: 2 * n + 1] for n in range(calls)]


def ordered(sent: list[list[dict[str, Any]]], times: list[tuple[int, int]]) -> list[str]:
    """The last texts of calls, which arrive in this order at these times, in their stable order."""
    intake = Intake(keep_content=True)
    calls = [Call(intake.body({"model": "m", "messages": one}), 0.0) for one in sent]
    arrived = [ArrivedCall(Exchange(*time), json.dumps(one).encode()) for one, time in zip(sent, times, strict=True)]
    return [sent[place][-1]["content"] for place in stable_order(calls, arrived)]


A, B, MAIN = conversation("a", 3), conversation("b", 2), conversation("main", 2)


def test_calls_one_after_another_stay_as_they_are() -> None:
    sent = [*B, *A]
    assert ordered(sent, [(2 * n, 2 * n + 1) for n in range(5)]) == ["b 0", "b 2", "a 0", "a 2", "a 4"]


@given(st.permutations("aaabb"))
def test_two_conversations_at_once_are_in_one_order(turns: list[str]) -> None:
    """Each call lasts until the fourth after it has come, so that both always overlap somewhere."""
    rest = {"a": list(A), "b": list(B)}
    sent = [rest[turn].pop(0) for turn in turns]
    assert ordered(sent, [(n, n + 4) for n in range(5)]) == ["a 0", "b 0", "a 2", "b 2", "a 4"]


def test_a_call_that_waits_for_sub_agents_stays_around_them() -> None:
    sent = [MAIN[0], B[0], A[0], A[1], B[1], MAIN[1]]
    times = [(0, 1), (2, 5), (3, 6), (7, 8), (9, 10), (11, 12)]
    assert ordered(sent, times) == ["main 0", "a 0", "b 0", "a 2", "b 2", "main 2"]


def test_ids_are_numbered_in_the_order_of_the_calls() -> None:
    ids = ["toolu_01aaaaaaaaaa", "toolu_01bbbbbbbbbb"]
    lines = [
        json.dumps({"request": {"sent back": ids[::-1]}, "response": {"content": [{"type": "tool_use", "id": one}]}})
        for one in ids
    ]
    first, second = with_stable_ids([line.encode() for line in lines], [1, 0])
    assert b'{"sent back": ["toolu_000000000001", "toolu_000000000002"]}' in first
    assert b'"id": "toolu_000000000002"' in first and b'"id": "toolu_000000000001"' in second
    assert len(first) == len(lines[0])
