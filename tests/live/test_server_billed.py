"""The server with the meter it is meant for: what it tells is what a replay of its record says."""

import asyncio

import httpx2
import pytest
from server_fakes import HEAD, Says, client_of, lines_of, post, served_by

from cachecost.conversations.readers.request_log import calls
from cachecost.live.clock import SteppingClock
from cachecost.live.request_log import CallLog
from cachecost.live.server.state import Meter, faults_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup

START = 1_793_500_000.0
"""A second of 2026-11-01."""
WORDS = "Where the river bends – at “Nørre Bro” – 4,711 people (¼!) met 🙂; def f(x): return x ** 2\n" * 20
BREAKPOINT = {"cache_control": {"type": "ephemeral"}}


def meter(tokens="tiktoken"):
    return Meter(ReplaySetup(RuleBook(), PriceBook.load(None, None), "anthropic", tokens))


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 20, 150, 399])
def test_no_more_than_max_tokens_is_ever_billed(model, most):
    blocks = [{"type": "text", "text": WORDS}, {"type": "tool_use", "id": "t", "name": "n", "input": {"text": WORDS}}]
    body = {"model": model, "max_tokens": most, "messages": [{"role": "user", "content": "x"}]}
    message = post(served_by(Says(*blocks), meter(), clock=SteppingClock(2.0, START)), body).json()
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] <= most
    assert most < 20 or message["usage"]["output_tokens"] > most * 0.8 - 10


def test_a_replay_of_the_record_says_what_was_told(tmp_path):
    path = tmp_path / "log.jsonl"
    faults = faults_from(["2:529", "4:cut", "6:slow=9"])
    bill = meter()
    with CallLog(path) as log:
        clock = SteppingClock(2.0, START)
        answerer = Says({"type": "text", "text": "Done."}, first=0.5)
        served = served_by(answerer, bill, log=log, faults=faults, clock=clock)
        told = asyncio.run(conversation(served))
    simulation = Simulation(ReplaySetup(RuleBook(), PriceBook.load(None, None), tokens="tiktoken"))
    rows = list(simulation.rows(calls(path)))
    assert len(rows) == 7
    assert [row.usage.wire() for row in rows if row.usage.total_input] == [row.usage.wire() for row in bill.rows]
    assert sum(row.cost.total for row in rows) == sum(row.cost.total for row in bill.rows)
    assert [line["usage"] for line in lines_of(path) if "usage" in line] == [row.usage.wire() for row in bill.rows]
    assert [usage["cache_read_input_tokens"] > 0 for usage in told] == [False, True, True, True, True]


async def conversation(served):
    """Six turns; the usage of those that arrived."""
    said, told = [], []
    async with client_of(served) as client:
        for _ in range(7):
            asks = {"role": "user", "content": [{"type": "text", "text": WORDS * 3, **BREAKPOINT}]}
            body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "system": "Be brief.", "messages": [*said, asks]}
            try:
                answer = (await client.post("/v1/messages", headers=HEAD, json=body)).json()
            except httpx2.RemoteProtocolError:
                continue
            if "usage" in answer:
                told.append(answer["usage"])
                plain = {"role": "user", "content": [{"type": "text", "text": WORDS * 3}]}
                said += [plain, {"role": "assistant", "content": answer["content"]}]
    return told
