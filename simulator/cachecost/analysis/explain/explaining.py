"""The causes of avoidable costs in dollars, from replays that remove one cause after another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.explain.call_places import with_places
from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.losses import Loss
from cachecost.analysis.explain.observed_replay import (
    LoneCall,
    ObservedReplay,
    Removal,
    Simulate,
    observe_replay,
    replay_without,
)
from cachecost.analysis.explain.wording import excerpt, message, place
from cachecost.base.formatting import dollars
from cachecost.caches.causes import Cause
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.margin import open_usd
from cachecost.ledger.results import ZERO, CallRow
from cachecost.ledger.rows import warm_reads
from cachecost.prompts.blocks import Thread
from cachecost.providers.listing import assumption_rows
from cachecost.providers.quotes import PER_TOKEN
from cachecost.simulation.workload import Workload

MATERIAL = Decimal("0.01")
"""The share of a conversation's cost that other breakpoints must save to count as an improvement."""


@dataclass(frozen=True, slots=True)
class _Replay:
    """A replay without one more cause than the previous replay, and what that saved for each call."""

    rows: Sequence[CallRow]
    removal: Removal
    saved: dict[int, Decimal]


def explain(calls: Sequence[Call], simulate: Simulate, observed: ObservedReplay | None = None) -> Explanation:
    """Every avoidable miss and write of the calls, in their order.

    Each cause is priced by a replay without it and without those before it, so that the dollars of all add up to
    the difference between the bill and the bill without any. `simulate` makes a fresh simulation; `observed` is its
    replay of the calls, where there is one already.
    """
    watched = observed or observe_replay(calls, simulate)
    causes = _Causes(calls, simulate, watched)
    findings = [*causes.local(), *causes.marking(), *causes.vain()]
    findings = with_places(sorted(findings, key=lambda finding: (finding.call, finding.code)), calls)
    warm = warm_reads(watched.rows)
    made = Explanation(len(calls), _cost(watched.rows), _cost(causes.rows), findings, warm=warm)
    return replace(made, open_share=_open_share(made.avoidable, causes.rows))


def explain_workload(traffic: Workload, readings: bool = False) -> Explanation:
    """The avoidable misses and writes of the workload, and how certain they are.

    With `readings` every other value of each assumption is tried, and those that change the answer are reported.
    Raises CannotEvaluate.
    """
    return as_filed(explain_observed(traffic, observe_workload(traffic), readings), traffic.calls)


def observe_workload(traffic: Workload) -> ObservedReplay:
    """A replay of the workload that records what each call lost. Raises CannotEvaluate for other caches."""
    traffic.require_breakpoints("explain")
    return observe_replay(traffic.calls, traffic.simulation)


def explain_observed(traffic: Workload, observed: ObservedReplay, readings: bool = False) -> Explanation:
    """As `explain_workload`, of a replay that is done already; calls are numbered in the order of time."""
    told = explain(traffic.calls, traffic.simulation, observed)
    flips = list(_flips(traffic, told)) if readings else []
    error_margin = traffic.setup.error_margin * told.open_share
    return replace(
        told, strategy=traffic.strategy, token_source=traffic.setup.token_source, error_margin=error_margin, flips=flips
    )


def as_filed(told: Explanation, calls: Sequence[Call]) -> Explanation:
    """Findings numbered and sorted by the calls of the file."""
    if not any(call.number for call in calls):
        return told
    return replace(told, findings=_filed(told.findings, calls), not_explained=_filed(told.not_explained, calls))


def _filed(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    numbered = [replace(finding, call=calls[finding.call - 1].number) for finding in findings]
    return sorted(numbered, key=lambda finding: (finding.call, finding.code))


def _flips(traffic: Workload, told: Explanation) -> Iterator[str]:
    """A sentence for each value of an assumption that leads to other causes or other dollars."""
    for switch in assumption_rows(traffic.setup.host):
        for reading in switch.readings[1:] if switch.number is None else ():
            other = traffic.with_assumptions({switch.name: reading.value})
            under = explain(other.calls, other.simulation)
            if _answer(under) != _answer(told):
                amount = f"{dollars(under.avoidable)} of {dollars(under.cost)}"
                yield f"with {switch.name}={reading.value} {amount} are avoidable, by {_names(under)}"


def _answer(told: Explanation) -> tuple[str, str]:
    return dollars(told.avoidable), _names(told)


def _names(told: Explanation) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in told.findings)) or "nothing"


def _open_share(avoidable: Decimal, rows: Sequence[CallRow]) -> float:
    """The share of the avoidable dollars that no bill determines; `rows` are those without any cause."""
    return min(1.0, float(open_usd(rows) / avoidable)) if avoidable else 1.0


def _causes_removed_by(removal: str) -> list[Cause]:
    """The causes in `codes.toml` with this removal, in its order."""
    return [code.cause for code in codes().values() if code.removal == removal]


def _cost(rows: Sequence[CallRow]) -> Decimal:
    return sum((row.cost.total for row in rows), ZERO)


class _Causes:
    """A log, and its replay without any of the causes so far."""

    def __init__(self, calls: Sequence[Call], simulate: Simulate, watched: ObservedReplay) -> None:
        self._calls = calls
        self._simulate = simulate
        self._watched = watched
        self._losses: dict[str, list[Loss]] = defaultdict(list)
        for loss in watched.losses:
            self._losses[loss.cause].append(loss)
        self.rows: Sequence[CallRow] = watched.rows
        self._removal = Removal()

    def local(self) -> Iterator[Finding]:
        for cause in _causes_removed_by("restore"):
            if losses := self._losses[cause]:
                step = self._without(Removal(restored={loss.passed: loss.depth for loss in losses}))
                self._take(step)
                yield from self._findings(losses, step.saved)

    def marking(self) -> Iterator[Finding]:
        """Other breakpoints cost something where they are placed: only those that pay off are causes."""
        for cause in _causes_removed_by("place"):
            losses = self._losses[cause]
            while losses:
                step = self._without(_place_breakpoints(losses))
                shared = self._paid_for(losses, step.saved)
                kept = self._worth_it(losses, shared)
                if len(kept) == len(losses):
                    self._take(step)
                    yield from (self._finding(loss, shared[loss.call]) for loss in losses)
                    break
                losses = kept

    def vain(self) -> Iterator[Finding]:
        """What single-call conversations wrote and no call read, if that happened more than once."""
        lone = self._watched.lone
        if len(lone) > 1:
            step = self._without(Removal(uncached={one.passed: one.read for one in lone}))
            self._take(step)
            losses = [_vain(one) for one in lone]
            yield from self._findings(losses, step.saved)

    def _without(self, more: Removal) -> _Replay:
        removal = self._removal | more
        rows = replay_without(removal, self._calls, self._simulate)
        saved = {
            before.call: before.cost.total - after.cost.total
            for before, after in zip(self.rows, rows, strict=True)
            if before.cost.total != after.cost.total
        }
        return _Replay(rows, removal, saved)

    def _take(self, step: _Replay) -> None:
        self.rows, self._removal = step.rows, step.removal

    def _paid_for(self, losses: Sequence[Loss], saved: dict[int, Decimal]) -> dict[int, Decimal]:
        """Savings by call with a loss: an earlier call's cost of a breakpoint counts for the call that reads it."""
        by_conversation: dict[Thread, list[int]] = defaultdict(list)
        for loss in losses:
            by_conversation[self._conversation(loss.call)].append(loss.call)
        shared = dict.fromkeys((loss.call for loss in losses), ZERO)
        for call, less in saved.items():
            calls = by_conversation.get(self._conversation(call)) or list(shared)
            own = call in shared and less > 0
            at = bisect_left(calls, call) if own else bisect_right(calls, call)
            shared[calls[min(at, len(calls) - 1)]] += less
        return shared

    def _worth_it(self, losses: Sequence[Loss], shared: dict[int, Decimal]) -> list[Loss]:
        """The losses that other breakpoints would avoid at a profit, in conversations where they save enough."""
        saved: dict[Thread, Decimal] = defaultdict(Decimal)
        costs: dict[Thread, Decimal] = defaultdict(Decimal)
        for row in self.rows:
            costs[self._conversation(row.call)] += row.cost.total
        for loss in losses:
            saved[self._conversation(loss.call)] += shared[loss.call] - self._padding(loss)
        return [
            loss
            for loss in losses
            if shared[loss.call] > 0
            and saved[self._conversation(loss.call)] > MATERIAL * costs[self._conversation(loss.call)]
        ]

    def _padding(self, loss: Loss) -> Decimal:
        """Dollars for reading the tokens that a prefix lacks to its minimum: they would have to be sent, too."""
        prices = self._watched.prices.get(loss.call)
        if loss.cause != "below_minimum" or prices is None:
            return ZERO
        return (max(0, loss.minimum - loss.tokens) * prices.read).scaleb(PER_TOKEN)

    def _conversation(self, call: int) -> Thread:
        return self._calls[call - 1].request.thread.up_to(1)

    def _findings(self, losses: Sequence[Loss], saved: dict[int, Decimal]) -> Iterator[Finding]:
        """Findings with each call's savings. Savings of a call without a loss count for the loss before it."""
        shared = _shared_out([loss.call for loss in losses], saved)
        for loss in losses:
            if shared[loss.call]:
                yield self._finding(loss, shared[loss.call])

    def _finding(self, loss: Loss, cost: Decimal) -> Finding:
        code, request = codes()[loss.cause], self._calls[loss.call - 1].request
        tokens = self._watched.rows[loss.call - 1].usage
        paid = min(tokens.total_input - tokens.read, loss.tokens)
        return Finding(
            code.code,
            loss.cause,
            loss.call,
            loss.first.layer,
            place(loss, request),
            paid,
            cost,
            message(loss, request, paid),
            code.fix,
            loss.since.number if loss.since else None,
            excerpt(loss),
            code.word,
        )


def _place_breakpoints(losses: Sequence[Loss]) -> Removal:
    """Breakpoints where calls could have read on if the previous call had had one there."""
    removal = Removal()
    for loss in losses:
        removal.marked.setdefault(loss.passed, []).append((loss.depth, "5m"))
        if loss.since_passed:
            removal.marked.setdefault(loss.since_passed, []).append((loss.depth, "5m"))
        if loss.cause == "below_minimum":
            removal.any_length.update({loss.passed, loss.since_passed} - {0})
    return removal


def _shared_out(calls: Sequence[int], saved: dict[int, Decimal]) -> dict[int, Decimal]:
    """All savings, divided exactly among the `calls` with a loss, in order."""
    shared: dict[int, Decimal] = dict.fromkeys(sorted(set(calls)), ZERO)
    order = list(shared)
    for call, less in saved.items():
        at = bisect_right(order, call)
        shared[order[max(0, at - 1)]] += less
    return shared


def _vain(one: LoneCall) -> Loss:
    last = one.written[-1]
    return Loss(one.call, one.passed, "written_never_read", last, last.depth, tokens=one.tokens)
