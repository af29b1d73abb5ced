"""The avoidable cost of calls: what the fix of each fault would have netted, from replays with the fixes; in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import takewhile
from json import dumps

from cachecost.account.causes import causes
from cachecost.analysis.explain.fixes.settings import changed_settings
from cachecost.analysis.explain.netting import FixPricing, NettedLoss, Netting, PricedReplay
from cachecost.analysis.explain.observed_replay import observe_replay
from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.analysis.replays.steps import NO_CALL, Replays, TrackedReplay
from cachecost.base.formatting import dollars, duration
from cachecost.caches.causes import changed_parameter
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall
from cachecost.ledger.findings import Explanation, Finding, count_margin, open_usd
from cachecost.ledger.rows import CallRow, warm_reads
from cachecost.prompts.blocks import Layer
from cachecost.prompts.compare import first_difference, prefixes_back, text_of
from cachecost.prompts.request import Breakpoint, Request, wire_path
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload


def with_places(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    """The findings, whose `call` is a place among `calls` from 1, with what the log says of these calls."""
    numbers, placed = numbers_in_sessions(calls), list[Finding]()
    for one in findings:
        call = calls[one.call - 1]
        placed.append(
            replace(
                one,
                session=call.session,
                project=call.project,
                agent=call.agent,
                timestamp=call.timestamp,
                file=call.file,
                line=call.line or None,
                session_call=numbers[one.call - 1],
            )
        )
    return placed


def numbers_in_sessions(calls: Iterable[Call] | Iterable[BilledCall]) -> list[int | None]:
    """The number of each call within its session, its sub-agents included; None without a session."""
    met: Counter[str] = Counter()
    numbers: list[int | None] = []
    for call in calls:
        met[call.session] += 1
        numbers.append(met[call.session] if call.session else None)
    return numbers


AROUND, AFTER = 24, 12
"""Characters of an excerpt before the first one that differs, and from there."""


def place(loss: Loss, request: Request) -> str:
    """The place of the first block in the request: `tools.3`, `system.0`, `messages.4.content.1`."""
    node = loss.first
    if node.layer is not Layer.MESSAGES:
        before = takewhile(lambda one: one.layer is node.layer, prefixes_back(node))
        return wire_path(request, Breakpoint(node.layer, sum(one.block is not None for one in before) - 1))
    for message in request.thread.back():
        assert message.message is not None
        for number, block in enumerate(message.message.blocks):
            if block is node.block or (node.block and block.digest == node.block.digest):
                return f"messages.{message.length - 1}.content.{number}"
    return str(node.layer)


def excerpt(loss: Loss) -> str | None:
    """The new text around the first character that differs: `…Current time: 2026-03-06T21:2▮`."""
    new, old = loss.first.block, loss.was.block if loss.was else None
    if new is None or old is None or new.content is None or old.content is None or new.kind != old.kind:
        return None
    text = text_of(new)
    at = first_difference(text_of(old), text)
    before = text[max(0, at - AROUND) : at]
    more = "…" if at > AROUND else ""
    return " ".join(f"{more}{before}▮{text[at : at + AFTER]}".split()) + f" at character {at}"


def message(loss: Loss, request: Request, tokens: int) -> str:
    """What happened, in the sentence of the code."""
    where = place(loss, request)
    if loss.is_out_of_order:
        return (
            f"{where} is another one than in the conversation before; {tokens:,} tokens after it or in it are the same"
        )
    before = loss.since.request if loss.since else request
    tools, tools_before = len(request.tools.blocks), len(before.tools.blocks)
    misplaced = "the breakpoint of the previous call was on a block that this call does not have"
    if loss.was is None and loss.positions < 0:
        misplaced = "the breakpoint is before what earlier calls wrote"
    (old_host, _, old_workspace), (host, _, workspace) = loss.place_before.partition("/"), loss.place.partition("/")
    moved = f"workspace changed from {old_workspace or 'the default one'} to {workspace or 'the default one'}"
    if old_host != host:
        moved = f"host changed from {old_host} to {host}"
    return causes()[loss.cause].sentence.format(
        was=_parameter(loss.cause, before),
        now=_parameter(loss.cause, request),
        where=where,
        system=" and ".join(changed_settings(before, request)) or f"{where} changed",
        tools=f"{tools or 'no'} tools instead of {tools_before or 'none'}"
        if tools != tools_before
        else f"{where} changed",
        tokens=f"{tokens:,}",
        gap=duration(loss.gap_s),
        ttl=loss.ttl,
        minimum=f"{loss.minimum:,}",
        positions=loss.positions,
        window=loss.window,
        shared=request.thread.common(before.thread).length,
        messages_before=before.thread.length,
        messages_fewer=before.thread.length - request.thread.length,
        appeared="were added to" if request.thread.has_image else "were removed from",
        moved=moved,
        misplaced=misplaced,
    )


def _parameter(cause: str, request: Request) -> str:
    stated = changed_parameter(cause, request)
    return stated if isinstance(stated, str) else dumps(stated, ensure_ascii=False)


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
