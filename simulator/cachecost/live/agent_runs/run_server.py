"""The simulated API of one run of a command, and the calls that it took."""

from __future__ import annotations

import socket
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Self

from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.agent_runs.answering import scenario_answerer
from cachecost.live.agent_runs.call_order import STEP_S, WatchedApp, WatchedLog, in_order, stable_order
from cachecost.live.agent_runs.stable_ids import with_stable_ids
from cachecost.live.clock import SteppingClock
from cachecost.live.server.app import app_of
from cachecost.live.server.catalogue import models_of
from cachecost.live.server.meter import Meter
from cachecost.live.server.serving import serving_at
from cachecost.live.server.state import ServerState
from cachecost.scenario import Scenario
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import scenario_setup
from cachecost.tokens.factory import FILLER


class RunServer:
    """The simulated API as a scenario describes it, from `start` on (seconds since the epoch); logs to `log`.

    The calls of all commands of the run, one after the other, are those of one session.
    """

    def __init__(self, scenario: Scenario, folder: Path, start: float, log: Path) -> None:
        setup = _server_setup(scenario, folder)
        self._start = start
        self._log = WatchedLog(log)
        self._faults: list[str] = []
        self._served = ServerState(
            scenario_answerer(scenario, folder),
            Meter(setup),
            SteppingClock(STEP_S, start),
            self._log,
            models=models_of(setup.rules, setup.host),
            say=self._faults.append,
        )
        self._app = WatchedApp(app_of(self._served))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._log.close()

    def serving(self, listener: socket.socket) -> AbstractContextManager[None]:
        """Serves at the socket while the block runs."""
        return serving_at(self._app, listener)

    @property
    def unknown(self) -> list[str]:
        """The requests for which the API has no endpoint: method and path."""
        return self._app.unknown

    @property
    def calls(self) -> int:
        """How many calls are recorded."""
        return len(self._log.arrived)

    @property
    def refused(self) -> int:
        """How many requests had a body that cannot be recorded."""
        return self._served.unreadable

    def recorded_calls(self) -> list[RecordedCall]:
        """The calls, in an order that does not depend on how parallel calls arrived."""
        if self._faults:
            raise RuntimeError("; ".join(self._faults))
        path = self._log.path
        order = stable_order(list(read_calls(path, "request-log")), self._log.arrived)
        lines = with_stable_ids(path.read_bytes().rstrip().split(b"\n"), order)
        named = path.with_suffix(".named.jsonl")
        named.write_bytes(b"\n".join(lines) + b"\n")
        return in_order(list(read_calls(named, "request-log")), order, self._start)


def _server_setup(scenario: Scenario, folder: Path) -> ReplaySetup:
    """The scenario's rules and prices. Tokens are counted offline, and each call has its own model."""
    return replace(scenario_setup(scenario, folder, ()), tokens=FILLER, model=None)
