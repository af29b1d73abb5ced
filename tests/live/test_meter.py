"""The meter bills as `replay` does; what the API refuses it refuses, and that costs nothing."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from simulated_calls import (
    BREAKPOINT,
    TOOLS,
    Served,
    an_hour,
    automatic,
    first_text_only,
    refusable,
    system_only,
    text_body,
    uncached,
)

from cachecost.base.errors import CannotEvaluate
from cachecost.cli import cachecost
from cachecost.live.server.answers.recording import RecordedAnswer
from cachecost.live.server.model import ApiError, CallCharge, ModelAnswer
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import ZERO, Usage

LONG = "All work and no play. " * 600
SEARCHED = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "text", "text": "y" * 900}]},
    {"type": "text", "text": "Found."},
]


def a_day(served: Served) -> None:
    """All that a day brings: loops, pauses on both sides of a TTL, two workspaces, a server tool, refusals."""
    served.loop("Fix the test", automatic, thinking={"type": "enabled", "budget_tokens": 1024})
    served.now += 250.123456789
    served.loop("Fix the test", automatic, workspace="w2")
    served.now += 299.9999999
    served.loop("Fix the test", automatic)
    served.loop("Explain", first_text_only, steps=2)
    served.loop("Over an hour", an_hour, steps=2)
    served.now += 3000
    served.loop("Over an hour", an_hour, steps=1)
    served.call(automatic(text_body(LONG)), ModelAnswer(SEARCHED, first_token_s=0.7531))
    served.call(dict(refusable()))
    served.call(automatic(text_body(LONG)), ModelAnswer([]))


@pytest.mark.parametrize("tokens", [["--tokens", "tiktoken"], []], ids=["tiktoken", "calibrated"])
def test_it_bills_what_replay_makes_of_the_log(tmp_path: Path, tokens: list[str]) -> None:
    log = tmp_path / "calls.jsonl"
    served = Served(log=log)
    a_day(served)
    done = CliRunner().invoke(cachecost, ["replay", str(log), "--json", *tokens])
    assert done.exception is None or done.exit_code == 0, done.output
    replayed = [json.loads(line) for line in done.stdout.splitlines()]
    rows = served.meter.rows
    assert [row.get("usage") for row in replayed] == [None if row.error else row.usage.wire() for row in rows]
    assert sum((Decimal(row["cost_usd"]) for row in replayed), ZERO) == sum((row.cost.total for row in rows), ZERO)
    assert [row["cause"] for row in replayed] == [row.cause for row in rows]
    assert [row["timestamp"] for row in replayed] == [row.timestamp for row in rows]
    assert sum(row.usage.read for row in rows) > sum(row.usage.write for row in rows) > 0


def test_the_usage_is_that_of_the_cache() -> None:
    served = Served("bytes")
    usages = [
        taken.usage
        for taken in (served.call(automatic(text_body(LONG))) for _ in range(2))
        if isinstance(taken, CallCharge)
    ]
    size, said = len('{"type":"text","text":""}') + len(LONG), len('{"type":"text","text":"Done."}')
    assert usages == [Usage(write_5m=size, output_tokens=said), Usage(read=size, output_tokens=said)]


def test_workspaces_share_nothing() -> None:
    served = Served("bytes")
    served.call(automatic(text_body(LONG)), workspace="w1")
    taken = served.call(automatic(text_body(LONG)), workspace="w2")
    assert isinstance(taken, CallCharge) and taken.usage.read == 0


def test_a_recorded_answer_has_the_tokens_that_were_billed() -> None:
    taken = Served().call(text_body("Hi"), RecordedAnswer([{"type": "text", "text": "Hello"}], output_tokens=41))
    assert isinstance(taken, CallCharge) and taken.usage.output_tokens == 41


def test_an_answer_that_was_cut_is_counted() -> None:
    cut = RecordedAnswer([{"type": "text", "text": "He"}], "max_tokens", output_tokens=41)
    taken = Served("bytes").call(text_body("Hi"), cut)
    assert isinstance(taken, CallCharge) and taken.usage.output_tokens == len('{"type":"text","text":"He"}')


def test_a_refused_call_is_in_the_ledger_and_costs_nothing() -> None:
    served = Served()
    words = "messages.0.content.0.text: cache_control cannot be set for empty text blocks"
    assert served.call(dict(refusable())) == ApiError(400, "invalid_request_error", words)
    (row,) = served.meter.rows
    assert (row.error, row.cost.total, row.usage) == (words, ZERO, Usage())


def test_an_unknown_model_is_a_404() -> None:
    served = Served()
    assert served.call(text_body("Hi", model="claude-sonet")) == ApiError(404, "not_found_error", "model: claude-sonet")
    assert len(served.meter.rows) == 1


def test_what_cannot_be_priced_is_no_404() -> None:
    taken = Served().call(text_body("Hi", model="claude-sonnet-4-6", service_tier="flex"))
    assert isinstance(taken, ApiError) and (taken.status, taken.type) == (400, "invalid_request_error")
    assert taken.message.startswith("cachecost cannot bill this call: claude-sonnet-4-6 has no flex processing")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": "m"}, "messages: Field required"),
        ({"messages": []}, "model: Field required"),
        ({"model": "m", "messages": "Hi"}, "messages: Input should be an array"),
        (
            {"model": "m", "messages": [{"role": "usr", "content": "Hi"}]},
            "messages.0.role: Input should be one of assistant, system, user",
        ),
    ],
)
def test_a_body_that_is_no_messages_request_is_told_as_the_api_does(body: Any, message: str) -> None:
    served = Served()
    taken = served.meter.charge(_asked(body), ModelAnswer([]))
    assert taken == ApiError(400, "invalid_request_error", message)
    assert (served.meter.rows, served.meter.not_messages) == ([], 1)


def _asked(body: Any) -> Any:
    from cachecost.live.server.model import ClientCall

    return ClientCall("msg_1", body, "w", 0.0)


def test_counting_is_the_whole_prompt_and_leaves_no_trace() -> None:
    served = Served()
    body = automatic(text_body(LONG, tools=TOOLS))
    counted = served.meter.count(body)
    taken = served.call(body)
    assert isinstance(taken, CallCharge) and taken.usage.total_input == counted > 600 * 5
    assert served.meter.count(uncached(text_body(LONG))) < counted
    assert len(served.meter.rows) == 1


def test_counting_says_what_it_cannot_count() -> None:
    with pytest.raises(CannotEvaluate, match="claude-sonet"):
        Served().meter.count(text_body("Hi", model="claude-sonet"))
    with pytest.raises(NotAMessage):
        Served().meter.count({"model": "claude-sonnet-4-5"})


def test_diagnostics_stand_in_the_answer_where_they_were_asked_for() -> None:
    served = Served()
    served.call(text_body("Hi", system="A"))
    changed = text_body("Hi", system="B")
    told = [
        served.call(changed, wants_diagnostics=True, previous="msg_1"),
        served.call(changed, wants_diagnostics=False, previous="msg_1"),
        served.call(changed, wants_diagnostics=True, previous=None),
        served.call(changed, wants_diagnostics=True, previous="msg_2"),
        served.call(changed, wants_diagnostics=True, previous="msg_1", workspace="w2"),
    ]
    reasons = [
        taken.diagnostics and taken.diagnostics["cache_miss_reason"]["type"]
        for taken in told
        if isinstance(taken, CallCharge)
    ]
    assert reasons == ["system_changed", None, None, None, "previous_message_not_found"]


def test_a_system_prompt_alone_marked_leaves_the_loop_uncached() -> None:
    served = Served()
    served.loop("Go", system_only)
    assert all(row.usage.input_tokens > row.usage.read for row in served.meter.rows[2:])


def test_breakpoints_are_seen_wherever_they_stand() -> None:
    body = text_body(LONG, system=[{"type": "text", "text": LONG * 2, "cache_control": BREAKPOINT}])
    taken = Served().call(body)
    assert isinstance(taken, CallCharge) and taken.usage.write_5m > taken.usage.input_tokens > 1000
