"""Explains a bill: the avoidable cost of the calls that were billed, in the findings of `explain`.

Of transcripts the account of the bill is all there is to know. Of logs with whole requests, a replay says what could be
read, and the bill what was; losses that no request explains are held when alternatives are replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.account.causes import causes
from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.call_prices import CallPrices, seconds_between
from cachecost.analysis.bill.rewrites import TOLERANCE, UNEXPLAINED
from cachecost.analysis.bill.savings import is_main, is_sub_agent, is_within_hour, saved_by_hour
from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.explain.explaining import (
    as_filed,
    explain_in_order,
    explain_workload,
    message,
    numbers_in_sessions,
    place,
    share_out,
    with_places,
)
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.base.times import iso
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.caches.losses import Loss
from cachecost.caches.reporting import reported_read
from cachecost.changes.steps import PricedSimulation, Replays, as_sent
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.conversations.start_times import RecordedSessions
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.rows import WarmReads
from cachecost.prompts.blocks import Layer
from cachecost.providers.clients.settings import ttl_words
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload

ESTIMATE = 0.02
"""The length of a prefix that no bill reveals is an estimate: a smaller difference is no rewrite, nor is one within the
error margin of the counts."""


class PaidSpan(NamedTuple):
    """Tokens from `start` to `end` of a prompt that its bill shows to have been paid again, by a loss (None: nothing
    explains it). `expected` are those that should have been read."""

    bill: BilledCall
    start: int
    end: int
    loss: Loss | None
    expected: int

    def cost(self, prices: CallPrices) -> Decimal:
        """USD above the price of a read (0: unknown)."""
        usd, before_it = (prices.rewrite_cost(self.bill, at - self.bill.read) for at in (self.end, self.start))
        return ZERO if usd is None or before_it is None else usd - before_it


def _spans_of(made: SimulatedCall, bill: BilledCall, bills: Sequence[BilledCall | None]) -> Iterator[PaidSpan]:
    if made.row.error is not None or made.rules is None or not made.passes:
        return
    losses = list[tuple[Loss, BilledCall | None]]()
    cut = made.passes[0].cut
    for loss in (*made.losses, *([cut] if cut else [])):
        before = bills[loss.since.number - 1] if loss.since else None
        was_cached = before is None or _cached_after(before, made.rules) > 0  # as far as the bill before shows
        if was_cached and not causes()[loss.cause].never_cached:
            losses.append((loss, before))
    expected = made.row.usage.read
    for start, end, found in _find_paid_spans(bill, expected, made.read_margin, losses, made.rules):
        yield PaidSpan(bill, start, end, found, expected)


def _find_request_rewrites(
    logged: LoggedCalls, file_of: Mapping[int, SessionFile], prices: CallPrices
) -> Iterator[BilledRewrite]:
    """The rewrites that the bills of these calls show, in their order. `file_of` has files by the `id()` of bills."""
    bills, traffic = [bill for _, bill in logged.calls], logged.workload()
    simulation = traffic.simulation()
    for call, bill in zip(traffic.calls, bills, strict=True):
        made = simulation.simulate(call)
        for span in _spans_of(made, bill, bills):
            found, tokens, cost = span.loss, span.end - span.start, span.cost(prices)
            if found is None:
                words = _describe_unexplained(bill.read, span.expected, made.rules)
                yield BilledRewrite(file_of[id(bill)], bill, None, UNEXPLAINED, tokens, cost, words)
                continue
            words, where = message(found, call.request, tokens), place(found, call.request)
            is_elsewhere = causes()[found.cause].fixed_in == "time" or found.cause == "upstream_changed"
            if where not in words and not is_elsewhere:
                words += f" at {where}"
            before = bills[found.since.number - 1] if found.since else None
            is_static = found.first.layer is not Layer.MESSAGES
            what = found.cause, tokens, cost, words, seconds_between(before, bill), is_static
            yield BilledRewrite(file_of[id(bill)], bill, before, *what)


def _cached_after(bill: BilledCall, rules: ModelRules | None) -> int:
    return bill.total_input if rules is not None and rules.is_automatic else bill.cached


def _find_paid_spans(
    bill: BilledCall,
    expected: int,
    margin: float,
    losses: Sequence[tuple[Loss, BilledCall | None]],
    rules: ModelRules,
) -> Iterator[tuple[int, int, Loss | None]]:
    """From where to where a bill paid again, in the order of the prompt, and the loss that explains it.

    What should have been read comes first, which nothing explains; a replay's read may be off by `margin`. What is lost
    ends with what the call before had cached, if all of that was sent again, and never reaches beyond it.
    """
    ends: list[tuple[int, Loss | None]] = []
    for loss, before in losses:
        limit = expected + loss.tokens
        if before is not None and not before.is_summed:
            cached = _cached_after(before, rules)
            if rules.finds_without_lookback:
                cached = reported_read(cached, bill.total_input, rules)
            limit = cached if loss.is_whole else min(limit, cached)
        ends.append((limit, loss))
    ends.sort(key=lambda one: one[0])
    at = bill.read
    if not bill.is_summed and not (ends and rules.finds_without_lookback):  # these may find any length
        ends.insert(0, (expected, None))
    for limit, cause in ends:
        stop = min(limit, bill.total_input)
        if stop - at > max(TOLERANCE, ESTIMATE * limit, 0.0 if cause else margin):
            yield at, stop, cause
            at = stop


def _describe_unexplained(read: int, expected: int, rules: ModelRules | None = None) -> str:
    what = f"read {read:,} of {expected:,} tokens that should have been cached"
    return f"{what}; {(rules.range_in_words if rules else '') or 'the requests do not say why'}"


def hold_losses(traffic: Workload) -> tuple[Workload, dict[int, int]]:
    """The workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    Raises CannotEvaluate.
    """
    if not _has_bills(traffic):
        return traffic, {}
    priced = traffic.simulation(hosts=UnexplainedHosts(), kind=PricedSimulation)
    made = zip(traffic.calls, map(priced.simulate, traffic.calls), strict=True)
    if not any(_is_short(*pair) or _is_read_more(*pair) for pair in made):
        return traffic, {}
    return _hold_short_calls(traffic, map(traffic.simulation().simulate, traffic.calls))


def _has_bills(traffic: Workload) -> bool:
    return any(_billed_read(call) is not None for call in traffic.calls)


def _hold_short_calls(traffic: Workload, made: Iterable[SimulatedCall]) -> tuple[Workload, dict[int, int]]:
    calls, expected = list[Call](), dict[int, int]()
    for number, (call, one) in enumerate(zip(traffic.calls, made, strict=True), 1):
        calls.append(call)
        if _is_read_more(call, one):
            calls[-1] = replace(call, least_read=_billed_read(call))
        if not _is_short(call, one):
            continue
        if one.has_changed:
            calls[-1] = replace(call, most_read=_billed_read(call), is_lost_by_change=True)
        else:
            expected[number] = one.row.usage.read
            if not any(causes()[loss.cause].fixed_in == "prompt" for loss in one.losses):
                calls[-1] = replace(call, most_read=_billed_read(call))
    is_held = any(one is not call for one, call in zip(calls, traffic.calls, strict=True))
    return replace(traffic, calls=calls) if is_held else traffic, expected


def _is_short(call: Call, made: SimulatedCall) -> bool:
    """Whether a bill read less than a replay says, by more than an estimated length may be wrong."""
    read, expected = _billed_read(call), made.row.usage.read
    if read is None or len(made.passes) != 1:
        return False
    return expected - read > max(TOLERANCE, ESTIMATE * expected, made.read_margin)


def _is_read_more(call: Call, made: SimulatedCall) -> bool:
    """Whether a bill read more than a replay says, where the host decides what is kept: its rules are not all known."""
    read, rules = _billed_read(call), made.rules
    if read is None or rules is None or not rules.finds_without_lookback or len(made.passes) != 1:
        return False
    return read - made.row.usage.read > TOLERANCE


def _billed_read(call: Call) -> int | None:
    if call.billed is None or call.has_failed or len(call.iterations) > 1:
        return None
    return call.billed.read


@dataclass(frozen=True, slots=True)
class LoggedCalls:
    """Calls of logs whose requests are known, in the order of time, each with its bill, and how they are replayed."""

    calls: Sequence[tuple[Call, BilledCall]]
    setup: ReplaySetup
    name: str

    def workload(self) -> Workload:
        calls = [call for call, _ in self.calls]
        return recorded_workload(self.name, calls, self.setup.with_recorded(calls, None))


@dataclass(frozen=True, slots=True)
class LogBills:
    """The sessions of logs, the calls whose requests are known, and their rewrites."""

    files: list[SessionFile]
    logged: LoggedCalls
    rewrites: list[BilledRewrite]


def bills_of_calls(calls: Sequence[Call], setup: ReplaySetup, prices: CallPrices, name: str) -> LogBills:
    """The bills of recorded calls in the order of time. Raises InputError for wrong assumptions."""
    sessions = RecordedSessions(name)
    billed = sessions.add_all(calls)
    known: list[tuple[Call, BilledCall]] = []  # those of which a replay can say what they should have read
    for call, bill in zip(calls, billed, strict=True):
        if bill and not call.why_unknown and not call.is_bill_only and call.billed is not None:
            with suppress(CannotEvaluate):
                rules = setup.rules_for(call)
                known += [(call, bill)] if rules.matching != "named" else []
    has_requests = {id(bill) for _, bill in known}
    for file in sessions.files:
        file.has_requests = any(id(call) in has_requests for call in file.calls)
    logged = LoggedCalls(known, setup, name)
    file_of = {id(call): file for file in sessions.files for call in file.calls}
    rewrites = list(_find_request_rewrites(logged, file_of, prices)) if known else []
    return LogBills(sessions.files, logged, rewrites)


FROM_BILLS = "the bills"
"""The source of token counts where all of them are billed."""


def explain_recording(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """The explanation of a log: of its bills where every call has one, else of the simulation.

    Of bills, necessary + avoidable + not explained = billed, exactly. What a call without a bill cost is 0. No call's
    findings are above its bill, and none above what the bill shows to have been paid again. Raises CannotEvaluate.
    """
    if not all(call.billed or call.has_failed for call in traffic.calls):
        return explain_workload(traffic, assumptions)
    return as_filed(explain_bills(traffic, prices, assumptions), traffic.calls)


def explain_bills(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """As `explain_recording` of calls that all have a bill or failed, numbered in the order of time."""
    held, replay, spans = traffic, None, dict[tuple[int, str], PaidSpan]()
    bills = RecordedSessions(traffic.name).add_all(traffic.calls)

    def noted(made: Iterable[SimulatedCall]) -> Iterator[SimulatedCall]:
        for number, one in enumerate(made, 1):
            if bill := bills[number - 1]:
                found = _spans_of(one, bill, bills)
                spans.update(((number, span.loss.cause if span.loss else UNEXPLAINED), span) for span in found)
            yield one

    if _has_bills(traffic):
        replay = Replays(traffic).tracked_replay(as_sent(traffic.calls))
        held, _ = _hold_short_calls(traffic, noted(replay.run()))
    costs = {number: prices.cost(bill) if bill else ZERO for number, bill in enumerate(bills, 1)}
    limits, unexplained, code = dict(costs), list[Finding](), causes()[UNEXPLAINED]
    for (number, _), span in spans.items():
        if span.loss is None and (cost := span.cost(prices)) > 0:
            limits[number] -= cost
            words = _describe_unexplained(
                span.bill.read, span.expected, traffic.setup.rules_for(traffic.calls[number - 1])
            )
            what = Layer.MESSAGES, "", span.end - span.start, cost, words, code.fix
            unexplained.append(Finding(code.code, code.cause, number, *what, paid_again=cost))
    simulated, billed = explain_in_order(held, limits, assumptions, replay), sum(costs.values(), ZERO)

    def as_billed(finding: Finding) -> Finding:
        span = spans.get((finding.call, finding.cause)) if not finding.is_behind else None
        return replace(finding, tokens=span.end - span.start, paid_again=span.cost(prices)) if span else finding

    fixed = billed - simulated.avoidable
    return replace(
        simulated,
        billed=billed,
        lower_bound=min(simulated.lower_bound or fixed, fixed),  # the bill proves that it can cost so little
        not_explained=with_places(unexplained, traffic.calls),
        findings=list(map(as_billed, simulated.findings)),
        notes=list(map(as_billed, simulated.notes)),
    )


def explain_account(account: BillAccount) -> Explanation:
    """The explanation of an account: what was avoidable, and the rewrites that were not; calls in the order of time."""
    total = BillRow("total")
    for _, call, prices in account.priced_calls():
        total.add(call, prices, account.prices)
        total.add_passes(call, account.prices)
    calls = sorted((call for _, call in account.calls()), key=lambda call: call.start or 0.0)
    in_session = numbers_in_sessions(calls)
    numbers = {id(call): (number, own) for number, (call, own) in enumerate(zip(calls, in_session, strict=True), 1)}
    hour_savings: dict[int, Decimal] = {}  # by `id()` of each rewrite after a pause that a 1h TTL outlasts
    whom = dict[int, str]()
    for scope, name in (is_main, "main_ttl"), (is_sub_agent, "side_ttl"):
        outlasted = [one for one in account.rewrites if scope(one.call) and is_within_hour(one)]
        costs = {place: one.cost or ZERO for place, one in enumerate(outlasted)}
        if (saved_in_scope := saved_by_hour(account, scope)) > 0:
            shares = share_out(saved_in_scope, list(costs), costs, dict(costs))
            hour_savings.update((id(outlasted[place]), usd) for place, usd in shares.items())
            whom |= {id(one): name for one in outlasted}
    found, notes = list[Finding](), list[Finding]()
    for one in account.rewrites:
        cause, saved = causes()[one.cause], hour_savings.get(id(one))
        fix = "" if saved is None else ttl_words("1h", whom[id(one)])
        if saved is None:
            saved = ZERO if cause.requested or one.cause == "ttl_expired" else one.cost or ZERO
        if cause.fixed_in != "bill" or cause.requested:
            is_avoidable = saved > 0
            finding = _as_finding(one, numbers, *((saved, fix) if is_avoidable else (ZERO, "")))
            (found if is_avoidable else notes).append(finding)
    return Explanation(
        total.calls,
        total.cost,
        total.cost - sum((one.cost for one in found), ZERO),
        found,
        token_source=FROM_BILLS,
        open_share=0.0,
        billed=total.cost,
        not_explained=[_as_finding(one, numbers) for one in account.rewrites if one.cause == UNEXPLAINED],
        notes=notes,
        warm=WarmReads(account.warm_calls, account.warm_tokens),
    )


def _as_finding(
    rewrite: BilledRewrite, numbers: Mapping[int, tuple[int, int | None]], usd: Decimal | None = None, fix: str = ""
) -> Finding:
    """`usd` is what the fix nets; None: what was written again costs. `numbers` has places by the `id()` of calls."""
    code, call = causes()[rewrite.cause], rewrite.call
    number, in_session = numbers[id(call)]
    return Finding(
        code.code,
        rewrite.cause,
        number,
        Layer.SYSTEM if rewrite.is_static else Layer.MESSAGES,
        "",
        rewrite.tokens,
        (rewrite.cost or ZERO) if usd is None else usd,
        rewrite.words,
        fix or code.fix,
        numbers.get(id(rewrite.before), (None, None))[0],
        diagnostics=call.miss_reason or code.word,
        session=call.session,
        project=rewrite.file.project,
        agent=call.agent,
        timestamp=None if call.start is None else iso(call.start),
        file=rewrite.file.path,
        line=call.line or None,
        session_call=in_session,
        paid_again=rewrite.cost or ZERO,
    )
