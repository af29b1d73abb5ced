"""Replays that make only those calls anew whose outcome can differ from that in an earlier replay.

A call is passed over where it is sent as before and all that it asks of the cache and of the earlier calls has the
answer that it had: then it does to both what it did. What a replay changes in the cache is kept beside the entries of
the earlier one, until both agree again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.analysis.replays.steps import NO_CALL, ReplayStep
from cachecost.base.structs import replace, value
from cachecost.caches.hosts import SimulatedHosts, UnexplainedHosts
from cachecost.caches.lineage import EarlierCall, Relatives
from cachecost.caches.losses import Loss
from cachecost.caches.tracking import (
    START,
    CacheUse,
    ChangedCache,
    LineageAnswers,
    TrackedCache,
    TrackedLineage,
    number_of,
)
from cachecost.conversations.calls import Call
from cachecost.simulation.call_preparer import CallPreparer
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import Workload

MOST_CHANGED = 0.5
"""The share of the calls beyond which all are made anew."""
CHANGED = -1
"""In the place of a call's number in the earlier replay: later calls find another one."""


@value
class TrackedCall:
    """A call as simulated, and what it asked."""

    made: SimulatedCall
    use: CacheUse
    answers: LineageAnswers


class TrackedReplay:
    """A replay of all steps that others can be derived from, once it has run. `preparer` has learned from the bills.

    Those of one that is not `explained` are only priced.
    """

    def __init__(
        self, traffic: Workload, steps: Sequence[ReplayStep], preparer: CallPreparer, explained: bool = True
    ) -> None:
        self.traffic = traffic
        self.steps = steps
        self.preparer = preparer
        self.calls: list[TrackedCall] = []
        self._cache = TrackedCache()
        self._explained = explained
        self.history = self._cache.history

    def run(self) -> Iterator[SimulatedCall]:
        """Each call as simulated."""
        cache, lineage = self._cache, TrackedLineage()
        hosts = SimulatedHosts(cache, lineage) if self._explained else UnexplainedHosts(cache)
        simulation = self.traffic.simulation(preparer=self.preparer, hosts=hosts)
        for position, step in enumerate(self.steps, 1):
            made = simulation.simulate(step.call)
            self.calls.append(TrackedCall(made, cache.end_call(position), lineage.end_call()))
            yield made

    def release(self) -> None:
        """Free what only other replays need: none is derived from this one any more."""
        self.calls.clear()
        self.history.clear()

    def match(self, steps: Sequence[ReplayStep]) -> list[int] | None:
        """For each of other steps its position here, 0 for one that is new. None: more must be replayed than that.

        The recorded calls must have the content that they have here, in the same order, and few other breakpoints.
        """
        is_there = len(self.calls) == len(self.steps)
        if not is_there or self.traffic.setup.rules.assumptions.is_drawn or not self._uses_breakpoints():
            return None
        found, position, changed = list[int](), START, 0
        for step in steps:
            here = self.steps[position] if position < len(self.steps) else None
            if here is not None and _is_same(here, step):
                position += 1
                changed += here.call is not step.call
                found.append(position)
            elif step.number == NO_CALL:
                found.append(START)
            else:
                return None
        is_little = position == len(self.steps) and changed <= MOST_CHANGED * position
        return found if is_little else None

    def _uses_breakpoints(self) -> bool:
        return all(one.made.rules is None or one.made.rules.uses_breakpoints for one in self.calls)


def _is_same(one: ReplayStep, other: ReplayStep) -> bool:
    """Whether both send the same content for the same recorded call, or are the same extra call."""
    if one.number == NO_CALL:
        return one.call is other.call
    return one.number == other.number and (
        one.content is other.content or _content_key(one.content) == _content_key(other.content)
    )


def _content_key(call: Call) -> tuple[object, ...]:
    """What the prompt and the bill of a call depend on; how much it can read is another matter."""
    where = call.start, call.day, call.host, call.workspace, call.is_batch
    return id(call.request), id(call.response), call.output_tokens, call.ready_s, *where


class ChangedReplay:
    """Steps that match those of an `earlier` replay at the positions `matches`, as `TrackedReplay.match` finds them."""

    def __init__(self, earlier: TrackedReplay, steps: Sequence[ReplayStep], matches: Sequence[int]) -> None:
        self._earlier = earlier
        self._pairs = list(zip(steps, matches, strict=True))
        self._cache, self._lineage = ChangedCache(earlier.history), TrackedLineage()
        hosts = SimulatedHosts(self._cache, self._lineage)
        self._simulation = earlier.traffic.simulation(preparer=earlier.preparer, hosts=hosts)
        self._matches = [START]
        """By number of the call, its number in the earlier replay, or CHANGED."""
        self._numbers = [START]
        """By number in the earlier replay, the number here."""

    def run(self) -> Iterator[SimulatedCall]:
        """Each call as simulated, or as it was in the earlier replay."""
        position = START
        for step, match in self._pairs:
            position = match or position
            if match:
                self._numbers.append(len(self._matches))
            yield self._make(step.call, match, position)

    def _make(self, call: Call, match: int, position: int) -> SimulatedCall:
        if not match:
            made = self._simulation.simulate(call)
            self._matches.append(CHANGED)
            self._cache.end_call(position, call.start)
            self._lineage.end_call()
            return made
        before = self._earlier.calls[match - 1]
        if self._earlier.steps[match - 1].call is call and self._is_passed_over(call, before):
            self._matches.append(match)
            self._cache.pass_over(match, before.use.changed)
            self._lineage.end_call()
            return self._numbered(before.made, self._simulation.pass_over(), match)
        self._lineage.end_call()
        made = self._simulation.simulate(call)
        self._cache.end_call(match, call.start, before.use.changed)
        is_found_alike = self._lineage.end_call().deepest == before.answers.deepest
        self._matches.append(match if is_found_alike and made.passes and before.made.passes else CHANGED)
        return made

    def _is_passed_over(self, call: Call, before: TrackedCall) -> bool:
        """Whether all that the call asks is answered as before; then it is remembered as one that was made."""
        made, answers = before.made, before.answers
        if not made.passes or made.rules is None:
            return True
        if (
            before.use.is_warm
            or answers.is_recent
            or not self._cache.finds_alike(before.use, call.start, bool(made.losses))
        ):
            return False
        rules, prompt, pool = made.rules, made.passes[0].prompt, made.rules.pool(call.workspace)
        relatives = self._lineage.forerunner(call.request, rules.model, pool, call.file)
        if not self._is_answered_alike(call, before, relatives, pool):
            return False
        number = len(self._matches)
        self._lineage.remember(number, call.start, call.request, prompt, rules, answers.deepest, relatives)
        return True

    def _is_answered_alike(self, call: Call, before: TrackedCall, relatives: Relatives, pool: str) -> bool:
        answers, lineage, prompt = before.answers, self._lineage, before.made.passes[0].prompt
        return (
            self._match(relatives.nearest) == answers.nearest
            and self._match(relatives.latest) == answers.latest
            and (answers.shared is None or lineage.find_shared(prompt) is answers.shared)
            and all(self._match(lineage.sender(prefix)) == number for prefix, number in answers.senders)
            and answers.begun in (None, lineage.has_begun(call.request.thread, pool))
        )

    def _match(self, call: EarlierCall | None) -> int:
        """The number of an earlier call in the earlier replay."""
        return self._matches[number_of(call)]

    def _numbered(self, made: SimulatedCall, number: int, match: int) -> SimulatedCall:
        """A call of the earlier replay with its number here."""
        if number == match:
            return made
        passes = made.passes
        if made.losses:
            passes = (replace(passes[0], losses=tuple(map(self._numbered_loss, made.losses))), *passes[1:])
        return made._replace(row=replace(made.row, call=number), passes=passes)

    def _numbered_loss(self, loss: Loss) -> Loss:
        since = loss.since and replace(loss.since, number=self._numbers[loss.since.number])
        return replace(loss, call=self._numbers[loss.call], since=since)
