"""Predicted against billed, a line a call, each sized by the bills of the calls before it (rule 17)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from cachecost.base.formatting import dollars
from cachecost.conversations.bills import Bill
from cachecost.conversations.readers.request_log.reader import LoggedCall
from cachecost.ledger.results import CallRow
from cachecost.providers.usage import Usage
from cachecost.replay.setup import ReplaySetup
from cachecost.replay.simulation import NOT_EVALUATED, Simulation, logged


class Predictor:
    """Takes calls in the order they started. `total` is what those that were told were billed, in USD."""

    def __init__(self, setup: ReplaySetup) -> None:
        self.total = Decimal(0)
        self._setup = setup
        self._simulation = Simulation(setup)
        self._taken = 0
        self._said: set[str] = set()

    def remember(self, call: LoggedCall) -> CallRow:
        """Predict a call, then learn what its bill tells."""
        self._taken += 1
        row = self._simulation.row(logged(call))
        if call.billed:
            self._simulation.learn(self._taken, logged(call), call.billed)
        return row

    def told(self, number: int, call: LoggedCall) -> Iterator[str]:
        """The line of a call; what cannot be predicted or priced says why, once."""
        row = self.remember(call)
        bill = Bill(self._setup.prices, self._setup.host)
        bill.add(call)
        self.total += bill.dollars
        cost = None if bill.unpriced else bill.dollars
        parts = (_predicted(row), _billed(call), dollars(cost), f"total {dollars(self.total)}")
        yield f"call {number}  {call.request.model}  " + " · ".join(filter(None, parts))
        whys = [row.error] if row.error_type == NOT_EVALUATED else []
        for why in dict.fromkeys([*whys, *bill.unpriced]):
            if why and why not in self._said:
                self._said.add(why)
                yield f"call {number}: {why}; said once"


def _predicted(row: CallRow) -> str:
    if row.error_type == NOT_EVALUATED:
        return "not predicted"
    if row.error:
        return f"predicted: refused ({row.error})"
    return "" if row.cause == "unknown" and not row.usage.total_input else f"predicted {_tokens(row.usage)}"


def _billed(call: LoggedCall) -> str:
    if call.failed:
        return f"failed with status {call.status}"
    return f"billed {_tokens(call.billed)}" if call.billed else "its bill is not known"


def _tokens(usage: Usage) -> str:
    return f"read {usage.read:,} write {usage.write:,}"
