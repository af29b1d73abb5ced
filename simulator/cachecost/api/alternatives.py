"""`whatif`: what other ways to send a recording would have cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.recordings import Source
from cachecost.api.setup import CountOptions, workload_of
from cachecost.base.formatting import counted, dollar_change, dollars, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.whatif.facts import Promise, Whatif

COLUMNS = ("name", "kind", "does", "cost", "saving", "share", "error", "calls_changed", "extra_calls", "keeps_answers")
IN_DOLLARS = {"cost": "cost_usd", "saving": "saving_usd", "error": "error_usd"}
MOST_BARS = 12


@dataclass(frozen=True, slots=True, repr=False)
class Alternatives:
    """Every promise on a recording (`told.promises`), each replayed beside it as it was sent."""

    told: Whatif

    @property
    def cost(self) -> Decimal:
        """USD of the recording as it was sent: the bill, if the simulation is near it."""
        return self.told.cost

    def __getitem__(self, name: str) -> Promise:
        """The promise of that name. Raises KeyError."""
        return self.told.promise(name)

    @property
    def gains(self) -> list[Promise]:
        """What the data say saves money without other answers, the most first."""
        return [one for one in self.told.promises if one.is_gain and one.keeps_answers]

    def frame(self) -> pd.DataFrame:
        """One row a promise: `kind`, what it `does`; `cost_usd`, `saving_usd` (against now) and `error_usd` (± on the
        saving) as Decimal, None where not evaluated; `share` of the cost; `calls_changed`, `extra_calls`;
        `keeps_answers`; `supported` ("yes", or why not); `depends_on` (readings under which it turns)."""
        import pandas as pd

        return pd.DataFrame([_row(one) for one in self.told.promises]).set_index("name")

    def plot(self) -> Figure:
        """USD saved (to the right) or lost by each promise that changes something and keeps the answers."""
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
            for one in self.told.promises
            if one.saving and abs(one.saving) <= self.cost and one.keeps_answers and one.supported == "yes"
        ]
        return bars(self._answer(), entries[:MOST_BARS])

    def _answer(self) -> str:
        whole = f"{counted(self.told.calls, 'call')}, {dollars(self.cost)}"
        if not self.gains:
            return f"{whole}; nothing that keeps the answers is cheaper"
        best = self.gains[0]
        return f"{whole}; {best.name} saves {dollars(best.saving)} ({percent(best.share)})"

    def __repr__(self) -> str:
        return f"<Alternatives {self._answer()}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("promise", "cost", "saving", "share", "what it does"), prose=("what it does",))
        for one in self._changing():
            cells = (dollars(one.cost), dollar_change(one.saving), percent(one.share, signed=True))
            table.add(one.name, *cells, one.does + _remark(one), strong=one.is_gain and one.keeps_answers)
        below = [f"tokens: {self.told.token_source} ±{percent(self.told.band)}"]
        return paragraph(self._answer(), strong=True) + table.html() + "".join(map(paragraph, below))

    def _changing(self) -> Iterator[Promise]:
        return (one for one in self.told.promises if one.saving)


def whatif(
    source: Source,
    *,
    actions: Sequence[str] = (),
    at: int | None = None,
    jointly: Sequence[str] = (),
    readings: bool | None = None,
    **options: Unpack[CountOptions],
) -> Alternatives:
    """Other ways to send a log: lifetimes, pings, entries, models, hosts, batches, compaction; each replayed beside it.

    `jointly` are promises to be replayed together, `actions` switches ("effort=low") made after the recorded call `at`
    (None: the last). `readings`: ask which promises turn under other readings of the open rules (None: if the log is
    not long). Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.whatif.study import what_if

    return Alternatives(what_if(workload_of(source, **options), jointly, actions, at, readings))


def _remark(one: Promise) -> str:
    told = [] if one.keeps_answers else ["other answers"]
    told += [] if one.supported == "yes" else [one.supported]
    told += [f"turns under {', '.join(one.depends_on)}"] if one.depends_on else []
    return f" ({'; '.join(told)})" if told else ""


def _row(one: Promise) -> dict[str, object]:
    row: dict[str, object] = {IN_DOLLARS.get(name, name): getattr(one, name) for name in COLUMNS}
    return {**row, "supported": one.supported, "depends_on": ", ".join(one.depends_on)}
