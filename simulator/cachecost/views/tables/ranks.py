"""The column of ranks: the place of each strategy by cost, several places where it cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.analysis.comparison.ranking import find_ranks
from cachecost.analysis.comparison.summary import Summary
from cachecost.views.tables.table import COMPARISON, Column


def rank_column(summary: Summary, names: Sequence[str]) -> Column:
    """The ranks of the strategies of these names; an empty cell for one that is not compared, and for "" (the bill)."""
    ranks = find_ranks(summary)
    return Column("rank", "rank", [str(ranks.get(name, "")) for name in names], rank=COMPARISON)
