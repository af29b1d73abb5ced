"""Explains a bill: the avoidable cost of the calls that were billed, in the findings of `explain`.

Of logs with whole requests, what the bill shows of changes and expiry (requests.py) stands beside what other
breakpoints would have saved (a replay). Of transcripts the account of the bill is all there is to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.requests import NOT_EXPLAINED, find_request_rewrites
from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.explaining import as_filed, explain_observed, observe_workload
from cachecost.conversations.billed_calls import BilledCall
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.conversations.recorded_bills import RecordedSessions
from cachecost.ledger.findings import Explanation, Finding
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload

FROM_BILLS = "the bills"
"""The source of token counts where all of them are billed."""


def explain_bills(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """The explanation of the calls of a log with bills. Raises CannotEvaluate.

    necessary + avoidable + not explained = billed, exactly. The cost of calls without a bill is simulated.
    """
    observed = observe_workload(traffic)
    simulated = explain_observed(traffic, observed, assumptions)
    bills = RecordedSessions(traffic.name).add_all(map(as_recorded, traffic.calls))
    rewrites = list(find_request_rewrites(traffic.calls, bills, observed, prices))
    costs = [bill_cost(bill, prices) if bill else ZERO for bill in bills]
    placed = list(_within_bills(simulated.findings, rewrites, costs))
    findings = [*(one for one in rewrites if one.cause != NOT_EXPLAINED), *placed]
    explanation = replace(
        simulated,
        findings=sorted(findings, key=lambda one: (one.call, one.code)),
        billed=sum(costs, ZERO),
        not_explained=[one for one in rewrites if one.cause == NOT_EXPLAINED],
    )
    return as_filed(explanation, traffic.calls)


def as_recorded(call: Call) -> RecordedCall:
    """The call, which must be a recorded one. Raises TypeError."""
    if not isinstance(call, RecordedCall):
        raise TypeError("expected recorded calls, as only those have bills")
    return call


def bill_cost(bill: BilledCall, prices: CallPrices) -> Decimal:
    """USD of a call with the passes that its usage leaves out; 0 without a price."""
    row = BillRow("")
    row.add(bill, prices)
    return row.cost


def _within_bills(
    findings: Sequence[Finding], rewrites: Sequence[Finding], costs: Sequence[Decimal]
) -> Iterator[Finding]:
    """What other breakpoints would have saved, as far as it was billed and is not counted as a rewrite."""
    left = list(costs)
    for one in rewrites:
        left[one.call - 1] -= one.cost
    for finding in findings:
        if codes()[finding.cause].removal != "restore":
            cost = min(finding.cost, left[finding.call - 1])
            if cost > 0:
                left[finding.call - 1] -= cost
                yield replace(finding, cost=cost)


def explain_account(account: BillAccount) -> Explanation:
    """The explanation of an account: each rewrite is a finding, calls numbered in the order of time."""
    total, numbers = BillRow("total"), _call_numbers(account)
    for _, call in account.calls():
        total.add(call, account.prices)
    found = [_as_finding(one, numbers) for one in account.rewrites]
    avoidable = sum((one.cost for one in found), ZERO)
    return Explanation(
        total.calls,
        total.cost,
        total.cost - avoidable,
        [one for one in found if one.cause != NOT_EXPLAINED],
        token_source=FROM_BILLS,
        open_share=0.0,
        billed=total.cost,
        not_explained=[one for one in found if one.cause == NOT_EXPLAINED],
    )


def _call_numbers(account: BillAccount) -> dict[int, int]:
    """The place of each call in the order of time, by its `id()`."""
    calls = sorted((call for _, call in account.calls()), key=lambda call: call.start or 0.0)
    return {id(call): number for number, call in enumerate(calls, 1)}


def _as_finding(rewrite: BilledRewrite, numbers: dict[int, int]) -> Finding:
    code = codes()[rewrite.cause]
    return Finding(
        code.code,
        rewrite.cause,
        numbers[id(rewrite.call)],
        Layer.SYSTEM if rewrite.is_static else Layer.MESSAGES,
        "",
        rewrite.tokens,
        rewrite.cost or ZERO,
        rewrite.words,
        code.fix,
        numbers.get(id(rewrite.before)) if rewrite.before else None,
        diagnostics=rewrite.call.miss_reason or code.word,
    )
