"""Prefill: unread tokens delay the first token and count against the input rate limit; reads do neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.analysis.optimum.plan_evaluator import StepResult

MINUTE_S = 60.0
FEWEST, LEAST_R2 = 8, 0.2
"""With fewer timed calls or a worse fit the data do not support a statement in seconds."""


@dataclass(frozen=True, slots=True)
class PrefillLoad:
    """Prefill of a plan: unread tokens as a share of the prompt (mean and 95th percentile over calls).

    `peak_per_minute` is the most input tokens in any 60 s that count against a rate limit: written and uncached ones.
    """

    mean_share: float
    p95_share: float
    unread_tokens: int
    peak_per_minute: int


@dataclass(frozen=True, slots=True)
class LatencyFit:
    """Seconds to the first token = `base_s` + `per_token_s` x unread tokens, by least squares over `calls` calls."""

    base_s: float
    per_token_s: float
    r2: float
    calls: int

    @property
    def is_supported(self) -> bool:
        """Whether the recording's times support the fit: enough calls, a rising line, and a sufficient R²."""
        return self.calls >= FEWEST and self.per_token_s > 0 and self.r2 >= LEAST_R2


def load_of(done: Sequence[StepResult]) -> PrefillLoad:
    """The load of a plan's calls; the rate includes additional calls."""
    real = [one for one in done if not one.step.sent.is_extra and one.usage.total_input]
    shares = sorted(one.usage.unread / one.usage.total_input for one in real)
    mean = sum(shares) / len(shares) if shares else 0.0
    p95 = shares[max(0, -(-len(shares) * 95 // 100) - 1)] if shares else 0.0
    calls = sorted((one.step.sent.start, one.usage.unread) for one in done)
    peak = inside = first = 0
    for start, tokens in calls:
        inside += tokens
        while calls[first][0] <= start - MINUTE_S:
            inside -= calls[first][1]
            first += 1
        peak = max(peak, inside)
    return PrefillLoad(mean, p95, sum(one.usage.unread for one in real), peak)


def fit_of(done: Sequence[StepResult]) -> LatencyFit | None:
    """The fit of recorded times to unread tokens; None if fewer than two calls have a time."""
    points = [
        (one.usage.unread, one.step.sent.call.first_token_s) for one in done if one.step.sent.call.first_token_s > 0
    ]
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    base = mean_y - slope * mean_x
    total = sum((y - mean_y) ** 2 for _, y in points)
    missed = sum((y - base - slope * x) ** 2 for x, y in points)
    return LatencyFit(base, slope, 1 - missed / total if total else 0.0, len(points))
