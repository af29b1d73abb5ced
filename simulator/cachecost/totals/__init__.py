"""What strategies use and cost in all, for whoever needs no rows. What they share is made once."""

from cachecost.totals.shared import Shared
from cachecost.totals.walk import Totals

__all__ = ["Shared", "Totals"]
