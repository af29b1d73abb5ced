"""What every rendering of a validation says, added up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from cachecost.ledger import ZERO, Fidelity, Judgement

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

    Errors are shares of the billed input tokens; dollars are of the input side, of calls whose price is known; None if
    that is none. `ranges` are calls on hosts that promise nothing, `held` those whose range holds.
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
    ranges: int = 0
    held: int = 0

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
        sum(one.kind == "range" for one in judgements),
        sum(one.holds for one in judgements),
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
    known = [amount for amount in amounts if amount is not None]
    return sum(known, ZERO) if known else None
