"""A running session as `watch` shows it: its last calls, its state, and what is alarming at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.timeline import TimelineCall, calls_by_time, sessions_by_time
from cachecost.analysis.next_message.choices import KeepAliveAdvice, NextSession, advise_keep_alive, next_session
from cachecost.analysis.next_message.state import NextMessage, SessionState, model_of_state, next_message
from cachecost.base.structs import replace
from cachecost.providers.usage import ZERO

MOST_CALLS = 200
"""The latest that are kept to be shown."""
REWRITE, EXPIRY = "rewrite", "expiry"


@dataclass(frozen=True, slots=True)
class WatchedTotals:
    """Calls, USD (None: a price is unknown) and cache hit rate (None: no input) of all that is watched."""

    calls: int = 0
    cost: Decimal | None = ZERO
    hit_rate: Decimal | None = None


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """What is known of a file or server: its last calls in the order of time, each numbered among all of them.

    `next` is the session of the latest call (None: no main thread with a bill yet). `notes` say what was not read.
    """

    source: str
    totals: WatchedTotals = WatchedTotals()
    calls: tuple[TimelineCall, ...] = ()
    next: NextSession | None = None
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> SessionState | None:
        return self.next.state if self.next else None


@dataclass(frozen=True, slots=True)
class WatchedMoment:
    """The next message at a moment, and the advice on keep-alives."""

    message: NextMessage
    keep_alive: KeepAliveAdvice | None


@dataclass(frozen=True, slots=True)
class WatchAlarm:
    """Something to be said once: `number` is the call, `at` when the cache expires."""

    kind: str
    usd: Decimal
    tokens: int
    number: int = 0
    at: float = 0.0

    @property
    def key(self) -> tuple[str, int, float]:
        """What tells it from other alarms."""
        return self.kind, self.number, self.at


def watch_account(
    account: BillAccount, source: str, notes: Sequence[str] = (), costs: Mapping[int, Decimal] | None = None
) -> WatchedSession:
    """What an account shows; `costs` are known USD of calls by their number in the file, in place of list prices."""
    keys = sessions_by_time(account)
    if not keys:
        return WatchedSession(source, notes=tuple(notes))
    found = calls_by_time(account, keys)
    if costs is not None:
        found = [replace(one, cost=costs.get(one.call.number, one.cost)) for one in found]
    first = max(1, len(found) - MOST_CALLS + 1)
    last = tuple(replace(one, number=number) for number, one in enumerate(found[-MOST_CALLS:], first))
    known = [one.cost for one in found if one.cost is not None]
    sent, read = sum(one.call.total_input for one in found), sum(one.call.read for one in found)
    total = sum(known, ZERO) if len(known) == len(found) else None
    totals = WatchedTotals(len(found), total, Decimal(read) / sent if sent else None)
    return WatchedSession(source, totals, last, next_session(account, keys[0]), tuple(notes))


def watched_moment(watched: WatchedSession, now: float) -> WatchedMoment | None:
    """The next message at `now`; None where no session is known."""
    if watched.next is None:
        return None
    state = watched.next.state
    quote = model_of_state(state, watched.next.find, at=None if state.last_used is None else now).quote
    return WatchedMoment(next_message(state, quote, now), advise_keep_alive(state, quote, now))


def find_alarms(watched: WatchedSession, now: float, least_usd: Decimal, lead_s: float) -> list[WatchAlarm]:
    """Rewrites among the calls shown, and a cache that expires within `lead_s`, that cost at least `least_usd`."""
    found = [
        WatchAlarm(REWRITE, one.rewrite.cost, one.rewrite.tokens, one.number)
        for one in watched.calls
        if one.rewrite and one.rewrite.cost is not None and one.rewrite.cost >= least_usd
    ]
    state, moment = watched.state, watched_moment(watched, now)
    until = state.warm_until if state else None
    if state is None or moment is None or until is None or not 0 < until - now <= lead_s:
        return found
    warm, cold = moment.message.cost, moment.message.cold.cost
    if warm is not None and cold is not None and cold - warm >= least_usd:
        found.append(WatchAlarm(EXPIRY, cold - warm, state.cached_tokens, at=until))
    return found
