"""The object of `bill --json` (docs/reference/output-formats.md), the rows of its CSV, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.advice import Advice, saved_together
from cachecost.analysis.bill.summary import BillRow, BillSummary, CauseTotal, unwritten_cost
from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.base.errors import Fault
from cachecost.base.formatting import dollar_column, dollars, exact, exact_or_none
from cachecost.base.times import iso_or_none, zone_name
from cachecost.providers.usage import Usage
from cachecost.views.tables.output import pick


def advice_lines(advice: Sequence[Advice], together: Decimal) -> Iterator[str]:
    """A heading, and two lines a change: what it would have saved, and how to make it."""
    if not advice:
        return
    yield "What would have saved most (each alone, everything else as it was):"
    amounts = dollar_column([one.saved for one in advice])
    width = max(map(len, amounts))
    for amount, one in zip(amounts, advice, strict=True):
        yield f"  {amount.rjust(width)}  {one.change}"
        yield f"  {' ' * width}  → {how_words(one)}"
    if len(advice) > 1:
        yield f"  Together they would have saved {dollars(together)}."
    if names := [one.name for one in advice if one.setting]:
        yield f"  --apply {'|'.join(names)}: shows the change of Claude Code's settings, writes it when you confirm."


def how_words(one: Advice) -> str:
    """How to make a change, what the client must be for it, and what its price takes for granted."""
    assumption = f"assumes that {one.assumption}" if one.assumption else ""
    return "; ".join(filter(None, (one.how, one.needs, assumption)))


def advice_object(one: Advice) -> dict[str, Any]:
    """A change as JSON; `setting` is the key in the settings file, `variable` the environment variable."""
    return {
        **pick(one, "change", "how"),
        "saved_usd": exact(one.saved),
        "setting": one.setting.key or None if one.setting else None,
        "variable": one.setting.variable or None if one.setting else None,
        "value": one.value,
        **pick(one, "needs", "assumption", "alternative"),
    }


def bill_object(
    account: BillAccount,
    summary: BillSummary,
    advice: Sequence[Advice],
    skipped: Sequence[Fault],
    calls: Sequence[TimelineCall] | None = None,
) -> dict[str, Any]:
    """A bill as JSON; dollars are decimal strings of all digits. The causes' dollars add up to `rewritten_usd`.

    `calls` are those of the one session that is shown.
    """
    total = summary.total
    return {
        "format": 1,
        "billed_usd": exact(total.cost),
        "necessary_usd": exact(total.necessary),
        "rewritten_usd": exact(total.rewritten),
        "calls": total.calls,
        "sessions": summary.sessions,
        "hit_rate": hit_rate(total),
        "saved_by_caching_usd": exact(total.saved_by_caching),
        "usage": total.usage.wire(),
        "cost_by_class_usd": _by_class(total),
        "charged": {
            "calls": total.charged_calls,
            "cost_usd": exact(total.charged),
            "list_price_usd": exact_or_none(total.listed),
        },
        "partial_outputs": total.partial_outputs,
        "estimated_output": {  # billed and not recorded, from the recorded text of the answers; in no other figure
            "calls": total.partial_outputs,
            "missing_tokens": total.missing_output,
            "missing_usd": exact(total.missing_output_cost),
            "margin_usd": exact(total.missing_output_margin),
            "total_usd": exact(total.cost + total.missing_output_cost),
        }
        if summary.estimates_output and total.missing_output
        else None,
        "first": iso_or_none(total.first),
        "last": iso_or_none(total.last),
        "causes": [_cause(one) for one in total.ranked_causes],
        "by": summary.by,
        "timezone": zone_name(summary.zone),
        "rows": [row_object(row) for row in summary.rows],
        "rewrites": [rewrite_object(one) for one in account.rewrites],
        "warm_start": {"calls": summary.warm_calls, "tokens": summary.warm_tokens},
        "copies": summary.copies,
        "unwritten": {  # beyond the calls in transcripts, by the client's own sums; in no other figure
            "sessions": len({one.session for one in summary.unwritten}),
            "usage": sum((one.usage for one in summary.unwritten), Usage()).wire(),
            "cost_usd": exact(unwritten_cost(summary.unwritten)),
        },
        "unpriced": [
            {"reason": reason, "calls": calls, "tokens": summary.unpriced_tokens[reason]}
            for reason, calls in sorted(summary.unpriced.items())
        ],
        "skipped": [{"file": one.file, "line": one.line, "reason": one.message} for one in skipped],
        "advice": [advice_object(one) for one in advice],
        "advice_together_usd": exact(saved_together(account, advice)),
    } | ({} if calls is None else {"calls": [call_object(one) for one in calls]})


def row_object(row: BillRow) -> dict[str, Any]:
    """A row of the bill; `key` is what the row is for (a session, a day …)."""
    return {
        **pick(row, "key", "session", "title", "project", "agent", "client"),
        "branch": ", ".join(row.branches),
        "version": ", ".join(row.versions),
        "model": ", ".join(row.models),
        "first": iso_or_none(row.first),
        "last": iso_or_none(row.last),
        "calls": row.calls,
        "results": row.results,
        "estimated_result_tokens": row.result_tokens,
        "hit_rate": hit_rate(row),
        "usage": row.usage.wire(),
        "cost_usd": exact(row.cost),
        "cost_by_class_usd": _by_class(row),
        "partial_outputs": row.partial_outputs,
        "missing_output_usd": exact(row.missing_output_cost),
        "rewritten_usd": exact(row.rewritten),
        "saved_by_caching_usd": exact(row.saved_by_caching),
        "causes": [_cause(one) for one in row.ranked_causes],
    }


def _by_class(row: BillRow) -> dict[str, str]:
    """USD by class, the fees of server tools among them; they add up to `cost_usd`."""
    return {name: exact(cost) for name, cost in row.cost_by_class.items()}


def csv_rows(summary: BillSummary) -> Iterator[dict[str, Any]]:
    """The rows with a column for each cause."""
    for row in summary.rows:
        flat = row_object(row)
        del flat["causes"]
        yield flat | {f"{cause}_usd": exact(total.cost) for cause, total in sorted(row.causes.items())}


def rewrite_object(rewrite: BilledRewrite) -> dict[str, Any]:
    """A call that paid again for what had been cached."""
    call, loss = rewrite.call, rewrite.unexplained
    return {
        "cause": rewrite.cause,
        "session": call.session,
        "project": rewrite.file.project,
        "agent": call.agent,
        "time": iso_or_none(call.start),
        "file": rewrite.file.path,
        "line": call.line,
        "call": call.number,
        "model": call.model,
        "tokens": rewrite.tokens,
        "cost_usd": None if rewrite.cost is None else exact(rewrite.cost),
        "idle_s": rewrite.idle_s,
        "message": rewrite.words,
        "cache_miss_reason": call.miss_reason or None,
        "broke_at": loss and pick(loss.place, "place", "tokens", "call", "calls_back"),
        "stood_before": list(loss.before) if loss else [],
        "known_fault": rewrite.fault and pick(rewrite.fault, "report", "date", "title", "mended_in"),
    }


def call_object(one: TimelineCall) -> dict[str, Any]:
    """A call of `bill --session`; `idle_s` are the seconds since the cache that it continues was last used."""
    call, rewrite = one.call, one.rewrite
    return {
        "number": one.number,
        "time": iso_or_none(call.start),
        "session": call.session,
        "agent": call.agent,
        "agent_type": call.agent_type,
        "model": call.model,
        "file": one.file.path,
        "line": call.line,
        "usage": call.usage.wire(),
        "cost_usd": exact_or_none(one.cost),
        "cause": one.cause,
        "rewritten_tokens": rewrite.tokens if rewrite else 0,
        "rewritten_usd": exact_or_none(rewrite.cost) if rewrite else "0",
        "message": rewrite.words if rewrite else None,
        "events": list(call.events),
        "idle_s": one.idle_s,
        "cache_miss_reason": call.miss_reason or None,
    }


def _cause(total: CauseTotal) -> dict[str, Any]:
    return {"cause": total.cause, "times": total.times, "tokens": total.tokens, "cost_usd": exact(total.cost)}


def hit_rate(row: BillRow) -> float | None:
    """Tokens read ÷ input tokens; None without input."""
    rate = row.hit_rate
    return None if rate is None else round(float(rate), 6)
