"""Total usage and cost of strategies, without rows per call. What strategies share is computed once."""

from cachecost.sweep.totals.shared import SharedTotals, Totals

__all__ = ["SharedTotals", "Totals"]
