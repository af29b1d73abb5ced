"""The row of a call: its fields, as `replay --json` and calls.csv write them, with the rank of its strategy.

It imports nothing heavy: a row is made for every call of a long log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any, TextIO

from cachecost.analysis.comparison.summary import rank_fields, summarise_ledgers
from cachecost.base.formatting import exact, file_name, inert_cell
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import REFUSED, CallRow
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import COST_CLASSES, TOKEN_CLASSES, ZERO

FORMAT = 1
USAGE_FIELDS = {"input": "input_tokens", "output": "output_tokens"}
Field = Callable[[CallRow], Any]


def _usd(row: CallRow, amount: Decimal) -> str | None:
    """All digits, never with an exponent; None where no price is known (a server of your own)."""
    return exact(amount) if row.is_priced else None


def _usd_field(amount: Callable[[CallRow], Decimal]) -> Field:
    return lambda row: _usd(row, amount(row))


def _layer_cost(layer: Layer, row: CallRow) -> Decimal:
    return row.cost_by_layer.get(layer, ZERO)


FIELDS: dict[str, Field] = {
    **{name: attrgetter(name) for name in ("strategy", "call", "timestamp", "model", "purpose", "turn", "inquiry")},
    **{name: attrgetter(name) for name in ("output_is_recorded", "cause", "error", "session", "project", "agent")},
    "cost_usd": _usd_field(attrgetter("cost.total")),
    "file": lambda row: file_name(row.file),
    "line": lambda row: row.line or None,
}
"""The fields of a call, by the key that JSON and CSV share."""
JSON_BEFORE = ("call", "timestamp", "model", "strategy")
JSON_AFTER = (
    *("cause", "output_is_recorded", "purpose", "turn", "inquiry"),
    *("session", "project", "agent", "file", "line"),
)
"""Fields of the JSON before and after what a call used and costs."""
CSV_FIELDS: dict[str, Field] = {
    **{name: FIELDS[name] for name in ("strategy", "call")},
    "timestamp": lambda row: row.timestamp or datetime.fromtimestamp(row.start, UTC).isoformat(),
    **{name: FIELDS[name] for name in ("model", "purpose", "turn", "inquiry")},
    **{name: attrgetter(f"usage.{USAGE_FIELDS.get(name, name)}") for name in TOKEN_CLASSES},
    **{f"{name}_usd": _usd_field(attrgetter(f"cost.{name}")) for name in COST_CLASSES},
    **{f"{layer}_usd": _usd_field(partial(_layer_cost, layer)) for layer in Layer},
    **{name: FIELDS[name] for name in ("cost_usd", "cause", "error")},
}


def call_object(row: CallRow) -> dict[str, Any]:
    """The call as docs/reference/output-formats.md describes it; one with an error has `error` in place of `usage`."""
    fields: dict[str, Any] = {"format": FORMAT, **{name: FIELDS[name](row) for name in JSON_BEFORE}}
    if row.error is None:
        fields["usage"] = row.usage.wire()
    else:
        fields["error"] = {"type": row.error_type or REFUSED, "message": row.error}
    fields["cost_usd"] = _usd(row, row.cost.total)
    if row.cost_if_missed is not None:  # the least and the most, where hits are best effort
        fields["cost_range_usd"] = [fields["cost_usd"], exact(row.cost_if_missed)]
    return fields | {name: FIELDS[name](row) for name in JSON_AFTER}


def write_call_csv(rows: Iterable[CallRow], stream: TextIO) -> None:
    """A header and a line a call: whole tokens, all digits of dollars, nothing for what is unknown. A call without a
    time of its own has the one at which the simulation makes it."""
    import csv

    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for row in rows:
        cells = [field(row) for field in CSV_FIELDS.values()]
        writer.writerow([inert_cell(cell) if isinstance(cell, str) else cell for cell in cells])


def ranked_objects(ledgers: Sequence[Ledger]) -> Iterator[dict[str, Any]]:
    """The rows for JSON and CSV, all of one strategy before the next, with `rank_from` and `rank_to`."""
    ranks = rank_fields(summarise_ledgers(ledgers)) if ledgers else {}
    return ({**call_object(row), **ranks[ledger.strategy]} for ledger in ledgers for row in ledger.rows)
