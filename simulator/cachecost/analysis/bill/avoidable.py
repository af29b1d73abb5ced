"""What of a bill's rewrites was avoidable: what their fix nets, priced on the billed figures.

A prompt that had not changed would have been read, so a rewrite after a change is avoidable as a whole. A pause costs
what it costs unless a policy that knows no pause before it comes, a 1h TTL or keep-alives after every call, would have
been cheaper over all calls: then what that policy nets is avoidable, and no more. New sessions, compaction and forks
are what the user asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.savings import TTL_SECONDS, InScope, best_keep_alive, is_main, is_sub_agent, saved_by_hour
from cachecost.analysis.explain.allocation import share_out
from cachecost.analysis.explain.codes import codes
from cachecost.base.formatting import count_text
from cachecost.caches.causes import Cause
from cachecost.providers.usage import ZERO

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
    """The rewrites after pauses that the best policy outlasts, by the `id()` of the rewrite."""
    for scope in (is_main, is_sub_agent):
        policy = _best_policy(account, scope)
        costs = {number: one.cost or ZERO for number, one in enumerate(policy.outlasted)}
        shares = share_out(policy.saved, list(costs), costs, dict(costs)) if policy.saved > 0 else {}
        for number, rewrite in enumerate(policy.outlasted):
            if number in shares:
                yield id(rewrite), AvoidableRewrite(rewrite, shares[number], policy.words)


@dataclass(frozen=True, slots=True)
class _Policy:
    """A way to outlast pauses, the USD that it nets over all calls, and the rewrites that it avoids."""

    words: str
    saved: Decimal
    outlasted: Sequence[BilledRewrite]


def _best_policy(account: BillAccount, scope: InScope) -> _Policy:
    pauses = [one for one in account.rewrites if one.cause == "ttl_expired" and scope(one.call)]
    within_hour = [one for one in pauses if one.idle_s is not None and one.idle_s < TTL_SECONDS["1h"]]
    alive = best_keep_alive(account, scope)
    words = f"up to {count_text(alive.pings, 'keep-alive')} after every call"
    options = (
        _Policy("a 1h TTL on every breakpoint", saved_by_hour(account, scope), within_hour),
        _Policy(words, alive.saved, pauses),
    )
    return max(options, key=lambda policy: policy.saved)
