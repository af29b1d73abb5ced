"""What strategies use and cost in all, for whoever needs no rows. What they share is made once."""

from cachecost.sweep.totals.shared import SharedTotals
from cachecost.sweep.totals.walk import Totals

__all__ = ["SharedTotals", "Totals"]
