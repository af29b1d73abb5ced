"""The row of `replay --json`, alone in a module that imports nothing heavy: it is made for every call of a long log."""

from __future__ import annotations

from typing import Any

from cachecost.base.formatting import exact
from cachecost.ledger.rows import CallRow

FORMAT = 1
REFUSAL = "invalid_request_error"


def replay_row_json(row: CallRow) -> dict[str, Any]:
    """One call as docs/output-formats.md describes it.

    `cost_usd` is a decimal string of all digits, never with an exponent; None where no price is known (a server of
    one's own). A call with an error has `error` in place of `usage`. Further fields are `output_is_recorded`,
    `purpose`, `turn`, `inquiry`, and where hits are best effort (in batches, on hosts that promise none)
    `cost_band_usd`: the least and the most it can cost.
    """
    outcome: dict[str, Any] = (
        {"usage": row.usage.wire()}
        if row.error is None
        else {"error": {"type": row.error_type or REFUSAL, "message": row.error}}
    )
    least = exact(row.cost.total) if row.is_priced else None
    band = {} if row.cost_if_missed is None else {"cost_band_usd": [least, exact(row.cost_if_missed)]}
    return {
        "format": FORMAT,
        "call": row.call,
        "timestamp": row.timestamp,
        "model": row.model,
        "strategy": row.strategy,
        **outcome,
        "cost_usd": least,
        **band,
        "cause": row.cause,
        "output_is_recorded": row.output_is_recorded,
        "purpose": row.purpose,
        "turn": row.turn,
        "inquiry": row.inquiry,
    }
