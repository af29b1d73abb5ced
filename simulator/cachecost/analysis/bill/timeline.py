"""The calls of a session in the order of time, across its main thread and sub-agents, each with its cost and cause.

What to change: the settings that would have saved most on these sessions, and what logged requests should look like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from cachecost.account.causes import Cause, causes
from cachecost.analysis.bill.account import (
    BillAccount,
    BilledRewrite,
    InScope,
    Tokens,
    compact_calls,
    is_main,
    is_sub_agent,
    measure_compactions,
    saved_by_five_minutes,
    saved_by_hour,
    with_usage,
)
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.providers.clients.setting_rows import ClientSetting, client_settings
from cachecost.providers.usage import COST_CLASSES, ZERO, Usage, call_amounts

if TYPE_CHECKING:
    from cachecost.ledger.findings import Finding


LONG_IDLE_S = 300.0
"""An idle time that is shown: as long as the shortest TTL."""
FEWEST_FOLDED = 3
"""Causes of calls that read all that was cached."""


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


def session_key(file: SessionFile, call: BilledCall) -> str:
    """What identifies a session: its id, or its file where it has none."""
    return call.session or file.path


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
    return {key: list(_SessionCalls(account.prices, rewrites).build(_in_order(calls[key]))) for key in keys}


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
    return sum(amounts, _extra_cost(call, prices)) if amounts else None


def _extra_cost(call: BilledCall, prices: CallPrices) -> Decimal:
    total = ZERO
    for model, tokens in call.extra if call.charged_usd is None else ():
        found = prices.prices_of(call, model or call.model, sum(tokens[:4]))
        total += found.total_cost(Usage(*tokens)) if found else ZERO
    return total


def call_class_costs(call: BilledCall, prices: CallPrices) -> dict[str, Decimal]:
    """USD of a call by class; they add up to its cost. What its usage leaves out counts as uncached."""
    amounts = call_amounts(call.usage, prices.prices(call))
    if amounts is None:
        return {}
    costs = dict(zip(COST_CLASSES, amounts, strict=True))
    costs["input"] += _extra_cost(call, prices)
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


def _in_order(calls: Sequence[tuple[SessionFile, BilledCall]]) -> list[tuple[SessionFile, BilledCall]]:
    """By time; a call without one stays behind the call before it in its file."""
    placed: list[tuple[float, int]] = []
    path, at = "", float("-inf")
    for position, (file, call) in enumerate(calls):
        at = float("-inf") if file.path != path else at
        path, at = file.path, at if call.start is None else call.start
        placed.append((at, position))
    return [calls[position] for _, position in sorted(placed)]


@dataclass(slots=True)
class _SessionCalls:
    """Builds the timeline of one session."""

    prices: CallPrices
    rewrites: Mapping[int, BilledRewrite]
    agents: dict[str, int] = field(default_factory=lambda: {"": 0})
    by_number: dict[str, dict[int, BilledCall]] = field(default_factory=lambda: defaultdict(dict))
    last_main: BilledCall | None = None

    def build(self, calls: Sequence[tuple[SessionFile, BilledCall]]) -> Iterator[TimelineCall]:
        for number, (file, call) in enumerate(calls, 1):
            before, rewrite = self._before(file, call), self.rewrites.get(id(call))
            agent = self.agents.setdefault(call.agent, len(self.agents))
            dollars, cost = call_dollars(call, rewrite, self.prices), call_cost(call, self.prices)
            cause, idle_s = _cause(call, before, rewrite), _idle_s(call, before, rewrite)
            yield TimelineCall(number, file, call, before, agent, cost, dollars, cause, rewrite, idle_s)
            self.last_main = self.last_main if call.agent else call

    def _before(self, file: SessionFile, call: BilledCall) -> BilledCall | None:
        """The call that this one continues; a resumed session continues in another file."""
        if "clear" in call.events:
            return None
        if not call.before:
            return None if call.agent else self.last_main
        if file.path not in self.by_number:
            self.by_number[file.path] = {one.number: one for one in file.calls}
        return self.by_number[file.path].get(call.before)


def _cause(call: BilledCall, before: BilledCall | None, rewrite: BilledRewrite | None) -> Cause:
    if rewrite:
        return rewrite.cause
    if before is None:
        return "warm_start" if call.read else "cold_start"
    return "hit" if call.read else "new_content"


def _idle_s(call: BilledCall, before: BilledCall | None, rewrite: BilledRewrite | None) -> float | None:
    if rewrite and rewrite.idle_s is not None:
        return rewrite.idle_s
    if before is None or before.start is None or call.start is None:
        return None
    return call.start - before.start


MOST = 3
LEAST_SHARE = Decimal("0.005")
"""Of what was rewritten: what saves less is no advice."""
WINDOWS = (100_000, 150_000, 200_000)
"""Values of the compaction window that are tried; it takes no smaller one."""
RESERVE = 13_000
"""The client compacts so many tokens before the window is full."""
CLIENT = "claude-code"
COMPACTION, LOG = "compaction", "log"
MOST_REPLAYED = 500
"""Logged calls that are replayed for advice; of more, `explain` says what to change."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One change, the USD that it would have saved, and how to make it.

    `setting` is the row of the client's setting and `value` what to set it to (None: it is no setting). Of pieces
    with one `about` only one can be followed. `assumption` is what the price takes for granted, `needs` what the
    client must be. `price` prices the change on another account of the same calls, `apply` makes it there.
    """

    about: str
    change: str
    how: str
    saved: Decimal
    setting: ClientSetting | None = None
    value: object = None
    assumption: str = ""
    needs: str = ""
    price: Callable[[BillAccount], Decimal] | None = field(default=None, repr=False, compare=False)
    apply: Callable[[BillAccount], BillAccount] | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The key of the setting, else its variable; "": it is no setting."""
        return (self.setting.key or self.setting.variable) if self.setting else ""


def best_advice(account: BillAccount, most: int = MOST) -> list[Advice]:
    """The changes that would have saved most, the best first; each saves something more with those before it."""
    found: dict[str, Advice] = {}
    for one in _all_advice(account):
        known = found.get(one.about)
        if known is None or one.saved > known.saved:
            found[one.about] = one
    least = sum((one.cost or ZERO for one in account.rewrites), ZERO) * LEAST_SHARE
    kept: list[Advice] = []
    together = ZERO
    for one in sorted((one for one in found.values() if one.saved > least), key=lambda one: -one.saved):
        saved = saved_together(account, [*kept, one]) if kept else one.saved
        if len(kept) < most and saved > together + least:
            kept, together = [*kept, one], saved
    return kept


def saved_together(account: BillAccount, advice: Sequence[Advice]) -> Decimal:
    """USD that all of these changes would have saved together: one after the other, each replayed with those before."""
    saved = ZERO
    for one in sorted(advice, key=lambda one: one.apply is None):
        saved += one.price(account) if one.price else one.saved
        account = one.apply(account) if one.apply else account
    return saved


def _all_advice(account: BillAccount) -> Iterator[Advice]:
    if (main := find_present(account, is_main)) is not None:
        yield _ttl_advice(account, main, "main_ttl", "the main conversation")
        yield from _window_advice(account, main)
        for row in causes().values():
            if row.habit is None:
                continue
            cause, change, how = row.cause, row.habit["change"], row.habit["how"]
            price = partial(_saved_by_reading, cause=cause, in_scope=main.includes)
            if saved := price(account):
                apply = partial(_with_reads, cause=cause, in_scope=main.includes)
                yield Advice(cause, change, how, saved, price=price, apply=apply)
    if (side := find_present(account, is_sub_agent)) is not None:
        yield _ttl_advice(account, side, "side_ttl", "sub-agents")
    yield from _log_advice(account)


@dataclass(frozen=True, slots=True)
class PresentClient:
    """Claude Code as it is now: its version, the TTL that it writes with, and the latest sessions that all had it.

    Sessions without an id are known by the ids of their `calls`.
    """

    version: str
    ttl: str
    sessions: frozenset[str]
    calls: frozenset[str]
    in_scope: InScope

    def includes(self, call: BilledCall) -> bool:
        is_present = call.session in self.sessions if call.session else call.id in self.calls
        return is_present and self.in_scope(call)

    def needs(self, setting: ClientSetting) -> str:
        yours = f"; yours is {self.version}" if self.version else ""
        return f"needs Claude Code ≥ {setting.since}{yours}"


def find_present(account: BillAccount, in_scope: InScope) -> PresentClient | None:
    """The client as its latest session had it, of the calls in scope; None where none of them wrote."""
    written: dict[str, list[int]] = {}
    last: dict[str, BilledCall] = {}
    for file, call in account.calls():
        if file.client == CLIENT and call.start is not None and in_scope(call) and call.written:
            key = session_key(file, call)
            tokens = written.setdefault(key, [0, 0])
            tokens[0] += call.tokens[2]
            tokens[1] += call.tokens[3]
            if key not in last or call.start >= (last[key].start or 0.0):
                last[key] = call
    if not last:
        return None
    ordered = sorted(last, key=lambda key: -(last[key].start or 0.0))
    is_hour = [written[key][1] > written[key][0] for key in ordered]
    same = next((at for at, one in enumerate(is_hour) if one is not is_hour[0]), len(ordered))
    ttl, keys = "1h" if is_hour[0] else "5m", frozenset(ordered[:same])
    ids = frozenset(call.id for file, call in account.calls() if not call.session and session_key(file, call) in keys)
    return PresentClient(last[ordered[0]].version, ttl, keys, ids, in_scope)


def _ttl_advice(account: BillAccount, present: PresentClient, name: str, whom: str) -> Advice:
    """The other TTL."""
    setting, ttl = client_settings().settings[name], "5m" if present.ttl == "1h" else "1h"
    price = partial(saved_by_hour if ttl == "1h" else saved_by_five_minutes, in_scope=present.includes)
    how = f'"{setting.key}": "{ttl}" in the settings, or {setting.variable}={ttl}'
    needs = present.needs(setting)
    return Advice(name, f"a {ttl} TTL for {whom}", how, price(account), setting, ttl, needs=needs, price=price)


def _window_advice(account: BillAccount, present: PresentClient) -> Iterator[Advice]:
    size = measure_compactions(account)
    setting = client_settings().settings["auto_compact_window"]
    if size is None:
        return
    for window in WINDOWS:
        limit = window - RESERVE
        found = compact_calls(account, limit, size, present.includes)
        if found.tokens:
            yield Advice(
                COMPACTION,
                f"compacting at {limit // 1000}k tokens: a window of {window // 1000}k less the client's reserve of "
                f"{RESERVE // 1000}k",
                f'"{setting.key}": {window} in the settings, or {setting.variable}={window}',
                found.saved,
                setting,
                window,
                "the answers stay the same after a summary",
                present.needs(setting),
                apply=partial(with_usage, changed=found.tokens),
            )


def _saved_by_reading(account: BillAccount, cause: Cause, in_scope: InScope) -> Decimal:
    return sum((one.cost or ZERO for one in account.rewrites if one.cause == cause and in_scope(one.call)), ZERO)


def _with_reads(account: BillAccount, cause: Cause, in_scope: InScope) -> BillAccount:
    """The account with these rewrites read: they come first in what was not (rule 15)."""
    changed: dict[int, Tokens] = {}
    for one in account.rewrites:
        if one.cause == cause and in_scope(one.call):
            uncached, read, five, hour, output = one.call.tokens
            of_hour = min(hour, one.tokens)
            of_five = min(five, one.tokens - of_hour)
            rest = one.tokens - of_hour - of_five
            changed[id(one.call)] = (uncached - rest, read + one.tokens, five - of_five, hour - of_hour, output)
    return with_usage(account, changed)


# ------------------------------------------------------------------------------------------ logs of requests


def _log_advice(account: BillAccount) -> Iterator[Advice]:
    """What `explain` finds in the logs of an account, a piece a cause and place."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in _log_findings(account):
        place = one.block if causes()[one.cause].has_place else ""
        groups.setdefault((one.code, place, one.fix), []).append(one)
    for (code, place, fix), findings in groups.items():
        saved = sum((one.cost for one in findings), ZERO)
        change, cause = _finding_words(findings), findings[0].cause
        yield Advice(f"{LOG} {code} {place} {fix}", change, causes()[cause].fix_in_bill or fix, saved)


def _finding_words(findings: Sequence[Finding]) -> str:
    first, more = findings[0], len(findings) - 1
    if more and not causes()[first.cause].has_place:
        return f"{causes()[first.cause].name}: {count_text(more + 1, 'call')}"
    where = f" at {first.block}" if first.block and first.block not in first.message else ""
    file = PurePath(first.file).name if first.file else ""
    place = f"{file}:{first.line}" if file and first.line != first.call else f"call {first.call}"
    of_file = f" of {file}" if file and first.line == first.call else ""
    also = f" and {count_text(more, 'other call')}" if more else ""
    return f"{first.message}{where} in {place}{of_file}{also}"


def _log_findings(account: BillAccount) -> Iterator[Finding]:
    """The findings of the calls that count; none where nothing was lost, or the log is long."""
    from cachecost.base.errors import CannotEvaluate

    logged = account.logged
    if logged is None or len(logged.calls) > MOST_REPLAYED:
        return
    bills = [bill for _, bill in logged.calls]
    if not any(file.has_requests for file in account.files) or (
        not any(one.file.has_requests for one in account.rewrites) and all(bill.cached for bill in bills)
    ):
        return
    from cachecost.analysis.bill.explanation import bill_cost
    from cachecost.analysis.explain.explaining import explain_in_order

    limits = {number: bill_cost(bill, account.prices) for number, bill in enumerate(bills, 1)}
    try:
        findings = explain_in_order(logged.workload(), limits).findings
    except CannotEvaluate:
        return
    for one in findings:
        bill = bills[one.call - 1]
        if account.is_counted(bill) and not account.is_copy(bill):
            yield one
