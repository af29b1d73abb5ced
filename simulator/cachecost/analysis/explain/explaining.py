"""The avoidable cost of calls: what the fix of each fault would have netted, from replays with the fixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from cachecost.account.causes import causes
from cachecost.analysis.explain.loss_words import excerpt, message, place, with_places
from cachecost.analysis.explain.netting import FixPricing, NettedLoss, Netting, PricedReplay
from cachecost.analysis.explain.observed_replay import observe_replay
from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.analysis.replays.steps import NO_CALL, Replays, TrackedReplay
from cachecost.base.formatting import dollars
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Explanation, Finding, count_margin, open_usd
from cachecost.ledger.rows import CallRow, warm_reads
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload

Costs = Mapping[int, Decimal]
"""USD by number of the call."""
NO_LIMITS: Costs = {}


def explain_workload(traffic: Workload, tries_assumptions: bool = False) -> Explanation:
    """What the calls of the workload could have cost less, by cause, and how certain that is.

    With `tries_assumptions` every other value of each assumption is tried, and those that change the answer are
    reported. Raises CannotEvaluate for other caches than those with breakpoints.
    """
    return as_filed(explain_in_order(traffic, tries_assumptions=tries_assumptions), traffic.calls)


def explain_in_order(
    traffic: Workload, limits: Costs = NO_LIMITS, tries_assumptions: bool = False, earlier: TrackedReplay | None = None
) -> Explanation:
    """As `explain_workload`; calls are numbered in the order of time. No call's findings are above its limit (USD).

    `earlier` is a replay of the same calls under the same setup, but for how much they can read.
    """
    explanation = explain(traffic, limits, earlier)
    answer, flips = (dollars(explanation.avoidable), _codes(explanation)), list[str]()
    for switch in assumption_rows(*traffic.hosts) if tries_assumptions else ():
        for reading in switch.readings[1:] if switch.number is None else ():
            under = explain(traffic.with_assumptions({switch.name: reading.value}))
            if (dollars(under.avoidable), _codes(under)) != answer:
                amount = f"{dollars(under.avoidable)} of {dollars(under.cost)}"
                flips.append(f"with {switch.name}={reading.value} {amount} are avoidable, by {_codes(under)}")
    return replace(explanation, flips=flips)


def explain(traffic: Workload, limits: Costs = NO_LIMITS, earlier: TrackedReplay | None = None) -> Explanation:
    """Every fault of the calls, in their order, with what its fix nets.

    The findings' dollars add up to at most the difference between the cost and the lower bound of the calls as the
    fixes would send them. Faults whose fix nets nothing are notes. Raises CannotEvaluate.
    """
    traffic.require_breakpoints("explain")
    replays = Replays(traffic)
    observed = observe_replay(replays, replays.recorded, earlier)
    simulated = {number: row.cost.total for number, row in enumerate(observed.rows, 1)}
    paid = {number: min(usd, limits.get(number, usd)) for number, usd in simulated.items()}
    netting = Netting(replays, FixPricing(simulated, paid), observed, PricedReplay(paid), dict(paid))
    netting.run()
    fixed = netting.observed
    sent = [step for step in fixed.steps if step.number != NO_CALL]
    rows: Sequence[CallRow] | None = None
    if is_as_sent := replays.are_as_sent(sent):  # keep-alives are in no plan; other content has the bill of its call
        rows = fixed.rows if len(sent) == len(fixed.steps) else replays.changed_rows(sent, fixed.tracked)
    for replay in (observed, fixed):
        replay.tracked.release()  # the lower bound needs the memory
    preparer = None if is_as_sent else replays.preparer(sent)
    bound = lower_bound_of([step.call for step in sent], traffic.setup, rows, preparer)
    findings, notes = (_in_order(map(_finding, group)) for group in (netting.found, netting.notes))
    cost = sum(simulated.values(), ZERO)
    avoidable = sum((one.cost for one in findings), ZERO)
    open_share = min(1.0, float(open_usd(fixed.rows) / avoidable)) if avoidable else 1.0
    return Explanation(
        len(traffic.calls),
        cost,
        cost - avoidable,
        with_places(findings, traffic.calls),
        traffic.strategy,
        traffic.setup.token_source,
        error_margin=count_margin(fixed.rows, traffic.setup.error_margin) * open_share,
        open_share=open_share,
        warm=warm_reads(observed.rows),
        notes=with_places(notes, traffic.calls),
        lower_bound=bound.with_pings_usd,
        bounds_fixed_requests=not is_as_sent,
    )


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.call, finding.code))


def as_filed(explanation: Explanation, calls: Sequence[Call]) -> Explanation:
    """Findings numbered and sorted by the calls of the file."""
    if not any(call.number for call in calls):
        return explanation
    findings, unexplained, notes = (
        _in_order(
            replace(one, call=calls[one.call - 1].number, since=one.since and calls[one.since - 1].number)
            for one in group
        )
        for group in (explanation.findings, explanation.not_explained, explanation.notes)
    )
    return replace(explanation, findings=findings, not_explained=unexplained, notes=notes)


def _codes(explanation: Explanation) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in explanation.findings)) or "nothing"


def _finding(one: NettedLoss) -> Finding:
    loss, observed = one.loss, one.observed
    code, request = causes()[loss.cause], observed.call(loss.call).request
    usage = observed.rows[loss.call - 1].usage
    tokens = min(usage.unread, loss.tokens)
    return Finding(
        code.code,
        loss.cause,
        one.number,
        loss.first.layer,
        place(loss, request),
        tokens,
        one.saved,
        message(loss, request, tokens),
        one.words or code.fix,
        observed.number(loss.since.number) if loss.since else None,
        excerpt(loss),
        code.word,
        paid_again=observed.paid_again(loss),
        is_behind=one.is_behind,
    )
