"""Predicted against billed, one line per call; token counts come from the bills of earlier calls (rule 17)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from cachecost.base.formatting import dollars
from cachecost.conversations.bills import BillTotal
from cachecost.conversations.calls import RecordedCall
from cachecost.ledger.results import CallRow
from cachecost.ledger.rows import NOT_EVALUATED
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup


class Predictor:
    """Takes calls in the order they started. `total` is what described calls were billed, in USD."""

    def __init__(self, setup: ReplaySetup) -> None:
        self.total = Decimal(0)
        self._setup = setup
        self._simulation = Simulation(setup)
        self._taken = 0
        self._said: set[str] = set()

    def remember(self, call: RecordedCall) -> CallRow:
        """Predict a call, then learn from its bill."""
        self._taken += 1
        row = self._simulation.row(call)
        if call.billed:
            self._simulation.learn(self._taken, call, call.billed)
        return row

    def describe(self, number: int, call: RecordedCall) -> Iterator[str]:
        """The line of a call, and once each why calls cannot be predicted or priced."""
        row = self.remember(call)
        bill = BillTotal(self._setup.prices, self._setup.host)
        bill.add(call)
        self.total += bill.dollars
        cost = None if bill.unpriced else bill.dollars
        parts = (_prediction_text(row), _bill_text(call), dollars(cost), f"total {dollars(self.total)}")
        yield f"call {number}  {call.request.model}  " + " · ".join(filter(None, parts))
        whys = [row.error] if row.error_type == NOT_EVALUATED else []
        for why in dict.fromkeys([*whys, *bill.unpriced]):
            if why and why not in self._said:
                self._said.add(why)
                yield f"call {number}: {why}; reported once"


def _prediction_text(row: CallRow) -> str:
    if row.error_type == NOT_EVALUATED:
        return "not predicted"
    if row.error:
        return f"predicted: refused ({row.error})"
    return "" if row.cause == "unknown" and not row.usage.total_input else f"predicted {_tokens(row.usage)}"


def _bill_text(call: RecordedCall) -> str:
    if call.has_failed:
        return f"failed with status {call.status}"
    return f"billed {_tokens(call.billed)}" if call.billed else "bill unknown"


def _tokens(usage: Usage) -> str:
    return f"read {usage.read:,} write {usage.write:,}"
