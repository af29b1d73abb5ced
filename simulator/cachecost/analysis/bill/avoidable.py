"""What of a bill's rewrites was avoidable: what their fix nets, priced on the billed figures.

A prompt that had not changed would have been read, so a rewrite after a change is avoidable as a whole. A pause costs
what it costs unless a 1h TTL, which knows no pause before it comes, would have been cheaper over all calls: then what
that nets is avoidable, and no more. New sessions, compaction and forks are what the user asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.savings import TTL_SECONDS, InScope, is_main, is_sub_agent, saved_by_hour
from cachecost.analysis.explain.allocation import share_out
from cachecost.analysis.explain.codes import codes
from cachecost.caches.causes import Cause
from cachecost.providers.usage import ZERO

HOUR_S = TTL_SECONDS["1h"]
ASKED_FOR: frozenset[Cause] = frozenset({"compaction", "fork", "cold_start"})
"""Causes that are what the user asked for."""


@dataclass(frozen=True, slots=True)
class AvoidableRewrite:
    """A rewrite, the USD of it that its fix nets (0: nothing), and what the fix is ("": that of its code)."""

    rewrite: BilledRewrite
    saved: Decimal
    fix: str = ""


def avoidable_rewrites(account: BillAccount) -> list[AvoidableRewrite]:
    """Every rewrite that something explains, with what its fix nets."""
    pauses = dict(_saved_in_pauses(account))
    explained = [one for one in account.rewrites if codes()[one.cause].fixed_in != "bill" or one.cause in ASKED_FOR]
    return [pauses.get(id(one)) or AvoidableRewrite(one, _saved(one)) for one in explained]


def _saved(rewrite: BilledRewrite) -> Decimal:
    if rewrite.cause in ASKED_FOR or rewrite.cause == "ttl_expired":
        return ZERO
    return rewrite.cost or ZERO


def _saved_in_pauses(account: BillAccount) -> Iterator[tuple[int, AvoidableRewrite]]:
    """The rewrites after pauses that a 1h TTL outlasts, by the `id()` of the rewrite."""
    for scope in (is_main, is_sub_agent):
        saved, outlasted = saved_by_hour(account, scope), _within_hour(account, scope)
        costs = {number: one.cost or ZERO for number, one in enumerate(outlasted)}
        shares = share_out(saved, list(costs), costs, dict(costs)) if saved > 0 else {}
        for number, usd in shares.items():
            yield id(outlasted[number]), AvoidableRewrite(outlasted[number], usd, "a 1h TTL on every breakpoint")


def _within_hour(account: BillAccount, in_scope: InScope) -> list[BilledRewrite]:
    return [
        one
        for one in account.rewrites
        if one.cause == "ttl_expired" and in_scope(one.call) and one.idle_s is not None and one.idle_s < HOUR_S
    ]
