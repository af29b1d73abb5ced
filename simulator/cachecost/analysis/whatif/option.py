"""A way to send calls differently, before it is priced.

The results of `whatif`: alternatives with their dollars, combinations, and the cost of actions.

The pauses of a recording, and the break-even of the 1h TTL.

Thinking off: the blocks leave the thread, the parameter the request, what was thought the answer.

Other TTLs for the existing breakpoints, layer by layer, and other breakpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from cachecost.analysis.replays.steps import (
    ReplayStep,
    StepChange,
    ThreadChange,
    change_breakpoints,
    change_calls,
    conversation_of,
    has_breakpoints,
    set_hour_on,
    set_ttl,
)
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer, Message, Thread
from cachecost.prompts.request import TTL, Breakpoint, Request, last_breakpoint_place, sent_breakpoints
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.workload import Workload

YES = "yes"
NO_CHANGE = "no change: "
NOT_SUPPORTED = "not supported by the data: "
NOT_EVALUATED = "not evaluated: "


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to send the recording.

    `cost` is what it comes to in USD (None: not evaluated), `saving` how much less that is than now; a batch has
    `most`, if none of its best-effort hits come. `calls_changed` counts recorded calls whose dollars differ,
    `extra_calls` the calls that it adds. `error` is what the token counts may do to the saving, in USD.
    `supported` is "yes", or begins with "no change: ", "not supported by the data: " or "not evaluated: " and goes on
    with why. `depends_on` are the assumptions about open rules under which it turns from a gain into a loss, or back.
    `keeps_answers`: the model is sent the same words, in the same order or in an order that was arbitrary.
    """

    name: str
    kind: str
    does: str
    cost: Decimal | None
    saving: Decimal | None
    share: Decimal | None = None
    calls_changed: int = 0
    extra_calls: int = 0
    assumption: str = ""
    supported: str = YES
    most: Decimal | None = None
    error: Decimal = Decimal(0)
    keeps_answers: bool = True
    depends_on: tuple[str, ...] = ()

    @property
    def is_gain(self) -> bool:
        """Whether the data say that it saves money."""
        return self.supported == YES and self.saving is not None and self.saving > 0


@dataclass(frozen=True, slots=True)
class Combination:
    """Several alternatives replayed together, in USD, and the sum of what each saves alone. `why`: in words."""

    names: tuple[str, ...]
    cost: Decimal | None
    saving: Decimal | None
    sum_of_parts: Decimal
    best_part: Decimal
    why: str = ""
    supported: str = YES


@dataclass(frozen=True, slots=True)
class TTLBreakEven:
    """When the 1h TTL breaks even (the formula is in `pauses.py`), and the recording's pauses.

    `needed` is how many tokens must be written again after pauses of 5 to 60 minutes for each token that is new, in
    tokens per token; `here` what that is in the recording. `needed_pauses` says the same as a number of such pauses,
    `pauses` how many there are: shorter than 5 minutes, up to an hour, an hour and longer. `longest_s` is the longest.
    `pings` may bridge a pause before they cost more than writing again.
    """

    model: str
    needed: Decimal
    here: Decimal | None
    needed_pauses: Decimal | None
    pauses: tuple[int, int, int]
    longest_s: float
    hours: float
    pings: int | None

    @property
    def needed_an_hour(self) -> Decimal | None:
        """Pauses of 5 to 60 minutes per hour at which the 1h TTL breaks even."""
        return self.needed_pauses / Decimal(str(self.hours)) if self.needed_pauses is not None and self.hours else None


@dataclass(frozen=True, slots=True)
class Action:
    """What the next call costs with and without a change before it, in USD.

    `at` is the recorded call after which it is switched. `lost` are tokens that would have been read and are not.
    `then` are the dollars of a later call, with and without. `pays_after` counts the calls, the switched one included,
    after which it has paid for itself; None: it never does. `session`, `file` and `line` are those of the call `at`.
    """

    name: str
    at: int
    cost: Decimal
    cost_without: Decimal
    lost: int
    then: Decimal
    then_without: Decimal
    pays_after: int | None
    assumption: str = ""
    session: str = ""
    file: str = ""
    line: int | None = None

    @property
    def price(self) -> Decimal:
        """What the change costs at the next call, in USD."""
        return self.cost - self.cost_without


@dataclass(frozen=True, slots=True)
class WhatifReport:
    """All alternatives for a recording.

    `cost` is that of the recording as sent, USD: `billed` if it has all bills and the simulation is near them, else
    `simulated`. `assumptions` are the other ones about open rules that could matter, as NAME=VALUE, if they were tried.
    """

    name: str
    calls: int
    cost: Decimal
    simulated: Decimal
    billed: Decimal | None
    alternatives: list[Alternative] = field(default_factory=list)
    break_even: TTLBreakEven | None = None
    jointly: Combination | None = None
    asked: Combination | None = None
    actions: list[Action] = field(default_factory=list)
    token_source: str = ""
    error_margin: float = 0.0
    has_tried_assumptions: bool = False
    assumptions: list[str] = field(default_factory=list)
    retired_models: Mapping[str, date] = field(default_factory=dict)
    """Models that are no alternatives since they were retired after the recording, and the last day of each."""
    day: date | None = None
    """The last day of the most expensive model's calls: on it, all of these are served."""
    held_losses: int = 0
    """Calls whose bill shows a loss that nothing explains; it is the same under every alternative."""

    def find(self, name: str) -> Alternative:
        """The alternative called `name`. Raises KeyError."""
        return {one.name: one for one in self.alternatives}[name]


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
        conversation, head = conversation_of(call), _head(call)
        before = last.get(conversation, last.get(head))
        if before is not None:
            found.append(call.start - before)
        last[conversation] = last[head] = call.start
    at_work = sum(min(pause, SECONDS_AN_HOUR) for pause in found) / SECONDS_AN_HOUR
    return RecordedPauses(tuple(found), any(call.timestamp is not None for call in calls), at_work)


def _head(call: Call) -> object:
    request = call.request
    return request.model, request.tools.digest, request.system.digest, call.host, call.workspace


def rewrites_to_break_even(prices: Prices) -> Decimal | None:
    """How many tokens must be written again after a pause, for each token that is new, before an hour pays.

    Per token, five minutes cost `write_5m` when it is new and `write_5m` instead of `read` each time that a pause of 5
    minutes to an hour lets it expire; an hour costs `write_1h` once. With `n` tokens new and `e` written again:

        n * write_1h + e * read < (n + e) * write_5m   <=>   e / n > (write_1h - write_5m) / (write_5m - read)

    With the usual multipliers 1.25, 2 and 0.1 it is 0.75 / 1.15 = 0.652. None where writing costs no more than reading.
    """
    gain = prices.write_5m - prices.read
    return (prices.write_1h - prices.write_5m) / gain if gain > 0 else None


def pings_worth(prices: Prices) -> int | None:
    """How many pings in one pause cost no more than writing again does above a read: n * read <= write_5m - read.

    None where a read costs nothing.
    """
    return int((prices.write_5m - prices.read) / prices.read) if prices.read > 0 else None


def break_even(
    rules: ModelRules, prices: Prices, found: RecordedPauses, at_5m: Sequence[Usage], at_1h: Sequence[Usage]
) -> TTLBreakEven | None:
    """The edge for a model, and where the recording stands: it is replayed with all breakpoints at 5m, and all at 1h.

    What is written more at five minutes than at an hour was written again after a pause. None where nothing is cached,
    or not for an hour.
    """
    limit = rewrites_to_break_even(prices)
    if limit is None or "1h" not in rules.accepted_ttls:
        return None
    short, hour = rules.ttl_s["5m"], rules.ttl_s["1h"]
    new = sum(usage.write for usage in at_1h)
    again = sum(usage.write for usage in at_5m) - new
    counts = (found.between(float("-inf"), short), found.between(short, hour), found.between(hour))
    # What one pause has written again here; else what one would have, the mean cached prefix.
    cached = [usage.read + usage.write for usage in at_5m if usage.read + usage.write]
    usual = Decimal(sum(cached)) / len(cached) if cached else ZERO
    mean = Decimal(again) / counts[1] if counts[1] and again > 0 else usual
    return TTLBreakEven(
        rules.model,
        limit,
        Decimal(again) / new if new else None,
        limit * new / mean if mean > 0 else None,
        counts,
        found.longest,
        found.hours,
        pings_worth(prices),
    )


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


SHORT, HOUR = 300.0, 3600.0


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
