"""Compaction at so many tokens: what is older than the last human turn is summed up, once the prompt is that long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile

from cachecost.analysis.replays.steps import NO_CALL, ReplayStep, conversations, has_breakpoints, in_order
from cachecost.analysis.whatif.option import COMPACTION, Option
from cachecost.base.atomic_files import current_work_check
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call, derive_call
from cachecost.prompts.blocks import Block, Layer, Message, Thread, digest_of, given_block
from cachecost.prompts.request import Breakpoint
from cachecost.simulation.workload import Workload

LIMITS = (50_000, 100_000, 150_000, 200_000, 400_000)
SUMMARY_TOKENS = 2_000
INSTRUCTION_TOKENS = 500
WAIT_S = 10.0


def compaction_options(traffic: Workload, lengths: dict[int, int]) -> Iterator[Option]:
    """At each of several limits that a prompt of the recording is longer than. `lengths` by number of the call."""
    for limit in LIMITS:
        if max(lengths.values(), default=0) > limit:
            yield compaction_option(traffic, lengths, limit)


def compaction_option(traffic: Workload, lengths: dict[int, int], limit: int) -> Option:
    """At `limit` tokens."""
    name = f"{limit // 1000}k" if limit % 1000 == 0 else str(limit)
    return Option(
        f"compaction={name}",
        "compaction",
        f"once a prompt exceeds {limit:,} tokens, a summary replaces everything before the last human turn",
        partial(compact_steps, traffic=traffic, lengths=lengths, limit=limit),
        COMPACTION,
        f"A separate call writes a summary of {SUMMARY_TOKENS:,} tokens; later calls are assumed to answer as they did",
        keeps_answers=False,
    )


def compact_steps(
    steps: Sequence[ReplayStep], traffic: Workload, lengths: dict[int, int], limit: int
) -> list[ReplayStep]:
    """The steps of each conversation with what is too long summed up, and the calls that do so."""
    check = current_work_check()
    made = [step for step in steps if step.call.has_failed or step.number == NO_CALL]
    for conversation in conversations(steps):
        one = _RewrittenConversation(traffic, lengths, limit)
        for step in conversation:
            if check is not None:
                check()
            if not step.call.has_failed and step.number != NO_CALL:
                made += one.send(step)
    return in_order(made)


@dataclass(slots=True)
class _RewrittenConversation:
    """One conversation while it is rewritten. `cut` is the last summarized message, `summary` its replacement."""

    traffic: Workload
    lengths: dict[int, int]
    limit: int
    cut: Thread | None = None
    summary: Message | None = None
    _tokens: dict[Thread, int] = field(default_factory=dict)

    def send(self, step: ReplayStep) -> list[ReplayStep]:
        """The step as sent, preceded by the summary call if one is due."""
        thread = step.call.request.thread
        if self.cut is not None and thread.up_to(self.cut.length) is not self.cut:
            self.cut = self.summary = None  # the client rewrote the thread itself
        end: Thread | None = None
        if self._length(step, self.cut) > self.limit:
            # The last message before the last human one; in one long turn, that before the last answer.
            least = self.cut.length if self.cut else 0
            end = thread.human.parent if thread.human else None
            if end is None or end.length <= least:
                answers = (node for node in thread.back() if node.message and node.message.role == "assistant")
                answer = next(answers, None)
                end = answer.parent if answer else None
                end = end if end is not None and end.length > least else None
        if end is None or self._length(step, end) > self.limit:
            return [step.with_change(self._short)]
        ask = self._summary_call(step, end)
        self.cut, self.summary = end, Message.of("user", (_block("summary", end, SUMMARY_TOKENS),))
        return [ask, step.with_change(self._short)]

    def _length(self, step: ReplayStep, cut: Thread | None) -> int:
        """Tokens of the prompt with a summary in the place of all messages up to `cut`."""
        length = self.lengths.get(step.number, 0)
        if cut is None:
            return length
        if cut not in self._tokens:
            tokens, setup = 0, self.traffic.setup
            with suppress(CannotEvaluate):
                counter = setup.counter(setup.rules_for(step.call).generation)
                tokens = sum(
                    counter.block(block) for node in cut.back() if node.message for block in node.message.blocks
                )
            self._tokens[cut] = tokens
        return length - self._tokens[cut] + SUMMARY_TOKENS

    def _short(self, call: Call) -> Call:
        """The call with the summary in the place of what it sums up. Breakpoints on that are gone."""
        request = call.request
        if self.cut is None or self.summary is None:
            return call
        kept = list(takewhile(lambda node: node is not self.cut, request.thread.back()))
        moved = dict[Thread | None, Thread]()
        thread = request.thread.root.then(self.summary)
        for node in reversed(kept):
            assert node.message is not None
            thread = moved[node] = thread.then(node.message)
        breakpoints = tuple(
            breakpoint if breakpoint.node is None else replace(breakpoint, node=moved[breakpoint.node])
            for breakpoint in request.breakpoints
            if breakpoint.node is None or breakpoint.node in moved
        )
        return replace(call, request=replace(request, thread=thread, breakpoints=breakpoints))

    def _summary_call(self, step: ReplayStep, end: Thread) -> ReplayStep:
        """The call that sums up: what was sent until then, and an instruction, marked as the calls are."""
        until = replace(
            step.call.request, thread=end, breakpoints=tuple(m for m in step.call.request.breakpoints if m.node is None)
        )
        short = self._short(replace(step.call, request=until)).request
        thread = short.thread.then(Message.of("user", (_block("instruction", end, INSTRUCTION_TOKENS),)))
        breakpoints = short.breakpoints
        if step.call.request.automatic is None and has_breakpoints(step.call.request):
            breakpoints = (*breakpoints, Breakpoint(Layer.MESSAGES, 0, step.call.request.breakpoints[-1].ttl, thread))
        request = replace(short, thread=thread, breakpoints=breakpoints)
        ask = derive_call(step.call, request, step.call.start - WAIT_S, SUMMARY_TOKENS, "compaction")
        return ReplayStep(NO_CALL, ask, ask)


def _block(what: str, end: Thread, tokens: int) -> Block:
    assert end.message is not None
    name = digest_of("user", "text", end.message.digest + str(end.length).encode()).hex()
    return given_block("text", "user", f"{what} {name}", tokens)
