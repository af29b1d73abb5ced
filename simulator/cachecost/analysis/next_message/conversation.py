"""The next message of a conversation whose requests are known: simulated, so that `serve` bills the same tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace as replace_fields

from cachecost.analysis.next_message.state import NextMessage, Price, SessionState
from cachecost.analysis.replays.steps import conversation_of
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.limits import json_value
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.conversations.calls import Call, derive_call
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.request import Breakpoint, NotAMessage, Request, parse_message
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload
from cachecost.tokens.factory import counter_name


def parse_content(text: str, name: str) -> Message:
    """The message in the file `name`: JSON with `role` and `content`, or a text. Raises InputError."""
    body: object = {"role": "user", "content": [{"type": "text", "text": text}]}
    if text.lstrip().startswith("{"):
        try:
            found = json_value(text)
        except ValueError:  # a text that begins with a brace
            found = None
        body = found if isinstance(found, dict) and "content" in found else body
    try:
        return parse_message(body, True, 0).message
    except NotAMessage as error:
        raise InputError([Fault(name, str(error).removeprefix("messages.0."))]) from None


def count_message(message: Message, setup: ReplaySetup, state: SessionState, counter: str | None = None) -> int:
    """Tokens of a message, as the tokenizer of the session's model counts. Raises CannotEvaluate."""
    day = None if state.last_used is None else day_of(state.last_used)
    rules = setup.rules.rules(state.host, state.model, day)
    counted = replace_fields(setup, tokens=counter_name(counter, has_bills=False), counters={}).counter(
        rules.generation
    )
    return sum(counted.block(block) for block in message.blocks)


ANSWER, NEW = "answer", "next message"
RequestChange = Callable[[Request], Request]


def unchanged(request: Request) -> Request:
    return request


def with_model(model: str) -> RequestChange:
    """The request to another model."""
    return lambda request: replace(request, model=model)


def with_effort(effort: str) -> RequestChange:
    """The request with another effort level."""

    def change(request: Request) -> Request:
        config = request.params.get("output_config")
        own = dict(config) if isinstance(config, Mapping) else {}
        return replace(request, params={**request.params, "output_config": {**own, "effort": effort}})

    return change


class LastConversation:
    """The last conversation of a workload, which a next message continues.

    Raises CannotEvaluate where no call of it shows what was sent.
    """

    def __init__(self, workload: Workload) -> None:
        sent = [call for call in workload.calls if not (call.has_failed or call.why_unknown)]
        if not sent:
            raise CannotEvaluate(f"{workload.name}: no call shows what was sent")
        self.workload = workload
        self.last = max(sent, key=lambda call: call.start)
        here = [call for call in sent if conversation_of(call) == conversation_of(self.last)]
        self._before = here[-2] if len(here) > 1 and here[-1] is self.last else None
        self._output_tokens = 0

    @property
    def is_timed(self) -> bool:
        """Whether it is known when the calls were made."""
        return self.last.timestamp is not None

    def with_answer(self, output_tokens: int) -> LastConversation:
        """The same conversation; the answer to the next message has so many tokens."""
        made = copy(self)
        made._output_tokens = output_tokens
        return made

    def next_call(self, message: Message, start: float, change: RequestChange = unchanged) -> Call:
        """The call that continues with a message of a person at `start`."""
        request = self.last.request
        answered, answer = request.thread, self.last.response or self.last.output
        if not answer and self.last.output_tokens:  # the log has none: one as long as was billed
            answer = (given_block("text", "assistant", ANSWER, self.last.output_tokens),)
        if answer:
            answered = answered.then(Message.of("assistant", tuple(answer)))
        thread = answered.then(message)
        before = self._before.request if self._before else None
        moved = replace(request, thread=thread, breakpoints=_move_breakpoints(request, before, thread))
        return derive_call(self.last, change(moved), start, self._output_tokens, "next")

    def simulate(self, call: Call, is_cold: bool = False) -> Price:
        """What a call after those of the workload costs; `is_cold`: with nothing cached. Raises CannotEvaluate."""
        preparer = self.workload.setup.preparer().fork()
        if is_cold:
            preparer.warm = WarmPrefixes()
        simulation = self.workload.simulation(preparer=preparer)
        for earlier in () if is_cold else self.workload.calls:
            simulation.row(earlier)
        row = simulation.row(call)
        if row.error is not None:
            raise CannotEvaluate(f"the next message: {row.error}")
        return Price(row.usage, row.cost.total if row.is_priced else None)

    def next_message(self, message: Message, now: float, change: RequestChange = unchanged) -> NextMessage:
        """The next message at `now`. Raises CannotEvaluate where the host would refuse it or has no price."""
        call = self.next_call(message, now, change)
        warm, cold = self.simulate(call), self.simulate(call, is_cold=True)
        return NextMessage(warm.usage.read > 0, warm.usage, warm.cost, cold)


def message_of_size(tokens: int) -> Message:
    """A message of a person of which only the length is known."""
    return Message.of("user", (given_block("text", "user", NEW, tokens),))


def _move_breakpoints(last: Request, before: Request | None, thread: Thread) -> tuple[Breakpoint, ...]:
    """The breakpoints of the next request: those that did not move stay, the others keep their distance to the end."""
    fixed = {one.block_key for one in before.breakpoints} if before else set()
    found: dict[object, Breakpoint] = {}
    for one in last.breakpoints:
        if one.node is not None and one.block_key not in fixed:
            node = thread.up_to(thread.length - (last.thread.length - one.node.length))
            blocks = node.message_blocks
            index = max(0, len(blocks) - (len(one.node.message_blocks) - one.index))
            if not blocks or blocks[index].is_thinking:
                continue
            one = replace(one, node=node, index=index)
        found[one.block_key] = one
    return tuple(sorted(found.values(), key=lambda one: one.prompt_order))
