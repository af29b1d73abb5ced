"""Another way to send calls, before it is priced: thinking off, other TTLs, other breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from cachecost.base.atomic_files import current_work_check
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import duration
from cachecost.base.structs import replace
from cachecost.changes.steps import (
    NO_CALL,
    ReplayStep,
    StepChange,
    ThreadChange,
    change_breakpoints,
    change_calls,
    conversation_of,
    conversations,
    has_breakpoints,
    in_order,
    set_hour_on,
    set_ttl,
)
from cachecost.conversations.calls import Call, derive_call
from cachecost.prompts.blocks import Block, Layer, Message, Thread, digest_of, given_block
from cachecost.prompts.request import TTL, Breakpoint, Request, last_breakpoint_place, sent_breakpoints
from cachecost.providers.prices import Prices
from cachecost.simulation.workload import Workload
from cachecost.strategies.changes.keepalive import KeepAlive


@dataclass(frozen=True, slots=True)
class Option:
    """`change` makes other steps of steps; options are applied by `rank` and `order`, of a `kind` only one.

    `unsupported` says why the recording cannot tell what it saves, `unchanged` why nothing would change ("": it can,
    it would). `counts_anew`: the tokens are those of another tokenizer, so that their error is its own.
    """

    name: str
    kind: str
    does: str
    change: StepChange
    rank: int
    assumption: str = ""
    unsupported: str = ""
    unchanged: str = ""
    keeps_answers: bool = True
    counts_anew: bool = False
    is_batch: bool = False
    order: int = 0

    @property
    def keeps_prompts(self) -> bool:
        """Whether the same prompts go to the same cache."""
        return self.rank >= BREAKPOINTS


CONTENT, MODEL, COMPACTION, BREAKPOINTS, TTL_LEVER, SIDE_TTL, PINGS = range(7)
"""Ranks: content, model, compaction, breakpoints, TTLs, those of sub-agents, keep-alives."""


SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class RecordedPauses:
    """Seconds from each call that begins nothing new to the one before it; `are_known`: some call has a time.

    `hours` is the time in which conversations went on: pauses, of longer ones an hour.
    """

    seconds: tuple[float, ...]
    are_known: bool
    hours: float

    def between(self, least: float, most: float = float("inf")) -> int:
        """How many last `least` seconds or longer, and less than `most`. An entry as old as its TTL has expired."""
        return sum(least <= one < most for one in self.seconds)

    def missing_reason(self, least: float) -> str:
        """Why the recording cannot show what a TTL of `least` seconds changes; "" if it can."""
        if not self.are_known:
            return "the recording has no timestamps, so its pauses are unknown"
        if not self.seconds:
            return "no call follows another, so its pauses are unknown"
        if not self.between(least):
            return f"no pause reaches {least:g} s (the longest is {self.longest:,.0f} s)"
        return ""

    @property
    def longest(self) -> float:
        return max(self.seconds, default=0.0)


def measure_pauses(calls: Sequence[Call]) -> RecordedPauses:
    """The time since the call before: the one of the same conversation, else the last with the same head."""
    last: dict[object, float] = {}
    found = []
    sent = sorted((call for call in calls if not call.has_failed), key=lambda call: call.start)
    for call in sent:
        request = call.request
        conversation = conversation_of(call)
        head = (request.model, request.tools.digest, request.system.digest, call.host, call.workspace)
        before = last.get(conversation, last.get(head))
        if before is not None:
            found.append(call.start - before)
        last[conversation] = last[head] = call.start
    at_work = sum(min(pause, SECONDS_AN_HOUR) for pause in found) / SECONDS_AN_HOUR
    return RecordedPauses(tuple(found), any(call.timestamp is not None for call in calls), at_work)


def pings_worth(prices: Prices) -> int | None:
    """How many pings in one pause cost no more than writing again does above a read: n * read <= write_5m - read.

    None where a read costs nothing.
    """
    return int((prices.write_5m - prices.read) / prices.read) if prices.read > 0 else None


ASSUMED = (
    "Answers are assumed to be the same without it; output shrinks by the recorded thinking, which is too little where "
    "only a summary was recorded"
)


def thinking_options(traffic: Workload) -> Iterator[Option]:
    """Thinking off in every call."""
    calls = traffic.calls
    is_there = any(
        ((call.request.params.get("thinking") or {}).get("type") not in (None, "disabled"))
        or call.request.thread.has_thinking
        for call in calls
    )
    yield Option(
        "thinking=off",
        "thinking",
        "no thinking: not requested, and removed from messages and output",
        change_calls(remove_thinking(traffic)),
        CONTENT,
        ASSUMED,
        unchanged="" if is_there else "no call requests or contains thinking",
        keeps_answers=False,
    )


def remove_thinking(traffic: Workload) -> Callable[[Call], Call]:
    """Calls without thinking. Their answers are found in the calls that go on from them."""
    answers: dict[Thread, Message] = {}
    for call in traffic.calls:
        for node in call.request.thread.back():
            if node.parent is None or node.parent in answers:
                break
            if node.message and node.message.role == "assistant":
                answers[node.parent] = node.message

    def rewrite(message: Message) -> Message | None:
        blocks = _without_thinking(message.blocks) if message.has_thinking else message.blocks
        if len(blocks) == len(message.blocks):
            return message
        return Message.of(message.role, blocks) if blocks else None

    threads = ThreadChange(rewrite)

    def change(call: Call) -> Call:
        params = {name: value for name, value in call.request.params.items() if name != "thinking"}
        request = threads.request(replace(call.request, params=params))
        response, output = _without_thinking(call.response), _without_thinking(call.output)
        tokens = call.output_tokens
        if tokens is not None:
            later = answers.get(call.request.thread)
            blocks = call.simulated_response or (later.blocks if later else ())
            with suppress(CannotEvaluate):
                counter = traffic.setup.counter(traffic.setup.rules_for(call).generation)
                tokens = max(0, tokens - sum(counter.block(block) for block in blocks if block.is_thinking))
        return replace(call, request=request, response=response, output=output, output_tokens=tokens)

    return change


def _without_thinking(blocks: Iterable[Block]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if not block.is_thinking)


def keep_alive_words(habit: KeepAlive, ttl_s: float) -> str:
    """What it does, and how long a pause it bridges where entries expire after `ttl_s` seconds."""
    bridged = duration(habit.times * habit.every_s + ttl_s)
    return f"a keep-alive every {habit.every_s:g} s of a pause, at most {habit.times}: bridges up to {bridged}"


class TTLChoice(NamedTuple):
    """TTLs for all breakpoints: the name of the option, in words, and the layers that have an hour if others do not."""

    name: str
    does: str
    change: Callable[[Request], Request]
    layers: tuple[Layer, ...] = ()


STATIC = (Layer.TOOLS, Layer.SYSTEM)
TTLS = (
    TTLChoice("ttl=5m", "a 5m TTL on every breakpoint", set_ttl("5m")),
    TTLChoice("ttl=1h", "a 1h TTL on every breakpoint", set_ttl("1h")),
    TTLChoice("ttl=1h:tools", "a 1h TTL on tools, 5m on everything else", set_hour_on(STATIC[:1]), STATIC[:1]),
    TTLChoice(
        "ttl=1h:tools+system", "a 1h TTL on tools and system prompt, 5m on messages", set_hour_on(STATIC), STATIC
    ),
)


def ttl_options(calls: Sequence[Call], found: RecordedPauses, short_s: float) -> Iterator[Option]:
    """Everything for 5 minutes, everything for an hour, and an hour for the layers that come first alone."""
    for name, does, timed, layers in TTLS:
        if not layers:
            unchanged = "already so" if all(timed(call.request) is call.request for call in calls) else ""
        elif any(breakpoint.layer in layers for call in calls for breakpoint in call.request.breakpoints):
            unchanged = ""
        else:
            unchanged = f"no call has a breakpoint on {' or '.join(layers)}"
        # Whether 1h was needed, pauses shorter than 5 minutes show too.
        lengthens = any(
            then.ttl == "1h" and now.ttl == "5m"
            for call in calls
            for now, then in zip(
                sent_breakpoints(call.request).breakpoints,
                sent_breakpoints(timed(call.request)).breakpoints,
                strict=True,
            )
        )
        why = found.missing_reason(short_s if lengthens else 0.0)
        yield Option(name, "ttl", does, change_breakpoints(timed), TTL_LEVER, unsupported=why, unchanged=unchanged)


def own_ttl(request: Request) -> TTL:
    """The TTL of all breakpoints of a request; 5m where they differ, or where it has none."""
    return "1h" if {breakpoint.ttl for breakpoint in sent_breakpoints(request).breakpoints} == {"1h"} else "5m"


def breakpoint_options(calls: Sequence[Call]) -> Iterator[Option]:
    """The last block alone, the head and the last block, and no breakpoint at all."""

    def mark(request: Request, head: bool, end: bool) -> Request:
        """Breakpoints on the static prefix, the last block or both, with the TTL of the request's own."""
        if request.fault:
            return request
        ttl = own_ttl(request)
        breakpoints = list[Breakpoint | None]()
        if head and request.tools.blocks:
            breakpoints.append(Breakpoint(Layer.TOOLS, len(request.tools.blocks) - 1, ttl))
        texts = [index for index, block in enumerate(request.system.blocks) if not block.is_empty_text]
        if head and texts:
            breakpoints.append(Breakpoint(Layer.SYSTEM, texts[-1], ttl))
        if end:
            breakpoints.append(last_breakpoint_place(request, ttl))
        return replace(request, breakpoints=tuple(dict.fromkeys(filter(None, breakpoints))), automatic=None)

    def positions(request: Request) -> set[object]:
        if not has_breakpoints(request):
            return set()
        return {(breakpoint.block_key, breakpoint.ttl) for breakpoint in sent_breakpoints(request).breakpoints}

    for name, head, end, does in (
        ("automatic", False, True, "one breakpoint on the last block of each call: automatic caching"),
        ("head+automatic", True, True, "breakpoints on the last tool, the last system block and the last block"),
        ("none", False, False, "no caching at all"),
    ):
        marked = partial(mark, head=head, end=end)
        is_same = all(positions(marked(one.request)) == positions(one.request) for one in calls)
        change, unchanged = change_breakpoints(marked), "already so" if is_same else ""
        yield Option(f"breakpoints={name}", "breakpoints", does, change, BREAKPOINTS, unchanged=unchanged)


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
