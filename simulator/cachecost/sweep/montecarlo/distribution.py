"""What many seeds cost: exact dollars of each, percentiles, and how far the mean is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cachecost.providers.usage import Usage, usage_of

if TYPE_CHECKING:
    import pandas as pd

PERCENTILES = (5, 25, 50, 75, 95)
CONFIDENCE = 1.96
"""Standard errors on both sides of a mean that hold the true one 95 times of 100."""
TOKEN_FIELDS = ("input_tokens", "read", "write_5m", "write_1h", "output_tokens")


@dataclass(frozen=True)
class CostDistribution:
    """The dollars of one traffic under many seeds, in the order of `seeds`.

    `units` are whole numbers, of which 10**`places` are a dollar; `tokens` has a row a seed, a column each of
    TOKEN_FIELDS. `calls` is how many calls a seed makes without retries, `errors` why some have no usage;
    `not_evaluated` are those of them whose model, rule or price is not known.
    """

    strategy: str
    seeds: Sequence[int]
    units: NDArray[np.object_] | NDArray[np.int64]
    places: int
    tokens: NDArray[np.int64]
    calls: int
    errors: tuple[str, ...] = ()
    not_evaluated: tuple[str, ...] = ()

    @cached_property
    def costs(self) -> list[Decimal]:
        """USD of each seed, exact."""
        return [Decimal(int(unit)).scaleb(-self.places) for unit in self.units]

    @cached_property
    def _sorted_costs(self) -> list[Decimal]:
        return sorted(self.costs)

    def usage(self, number: int) -> Usage:
        """Tokens of the `number`-th seed (from 0), all its calls together."""
        return usage_of(map(int, self.tokens[number]))

    def percentile(self, percent: float) -> Decimal:
        """USD that this share of the seeds does not exceed: that of a seed, by nearest rank."""
        rank = max(1, ceil(percent / 100 * len(self.seeds)))
        return self._sorted_costs[rank - 1]

    @property
    def percentiles(self) -> dict[int, Decimal]:
        """The 5th, 25th, 50th, 75th and 95th percentile in USD."""
        return {percent: self.percentile(percent) for percent in PERCENTILES}

    @property
    def mean(self) -> Decimal:
        return sum(self.costs, Decimal(0)) / len(self.seeds)

    @property
    def convergence(self) -> float:
        """How far the mean may still be from the true one, 95 times of 100, as a share of it: 0.01 is ± 1 %."""
        mean = float(self.mean)
        if not mean or len(self.seeds) < 2:  # a single seed does not show the error of the mean
            return 0.0
        standard_error = float(np.std(np.array(self.costs, dtype=np.float64), ddof=1)) / sqrt(len(self.seeds))
        return CONFIDENCE * standard_error / mean

    def frame(self) -> pd.DataFrame:
        """One row a seed: its tokens by class, and dollars as Decimal."""
        import pandas as pd

        frame = pd.DataFrame(self.tokens, columns=list(TOKEN_FIELDS), index=pd.Index(self.seeds, name="seed"))
        return frame.assign(cost_usd=pd.Series(self.costs, index=frame.index, dtype=object))
