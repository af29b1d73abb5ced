"""Uncached loops: each call pays again for what the call before it sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.live.server.conversations import answers_tools, breakpoints_tool_results, last_breakpoint
from cachecost.live.server.meter import Meter, MeteredCall

MOST = Decimal("0.5")
"""A loop is uncached if more than this share is paid again."""
FEWEST = 2
"""A loop has at least this many later calls."""
PER_TOKEN = -6


@dataclass(frozen=True, slots=True)
class UncachedLoop:
    """Later calls of a conversation that paid the full price again for most of what had been sent before.

    `again` is how many tokens, of `had_been_sent`; `cost` is their cost at the input price, in dollars, and `avoidable`
    what of that `explain` says that breakpoints would have saved; `why` says which breakpoints were set.
    """

    conversation: str
    steps: int
    again: int
    had_been_sent: int
    cost: Decimal
    avoidable: Decimal
    why: str

    @property
    def sentence(self) -> str:
        share = percent(Decimal(self.again) / self.had_been_sent)
        paid = f"paid the full price again for {tokens(self.again)} tokens, {share} of what had been sent before"
        part = f"of which {dollars(self.avoidable)} is avoidable" if self.avoidable else "none of it avoidable"
        usd = f"{dollars(self.cost)}, {part}"
        return f"{self.conversation}: {self.why}. {count_text(self.steps, 'later call')} {paid}: {usd}."


@dataclass(frozen=True, slots=True)
class _LoopCall:
    """A call that continues an earlier one. Tokens: paid again, sent before, and added since the first call."""

    call: MeteredCall
    again: int
    before: int
    grown: int


def find_uncached_loops(conversation: str, calls: Sequence[MeteredCall], meter: Meter) -> Iterator[UncachedLoop]:
    """The uncached loop of a conversation's `calls`, if it has one."""
    taken = meter.taken
    steps = [_step(call, taken, calls[0]) for call in calls if _is_step(call, taken)]
    again = sum(step.again for step in steps)
    before = sum(step.before for step in steps)
    grown = sum(step.grown for step in steps)
    in_loop = sum(min(step.again, step.grown) for step in steps)
    if len(steps) < FEWEST or not (again > MOST * before or (grown and in_loop > MOST * grown)):
        return
    cost = sum((step.again * step.call.input_price for step in steps), Decimal(0)).scaleb(PER_TOKEN)
    avoidable = meter.avoidable()
    saved = sum((avoidable.get(call.row.call, Decimal(0)) for call in calls), Decimal(0))
    yield UncachedLoop(conversation, len(steps), again, before, cost, saved, _why(steps))


def _is_step(call: MeteredCall, taken: Sequence[MeteredCall]) -> bool:
    """Whether a call continues another one with more messages. The same call again is a retry."""
    is_later = call.before is not None and taken[call.before - 1].request.thread is not call.request.thread
    return is_later and call.row.error is None


def _step(call: MeteredCall, taken: Sequence[MeteredCall], first: MeteredCall) -> _LoopCall:
    """Tokens count as paid again if they are uncached and too many to be new or the rest after a hit's last step."""
    assert call.before is not None
    usage, before = call.row.usage, taken[call.before - 1].row.usage.total_input
    new = max(0, usage.total_input - before)
    again = max(0, usage.input_tokens - new)
    grown = max(0, before - first.row.usage.total_input)
    return _LoopCall(call, again if again >= call.step else 0, before, grown)


def _why(steps: Sequence[_LoopCall]) -> str:
    """The reason that most of the loop's calls have."""
    return Counter(map(_reason, steps)).most_common(1)[0][0]


def _reason(step: _LoopCall) -> str:
    request, total = step.call.request, step.call.row.usage.total_input
    breakpoint = last_breakpoint(request)
    if breakpoint is None and step.call.needs_breakpoints:
        return "no breakpoint is set (no cache_control in its calls)"
    if total < step.call.minimum:
        return f"its prompts are below the minimum of {step.call.minimum:,} tokens that this model caches"
    if breakpoint is None:
        return f"the cache was not read: {(step.call.row.cause or '').replace('_', ' ')}"
    if answers_tools(request.thread) and not breakpoints_tool_results(request):
        return f"no breakpoint on tool results; the last breakpoint is on {breakpoint.on}"
    if breakpoint.messages_after:
        return f"the last breakpoint is on {breakpoint.on}, with messages after it"
    return (
        f"the last block has a breakpoint, but the cache was not read: {(step.call.row.cause or '').replace('_', ' ')}"
    )
