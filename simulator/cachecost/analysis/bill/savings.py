"""What another TTL or keep-alives would have saved on billed calls, with everything else as it was.

A longer TTL saves the rewrites of pauses that it outlasts and charges more for every write; a shorter one the other
way round. Keep-alives read the whole prefix before it expires, up to a number of times after each call, also after
the last one, so nothing is known in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.quotes import PER_TOKEN
from cachecost.providers.usage import ZERO

TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
LEAD_S = 60.0
"""A keep-alive is sent this long before the prefix expires."""
MOST_PINGS = 24
InScope = Callable[[BilledCall], bool]


@dataclass(frozen=True, slots=True)
class Pause:
    """The time after a call until the next one that continued it (None: none did), and what was cached."""

    call: BilledCall
    seconds: float | None
    ttl: str
    rewrite: Decimal
    """USD that the next call paid because the prefix had expired."""


def is_main(call: BilledCall) -> bool:
    return not call.agent


def is_sub_agent(call: BilledCall) -> bool:
    return bool(call.agent)


def saved_by_hour(account: BillAccount, in_scope: InScope) -> Decimal:
    """USD that a 1h TTL for the calls in scope would have saved; negative where it costs more."""
    saved, prices = ZERO, account.prices
    for _, call in account.calls():
        if in_scope(call) and call.tokens[2]:
            saved -= call.tokens[2] * _hour_premium(call, prices)
    for rewrite in account.rewrites:
        idle = rewrite.idle_s
        avoidable = rewrite.cause == "ttl_expired" and idle is not None and idle < TTL_SECONDS["1h"]
        if avoidable and in_scope(rewrite.call):
            five = min(rewrite.tokens, rewrite.call.tokens[2])
            saved += (rewrite.cost or ZERO).scaleb(-PER_TOKEN) + five * _hour_premium(rewrite.call, prices)
    return saved.scaleb(PER_TOKEN)


def saved_by_five_minutes(account: BillAccount, in_scope: InScope) -> Decimal:
    """USD that a 5m TTL for the calls in scope would have saved; negative where it costs more."""
    saved, prices = ZERO, account.prices
    starts = _starts(account)
    for file, call in account.calls():
        if not in_scope(call):
            continue
        saved += call.tokens[3] * _hour_premium(call, prices)
        before = starts.get((file.path, call.before))
        found = prices.prices(call)
        if before is None or call.start is None or found is None:
            continue
        if TTL_SECONDS["5m"] <= call.start - before.start_s < TTL_SECONDS["1h"]:
            saved -= min(call.read, before.cached) * (found.write_5m - found.read)
    return saved.scaleb(PER_TOKEN)


@dataclass(frozen=True, slots=True)
class _Start:
    start_s: float
    cached: int


def _starts(account: BillAccount) -> Mapping[tuple[str, int], _Start]:
    return {
        (file.path, call.number): _Start(call.start, call.cached)
        for file in account.files
        for call in file.calls
        if call.start is not None
    }


def _hour_premium(call: BilledCall, prices: CallPrices) -> Decimal:
    """USD per 10**6 tokens that a 1h write costs more than a 5m write."""
    found = prices.prices(call)
    return found.write_1h - found.write_5m if found else ZERO


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Keep-alives of at most `pings` after each call, and the USD that they would have saved, their own cost off."""

    pings: int
    saved: Decimal


def best_keep_alive(account: BillAccount, in_scope: InScope = is_main) -> KeepAlive:
    """The number of keep-alives that would have saved most; 0 where none saves anything."""
    pauses = [pause for pause in find_pauses(account) if in_scope(pause.call)]
    options = [KeepAlive(pings, _saved_by(pauses, pings, account.prices)) for pings in range(1, MOST_PINGS + 1)]
    best = max(options, key=lambda option: option.saved)
    return best if best.saved > 0 else KeepAlive(0, ZERO)


def _saved_by(pauses: Iterable[Pause], pings: int, prices: CallPrices) -> Decimal:
    saved = ZERO
    for pause in pauses:
        found = prices.prices(pause.call)
        if found is None:
            continue
        interval = TTL_SECONDS[pause.ttl] - LEAD_S
        needed = pings if pause.seconds is None else min(pings, int(pause.seconds // interval))
        saved -= (needed * pause.call.cached * found.read).scaleb(PER_TOKEN)
        if pause.seconds is not None and pause.seconds < pings * interval + TTL_SECONDS[pause.ttl]:
            saved += pause.rewrite
    return saved


def find_pauses(account: BillAccount) -> list[Pause]:
    """The pauses longer than the time until a keep-alive, and those after which nothing came."""
    rewrites = {id(rewrite.call): rewrite for rewrite in account.rewrites if rewrite.cause == "ttl_expired"}
    pauses: list[Pause] = []
    for file in account.files:
        pauses += _Pauses(file, rewrites).pauses
    return [pause for pause in pauses if pause.call.cached and account.is_counted(pause.call)]


@dataclass(slots=True)
class _Pauses:
    """The pauses of a file."""

    file: SessionFile
    rewrites: Mapping[int, BilledRewrite]
    pauses: list[Pause] = field(init=False)

    def __post_init__(self) -> None:
        followers: dict[int, BilledCall] = {}
        for call in self.file.calls:
            followers.setdefault(call.before, call)
        found = (self._pause(call, followers.get(call.number)) for call in self.file.calls)
        self.pauses = [pause for pause in found if pause is not None]

    def _pause(self, call: BilledCall, following: BilledCall | None) -> Pause | None:
        ttl = "1h" if call.tokens[3] and not call.tokens[2] else "5m"
        if following is None:
            return Pause(call, None, ttl, ZERO)
        if call.start is None or following.start is None or following.start - call.start < TTL_SECONDS[ttl] - LEAD_S:
            return None
        rewrite = self.rewrites.get(id(following))
        return Pause(call, following.start - call.start, ttl, (rewrite.cost or ZERO) if rewrite else ZERO)
