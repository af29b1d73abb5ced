"""Random recorded calls whose bills may contradict one another, begin warm, lose what was cached, or make no sense."""

from __future__ import annotations

from random import Random
from typing import Any

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Message, Part, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload

START = 1_790_000_000.0
GAPS = (0, 1, 20, 200, 299, 300, 301, 900, 3599, 3600, 5000)
STEP = 900
"""Counted tokens of most blocks; what they are billed as is another matter."""


def random_workload(seed: int) -> Workload:
    """Up to eight calls of a conversation that grows, forks and is sent again, as recorded."""
    random = Random(seed)
    calls = _calls(random)
    setup = ReplaySetup(RuleBook(), PriceBook())
    return recorded_workload("log", calls, setup.with_recorded(calls, None))


def _calls(random: Random) -> list[Call]:
    system = Part((given_block("text", "system", "rules", random.choice((100, 1_500, 6_000))),))
    threads, calls, now = [_grown(random, Thread(), "a")], list[Call](), START
    regime = random.choice((1.0, 1.0, 1.3))
    for number in range(random.randint(2, 8)):
        threads.append(_grown(random, random.choice(threads[-2:]), str(number)))
        now += random.choice(GAPS)
        regime = random.choice((regime, regime, regime, 0.4, 2.0))
        thread = random.choice((threads[-1], threads[-1], threads[-2]))
        calls.append(_call(random, Request("claude-opus-4-6", thread, system=system), now, regime))
    return calls


def _grown(random: Random, thread: Thread, name: str) -> Thread:
    for number in range(random.choice((1, 1, 2, 3))):
        role = "assistant" if thread.length % 2 else "user"
        block = given_block("text", role, f"{name}.{number}", random.choice((1, STEP, STEP, 5_000)))
        thread = thread.then(Message.of(role, (block,)))
    return thread


def _call(random: Random, request: Request, start: float, regime: float) -> Call:
    counted = sum(block.tokens or 0 for block in request.system.blocks)
    counted += sum(block.tokens or 0 for node in request.thread.messages() for block in node.blocks)
    cached = max(0, int(counted * regime * random.choice((1, 1, 1, random.random()))) - 3)
    read = int(cached * random.choice((0, 0.3, 0.9, 1, random.random())))
    ttl: Any = random.choice(("5m", "1h"))
    usage = Usage(
        random.choice((1, 3, 40)), read, cached - read if ttl == "5m" else 0, cached - read if ttl == "1h" else 0
    )
    sent = replace(request, automatic=random.choice((ttl, ttl, ttl, None)))
    return Call(
        sent,
        start,
        timestamp="2026-09-21T14:13:20Z",
        first_token_s=random.choice((0, 0.5, 3)),
        response=_answer(random),
        is_batch=random.random() < 0.1,
        billed=usage,
        output_tokens=0,
    )


def _answer(random: Random) -> tuple[Block, ...]:
    """A server tool's result and what was said after it, which makes the call two passes; mostly nothing."""
    if random.random() < 0.9:
        return ()
    kinds = ("server_tool_use", "web_search_tool_result", "text")
    return tuple(given_block(kind, "assistant", f"{kind}{random.random()}", STEP) for kind in kinds)
