"""The Python SDK against the simulated API without a socket: a tool loop, billed as the same loop over a socket is."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import clients_bench
import httpx2
import session

from cachecost.live.clock import SteppingClock
from cachecost.live.server.answers.agent import AgentAnswerer
from cachecost.live.server.app import app_of
from cachecost.live.server.bill import bill_of
from cachecost.live.server.state import Meter, ServerState
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from loopback import Loopback

if TYPE_CHECKING:
    import anthropic

BEGIN = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
BREAKPOINT = {"type": "ephemeral"}


def meter() -> Meter:
    return Meter(ReplaySetup(RuleBook(), PriceBook.load(), "anthropic", "auto"))


async def loop(client: anthropic.AsyncAnthropic, **breakpoints: object) -> list[anthropic.types.Message]:
    """A turn: calls until none asks for a tool."""
    messages = [{"role": "user", "content": session.QUESTION}]
    answers = []
    while not answers or answers[-1].stop_reason == "tool_use":
        answers.append(
            await client.messages.create(
                model=session.MODEL,
                max_tokens=1000,
                system=session.SYSTEM,
                tools=session.TOOLS,
                messages=messages,
                **breakpoints,
            )
        )
        said = answers[-1].content
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": session.run_tool(block.name, block.input)}
            for block in said
            if block.type == "tool_use"
        ]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
    return answers


def looped(billed: Meter, **breakpoints: object) -> list[anthropic.types.Message]:
    import anthropic

    async def run() -> list[anthropic.types.Message]:
        app = app_of(ServerState(AgentAnswerer(), billed, SteppingClock(2.0, BEGIN)), [])
        transport = Loopback(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            sdk = anthropic.AsyncAnthropic(api_key=clients_bench.KEY, base_url="http://test", http_client=client)
            return await loop(sdk, **breakpoints)

    return asyncio.run(run())


def test_a_cached_loop_reads_what_the_call_before_it_wrote() -> None:
    billed = meter()
    answers = looped(billed, cache_control=BREAKPOINT)
    usages = [answer.usage for answer in answers]
    assert [answer.stop_reason for answer in answers] == ["tool_use", "tool_use", "end_turn"]
    assert usages[0].cache_read_input_tokens == 0
    for before, after in pairwise(usages):
        assert after.cache_read_input_tokens == before.cache_read_input_tokens + before.cache_creation_input_tokens
    bill = bill_of(billed)
    assert bill.total.usage.read == sum(usage.cache_read_input_tokens for usage in usages)
    assert bill.loops == ()


def test_an_uncached_loop_is_named() -> None:
    billed = meter()
    assert [answer.usage.cache_read_input_tokens for answer in looped(billed)] == [0, 0, 0]
    (found,) = bill_of(billed).loops
    assert found.why == "no breakpoint is set (no cache_control in its calls)"
    assert found.steps == 2
