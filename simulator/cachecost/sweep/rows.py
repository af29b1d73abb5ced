"""The rows of a sweep: what one strategy uses and costs in one cell, or the error."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import NOT_EVALUATED
from cachecost.providers.usage import ZERO, Usage

NO_SEED = 0
"""Of a sweep without seeds."""


class CellKey(NamedTuple):
    """A cell: the values of its axes in words, and its seed."""

    labels: tuple[str, ...]
    seed: int


class SweepRow(NamedTuple):
    """Tokens are whole tokens, `cost_usd` exact dollars, None where no price is known (a server of one's own);
    `errors` counts calls without usage. Where hits are best effort `cost_usd` is the least that it may be, and
    `cost_if_missed_usd` the most; else that is None. `fault`: "" is none."""

    key: CellKey
    strategy: str
    calls: int = 0
    errors: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    input: int = 0
    output: int = 0
    cost_usd: Decimal | None = ZERO
    cost_if_missed_usd: Decimal | None = None
    fault: str = ""

    @property
    def prefill(self) -> int:
        """Input tokens that must be computed."""
        return self.write_5m + self.write_1h + self.input


FIELDS = SweepRow._fields[1:]
COUNTS = ("calls", "errors", "read", "write_5m", "write_1h", "input", "output")


def ledger_row(key: CellKey, ledger: Ledger) -> SweepRow:
    """The sums of a ledger."""
    not_evaluated = (row.error for row in ledger.rows if row.error_type == NOT_EVALUATED)
    fault = next(not_evaluated, None) or ""
    cost, most = (ledger.cost.total, ledger.most) if ledger.is_priced else (None, None)
    return usage_row(key, ledger.strategy, len(ledger.rows), ledger.errors, ledger.usage, cost, fault, most)


def usage_row(
    key: CellKey,
    strategy: str,
    calls: int,
    errors: int,
    usage: Usage,
    cost_usd: Decimal | None,
    fault: str = "",
    cost_if_missed_usd: Decimal | None = None,
) -> SweepRow:
    """A row of a cell that could be evaluated."""
    tokens = (usage.read, usage.write_5m, usage.write_1h, usage.input_tokens, usage.output_tokens)
    return SweepRow(key, strategy, calls, errors, *tokens, cost_usd, cost_if_missed_usd, fault)


def error_row(key: CellKey, fault: str) -> SweepRow:
    """The row of a cell that could not be evaluated at all."""
    return SweepRow(key, "", fault=fault)
