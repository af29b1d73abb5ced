"""The range of reads that a host's rules state for a call, in tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from cachecost.caches.breakpoints import Outcome
from cachecost.caches.reporting import reported_read
from cachecost.providers.rules import ModelRules


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """From `least` to `most` tokens, in a share `coverage` of such calls (1: in all of them)."""

    least: int
    most: int
    coverage: float

    def hold(self, read: int, slack: float) -> bool:
        """Whether a billed read lies within, give or take `slack` tokens for estimated lengths."""
        return self.least - slack <= read <= self.most + slack


def least_read(rules: ModelRules, read: int) -> int | None:
    """The tokens that a call reads at least, of `read` that it can; None where the host's hits are certain."""
    return None if rules.read_range is None else ceil(rules.read_range.least * read)


def with_shared_prefix(outcome: Outcome, rules: ModelRules) -> Outcome:
    """An outcome of a billed prompt, which begins with the provider's own text: that is read at least."""
    more = min(rules.shared_prefix_tokens, outcome.read + outcome.uncached) - outcome.read
    return replace(outcome, read=outcome.read + more, uncached=outcome.uncached - more) if more > 0 else outcome


def read_bounds(rules: ModelRules, predicted: int, reach: int, total: int) -> ReadBounds | None:
    """The bounds of a call's read; None where the host's hits are certain.

    `predicted` tokens are the most that the rules let it read; earlier calls sent or got the first `reach` of its
    `total` tokens, so that more of an answer may be read than is predicted.
    """
    stated = rules.read_range
    if stated is None:
        return None
    possible = max(predicted, reported_read(min(reach, total), total, rules))
    floor = min(rules.shared_prefix_tokens, possible)
    return ReadBounds(max(floor, ceil(stated.least * possible)), possible, stated.coverage)
