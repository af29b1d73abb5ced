"""The published times to the first token, and the line through them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """A published pair of times to the first token: a prompt of `tokens` sent anew, and read but for its last `after`.

    `source` says who measured it, on which model and when.
    """

    what: str
    tokens: int
    after: int
    unread_s: float
    read_s: float
    source: str

    @property
    def saving(self) -> float:
        """The share of the time that reading saved."""
        return 1 - self.read_s / self.unread_s


@dataclass(frozen=True, slots=True)
class PrefillModel:
    """Seconds to the first token = `base_s` + `per_unread_s` x unread tokens + `per_read_s` x read tokens.

    `worst_s` is the largest distance of a published time from it.
    """

    base_s: float
    per_unread_s: float
    per_read_s: float
    worst_s: float

    def seconds(self, unread: int, read: int = 0) -> float:
        return self.base_s + self.per_unread_s * unread + self.per_read_s * read

    def saving(self, tokens: int) -> float:
        """The share of the time that is saved where all `tokens` of a prompt are read."""
        return 1 - self.seconds(0, tokens) / self.seconds(tokens)


@cache
def published_times() -> tuple[PrefillTime, ...]:
    """The published times, shortest prompt first (prefill_times.toml)."""
    data = tomllib.loads(Path(__file__).with_name("prefill_times.toml").read_text(encoding="utf-8"))
    titles = {name: f"{source['title']} ({source['date']})" for name, source in data["sources"].items()}
    return tuple(PrefillTime(**{**row, "source": titles[row["source"]]}) for row in data["measured"])


@cache
def published_prefill() -> PrefillModel:
    """The least-squares fit to the published times, for prompts whose own times are not recorded."""
    import numpy as np

    times = published_times()
    points = [(1.0, time.tokens, 0, time.unread_s) for time in times]
    points += [(1.0, time.after, time.tokens - time.after, time.read_s) for time in times]
    *columns, seconds = np.array(points, dtype=float).T
    terms = np.column_stack(columns)
    base, per_unread, per_read = np.linalg.lstsq(terms, seconds, rcond=None)[0]
    worst = np.abs(terms @ [base, per_unread, per_read] - seconds).max()
    return PrefillModel(float(base), float(per_unread), float(per_read), float(worst))
