"""The row of a call: its fields, as `replay --json` and calls.csv write them.

It imports nothing heavy: a row is made for every call of a long log.

The rows of strategies that are compared: each has the rank of its strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, TextIO

from cachecost.analysis.comparison.ranking import rank_fields
from cachecost.analysis.comparison.summary import summarise_ledgers
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


def _tokens_of(name: str) -> Field:
    field = USAGE_FIELDS.get(name, name)
    return lambda row: getattr(row.usage, field)


def _cost_of(name: str) -> Field:
    return lambda row: _usd(row, getattr(row.cost, name))


def _layer_cost_of(layer: Layer) -> Field:
    return lambda row: _usd(row, row.cost_by_layer.get(layer, ZERO))


def _usage_or_error(row: CallRow) -> dict[str, Any]:
    if row.error is None:
        return {"usage": row.usage.wire()}
    return {"error": {"type": row.error_type or REFUSED, "message": row.error}}


def _cost_range(row: CallRow) -> dict[str, Any]:
    """The least and the most that the call can cost, where hits are best effort."""
    if row.cost_if_missed is None:
        return {}
    return {"cost_range_usd": [_usd(row, row.cost.total), exact(row.cost_if_missed)]}


FIELDS: dict[str, Field] = {
    "strategy": attrgetter("strategy"),
    "call": attrgetter("call"),
    "timestamp": attrgetter("timestamp"),
    "model": attrgetter("model"),
    "purpose": attrgetter("purpose"),
    "turn": attrgetter("turn"),
    "inquiry": attrgetter("inquiry"),
    "output_is_recorded": attrgetter("output_is_recorded"),
    "cost_usd": lambda row: _usd(row, row.cost.total),
    "cause": attrgetter("cause"),
    "error": attrgetter("error"),
    **{name: attrgetter(name) for name in ("session", "project", "agent")},
    "file": lambda row: file_name(row.file),
    "line": lambda row: row.line or None,
}
"""The fields of a call, by the key that JSON and CSV share."""
JSON_GROUPS: tuple[Callable[[CallRow], dict[str, Any]] | str, ...] = (
    *("call", "timestamp", "model", "strategy", _usage_or_error, "cost_usd", _cost_range),
    *("cause", "output_is_recorded", "purpose", "turn", "inquiry"),
    *("session", "project", "agent", "file", "line"),
)
CSV_FIELDS: dict[str, Field] = {
    **{name: FIELDS[name] for name in ("strategy", "call")},
    "timestamp": lambda row: row.timestamp or datetime.fromtimestamp(row.start, UTC).isoformat(),
    **{name: FIELDS[name] for name in ("model", "purpose", "turn", "inquiry")},
    **{name: _tokens_of(name) for name in TOKEN_CLASSES},
    **{f"{name}_usd": _cost_of(name) for name in COST_CLASSES},
    **{f"{layer}_usd": _layer_cost_of(layer) for layer in Layer},
    **{name: FIELDS[name] for name in ("cost_usd", "cause", "error")},
}


def call_object(row: CallRow) -> dict[str, Any]:
    """The call as docs/reference/output-formats.md describes it; one with an error has `error` in place of `usage`."""
    fields: dict[str, Any] = {"format": FORMAT}
    for part in JSON_GROUPS:
        if isinstance(part, str):
            fields[part] = FIELDS[part](row)
        else:
            fields |= part(row)
    return fields


def write_call_csv(rows: Iterable[CallRow], stream: TextIO) -> None:
    """Write a header and a line a call, in the order of `CSV_FIELDS`.

    Tokens are whole numbers, dollars have all their digits, unknown is empty. A call without a time of its own has the
    one at which the simulation makes it.
    """
    import csv

    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    writer.writerows([_inert(field(row)) for field in CSV_FIELDS.values()] for row in rows)


def _inert(cell: object) -> object:
    return inert_cell(cell) if isinstance(cell, str) else cell


def ranked_objects(ledgers: Sequence[Ledger]) -> Iterator[dict[str, Any]]:
    """The rows for JSON and CSV, all of one strategy before the next, with `rank_from` and `rank_to`."""
    ranks = rank_fields(summarise_ledgers(ledgers)) if ledgers else {}
    return ({**call_object(row), **ranks[ledger.strategy]} for ledger in ledgers for row in ledger.rows)
