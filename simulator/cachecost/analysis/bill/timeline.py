"""The calls of a session in the order of time, across its main thread and sub-agents, each with its cost and cause."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.account.causes import Cause, causes
from cachecost.analysis.bill.account import BillAccount, BilledRewrite, session_key
from cachecost.analysis.bill.call_prices import CallPrices, seconds_between
from cachecost.base.structs import replace
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.providers.usage import COST_CLASSES, USUAL_TTL_S, ZERO, call_amounts

LONG_IDLE_S = USUAL_TTL_S["5m"]
"""An idle time that is shown: as long as the shortest TTL."""
FEWEST_FOLDED = 3


class CallDollars(NamedTuple):
    """The USD of a call by what they paid for; `rewritten` is part of neither `written` nor `uncached`."""

    read: Decimal = ZERO
    written: Decimal = ZERO
    uncached: Decimal = ZERO
    output: Decimal = ZERO
    rewritten: Decimal = ZERO
    fees: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class TimelineCall:
    """A call of a session: `number` counts from 1 in the order of time.

    `before` is the call that it continues (None: it begins a thread). `agent_number` is 0 for the main thread and
    counts sub-agents by their first call. `idle_s` are the seconds since the cache that it continues was last used.
    `cost` in USD is None where no price is known.
    """

    number: int
    file: SessionFile
    call: BilledCall
    before: BilledCall | None
    agent_number: int
    cost: Decimal | None
    dollars: CallDollars
    cause: Cause
    rewrite: BilledRewrite | None
    idle_s: float | None

    @property
    def is_remarkable(self) -> bool:
        """Whether something happened: a rewrite, an event, a long idle time, or the beginning of a thread."""
        is_idle = self.idle_s is not None and self.idle_s >= LONG_IDLE_S
        return bool(self.rewrite or self.call.events or is_idle or not causes()[self.cause].reads_all)


def sessions_by_time(account: BillAccount) -> list[str]:
    """The sessions of an account, the most recent first."""
    last: dict[str, float] = {}
    for file, call in account.calls():
        key = session_key(file, call)
        last[key] = max(last.get(key, float("-inf")), call.start or 0.0)
    return sorted(last, key=lambda key: (-last[key], key))


def session_account(account: BillAccount, key: str) -> BillAccount:
    """The part of an account that is one session."""
    own = {id(call) for file, call in account.calls() if session_key(file, call) == key}
    rewrites = [one for one in account.rewrites if id(one.call) in own]
    alone = replace(account, is_counted=lambda call: id(call) in own, rewrites=rewrites, copies=0, _priced=[])
    warm = [one.call.read for one in session_timelines(alone, [key])[key] if one.cause == "warm_start"]
    return replace(alone, warm_calls=len(warm), warm_tokens=sum(warm))


def session_timelines(account: BillAccount, keys: Collection[str]) -> Mapping[str, list[TimelineCall]]:
    """The calls of these sessions."""
    calls: dict[str, list[tuple[SessionFile, BilledCall]]] = {key: [] for key in keys}
    for file, call in account.calls():
        found = calls.get(session_key(file, call))
        if found is not None:
            found.append((file, call))
    rewrites = {id(one.call): one for one in account.rewrites}
    return {key: list(_build_timeline(calls[key], rewrites, account.prices)) for key in keys}


def _build_timeline(
    calls: Sequence[tuple[SessionFile, BilledCall]], rewrites: Mapping[int, BilledRewrite], prices: CallPrices
) -> Iterator[TimelineCall]:
    """The calls of one session by time; one without a time stays behind the call before it in its file."""
    placed: list[tuple[float, int]] = []
    path, at = "", float("-inf")
    for position, (file, call) in enumerate(calls):
        at = float("-inf") if file.path != path else at
        path, at = file.path, at if call.start is None else call.start
        placed.append((at, position))
    agents = {"": 0}
    last_main: BilledCall | None = None
    for number, (_, position) in enumerate(sorted(placed), 1):
        file, call = calls[position]
        before = None if call.agent else last_main  # a resumed session continues in another file
        if call.before or "clear" in call.events:
            before = None if "clear" in call.events else file.calls[call.before - 1]
        rewrite = rewrites.get(id(call))
        cause: Cause = "new_content" if before else "cold_start"
        if rewrite or call.read:
            cause = rewrite.cause if rewrite else "hit" if before else "warm_start"
        idle_s = rewrite.idle_s if rewrite else None
        idle_s = seconds_between(before, call) if idle_s is None else idle_s
        agent, cost = agents.setdefault(call.agent, len(agents)), call_cost(call, prices)
        dollars = call_dollars(call, rewrite, prices)
        yield TimelineCall(number, file, call, before, agent, cost, dollars, cause, rewrite, idle_s)
        last_main = last_main if call.agent else call


def calls_by_time(account: BillAccount, keys: Collection[str]) -> list[TimelineCall]:
    """The calls of these sessions in the order of time; each is numbered within its session."""
    found = (one for calls in session_timelines(account, keys).values() for one in calls)
    return sorted(found, key=lambda one: one.call.start or 0.0)


def fold_timeline(calls: Sequence[TimelineCall]) -> Iterator[Sequence[TimelineCall]]:
    """The calls in groups: a run of three or more in which nothing happened is one, every other call is alone."""
    start = 0
    for end in range(len(calls) + 1):
        if end < len(calls) and not calls[end].is_remarkable:
            continue
        run = calls[start:end]
        yield from [run] if len(run) >= FEWEST_FOLDED else ([one] for one in run)
        if end < len(calls):
            yield [calls[end]]
        start = end + 1


def call_cost(call: BilledCall, prices: CallPrices) -> Decimal | None:
    """USD of a call with the passes that its usage leaves out; None where no price is known."""
    amounts = call_amounts(call.usage, prices.prices(call))
    return sum(amounts, prices.passes_cost(call)) if amounts else None


def call_class_costs(call: BilledCall, prices: CallPrices) -> dict[str, Decimal]:
    """USD of a call by class; they add up to its cost. What its usage leaves out counts as uncached."""
    amounts = call_amounts(call.usage, prices.prices(call))
    if amounts is None:
        return {}
    costs = dict(zip(COST_CLASSES, amounts, strict=True))
    costs["input"] += prices.passes_cost(call)
    return costs


def call_dollars(call: BilledCall, rewrite: BilledRewrite | None, prices: CallPrices) -> CallDollars:
    """What the dollars of a call paid for; what its usage leaves out counts as uncached. They add up to its cost."""
    costs = call_class_costs(call, prices)
    if not costs:
        return CallDollars()
    again = (rewrite.cost if rewrite else None) or ZERO
    again_written = prices.rewrite_cost(call, min(rewrite.tokens, call.written)) or ZERO if rewrite else ZERO
    return CallDollars(
        costs["read"],
        costs["write_5m"] + costs["write_1h"] - again_written,
        costs["input"] - (again - again_written),
        costs["output"],
        again,
        costs["fees"],
    )
