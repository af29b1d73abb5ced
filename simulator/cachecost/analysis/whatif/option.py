"""A way to send calls differently, before it is priced; thinking off, other TTLs, other breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cachecost.analysis.replays.steps import (
    ReplayStep,
    StepChange,
    ThreadChange,
    change_breakpoints,
    change_calls,
    has_breakpoints,
    set_hour_on,
    set_ttl,
)
from cachecost.analysis.whatif.pauses import RecordedPauses
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer, Message, Thread
from cachecost.prompts.request import TTL, Breakpoint, Request, last_breakpoint_place, sent_breakpoints
from cachecost.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class Option:
    """`change` makes other steps of steps; options are applied in the order of their `rank`, of a `kind` only one.

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

    @property
    def keeps_prompts(self) -> bool:
        """Whether the same prompts go to the same cache."""
        return self.rank >= BREAKPOINTS

    def apply(self, steps: Sequence[ReplayStep]) -> list[ReplayStep]:
        return self.change(steps)


CONTENT, MODEL, COMPACTION, BREAKPOINTS, TTL_LEVER, PINGS = range(6)
"""Ranks: content, model, compaction, breakpoints, TTLs, keep-alives."""
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
        change_calls(ThinkingRemover(traffic)),
        CONTENT,
        ASSUMED,
        unchanged="" if is_there else "no call requests or contains thinking",
        keeps_answers=False,
    )


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
            counter = self._traffic.setup.counter(self._traffic.setup.rules_for(call).generation)
            return sum(counter.block(block) for block in blocks if block.is_thinking)
        except CannotEvaluate:
            return 0


def _without_thinking(message: Message) -> Message | None:
    if not message.has_thinking:
        return message
    blocks = tuple(block for block in message.blocks if not block.is_thinking)
    return Message.of(message.role, blocks) if blocks else None


def ttl_options(calls: Sequence[Call], found: RecordedPauses, short_s: float) -> Iterator[Option]:
    """Everything for 5 minutes, everything for an hour, and an hour for the layers that come first alone."""
    head = (Layer.TOOLS, Layer.SYSTEM)
    for name, does, timed, layers in (
        ("ttl=5m", "every breakpoint has a TTL of 5m", set_ttl("5m"), ()),
        ("ttl=1h", "every breakpoint has a TTL of 1h", set_ttl("1h"), ()),
        ("ttl=1h:tools", "a TTL of 1h on tools, 5m on everything else", set_hour_on(head[:1]), head[:1]),
        ("ttl=1h:tools+system", "a TTL of 1h on tools and system, 5m on messages", set_hour_on(head), head),
    ):
        if not layers:
            unchanged = "already so" if all(timed(call.request) is call.request for call in calls) else ""
        elif any(breakpoint.layer in layers for call in calls for breakpoint in call.request.breakpoints):
            unchanged = ""
        else:
            unchanged = f"no call has a breakpoint on {' or '.join(layers)}"
        why = _missing_reason(calls, timed, found, short_s)
        change = change_breakpoints(timed)
        yield Option(name, "ttl", does, change, TTL_LEVER, unsupported=why, unchanged=unchanged)


def _missing_reason(
    calls: Sequence[Call], timed: Callable[[Request], Request], found: RecordedPauses, short_s: float
) -> str:
    """Why the recording cannot show what these TTLs change. That 5m is enough, pauses shorter than that prove."""
    lengthens = any(
        then.ttl == "1h" and now.ttl == "5m"
        for call in calls
        for now, then in zip(
            *(sent_breakpoints(one).breakpoints for one in (call.request, timed(call.request))), strict=True
        )
    )
    return found.missing_reason(short_s if lengthens else 0.0)


def own_ttl(request: Request) -> TTL:
    """The TTL of all breakpoints of a request; 5m where they differ, or where it has none."""
    return "1h" if {breakpoint.ttl for breakpoint in sent_breakpoints(request).breakpoints} == {"1h"} else "5m"


@dataclass(frozen=True, slots=True)
class _Marking:
    """Breakpoints by one rule, with the TTL of the request's own (5m if it has none)."""

    head: bool
    end: bool

    def __call__(self, request: Request) -> Request:
        if request.fault:
            return request
        ttl = own_ttl(request)
        breakpoints = [*(self._head(request, ttl) if self.head else ()), *(self._end(request, ttl) if self.end else ())]
        return replace(request, breakpoints=tuple(dict.fromkeys(breakpoints)), automatic=None)

    def _head(self, request: Request, ttl: TTL) -> Iterator[Breakpoint]:
        if request.tools.blocks:
            yield Breakpoint(Layer.TOOLS, len(request.tools.blocks) - 1, ttl)
        texts = [index for index, block in enumerate(request.system.blocks) if not block.is_empty_text]
        if texts:
            yield Breakpoint(Layer.SYSTEM, texts[-1], ttl)

    def _end(self, request: Request, ttl: TTL) -> Iterator[Breakpoint]:
        if found := last_breakpoint_place(request, ttl):
            yield found


def breakpoint_options(calls: Sequence[Call]) -> Iterator[Option]:
    """The last block alone, the head and the last block, and no breakpoint at all."""
    for name, marking, does in (
        (
            "breakpoints=automatic",
            _Marking(False, True),
            "one breakpoint on the last block of each call: automatic caching",
        ),
        (
            "breakpoints=head+automatic",
            _Marking(True, True),
            "breakpoints on the last tool, the last system block and the last block",
        ),
        ("breakpoints=none", _Marking(False, False), "no caching at all"),
    ):
        same = all(_spots(marking(call.request)) == _spots(call.request) for call in calls)
        yield Option(
            name, "breakpoints", does, change_breakpoints(marking), BREAKPOINTS, unchanged="already so" if same else ""
        )


def _spots(request: Request) -> set[object]:
    return (
        {(breakpoint.block_key, breakpoint.ttl) for breakpoint in sent_breakpoints(request).breakpoints}
        if has_breakpoints(request)
        else set()
    )
