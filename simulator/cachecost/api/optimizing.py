"""`optimize`: the cheapest legal marks, lifetimes and pings, and the floor under them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.recordings import Source, calls_in, conversations_in, read_source
from cachecost.api.setup import ModelOptions, comparison_setup
from cachecost.base.formatting import change, counted, dollars, percent
from cachecost.replay.simulation import AS_RECORDED, logged

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.optimum.optimum import Optimum

PLAN = "this plan"
MOST_BARS, MOST_ROWS = 8, 12
DISTANT = 3
"""Bars that would be longer than this many floors are left out of the picture: they would hide all others."""


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeResult:
    """The cheapest plan that was found (`optimum.plan`), what it costs, and how far everything is from the floor."""

    optimum: Optimum

    @property
    def cost(self) -> Decimal:
        """USD of the plan."""
        return self.optimum.usd

    @property
    def floor(self) -> Decimal:
        """USD below which no legal plan goes: proved."""
        return self.optimum.floor_usd

    @property
    def is_optimal(self) -> bool:
        """Whether it is proved that nothing legal is cheaper than the plan."""
        return self.optimum.is_optimal

    @property
    def answer(self) -> str:
        """What to do, and what it is worth."""
        from cachecost.views.optimum.text import answer

        return " ".join(answer(self.optimum))

    def frame(self) -> pd.DataFrame:
        """One row a way to mark these calls, the cheapest first: `cost_usd` (Decimal), `over_floor` (ratio),
        `refused` (calls that the API would refuse; then its dollars say nothing)."""
        import pandas as pd

        rows = [
            {"strategy": name, "cost_usd": usd, "over_floor": change(usd, self.floor), "refused": refused}
            for name, usd, refused in self._ways()
        ]
        return pd.DataFrame(rows).set_index("strategy")

    def plot(self) -> Figure:
        """USD of the plan, of what was recorded and of the best presets, over the floor."""
        from cachecost.api.charts import ChartBar, bars

        entries = [
            ChartBar(
                name, usd, dollars(usd), f"{percent(change(usd, self.floor), signed=True)} over the floor", name == PLAN
            )
            for name, usd in self._distinct()
            if usd <= DISTANT * self.floor
        ]
        title = f"{dollars(self.cost)}; no legal plan costs less than {dollars(self.floor)}"
        return bars(title, entries[:MOST_BARS], ("floor", self.floor))

    def __repr__(self) -> str:
        return f"<OptimizeResult {self.answer}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("strategy", "cost", "over the floor"))
        for name, usd in self._distinct()[:MOST_ROWS]:
            over = percent(change(usd, self.floor), signed=True)
            table.add(name, dollars(usd), over, strong=name == PLAN)
        table.add("floor for these bytes", dollars(self.floor), "")
        return paragraph(self.answer, strong=True) + table.html() + "".join(map(paragraph, self._facts()))

    def _facts(self) -> Iterator[str]:
        from cachecost.views.optimum.text import facts

        if rest := self._distinct()[MOST_ROWS:]:
            yield f"{counted(len(rest), 'dearer way')} left out, up to {dollars(rest[-1][1])}; frame() has all"
        yield from (f"{label}: {sentence}" for label, sentence in facts(self.optimum) if label in ("tokens", "rules"))

    def _ways(self) -> list[tuple[str, Decimal, int]]:
        found = self.optimum
        ways = [(one.name, one.usd, one.refused) for one in found.presets]
        if found.recorded_usd is not None:
            ways.append((found.first, found.recorded_usd, 0))
        return sorted([(PLAN, found.usd, 0), *ways], key=lambda way: (way[2] > 0, way[1], way[0] != PLAN))

    def _distinct(self) -> list[tuple[str, Decimal]]:
        """Ways that cost the same as one, with how many more there are; those that are refused are left out."""
        groups: dict[Decimal, list[str]] = {}
        own = [(name, usd) for name, usd, _ in self._ways() if name in (PLAN, self.optimum.first)]
        for name, usd, refused in self._ways():
            if not refused and (name, usd) not in own:
                groups.setdefault(usd, []).append(name)
        rows = [(_group_name(names), usd) for usd, names in groups.items()] + own
        return sorted(rows, key=lambda row: (row[0] != PLAN, row[1]))


def optimize(source: Source, *, pings: bool = True, **options: Unpack[ModelOptions]) -> OptimizeResult:
    """The cheapest legal marks, lifetimes and (with `pings`) calls beside, for the calls of a recording.

    A log's calls are taken without their marks, a conversation's as "none" sends them. Raises InputError,
    CannotEvaluate.
    """
    from cachecost.analysis.optimum.optimum import optimum_of
    from cachecost.replay.workload import plan_workload

    recording = read_source(source)
    setup = comparison_setup(recording, **options)
    calls = [logged(call) for call in calls_in(recording)]
    if calls:
        return OptimizeResult(optimum_of(calls, setup, pings, first=AS_RECORDED))
    workload = plan_workload("none", conversations_in(recording), setup)
    return OptimizeResult(optimum_of(workload.calls, setup, pings, first="none"))


def _group_name(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more like it"
