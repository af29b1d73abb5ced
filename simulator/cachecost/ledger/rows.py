"""The row of a call. The module imports fast: a replay with `--json` needs nothing else of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Literal, NamedTuple

from cachecost.base.structs import value
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import COST_CLASSES as COST_CLASSES
from cachecost.providers.usage import TOKEN_CLASSES as TOKEN_CLASSES
from cachecost.providers.usage import ZERO as ZERO
from cachecost.providers.usage import Usage

WARM_START: Literal["warm_start"] = "warm_start"
REFUSED = "invalid_request_error"
"""The error type of a call that the API refuses."""
NOT_EVALUATED = "not_evaluated"
"""That of a call whose model, rule or price is not known."""


@value
class Cost:
    """Dollars of a call, by class. Exact: nothing is rounded before printing."""

    read: Decimal = ZERO
    write_5m: Decimal = ZERO
    write_1h: Decimal = ZERO
    input: Decimal = ZERO
    output: Decimal = ZERO
    fees: Decimal = ZERO
    """Of server tools."""

    @property
    def total(self) -> Decimal:
        return self.read + self.write_5m + self.write_1h + self.input + self.output + self.fees

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.read + other.read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.input + other.input,
            self.output + other.output,
            self.fees + other.fees,
        )

    def by_class(self) -> dict[str, Decimal]:
        return {name: getattr(self, name) for name in COST_CLASSES}


@value
class LayerTokens:
    """Input tokens of one layer in one call, by token class."""

    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    input: int = 0

    def __add__(self, other: LayerTokens) -> LayerTokens:
        return LayerTokens(
            self.read + other.read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.input + other.input,
        )


@value
class CallRow:
    """One call of a replay. `error` says why it has no usage (then usage and cost are zero, cause is None).

    `error_type` is REFUSED or NOT_EVALUATED.

    `start` is seconds since the epoch; `purpose` is "main", "inquiry", "retry" …;
    `inquiry` numbers the question the call serves (from 1), `turn` the human turn (from 1).
    """

    call: int
    start: float
    timestamp: str | None
    strategy: str
    model: str
    usage: Usage
    cost: Cost
    cause: str | None
    by_layer: Mapping[Layer, LayerTokens]
    cost_by_layer: Mapping[Layer, Decimal]
    purpose: str = "main"
    turn: int = 0
    inquiry: int | None = None
    error: str | None = None
    output_is_recorded: bool = True
    error_type: str | None = None
    cost_if_missed: Decimal | None = None
    """Where hits are not certain (calls in batches, hosts with a range): dollars with the least read. `cost` is then
    the minimum."""
    is_priced: bool = True
    """False: the price of its tokens is unknown, so `cost` must not be shown (a self-hosted server)."""
    estimated_usd: Decimal | None = None
    """USD that rest on token counts where bills determine the rest (`margin.py`); None: all but recorded output."""
    error_margin: float | None = None
    """The relative error of its token counts, by the content kinds of its prompt; None: that of the counter."""
    session: str = ""
    project: str = ""
    agent: str = ""
    file: str = ""
    line: int = 0
    """The last five are as those of a recorded call; a planned call has no file and no line (0)."""


def has_unevaluated(rows: Iterable[CallRow]) -> bool:
    """Whether any call could not be evaluated."""
    return any(row.error_type == NOT_EVALUATED for row in rows)


class WarmReads(NamedTuple):
    """The number of calls that read what was written before the recording began, and their tokens."""

    calls: int = 0
    tokens: int = 0

    @property
    def sentence(self) -> str:
        """A sentence about them; "" if there are none."""
        if not self.calls:
            return ""
        who = "1 call reads" if self.calls == 1 else f"{self.calls:,} calls read"
        return (
            f"Warm start: {who} {self.tokens:,} tokens cached before the recording began"
            " (--rule warm_start=cold counts them as written)."
        )


def warm_reads(rows: Iterable[CallRow]) -> WarmReads:
    """The warm starts among the rows of a replay."""
    read = [row.usage.read for row in rows if row.cause == WARM_START]
    return WarmReads(len(read), sum(read))
