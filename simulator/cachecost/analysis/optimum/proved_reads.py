"""What bills read that the simulation of the same calls does not: it was cached, whoever wrote it and when."""

from __future__ import annotations

from dataclasses import dataclass

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator, simulation_of
from cachecost.conversations.calls import Call, RecordedCall


@dataclass(frozen=True, slots=True)
class ProvedRead:
    """The tokens of a call from `start` to `end` were read by its bill. `end` None: which ones they were is unknown,
    since the bill is the sum of several passes."""

    start: int
    end: int | None

    def tokens(self, start: int, end: int) -> int:
        """How many of the tokens from `start` to `end` were read."""
        return max(0, min(end, end if self.end is None else self.end) - max(start, self.start))


def proved_reads(evaluator: PlanEvaluator) -> dict[BareCall, ProvedRead]:
    """The reads that only bills know of, by call, where bills may show what was cached before the first call.

    Simulates the calls as they were sent.
    """
    terms, found = evaluator.terms, dict[BareCall, ProvedRead]()
    if not terms.bills or not terms.may_start_warm or terms.rules.assumptions.warm_start != "as_billed":
        return found
    simulation = simulation_of(terms)
    for sent, call in zip(evaluator.sent, evaluator.calls, strict=True):
        simulated, billed = simulation.row(call).usage.read, _billed_read(call)
        if billed > simulated:
            found[sent] = ProvedRead(simulated, billed) if len(sent.passes) == 1 else ProvedRead(0, None)
    return found


def _billed_read(call: Call) -> int:
    return call.billed.read if isinstance(call, RecordedCall) and call.billed is not None else 0
