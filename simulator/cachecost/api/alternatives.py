"""`whatif`: the cost of alternative ways to send a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.recordings import Source
from cachecost.api.setup import CountOptions, day_from, only_supported, workload_of
from cachecost.base.formatting import count_text, dollar_change, dollars, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.whatif.alternatives import Alternative, WhatifReport

COLUMNS = ("name", "kind", "does", "cost", "saving", "share", "error", "calls_changed", "extra_calls", "keeps_answers")
IN_DOLLARS = {"cost": "cost_usd", "saving": "saving_usd", "error": "error_usd"}
MOST_BARS = 12


@dataclass(frozen=True, slots=True, repr=False)
class Alternatives:
    """The alternatives for a recording (`whatif.alternatives`); each is replayed and compared with it as it was
    sent.
    """

    whatif: WhatifReport

    @property
    def cost(self) -> Decimal:
        """USD of the recording as it was sent: the bill if the simulation is close to it, else the simulation."""
        return self.whatif.cost

    def __getitem__(self, name: str) -> Alternative:
        """The alternative of that name. Raises KeyError."""
        return self.whatif.find(name)

    @property
    def gains(self) -> list[Alternative]:
        """The alternatives that save money and keep the answers, largest saving first."""
        return [one for one in self.whatif.alternatives if one.is_gain and one.keeps_answers]

    def frame(self) -> pd.DataFrame:
        """One row per alternative: `kind`, what it `does`; `cost_usd`, `saving_usd` and `error_usd` (± of the saving)
        as Decimal, None if not evaluated; `share` of the cost; `calls_changed`, `extra_calls`; `keeps_answers`;
        `supported` ("yes", or why not); `depends_on` (assumptions that change the sign of the saving)."""
        import pandas as pd

        return pd.DataFrame([_row(one) for one in self.whatif.alternatives]).set_index("name")

    def plot(self) -> Figure:
        """USD saved (to the right) or lost by each alternative that changes the cost and keeps the answers."""
        from cachecost.api.charts import ChartBar, bars
        from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS

        entries = [
            ChartBar(
                one.name,
                one.saving,
                dollar_change(one.saving),
                percent(one.share, signed=True),
                one.is_gain,
                colour=LINE_COLOURS[2] if one.saving > 0 else CLASS_COLOURS["output"],
            )
            for one in self.whatif.alternatives
            if one.saving and abs(one.saving) <= self.cost and one.keeps_answers and one.supported == "yes"
        ]
        return bars(self._answer(), entries[:MOST_BARS])

    def _answer(self) -> str:
        whole = f"{count_text(self.whatif.calls, 'call')}, {dollars(self.cost)}"
        if not self.gains:
            return f"{whole}; no alternative that keeps the answers is cheaper"
        best = self.gains[0]
        return f"{whole}; {best.name} saves {dollars(best.saving)} ({percent(best.share)})"

    def __repr__(self) -> str:
        return f"<Alternatives {self._answer()}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("alternative", "cost", "saving", "share", "what it does"), prose=("what it does",))
        for one in self._changing():
            cells = (dollars(one.cost), dollar_change(one.saving), percent(one.share, signed=True))
            table.add(one.name, *cells, one.does + _remark(one), strong=one.is_gain and one.keeps_answers)
        below = [f"tokens: {self.whatif.token_source} ±{percent(self.whatif.error_margin)}"]
        return paragraph(self._answer(), strong=True) + table.html() + "".join(map(paragraph, below))

    def _changing(self) -> Iterator[Alternative]:
        return (one for one in self.whatif.alternatives if one.saving)


def whatif(
    source: Source,
    *,
    actions: Sequence[str] = (),
    at: int | None = None,
    jointly: Sequence[str] = (),
    assumptions: bool | None = None,
    today: date | str | None = None,
    **options: Unpack[CountOptions],
) -> Alternatives:
    """Alternative ways to send a log: TTLs, keep-alives, breakpoints, models, hosts, batches and compaction.

    Each is replayed and compared with the log as it was sent. `jointly` are alternatives to replay together. `actions`
    are changes like "effort=low" after the recorded call `at` (None: the last). `assumptions` repeats the comparison
    under the other assumptions about open rules (None: only for a short log). Models that are retired `today` are no
    alternatives (None: those that were retired on the day of the log). Calls whose cache has no lookback breakpoints
    are left out, with a warning. Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.whatif.report import what_if

    workload = only_supported(workload_of(source, **options), "whatif")
    return Alternatives(what_if(workload, jointly, actions, at, assumptions, today=day_from(today, "today")))


def _remark(one: Alternative) -> str:
    remarks = [] if one.keeps_answers else ["changes the answers"]
    remarks += [] if one.supported == "yes" else [one.supported]
    remarks += [f"depends on {', '.join(one.depends_on)}"] if one.depends_on else []
    return f" ({'; '.join(remarks)})" if remarks else ""


def _row(one: Alternative) -> dict[str, object]:
    row: dict[str, object] = {IN_DOLLARS.get(name, name): getattr(one, name) for name in COLUMNS}
    return {**row, "supported": one.supported, "depends_on": ", ".join(one.depends_on)}
