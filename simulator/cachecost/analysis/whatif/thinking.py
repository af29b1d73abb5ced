"""Thinking off: the blocks leave the thread, the parameter the request, what was thought the answer."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.replays.steps import ThreadChange, change_calls
from cachecost.analysis.whatif.option import CONTENT, Option
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Message, Thread
from cachecost.prompts.request import Request
from cachecost.providers.hosts import host_of
from cachecost.simulation.workload import Workload

ASSUMED = (
    "Answers are assumed to be the same without it; output shrinks by the recorded thinking, which is too little where "
    "only a summary was recorded"
)


def thinking_options(traffic: Workload) -> Iterator[Option]:
    """Thinking off in every call."""
    calls = traffic.calls
    is_there = any(_thinks(call.request) or call.request.thread.has_thinking for call in calls)
    yield Option(
        "thinking=off",
        "thinking",
        "no thinking: not requested, and removed from messages and output",
        change_calls(ThinkingRemover(traffic)),
        CONTENT,
        ASSUMED,
        unchanged="" if is_there else "no call requests or contains thinking",
        keeps_answers=False,
    )


def _thinks(request: Request) -> bool:
    return (request.params.get("thinking") or {}).get("type") not in (None, "disabled")


class ThinkingRemover:
    """Calls without thinking. Their answers are found in the calls that go on from them."""

    def __init__(self, traffic: Workload) -> None:
        self._traffic = traffic
        self._rewriter = ThreadChange(_without_thinking)
        self._answers: dict[Thread, Message] = {}
        for call in traffic.calls:
            for node in call.request.thread.back():
                if node.parent is None or node.parent in self._answers:
                    break
                if node.message and node.message.role == "assistant":
                    self._answers[node.parent] = node.message

    def __call__(self, call: Call) -> Call:
        params = {name: value for name, value in call.request.params.items() if name != "thinking"}
        request = self._rewriter.request(replace(call.request, params=params))
        response = tuple(block for block in call.response if not block.is_thinking)
        output = tuple(block for block in call.output if not block.is_thinking)
        less = self._thought(call)
        tokens = max(0, call.output_tokens - less) if call.output_tokens is not None else None
        return replace(call, request=request, response=response, output=output, output_tokens=tokens)

    def _thought(self, call: Call) -> int:
        """Tokens of the thinking in the answer, as counted."""
        later = self._answers.get(call.request.thread)
        blocks = call.simulated_response or (later.blocks if later else ())
        try:
            host = host_of(call.host, self._traffic.setup.host, call.request.model)
            generation = self._traffic.setup.rules.rules(host, call.request.model, call.day).generation
            counter = self._traffic.setup.counter(generation)
            return sum(counter.block(block) for block in blocks if block.is_thinking)
        except CannotEvaluate:
            return 0


def _without_thinking(message: Message) -> Message | None:
    if not message.has_thinking:
        return message
    blocks = tuple(block for block in message.blocks if not block.is_thinking)
    return Message.of(message.role, blocks) if blocks else None
