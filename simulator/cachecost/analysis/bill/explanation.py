"""Explains a bill: the avoidable cost of the calls that were billed, in the findings of `explain`.

Of logs with whole requests, what the bill shows of changes and expiry (requests.py) stands beside what other
breakpoints would have saved (a replay). Of transcripts the account of the bill is all there is to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.avoidable import avoidable_rewrites
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.held_losses import find_held_losses
from cachecost.analysis.bill.requests import NOT_EXPLAINED, find_unexplained
from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.explain.call_places import with_places
from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.explaining import as_filed, explain_in_order, explain_workload
from cachecost.base.times import iso
from cachecost.conversations.billed_calls import BilledCall
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.conversations.recorded_bills import RecordedSessions
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.rows import WarmReads
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload

FROM_BILLS = "the bills"
"""The source of token counts where all of them are billed."""


def explain_recording(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """The explanation of a log: of its bills where every call has one, else of the simulation.

    Raises CannotEvaluate.
    """
    if all(isinstance(call, RecordedCall) and (call.billed or call.has_failed) for call in traffic.calls):
        return explain_bills(traffic, prices, assumptions)
    return explain_workload(traffic, assumptions)


def explain_bills(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """The explanation of the calls of a log with bills. Raises CannotEvaluate.

    necessary + avoidable + not explained = billed, exactly. What a call without a bill cost is 0. No call's findings
    are above its bill, and none above what the bill shows to have been paid again.
    """
    held, expected, expected_replay = find_held_losses(traffic)
    bills = RecordedSessions(traffic.name).add_all(map(as_recorded, traffic.calls))
    costs = {number: bill_cost(bill, prices) if bill else ZERO for number, bill in enumerate(bills, 1)}
    unexplained = [
        found
        for number, bill in enumerate(bills, 1)
        if bill and number in expected and (found := find_unexplained(number, bill, expected[number], prices))
    ]
    limits = {**costs, **{one.call: costs[one.call] - one.cost for one in unexplained}}
    simulated, billed = explain_in_order(held, limits, assumptions, expected_replay), sum(costs.values(), ZERO)
    fixed = billed - simulated.avoidable
    explanation = replace(
        simulated,
        billed=billed,
        lower_bound=min(simulated.lower_bound or fixed, fixed),  # the bill proves that it can cost so little
        not_explained=with_places(unexplained, traffic.calls),
        findings=[_at_most_cached(one, bills) for one in simulated.findings],
        notes=[_at_most_cached(one, bills) for one in simulated.notes],
    )
    return as_filed(explanation, traffic.calls)


def _at_most_cached(finding: Finding, bills: Sequence[BilledCall | None]) -> Finding:
    """The finding with no more tokens than the bill did not read of what the call before had cached: those of a changed
    prompt are an estimate."""
    bill, before = bills[finding.call - 1], bills[finding.since - 1] if finding.since else None
    is_changed = codes()[finding.cause].fixed_in == "prompt" and not finding.is_behind
    if bill is None or before is None or before.is_summed or bill.is_summed or not is_changed:
        return finding
    most = before.cached - bill.read
    if not 0 < most < finding.tokens:
        return finding
    return replace(finding, tokens=most, paid_again=finding.paid_again * most / finding.tokens)


def as_recorded(call: Call) -> RecordedCall:
    """The call, which must be a recorded one. Raises TypeError."""
    if not isinstance(call, RecordedCall):
        raise TypeError("expected recorded calls, as only those have bills")
    return call


def bill_cost(bill: BilledCall, prices: CallPrices) -> Decimal:
    """USD of a call with the passes that its usage leaves out; 0 without a price."""
    row = BillRow("")
    row.add(bill, prices.prices(bill), prices)
    row.add_passes(bill, prices)
    return row.cost


def explain_account(account: BillAccount) -> Explanation:
    """The explanation of an account: what was avoidable, and the rewrites that were not; calls in the order of time."""
    total, numbers = BillRow("total"), CallNumbers(account)
    for _, call, prices in account.priced_calls():
        total.add(call, prices, account.prices)
        total.add_passes(call, account.prices)
    known = avoidable_rewrites(account)
    found = [_as_finding(one.rewrite, numbers, one.saved, one.fix) for one in known if one.saved > 0]
    return Explanation(
        total.calls,
        total.cost,
        total.cost - sum((one.cost for one in found), ZERO),
        found,
        token_source=FROM_BILLS,
        open_share=0.0,
        billed=total.cost,
        not_explained=[_as_finding(one, numbers) for one in account.rewrites if one.cause == NOT_EXPLAINED],
        notes=[_as_finding(one.rewrite, numbers, ZERO) for one in known if one.saved <= 0],
        warm=WarmReads(account.warm_calls, account.warm_tokens),
    )


class CallNumbers:
    """The place of each call in the order of time: among all calls, and within its session with its sub-agents."""

    def __init__(self, account: BillAccount) -> None:
        calls = sorted((call for _, call in account.calls()), key=lambda call: call.start or 0.0)
        self._all = {id(call): number for number, call in enumerate(calls, 1)}
        met: Counter[str] = Counter()
        self._in_session: dict[int, int] = {}
        for call in calls:
            met[call.session] += 1
            self._in_session[id(call)] = met[call.session]

    def of(self, call: BilledCall | None) -> int | None:
        return self._all.get(id(call)) if call else None

    def in_session(self, call: BilledCall) -> int | None:
        return self._in_session[id(call)] if call.session else None


def _as_finding(rewrite: BilledRewrite, numbers: CallNumbers, usd: Decimal | None = None, fix: str = "") -> Finding:
    """`usd` is what the fix nets; None: what was written again costs."""
    code, call = codes()[rewrite.cause], rewrite.call
    return Finding(
        code.code,
        rewrite.cause,
        numbers.of(call) or 0,
        Layer.SYSTEM if rewrite.is_static else Layer.MESSAGES,
        "",
        rewrite.tokens,
        (rewrite.cost or ZERO) if usd is None else usd,
        rewrite.words,
        fix or code.fix,
        numbers.of(rewrite.before),
        diagnostics=call.miss_reason or code.word,
        session=call.session,
        project=rewrite.file.project,
        agent=call.agent,
        timestamp=None if call.start is None else iso(call.start),
        file=rewrite.file.path,
        line=call.line or None,
        session_call=numbers.in_session(call),
        paid_again=rewrite.cost or ZERO,
    )
