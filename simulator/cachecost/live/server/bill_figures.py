"""The bill's figures as table cells and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachecost.analysis.comparison.summary import CLASS_FIELDS, CLASS_NAMES
from cachecost.base.formatting import change, change_text, count_text, dollars, exact, percent, point_aligned, tokens
from cachecost.ledger.results import TOKEN_CLASSES
from cachecost.live.server.bill import BillShare, ServerBill
from cachecost.live.server.uncached_loops import UncachedLoop
from cachecost.views.tables.table import Column

FORMAT = 1
NOTHING_YET = "No calls yet."
HEADERS = {
    "cost": "cost",
    "cache_hit_rate": "hit rate",
    "uncached": "without caching",
    "calls": "calls",
    "input": "input",
    **{f"{name}_tokens": CLASS_NAMES[name] for name in TOKEN_CLASSES},
    "unread": "never read",
}
"""Columns of a table of shares, by key."""


def verdict(bill: ServerBill) -> str:
    """One sentence: what the calls cost, and what they would have cost without caching."""
    total = bill.total
    if not total.calls:
        return NOTHING_YET
    cost = f"{dollars(total.cost.total)} for {count_text(total.calls, 'call')}"
    if not total.uncached:
        return f"{cost}."
    difference = change(total.cost.total, total.uncached)
    words = f"{change_text(difference)} {'than' if difference else 'as'} without caching"
    return f"{cost}, {words} ({dollars(total.uncached)})."


def facts(bill: ServerBill) -> list[str]:
    """Further facts, one sentence each."""
    total, unread = bill.total, bill.total.unread
    told = []
    if total.cache_hit_rate is not None:
        told.append(
            f"{percent(total.cache_hit_rate)} of {tokens(total.usage.total_input)} input tokens "
            f"were read from the cache."
        )
    if unread.tokens:
        lost = f"{dollars(unread.paid)}, {dollars(unread.extra)} more than without caching"
        told.append(f"Written but not read so far: {tokens(unread.tokens)} tokens ({lost}).")
    told += [f"{count_text(count, 'call')} refused at no charge: {words}" for words, count in bill.errors]
    return [*told, *(f"{note}." for note in bill.notes)]


def counted_by(bill: ServerBill) -> str:
    """How tokens were counted, with the error margin; empty before the first call."""
    error_margin = f", ±{percent(bill.error_margin)}" if bill.error_margin else ""
    return f"{bill.token_source}{error_margin}" if bill.token_source else ""


def cells(share: BillShare) -> dict[str, str]:
    """The formatted figures of a share, by the keys of HEADERS."""
    usage = share.usage
    return {
        "calls": f"{share.calls:,}",
        "input": tokens(usage.total_input),
        "cache_hit_rate": percent(share.cache_hit_rate),
        **{f"{name}_tokens": tokens(getattr(usage, CLASS_FIELDS[name])) for name in TOKEN_CLASSES},
        "cost": dollars(share.cost.total),
        "uncached": dollars(share.uncached),
        "unread": tokens(share.unread.tokens),
    }


def columns(shares: Sequence[BillShare], keys: Sequence[str]) -> list[Column]:
    """The columns of HEADERS in `keys`, with one cell per share."""
    made = [cells(share) for share in shares]
    return [Column(key, HEADERS[key], point_aligned([row[key] for row in made])) for key in keys]


def class_rows(share: BillShare) -> list[tuple[str, str, str, str]]:
    """(key, name, tokens, dollars) of each token class."""
    costs = share.cost.by_class()
    names = [(name, CLASS_NAMES[name], getattr(share.usage, CLASS_FIELDS[name])) for name in TOKEN_CLASSES]
    return [(name, words, tokens(count), dollars(costs[name])) for name, words, count in names]


def bill_json(bill: ServerBill) -> dict[str, Any]:
    """The bill as JSON; dollars are decimal strings of all digits."""
    return {
        "format": FORMAT,
        "verdict": verdict(bill),
        "facts": facts(bill),
        "total": _share_json(bill.total),
        "workspaces": [_share_json(share) for share in bill.workspaces],
        "models": [_share_json(share) for share in bill.models],
        "conversations": [_share_json(share) for share in bill.conversations],
        "uncached_loops": [_loop_json(loop) for loop in bill.loops],
        "refused": [{"message": words, "calls": count} for words, count in bill.errors],
        "tokens": {"source": bill.token_source, "error_margin": bill.error_margin},
        "notes": list(bill.notes),
    }


def _share_json(share: BillShare) -> dict[str, Any]:
    return {
        "name": share.name,
        "calls": share.calls,
        "refused": share.refused,
        "usage": share.usage.wire(),
        "cache_hit_rate": None if share.cache_hit_rate is None else float(share.cache_hit_rate),
        "cost_usd": exact(share.cost.total),
        "cost_by_class_usd": {name: exact(amount) for name, amount in share.cost.by_class().items()},
        "without_caching_usd": exact(share.uncached),
        "saved_usd": exact(share.saved_usd),
        "never_read": {
            "tokens": share.unread.tokens,
            "cost_usd": exact(share.unread.paid),
            "extra_usd": exact(share.unread.extra),
        },
    }


def _loop_json(loop: UncachedLoop) -> dict[str, Any]:
    return {
        "conversation": loop.conversation,
        "later_calls": loop.steps,
        "tokens_again": loop.again,
        "tokens_sent_before": loop.had_been_sent,
        "cost_usd": exact(loop.cost),
        "avoidable_usd": exact(loop.avoidable),
        "why": loop.why,
    }
