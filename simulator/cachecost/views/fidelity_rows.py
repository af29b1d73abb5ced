"""What every rendering of a validation says, added up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.ledger import ZERO, Fidelity, Judgement
from cachecost.numbers import exact

Key = Callable[[Judgement], Iterable[str]]
GROUPS: dict[str, Key] = {
    "project": lambda one: [one.project or str(Path(one.source).parent)],
    "model": lambda one: [one.model],
    "feature": lambda one: one.features,
}
"""The ways a summary is broken down; a call counts under each of its features."""


@dataclass(frozen=True, slots=True)
class Score:
    """Calls of a group: how many hits and cold starts were knowable, and exactly right.

    Errors are shares of the billed input tokens; dollars are of the input side, None if a price is missing.
    """

    name: str
    calls: int
    hits: int
    exact_hits: int
    cold: int
    exact_cold: int
    unknown: int
    median: float
    p95: float
    predicted_usd: Decimal | None
    billed_usd: Decimal | None

    @property
    def off_usd(self) -> Decimal | None:
        """Predicted minus billed: positive where the prediction was too dear."""
        if self.predicted_usd is None or self.billed_usd is None:
            return None
        return self.predicted_usd - self.billed_usd


def score(name: str, judgements: Sequence[Judgement]) -> Score:
    """The score of some judgements together."""
    hits = [one for one in judgements if one.kind == "hit"]
    cold = [one for one in judgements if one.kind == "cold"]
    errors = sorted(one.token_error for one in judgements)
    return Score(
        name,
        len(judgements),
        len(hits),
        sum(one.exact for one in hits),
        len(cold),
        sum(one.exact for one in cold),
        sum(one.kind == "unknown" for one in judgements),
        percentile(errors, 50),
        percentile(errors, 95),
        _sum(one.predicted_usd for one in judgements),
        _sum(one.billed_usd for one in judgements),
    )


def scores(fidelity: Fidelity, key: Key) -> list[Score]:
    """A score a group, the largest group first, equals by name."""
    groups: dict[str, list[Judgement]] = {}
    for one in fidelity.judgements:
        for name in key(one):
            groups.setdefault(name, []).append(one)
    made = [score(name, group) for name, group in groups.items()]
    return sorted(made, key=lambda each: (-each.calls, each.name))


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` of all do not exceed; 0 of none."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = ZERO
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def fidelity_object(fidelity: Fidelity) -> dict[str, Any]:
    """The object of `validate --json` (contract), with the breakdowns beside it."""
    whole = score("all", fidelity.judgements)
    return {
        "format": 1,
        "calls": whole.calls,
        "hits": {"knowable": whole.hits, "exact": whole.exact_hits},
        "cold": {"knowable": whole.cold, "exact": whole.exact_cold},
        "unknown_earlier_writes": whole.unknown,
        "token_error": {"median": whole.median, "p95": whole.p95},
        "billed_usd": _dollars(whole.billed_usd),
        "predicted_usd": _dollars(whole.predicted_usd),
        "mismatches": [_mismatch(one) for one in fidelity.mismatches],
        "token_source": fidelity.token_source,
        "by": {name: [_group(each) for each in scores(fidelity, key)] for name, key in GROUPS.items()},
        "readings": [
            {"switch": each.switch, "reading": each.reading, "exact": each.exact, "knowable": each.knowable}
            for each in fidelity.readings
        ],
        "not_judged": [{"where": where, "why": why} for where, why in fidelity.not_judged],
    }


def judgement_row(one: Judgement) -> dict[str, Any]:
    """A recorded call as a row: what was predicted without its own bill, what was billed, and whether that is exact."""
    dollars = {"predicted_usd": _dollars(one.predicted_usd), "billed_usd": _dollars(one.billed_usd)}
    return {**_mismatch(one), "exact": one.exact, **dollars}


def _mismatch(one: Judgement) -> dict[str, Any]:
    return {
        "source": one.source,
        "call": one.call,
        "line": one.line,
        "model": one.model,
        "kind": one.kind,
        "predicted": one.predicted.wire(),
        "billed": one.billed.wire(),
        "reason": one.reason,
    }


def _group(each: Score) -> dict[str, Any]:
    return {
        "name": each.name,
        "calls": each.calls,
        "hits": {"knowable": each.hits, "exact": each.exact_hits},
        "cold": {"knowable": each.cold, "exact": each.exact_cold},
        "unknown_earlier_writes": each.unknown,
        "token_error": {"median": each.median, "p95": each.p95},
        "billed_usd": _dollars(each.billed_usd),
        "predicted_usd": _dollars(each.predicted_usd),
    }


def _dollars(amount: Decimal | None) -> str | None:
    return None if amount is None else exact(amount)
