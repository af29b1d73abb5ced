"""The cost of an action: of the next call of a conversation if something is changed before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median

from cachecost.analysis.replays.steps import NO_CALL, ReplayStep, as_sent, conversation_of
from cachecost.analysis.whatif.alternatives import Action
from cachecost.analysis.whatif.catalogue import RecordingProfile
from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.analysis.whatif.settings import SettingChange, parse_actions
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.conversations.calls import Call, derive_call
from cachecost.ledger.results import CallRow
from cachecost.prompts.blocks import Layer, Message, Thread, given_block
from cachecost.prompts.request import Breakpoint, Request
from cachecost.providers.hosts import host_of
from cachecost.providers.served_models import must_be_served, withdrawn

MOST_CALLS = 100
"""How many further calls are replayed: an action that has not paid off by then counts as never."""
USUAL_GAP_S, USUAL_GROWTH, USUAL_OUTPUT = 30.0, 1_000, 300
"""Seconds between calls, tokens by which a prompt grows, tokens of an answer: used if the recording has none."""


def price_actions(
    profile: RecordingProfile, pricing: AlternativePricing, names: Sequence[str], at: int | None
) -> list[Action]:
    """What each action costs after the recorded call `at` in time order (None: the last that can be evaluated).

    Raises InputError with every fault; CannotEvaluate where the call after it cannot be priced.
    """
    calls = profile.traffic.calls
    if at is not None and not 1 <= at <= len(calls):
        raise InputError([Fault("--at", f"expected a call from 1 to {len(calls)}; got {at}")])
    found = parse_actions(names, calls)
    if not found:
        return []
    fine = [row.call for row in pricing.base if row.error is None and row.call <= (at or len(calls))]
    if not fine:
        raise CannotEvaluate("no call can be evaluated, so nothing can be switched after it")
    last = calls[(at or fine[-1]) - 1]
    for one in found:
        _must_be_served(profile, one, last)
    future = _Future.of(profile, pricing, at or fine[-1])
    return [future.action(pricing, replace(one, assumption=_assumed(profile, one, last))) for one in found]


def _assumed(profile: RecordingProfile, switch: SettingChange, before: Call) -> str:
    """What the change takes for granted; that its model is retired by today, where it is."""
    host = host_of(before.host, profile.traffic.setup.host, before.request.model)
    gone = withdrawn(host, switch.model, profile.today) if switch.model and profile.today else ""
    return "; ".join(part for part in (gone, switch.assumption) if part)


def _must_be_served(profile: RecordingProfile, switch: SettingChange, before: Call) -> None:
    """Raise CannotEvaluate where the host of the call does not serve the model that is switched to on its day."""
    if not switch.model:
        return
    traffic = profile.traffic
    try:
        host = host_of(before.host, traffic.setup.host, before.request.model)
        must_be_served(host, switch.model, traffic.setup.day or before.day)
    except CannotEvaluate as error:
        raise CannotEvaluate(f"--action {switch.name}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Future:
    """A conversation after its call `at`: what was sent `before` by all, and how it goes on."""

    at: int
    before: Sequence[ReplayStep]
    after: Sequence[ReplayStep]
    assumption: str

    @classmethod
    def of(cls, profile: RecordingProfile, pricing: AlternativePricing, at: int) -> _Future:
        steps = as_sent(profile.traffic.calls)
        conversation = conversation_of(steps[at - 1].call)
        mine = [
            step
            for step in steps
            if conversation_of(step.call) == conversation and pricing.base[step.number - 1].error is None
        ]
        recorded = [step for step in mine if step.number > at]
        growth = _Growth.of([step.call for step in mine], [pricing.base[step.number - 1] for step in mine])
        last = (recorded or [steps[at - 1]])[-1].call
        made = growth.calls(last, MOST_CALLS - len(recorded))
        after = [*recorded, *(ReplayStep(NO_CALL, call, call) for call in made)]
        words = f"{len(recorded):,} recorded calls follow, then" if recorded else "the calls that follow are assumed:"
        return cls(at, steps[:at], after[:MOST_CALLS], f"{words} {growth}")

    def action(self, pricing: AlternativePricing, switch: SettingChange) -> Action:
        without = self._rows(pricing, self.after)
        changed = [
            step.with_change(lambda call: replace(call, request=switch.change(call.request))) for step in self.after
        ]
        rows = self._rows(pricing, changed)
        if rows[0].error or without[0].error:
            raise CannotEvaluate(f"--action {switch.name}: {rows[0].error or without[0].error}")
        pairs = [pair for pair in zip(rows, without, strict=True) if not (pair[0].error or pair[1].error)]
        later = pairs[1] if len(pairs) > 1 else pairs[0]
        return Action(
            switch.name,
            self.at,
            rows[0].cost.total,
            without[0].cost.total,
            max(0, without[0].usage.read - rows[0].usage.read),
            later[0].cost.total,
            later[1].cost.total,
            _pays_after(pairs),
            f"{switch.assumption}; {self.assumption}",
            self.before[-1].call.session,
            self.before[-1].call.file,
            self.before[-1].call.line or None,
        )

    def _rows(self, pricing: AlternativePricing, after: Sequence[ReplayStep]) -> list[CallRow]:
        return pricing.replays.rows([*self.before, *after], "action")[len(self.before) :]


def _pays_after(pairs: Sequence[tuple[CallRow, CallRow]]) -> int | None:
    """After how many calls all of them together cost no more than without."""
    sums = accumulate(with_.cost.total - without.cost.total for with_, without in pairs)
    return next((number for number, more in enumerate(sums, 1) if more <= 0), None)


@dataclass(frozen=True, slots=True)
class _Growth:
    """How a conversation goes on: seconds between calls, tokens of an answer and of what is said to it."""

    gap_s: float
    output: int
    said: int

    @classmethod
    def of(cls, calls: Sequence[Call], rows: Sequence[CallRow]) -> _Growth:
        """As it went: the usual pause, the mean answer, the mean growth of its prompt."""
        starts = [call.start for call in calls]
        gaps = [after - before for before, after in pairwise(starts)]
        lengths = [row.usage.total_input for row in rows]
        grown = [after - before for before, after in pairwise(lengths) if after > before]
        outputs = [row.usage.output_tokens for row in rows if row.usage.output_tokens]
        growth = round(sum(grown) / len(grown)) if grown else USUAL_GROWTH
        output = round(sum(outputs) / len(outputs)) if outputs else min(USUAL_OUTPUT, growth // 2)
        answered = max((call.first_token_s for call in calls), default=0.0) + 1
        return cls(max(median(gaps), answered) if gaps else USUAL_GAP_S, output, max(1, growth - output))

    def __str__(self) -> str:
        return f"one every {self.gap_s:,.0f} s that adds {self.output + self.said:,} tokens"

    def calls(self, last: Call, count: int) -> list[Call]:
        """So many calls more, each going on from the one before."""
        made: list[Call] = []
        for number in range(1, count + 1):
            last = self._next(last, number)
            made.append(last)
        return made

    def _next(self, call: Call, number: int) -> Call:
        answer = given_block("text", "assistant", f"answer {number}", self.output)
        said = given_block("text", "user", f"said {number}", self.said)
        thread = call.request.thread.then(Message.of("assistant", (answer,))).then(Message.of("user", (said,)))
        start = call.start + self.gap_s
        made = derive_call(call, _further(call.request, thread), start, self.output, call.purpose)
        return replace(made, first_token_s=call.first_token_s)


def _further(request: Request, thread: Thread) -> Request:
    """The request with a longer thread; breakpoints on messages stand as far from its end as they did."""
    breakpoints = [
        breakpoint
        if breakpoint.node is None
        else _as_far(breakpoint, request.thread.length - breakpoint.node.length, thread)
        for breakpoint in request.breakpoints
    ]
    unique = {breakpoint.block_key: breakpoint for breakpoint in breakpoints}
    return replace(request, thread=thread, breakpoints=tuple(unique.values()))


def _as_far(breakpoint: Breakpoint, behind: int, thread: Thread) -> Breakpoint:
    node = thread.up_to(thread.length - behind)
    assert node.message is not None
    return Breakpoint(Layer.MESSAGES, len(node.message.blocks) - 1, breakpoint.ttl, node)
