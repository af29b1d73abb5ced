"""From the dollars of one session to dollars per month, with their error margin."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.api.html import HtmlTable, paragraph
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import change, dollars, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.comparison.summary import Summary

DAYS = 30
WHOLE_FROM = Decimal(100)


@dataclass(frozen=True, slots=True)
class Projection:
    """USD per month of one strategy. `error` is the error margin from token counts alone, in USD."""

    strategy: str
    usd: Decimal
    error: Decimal

    @property
    def low(self) -> Decimal:
        return self.usd - self.error

    @property
    def high(self) -> Decimal:
        return self.usd + self.error

    def __str__(self) -> str:
        about = f" ± {format_usd(self.error)}" if self.error else ""
        return f"{format_usd(self.usd)}{about} a month"


@dataclass(frozen=True, slots=True)
class Monthly:
    """The cost of each strategy per month. Every session is assumed to be like the compared one.

    Strategies with calls that have no cost are in `left_out`.
    """

    sessions_per_day: Decimal
    days: int
    projections: tuple[Projection, ...]
    first: str
    """The strategy that the others are compared with."""
    left_out: tuple[str, ...] = ()

    def __getitem__(self, strategy: str) -> Projection:
        """The projection of a strategy. Raises KeyError."""
        for one in self.projections:
            if one.strategy == strategy:
                return one
        raise KeyError(f"{strategy}: has calls without a cost" if strategy in self.left_out else strategy)

    def frame(self) -> pd.DataFrame:
        """One row per strategy: `usd`, `low_usd` and `high_usd` per month (Decimal)."""
        import pandas as pd

        rows = [(one.strategy, one.usd, one.low, one.high) for one in self.projections]
        return pd.DataFrame(rows, columns=["strategy", "usd", "low_usd", "high_usd"]).set_index("strategy")

    def plot(self) -> Figure:
        """USD per month, one bar per strategy, with its error bar."""
        from cachecost.api.charts import ChartBar, bars

        entries = [
            ChartBar(one.strategy, one.usd, format_usd(one.usd), _band(one), error=one.error)
            for one in self.projections
        ]
        return bars(f"Dollars a month at {self._pace()}", entries)

    def _repr_html_(self) -> str:
        table = HtmlTable(("strategy", "a month", "±", self._against))
        first = next((one.usd for one in self.projections if one.strategy == self.first), None)
        for one in self.projections:
            off = change(one.usd, first) if one.strategy != self.first else None
            table.add(one.strategy, format_usd(one.usd), format_usd(one.error), percent(off, signed=True))
        words = f"{self._pace()}, {self.days} days a month, every session like the compared one"
        return table.html() + paragraph(words) + "".join(paragraph(f"left out: {name}") for name in self.left_out)

    @property
    def _against(self) -> str:
        """The header of the comparing column: "vs first", or "vs NAME" if `compare_to` is not the first."""
        names = [one.strategy for one in self.projections]
        return "vs first" if names[:1] == [self.first] else f"vs {self.first}"

    def _pace(self) -> str:
        number = f"{self.sessions_per_day.normalize():,f}"
        return f"{number} session{'' if self.sessions_per_day == 1 else 's'} a day"


def format_usd(usd: Decimal) -> str:
    """USD of a projection, in whole dollars from $100 on."""
    return f"${usd:,.0f}" if usd >= WHOLE_FROM else dollars(usd)


def _band(one: Projection) -> str:
    return f"± {format_usd(one.error)}" if one.error else ""


def monthly(summary: Summary, sessions_per_day: Decimal | float, days: int = DAYS) -> Monthly:
    """USD per month of strategies compared over one session. Raises InputError for a negative number of sessions."""
    pace = Decimal(str(sessions_per_day))
    if not pace.is_finite() or pace < 0 or days < 1:
        words = f"expected a number from 0, and days from 1; got {sessions_per_day} and {days}"
        raise InputError([Fault("sessions_per_day:", words)])
    kept = [line for line in summary.lines if line.is_priced and not line.refused]
    made = tuple(Projection(one.name, one.cost.total * pace * days, one.error * pace * days) for one in kept)
    left_out = tuple(line.name for line in summary.lines if line.refused or not line.is_priced)
    return Monthly(pace, days, made, summary.comparison.first, left_out)
