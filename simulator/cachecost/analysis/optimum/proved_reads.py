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


def proved_reads(evaluator: PlanEvaluator) -> dict[BareCall, ProvedRead]:
    """The reads that only bills know of, by call; simulates the calls as they were sent, where they have bills."""
    found: dict[BareCall, ProvedRead] = {}
    if not evaluator.terms.bills:
        return found
    simulation = simulation_of(evaluator.terms)
    for sent, call in zip(evaluator.sent, evaluator.calls, strict=True):
        simulated, billed = simulation.row(call).usage.read, _billed_read(call)
        if billed > simulated:
            found[sent] = ProvedRead(simulated, billed) if len(sent.passes) == 1 else ProvedRead(0, None)
    return found


def _billed_read(call: Call) -> int:
    return call.billed.read if isinstance(call, RecordedCall) and call.billed is not None else 0
