"""One fault of each code planted into a recorded, content-free session: it is found, and nothing else is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cachecost.analysis.explain.explaining import explain
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Explanation
from cachecost.prompts.blocks import Block, Message, Part, Thread, digest_of
from cachecost.prompts.request import Breakpoint, Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, read_workload

SESSION = Path(__file__).parents[2] / "scenarios" / "recordings" / "sessions" / "claude-code-56-minutes.jsonl"
TRAFFIC = read_workload(SESSION, ReplaySetup(RuleBook(), PriceBook.load(None, None)), "tiktoken")
FIRST = 30
"""The call from which on something is different; it and those around it are healthy as recorded."""


def explained(calls: list[Call]) -> Explanation:
    traffic: Workload = replace(TRAFFIC, calls=calls)
    return explain(traffic)


HEALTHY = explained(list(TRAFFIC.calls))


def other(block: Block) -> Block:
    """Another block of the same kind and size."""
    return replace(block, digest=digest_of(block.role, block.kind, b"other" + block.digest))


def with_params(**changed: object) -> Callable[[Request], Request]:
    return lambda request: replace(request, params={**request.params, **changed})


PARTS: dict[Part, Part] = {}


def system_changed(request: Request) -> Request:
    """One object for one part, as readers make them."""
    blocks = request.system.blocks
    changed = PARTS.setdefault(request.system, Part((other(blocks[0]), *blocks[1:])))
    return replace(request, system=changed)


def content_changed(request: Request) -> Request:
    """The second message is another one; breakpoints stay on their blocks."""
    messages = request.thread.messages()
    second = messages[1]
    messages[1] = Message.of(second.role, (other(second.blocks[0]), *second.blocks[1:]))
    node = ROOT
    nodes: list[Thread] = [ROOT]
    for message in messages:
        node = node.then(message)
        nodes.append(node)
    breakpoints = tuple(_moved(breakpoint, nodes) for breakpoint in request.breakpoints)
    return replace(request, thread=node, breakpoints=breakpoints)


ROOT = Thread()


def _moved(breakpoint: Breakpoint, nodes: list[Thread]) -> Breakpoint:
    return replace(breakpoint, node=nodes[breakpoint.node.length]) if breakpoint.node else breakpoint


PLANTS: dict[str, Callable[[Request], Request]] = {
    "model_changed": lambda request: replace(request, model="claude-3-7-sonnet-20250219"),
    "system_changed": system_changed,
    "content_changed": content_changed,
    "tool_choice_changed": with_params(tool_choice={"type": "any"}),
    "output_format_changed": with_params(output_config={"format": {"type": "json_schema", "schema": {}}}),
    "effort_changed": with_params(output_config={"effort": "low"}),
    "thinking_changed": with_params(thinking={"type": "enabled", "budget_tokens": 4096}),
}


@pytest.mark.parametrize("cause", PLANTS)
def test_a_change_planted_into_a_recording_is_found(cause: str) -> None:
    calls = [
        replace(call, request=PLANTS[cause](call.request)) if number >= FIRST else call
        for number, call in enumerate(TRAFFIC.calls, 1)
    ]
    found = explained(calls)
    assert [one.call for one in found.findings if one.cause == cause] == [FIRST]
    assert [(one.call, one.cause) for one in found.findings if one.cause != cause] == [
        (one.call, one.cause) for one in HEALTHY.findings
    ]
    assert found.avoidable == found.cost - found.without


def test_a_pause_planted_into_a_recording_is_found() -> None:
    calls = [
        replace(call, start=call.start + 301) if number >= FIRST else call
        for number, call in enumerate(TRAFFIC.calls, 1)
    ]
    found = explained(calls)
    new = [(one.call, one.cause) for one in found.findings if one.call == FIRST]
    assert new == [(FIRST, "ttl_expired")]
    assert len(found.findings) == len(HEALTHY.findings) + 1


def test_a_call_sent_twice_at_once_is_found() -> None:
    """The copy starts before the first token of the call that it is a copy of."""
    first = replace(TRAFFIC.calls[FIRST - 1], first_token_s=1.0)
    calls = [*TRAFFIC.calls[: FIRST - 1], first, replace(first, start=first.start + 0.5), *TRAFFIC.calls[FIRST:]]
    found = explained(calls)
    assert [(one.call, one.code) for one in found.findings if one.cause == "concurrent_write"] == [(FIRST + 1, "CC305")]
    assert len(found.findings) == len(HEALTHY.findings) + 1


def test_breakpoints_taken_out_of_the_messages_are_found_in_every_call_after_the_first() -> None:
    calls = [
        replace(call, request=replace(call.request, breakpoints=call.request.breakpoints[:1])) for call in TRAFFIC.calls
    ]
    found = explained(calls)
    uncached = [one.call for one in found.findings if one.code == "CC403"]
    assert len(uncached) > len(calls) - 8
    assert {one.cause for one in found.findings} <= {"no_breakpoint", "ttl_expired"}
