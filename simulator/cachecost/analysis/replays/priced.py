"""Replays that are only priced: no call is compared with earlier ones, and rows have no layers and no error margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cachecost.analysis.replays.incremental import TrackedCall, TrackedReplay
from cachecost.analysis.replays.steps import ReplayStep
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.caches.tracking import START, ChangedCache
from cachecost.conversations.calls import Call
from cachecost.ledger.results import CallRow
from cachecost.providers.prices import Prices
from cachecost.simulation.engine import Pass, Simulation


class PricedSimulation(Simulation):
    """A simulation whose rows tell what a call costs, and no more."""

    def _details(self, call: Call, passed: Sequence[Pass], prices: Prices, is_recorded: bool) -> dict[str, Any]:
        return {"by_layer": {}, "cost_by_layer": {}}


class ChangedPrices:
    """Prices of steps that match those of an `earlier` replay at the positions `matches`, as `TrackedReplay.match`
    finds them. `kind` makes the rows of those that are made anew."""

    def __init__(
        self,
        earlier: TrackedReplay,
        steps: Sequence[ReplayStep],
        matches: Sequence[int],
        kind: type[Simulation] = PricedSimulation,
    ) -> None:
        self._earlier = earlier
        self._pairs = zip(steps, matches, strict=True)
        self._cache = ChangedCache(earlier.history)
        hosts = UnexplainedHosts(self._cache)
        self._simulation = earlier.traffic.simulation(preparer=earlier.preparer, hosts=hosts, kind=kind)

    def rows(self) -> Iterator[CallRow]:
        """The row of each step. Those of calls that find what they found in the earlier replay have their number
        there."""
        position = START
        for step, match in self._pairs:
            position = match or position
            yield self._known_row(step.call, match) if match else self._new_row(step.call, position)

    def _known_row(self, call: Call, match: int) -> CallRow:
        before = self._earlier.calls[match - 1]
        if self._earlier.steps[match - 1].call is call and self._finds_alike(call, before):
            self._cache.pass_over(match, before.use.changed)
            self._simulation.pass_over()
            return before.made.row
        row = self._simulation.row(call)
        self._cache.end_call(match, call.start, before.use.changed)
        return row

    def _new_row(self, call: Call, position: int) -> CallRow:
        row = self._simulation.row(call)
        self._cache.end_call(position, call.start)
        return row

    def _finds_alike(self, call: Call, before: TrackedCall) -> bool:
        if not before.made.passes:
            return True
        return not before.use.is_warm and self._cache.finds_alike(before.use, call.start, has_loss=False)
