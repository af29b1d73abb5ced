"""The causes of a log in dollars: replays from which one cause after another is taken away."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.losses import Loss
from cachecost.analysis.explain.watching import Lone, Removal, Simulate, Watched, watch, without
from cachecost.analysis.explain.wording import excerpt, message, place
from cachecost.base.formatting import dollars
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.margin import open_usd
from cachecost.ledger.results import ZERO, CallRow
from cachecost.ledger.rows import warm_reads
from cachecost.prompts.blocks import Thread
from cachecost.providers.listing import switch_rows
from cachecost.replay.simulation import Call
from cachecost.replay.workload import Workload

LOCAL = (
    "model_changed",
    "speed_changed",
    "tools_changed",
    "system_changed",
    "content_changed",
    "compaction",
    "fork",
    "tool_choice_changed",
    "output_format_changed",
    "thinking_changed",
    "thinking_stripped",
    "effort_changed",
    "images_changed",
    "ttl_expired",
    "concurrent_write",
    "lookback_exceeded",
)
"""Causes whose removal changes what one call reads, and nothing that any call writes."""
MARKING = ("mark_misplaced", "no_mark", "below_minimum")
"""Causes whose removal makes an earlier call write more: it may not pay, and then the cause is none."""
MATERIAL = Decimal("0.01")
"""Share of what a conversation costs that another placement of marks must save, or it is as good as it is."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A replay from which more causes are taken away than from the one before it, and what that saved each call."""

    rows: Sequence[CallRow]
    removal: Removal
    saved: dict[int, Decimal]


def explain(calls: Sequence[Call], simulate: Simulate) -> Explanation:
    """Every avoidable miss and write of the calls, in their order.

    Each cause is priced by a replay without it and without those before it, so that the dollars of all add up to
    the difference between the bill and the bill without any. `simulate` makes a fresh simulation.
    """
    watched = watch(calls, simulate)
    causes = _Causes(calls, simulate, watched)
    findings = [*causes.local(), *causes.marking(), *causes.vain()]
    findings.sort(key=lambda finding: (finding.call, finding.code))
    warm = warm_reads(watched.rows)
    made = Explanation(len(calls), _cost(watched.rows), _cost(causes.rows), findings, warm=warm)
    return replace(made, open_share=_open_share(made.avoidable, causes.rows))


def explained(traffic: Workload, readings: bool = False) -> Explanation:
    """What avoidable misses and writes the traffic has, and how sure that is.

    With `readings` it is asked again under every other reading of the open rules: those that change the answer are
    told. Raises CannotEvaluate.
    """
    traffic.require_breakpoints("explain")
    told = _as_filed(explain(traffic.calls, traffic.simulation), traffic.calls)
    flips = list(_flips(traffic, told)) if readings else []
    band = traffic.setup.band * told.open_share
    return replace(told, strategy=traffic.strategy, token_source=traffic.setup.token_source, band=band, flips=flips)


def _as_filed(told: Explanation, calls: Sequence[Call]) -> Explanation:
    """Findings with the numbers that their calls have in the file, in its order."""
    if not any(call.number for call in calls):
        return told
    findings = [replace(finding, call=calls[finding.call - 1].number) for finding in told.findings]
    return replace(told, findings=sorted(findings, key=lambda finding: (finding.call, finding.code)))


def _flips(traffic: Workload, told: Explanation) -> Iterator[str]:
    """A sentence for each reading under which other causes are found, or the dollars are not about the same."""
    for switch in switch_rows(traffic.setup.host):
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
    """The share of what is avoidable that no bill determines; `rows` are those without any cause."""
    return min(1.0, float(open_usd(rows) / avoidable)) if avoidable else 1.0


def _cost(rows: Sequence[CallRow]) -> Decimal:
    return sum((row.cost.total for row in rows), ZERO)


class _Causes:
    """One log, and the replay from which all causes so far are taken away."""

    def __init__(self, calls: Sequence[Call], simulate: Simulate, watched: Watched) -> None:
        self._calls = calls
        self._simulate = simulate
        self._watched = watched
        self._losses: dict[str, list[Loss]] = defaultdict(list)
        for loss in watched.losses:
            self._losses[loss.cause].append(loss)
        self.rows: Sequence[CallRow] = watched.rows
        self._removal = Removal()

    def local(self) -> Iterator[Finding]:
        for cause in LOCAL:
            if losses := self._losses[cause]:
                step = self._without(Removal(restored={loss.passed: loss.depth for loss in losses}))
                self._take(step)
                yield from self._findings(losses, step.saved)

    def marking(self) -> Iterator[Finding]:
        """Other marks cost something where they are set: only those that pay for it are causes."""
        for cause in MARKING:
            losses = self._losses[cause]
            while losses:
                step = self._without(_marked(losses))
                shared = self._paid_for(losses, step.saved)
                kept = self._worth_it(losses, shared)
                if len(kept) == len(losses):
                    self._take(step)
                    yield from (self._finding(loss, shared[loss.call]) for loss in losses)
                    break
                losses = kept

    def vain(self) -> Iterator[Finding]:
        """What conversations of one call wrote for nobody, where that happened more than once."""
        lone = self._watched.lone
        if len(lone) > 1:
            step = self._without(Removal(unmarked={one.passed: one.read for one in lone}))
            self._take(step)
            losses = [_vain(one) for one in lone]
            yield from self._findings(losses, step.saved)

    def _without(self, more: Removal) -> _Step:
        removal = self._removal | more
        rows = without(removal, self._calls, self._simulate)
        saved = {
            before.call: before.cost.total - after.cost.total
            for before, after in zip(self.rows, rows, strict=True)
            if before.cost.total != after.cost.total
        }
        return _Step(rows, removal, saved)

    def _take(self, step: _Step) -> None:
        self.rows, self._removal = step.rows, step.removal

    def _paid_for(self, losses: Sequence[Loss], saved: dict[int, Decimal]) -> dict[int, Decimal]:
        """What was saved, by losing call: what an earlier call pays more for its mark is of the one that reads it."""
        by_talk: dict[Thread, list[int]] = defaultdict(list)
        for loss in losses:
            by_talk[self._talk(loss.call)].append(loss.call)
        shared = dict.fromkeys((loss.call for loss in losses), ZERO)
        for call, less in saved.items():
            calls = by_talk.get(self._talk(call)) or list(shared)
            own = call in shared and less > 0
            at = bisect_left(calls, call) if own else bisect_right(calls, call)
            shared[calls[min(at, len(calls) - 1)]] += less
        return shared

    def _worth_it(self, losses: Sequence[Loss], shared: dict[int, Decimal]) -> list[Loss]:
        """The losses that other marks pay for, in conversations where they save something that counts."""
        saved: dict[Thread, Decimal] = defaultdict(Decimal)
        costs: dict[Thread, Decimal] = defaultdict(Decimal)
        for row in self.rows:
            costs[self._talk(row.call)] += row.cost.total
        for loss in losses:
            saved[self._talk(loss.call)] += shared[loss.call] - self._padding(loss)
        return [
            loss
            for loss in losses
            if shared[loss.call] > 0 and saved[self._talk(loss.call)] > MATERIAL * costs[self._talk(loss.call)]
        ]

    def _padding(self, loss: Loss) -> Decimal:
        """Dollars for the tokens that a prefix lacks to its minimum, read with it: who is short must send them, too."""
        prices = self._watched.prices.get(loss.call)
        if loss.cause != "below_minimum" or prices is None:
            return ZERO
        return (max(0, loss.minimum - loss.tokens) * prices.read).scaleb(-6)

    def _talk(self, call: int) -> Thread:
        return self._calls[call - 1].request.thread.up_to(1)

    def _findings(self, losses: Sequence[Loss], saved: dict[int, Decimal]) -> Iterator[Finding]:
        """What each call saved belongs to its loss; what a call without one saved, or paid, to the one before it."""
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


def _marked(losses: Sequence[Loss]) -> Removal:
    """Marks where calls could have read on, had the call before been marked there."""
    removal = Removal()
    for loss in losses:
        removal.marked.setdefault(loss.passed, []).append((loss.depth, "5m"))
        if loss.since_passed:
            removal.marked.setdefault(loss.since_passed, []).append((loss.depth, "5m"))
        if loss.cause == "below_minimum":
            removal.any_length.update({loss.passed, loss.since_passed} - {0})
    return removal


def _shared_out(calls: Sequence[int], saved: dict[int, Decimal]) -> dict[int, Decimal]:
    """Dollars by those `calls` that lost something, in order; all that was saved, to the last cent."""
    shared: dict[int, Decimal] = dict.fromkeys(sorted(set(calls)), ZERO)
    order = list(shared)
    for call, less in saved.items():
        at = bisect_right(order, call)
        shared[order[max(0, at - 1)]] += less
    return shared


def _vain(one: Lone) -> Loss:
    last = one.written[-1]
    return Loss(one.call, one.passed, "written_never_read", last, last.depth, tokens=one.tokens)
