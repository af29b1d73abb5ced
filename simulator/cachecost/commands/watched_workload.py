"""A workload that shows each replay of its calls on a bar. How many there will be is estimated more than once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachecost.base.formatting import count_text
from cachecost.simulation.engine import Simulation
from cachecost.simulation.workload import Workload

if TYPE_CHECKING:
    from cachecost.caches.breakpoints import PrefixCache
    from cachecost.caches.hosts import SimulatedHosts
    from cachecost.commands.work_bar import WorkBar
    from cachecost.simulation.call_preparer import CallPreparer


def _ignore(replays: int) -> None:
    """No replay is shown."""


@dataclass(frozen=True, slots=True)
class WatchedWorkload(Workload):
    """A workload that says when a replay begins; workloads that are made from it do so, too."""

    begins: Callable[[int], None] = _ignore
    expects: Callable[[int], None] = _ignore

    def expect(self, replays: int) -> None:
        self.expects(replays)

    def simulation(
        self,
        cache: PrefixCache | None = None,
        preparer: CallPreparer | None = None,
        hosts: SimulatedHosts | None = None,
        kind: type[Simulation] = Simulation,
    ) -> Simulation:
        self.begins(1)
        return Workload.simulation(self, cache, preparer, hosts, kind)


def watched(workload: Workload, bar: WorkBar) -> Workload:
    """The workload, and a phase of `bar` that counts its replays; itself where no bar can be shown."""
    if not bar.is_shown:
        return workload
    bar.begin(f"explaining {count_text(len(workload.calls), 'call')}", None, "replay")
    return WatchedWorkload(workload.name, workload.calls, workload.setup, workload.strategy, bar.advance, bar.expect)
