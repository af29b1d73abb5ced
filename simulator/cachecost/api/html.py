"""What results share: rows of frames, HTML tables for notebooks, and a session's dollars as dollars per month."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import change, dollars, percent
from cachecost.base.frames import MoneyColumn, frame_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.comparison.summary import Summary


RULED = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
CELL = f"padding:.2em .8em .2em 0;{RULED};background:transparent;color:inherit;vertical-align:baseline"
WHOLE = "border-collapse:collapse;border:0;margin:.4em 0;color:inherit;background:transparent"
DIGITS = "font-variant-numeric:tabular-nums;white-space:nowrap"
PROSE = "margin:.3em 0;max-width:60em;color:inherit"


@dataclass(slots=True)
class HtmlTable:
    """Rows of text; the first column and those named in `prose` are left-aligned."""

    heads: tuple[str, ...]
    prose: tuple[str, ...] = ()
    rows: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)

    def add(self, *cells: str, strong: bool = False) -> None:
        """Add a row, in bold if `strong`."""
        self.rows.append((cells, strong))

    def html(self) -> str:
        """The table as HTML, with every text escaped."""
        heads = "".join(self._cell("th", number, head, "font-weight:600") for number, head in enumerate(self.heads))
        body = ""
        for cells, strong in self.rows:
            weight = f"font-weight:{'700' if strong else '400'}"
            row = (self._cell("td" if number else "th", number, cell, weight) for number, cell in enumerate(cells))
            body += f"<tr>{''.join(row)}</tr>"
        scroll = '<div style="overflow-x:auto">'
        return f'{scroll}<table style="{WHOLE}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'

    def _cell(self, tag: str, number: int, text: str, style: str) -> str:
        is_prose = number == 0 or self.heads[number] in self.prose
        side = "text-align:left" if is_prose else f"text-align:right;{DIGITS}"
        scope = ' scope="row"' if tag == "th" and style != "font-weight:600" else ""
        return f'<{tag}{scope} style="{CELL};{side};{style}">{escape(text)}</{tag}>'


class Answered:
    """A result whose `repr` is its answer in one line."""

    __slots__ = ()

    def _answer(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._answer()}>"


def paragraph(text: str, *, strong: bool = False) -> str:
    """A sentence above or below a table, muted unless `strong`."""
    look = "font-weight:600" if strong else "opacity:.75;font-size:.92em"
    return f'<p style="{PROSE};{look}">{escape(text)}</p>'


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

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per strategy: `usd_per_month`, and within the error margin `low_usd_per_month` and
        `high_usd_per_month`."""
        names = ("strategy", "usd_per_month", "low_usd_per_month", "high_usd_per_month")
        rows = [(one.strategy, one.usd, one.low, one.high) for one in self.projections]
        return frame_of((dict(zip(names, row, strict=True)) for row in rows), money, names, "strategy")

    def plot(self) -> Figure:
        """USD per month, one bar per strategy, with its error bar."""
        from cachecost.api.charts import ChartBar, bars

        margins = [f"± {format_usd(one.error)}" if one.error else "" for one in self.projections]
        entries = [
            ChartBar(one.strategy, one.usd, format_usd(one.usd), margin, error=one.error)
            for one, margin in zip(self.projections, margins, strict=True)
        ]
        return bars(f"Dollars a month at {self._pace()}", entries)

    def _repr_html_(self) -> str:
        names = [one.strategy for one in self.projections]
        against = "vs first" if names[:1] == [self.first] else f"vs {self.first}"
        table = HtmlTable(("strategy", "a month", "±", against))
        first = next((one.usd for one in self.projections if one.strategy == self.first), None)
        for one in self.projections:
            off = change(one.usd, first) if one.strategy != self.first else None
            table.add(one.strategy, format_usd(one.usd), format_usd(one.error), percent(off, signed=True))
        words = f"{self._pace()}, {self.days} days a month, every session like the compared one"
        return table.html() + paragraph(words) + "".join(paragraph(f"left out: {name}") for name in self.left_out)

    def _pace(self) -> str:
        number = f"{self.sessions_per_day.normalize():,f}"
        return f"{number} session{'' if self.sessions_per_day == 1 else 's'} a day"


def format_usd(usd: Decimal) -> str:
    """USD of a projection, in whole dollars from $100 on."""
    return dollars(usd, 0 if usd >= WHOLE_FROM else None)


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
