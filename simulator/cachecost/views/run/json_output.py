"""What machines read of a run: one JSON object of sums, one CSV row a call. Dollars with all their digits."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from json import dumps
from typing import Any

from cachecost.analysis.comparison.summary import CLASS_FIELDS, Line, summarise
from cachecost.base.formatting import exact
from cachecost.base.inert import inert_cell
from cachecost.ledger.results import TOKEN_CLASSES, ZERO, CallRow, Claim, Comparison, RunResult
from cachecost.prompts.blocks import Layer
from cachecost.views.replay.json_output import FORMAT

CSV_COLUMNS = (
    *("strategy", "call", "timestamp", "model", "purpose", "turn", "inquiry"),
    *TOKEN_CLASSES,
    *(f"{name}_usd" for name in TOKEN_CLASSES),
    *(f"{layer}_usd" for layer in Layer),
    *("cost_usd", "cause", "error"),
)


def run_json(result: RunResult) -> str:
    """The object of `run --json`, indented, ending in a newline.

    `strategies` are those of the scenario as written, `variants` hold the further comparisons alike.
    """
    return dumps(run_object(result), ensure_ascii=False, indent=2) + "\n"


def run_object(result: RunResult) -> dict[str, Any]:
    """What `run_json` writes, as plain dicts, lists, strings and numbers. `best` is None if no strategy ran whole."""
    return {
        "format": FORMAT,
        "scenario": result.scenario,
        "question": result.question,
        "about": result.about,
        "verdict": result.verdict,
        **_comparison(result.main),
        "variants": [{"variant": each.variant, **_comparison(each)} for each in result.comparisons[1:]],
        "claims": [_claim(claim) for claim in result.claims],
        "assumptions": result.assumptions,
        "versions": dict(sorted(result.versions.items())),
    }


def calls_csv(result: RunResult) -> str:
    """One row a call, over all strategies of the scenario as written, in their order; lines end in a newline.

    Tokens are whole numbers, dollars have all their digits, unknown is empty; a call without a time of
    its own has the one it was given.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for ledger in result.main.ledgers:
        writer.writerows(map(_shown, _csv_row(row)) for row in ledger.rows)
    return text.getvalue()


def _comparison(comparison: Comparison) -> dict[str, Any]:
    summary = summarise(comparison)
    return {
        "host": comparison.host,
        "model": comparison.model,
        "as_of": comparison.as_of.isoformat(),
        "rules": dict(sorted(comparison.rules.items())),
        "compare_to": comparison.first,
        "strategies": [_strategy(line) for line in summary.lines],
        "best": summary.best.name if summary.best else None,
        "tied": list(summary.winners) if len(summary.winners) > 1 else [],
    }


def _strategy(line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "calls": line.calls,
        "errors": line.refused,
        "usage": line.usage.wire(),
        **_dollars(line),
        "vs_first": None if line.vs_first is None else exact(round(line.vs_first, 6)),
        "floor_usd": None if line.floor is None else exact(line.floor),
        "inquiries": line.questions,
        "cost_per_inquiry_usd": None if line.question is None else exact(line.question),
        "refusals": [{"type": each.kind, "message": each.reason, "calls": each.calls} for each in line.refusals],
        "token_source": line.token_source,
        "token_band": line.band,
        "notes": list(line.notes),
    }


def _dollars(line: Line) -> dict[str, Any]:
    """None, and the share of the input that was read, where no price is known."""
    if not line.is_priced:
        share = None if line.hit_share is None else exact(round(line.hit_share, 6))
        return {"cost_usd": None, "cost_by_class_usd": None, "cost_by_layer_usd": None, "hit_share": share}
    return {
        "cost_usd": exact(line.cost.total),
        **({} if line.most is None else {"cost_band_usd": [exact(line.cost.total), exact(line.most)]}),
        "cost_by_class_usd": _exact_all(line.cost.by_class()),
        "cost_by_layer_usd": _exact_all({layer.value: amount for layer, amount in line.by_layer.items()}),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    name = "exact_share" if claim.is_share else "exact_usd"
    return {"source": claim.source, "says": claim.says, name: exact(claim.exact), "how": claim.how}


def _exact_all(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: exact(amount) for name, amount in amounts.items()}


def _csv_row(row: CallRow) -> Iterable[object]:
    cost = row.cost.by_class()
    return (
        *(row.strategy, row.call, row.timestamp or _iso(row.start), row.model, row.purpose, row.turn, row.inquiry),
        *(getattr(row.usage, CLASS_FIELDS[name]) for name in TOKEN_CLASSES),
        *(_exact(row, cost[name]) for name in TOKEN_CLASSES),
        *(_exact(row, row.cost_by_layer.get(layer, ZERO)) for layer in Layer),
        *(_exact(row, row.cost.total), row.cause, row.error),
    )


def _shown(cell: object) -> object:
    return inert_cell(cell) if isinstance(cell, str) else cell


def _exact(row: CallRow, amount: Decimal) -> str | None:
    return exact(amount) if row.is_priced else None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
