"""What bills read that the simulation of the same calls does not: it was cached, whoever wrote it and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator, simulation_of
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.rows import CallRow


@dataclass(frozen=True, slots=True)
class ProvedRead:
    """The tokens of a call from `start` to `end` were read by its bill. `end` None: which ones they were is unknown,
    since the bill is the sum of several passes."""

    start: int
    end: int | None

    def tokens(self, start: int, end: int) -> int:
        """How many of the tokens from `start` to `end` were read."""
        return max(0, min(end, end if self.end is None else self.end) - max(start, self.start))


def proved_reads(evaluator: PlanEvaluator, simulated: Iterable[CallRow] | None = None) -> dict[BareCall, ProvedRead]:
    """The reads that only bills know of, by call, where bills may show what was cached before the first call.

    `simulated` are the rows of the calls as they were sent; None: they are simulated here, if a bill read anything.
    """
    terms, found = evaluator.terms, dict[BareCall, ProvedRead]()
    if not terms.bills or not terms.may_start_warm or terms.rules.assumptions.warm_start != "as_billed":
        return found
    bills = list(map(_billed_read, evaluator.calls))
    if not any(bills):
        return found
    rows = _rows(evaluator) if simulated is None else simulated
    for sent, billed, row in zip(evaluator.sent, bills, rows, strict=True):
        if billed > row.usage.read:
            found[sent] = ProvedRead(row.usage.read, billed) if len(sent.passes) == 1 else ProvedRead(0, None)
    return found


def _rows(evaluator: PlanEvaluator) -> Iterator[CallRow]:
    simulation = simulation_of(evaluator.terms)
    return map(simulation.row, evaluator.calls)


def _billed_read(call: Call) -> int:
    return call.billed.read if isinstance(call, RecordedCall) and call.billed is not None else 0
