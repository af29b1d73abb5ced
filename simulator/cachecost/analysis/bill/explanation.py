"""Explains a bill: the avoidable cost of the calls that were billed, in the findings of `explain`.

Of transcripts the account of the bill is all there is to know. Of logs with whole requests, a replay says what could be
read, and the bill what was; losses that no request explains are held when alternatives are replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple

from cachecost.account.causes import Cause, causes
from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.rewrites import TOLERANCE
from cachecost.analysis.bill.savings import is_main, is_sub_agent, is_within_hour, saved_by_hour
from cachecost.analysis.bill.summary import BillRow
from cachecost.analysis.explain.explaining import as_filed, explain_in_order, explain_workload
from cachecost.analysis.explain.loss_words import excerpt, message, numbers_in_sessions, place, with_places
from cachecost.analysis.explain.netting import share_out
from cachecost.analysis.explain.observed_replay import ObservedReplay, observe_replay
from cachecost.analysis.replays.steps import PricedSimulation, Replays, TrackedReplay, as_sent
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace as replace_struct
from cachecost.base.times import iso
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.conversations.start_times import RecordedSessions
from cachecost.ledger.findings import Explanation, Finding
from cachecost.ledger.rows import CallRow, WarmReads
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO, call_amounts
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload


@dataclass(frozen=True, slots=True)
class AvoidableRewrite:
    """A rewrite, the USD of it that its fix nets (0: nothing), and what the fix is ("": that of its code)."""

    rewrite: BilledRewrite
    saved: Decimal
    fix: str = ""


def avoidable_rewrites(account: BillAccount) -> list[AvoidableRewrite]:
    """Every rewrite that something explains, with what its fix nets."""
    pauses = dict(_saved_in_pauses(account))
    found: list[AvoidableRewrite] = []
    for one in account.rewrites:
        cause = causes()[one.cause]
        if cause.fixed_in != "bill" or cause.requested:
            saved = ZERO if cause.requested or one.cause == "ttl_expired" else one.cost or ZERO
            found.append(pauses.get(id(one)) or AvoidableRewrite(one, saved))
    return found


def _saved_in_pauses(account: BillAccount) -> Iterator[tuple[int, AvoidableRewrite]]:
    """The rewrites after pauses that a 1h TTL outlasts, by the `id()` of the rewrite."""
    for scope in (is_main, is_sub_agent):
        saved = saved_by_hour(account, scope)
        outlasted = [one for one in account.rewrites if scope(one.call) and is_within_hour(one)]
        costs = {number: one.cost or ZERO for number, one in enumerate(outlasted)}
        shares = share_out(saved, list(costs), costs, dict(costs)) if saved > 0 else {}
        for number, usd in shares.items():
            yield id(outlasted[number]), AvoidableRewrite(outlasted[number], usd, "a 1h TTL on every breakpoint")


ESTIMATE = 0.02
"""The length of a prefix that no bill reveals is an estimate: a smaller difference is no rewrite, nor is one within the
error margin of the counts."""
NOT_EXPLAINED: Cause = "billed_not_explained"


@dataclass(frozen=True, slots=True)
class _PaidSpan:
    """Tokens of a prompt that were paid for again, and the loss that explains it (None: nothing does)."""

    start: int
    end: int
    loss: Loss | None


def find_request_rewrites(
    calls: Sequence[Call], billed: Sequence[BilledCall | None], observed: ObservedReplay, prices: CallPrices
) -> Iterator[Finding]:
    """A finding for each rewrite that the bills show, in the order of the calls; `billed` are the bills of `calls`."""
    losses: dict[int, list[Loss]] = {}
    for loss in observed.losses:
        before = billed[loss.since.number - 1] if loss.since else None
        was_cached = before is None or before.cached > 0  # as far as the bill of the call that sent it before shows
        if was_cached and not causes()[loss.cause].never_cached:
            losses.setdefault(loss.call, []).append(loss)
    for call, bill, row, margin in zip(calls, billed, observed.rows, observed.read_margins, strict=True):
        if bill is None or row.error is not None:
            continue
        for span in _spans(bill, row, margin, losses.get(row.call, []), billed):
            yield _finding(call, bill, row, span, prices)


def _spans(
    bill: BilledCall, row: CallRow, margin: float, losses: Sequence[Loss], billed: Sequence[BilledCall | None]
) -> Iterator[_PaidSpan]:
    """What the bill did not read, in the order of the prompt: what should have been read, then each loss.

    `margin` is how far off the replay's read may be. No loss reaches beyond what the call before had cached.
    """
    read, end = bill.read, bill.total_input
    expected = row.usage.read
    ends: list[tuple[int, Loss | None]] = [] if bill.is_summed else [(expected, None)]
    ends += sorted(((_end_of(loss, expected, billed), loss) for loss in losses), key=lambda one: one[0])
    at = read
    for limit, loss in ends:
        stop = min(limit, end)
        if stop - at > max(TOLERANCE, ESTIMATE * limit, 0.0 if loss else margin):
            yield _PaidSpan(at, stop, loss)
            at = stop


def _end_of(loss: Loss, expected: int, billed: Sequence[BilledCall | None]) -> int:
    """Where what is lost ends: with what the call before had cached, if all of that was sent again."""
    before = billed[loss.since.number - 1] if loss.since else None
    end = expected + loss.tokens
    if before is None or before.is_summed:
        return end
    return before.cached if loss.is_whole else min(end, before.cached)


def is_less_than_expected(read: int, expected: int, margin: float) -> bool:
    """Whether a bill read less than a replay says, by more than an estimated length may be wrong."""
    return expected - read > max(TOLERANCE, ESTIMATE * expected, margin)


def find_unexplained(number: int, bill: BilledCall, expected: int, prices: CallPrices) -> Finding | None:
    """What a bill did not read of the `expected` tokens; None where that costs nothing, or no price is known."""
    cost = prices.rewrite_cost(bill, expected - bill.read)
    if not cost or cost <= 0:
        return None
    code, tokens = causes()[NOT_EXPLAINED], expected - bill.read
    words = _not_explained(bill.read, expected)
    return Finding(code.code, code.cause, number, Layer.MESSAGES, "", tokens, cost, words, code.fix, paid_again=cost)


def _finding(call: Call, bill: BilledCall, row: CallRow, span: _PaidSpan, prices: CallPrices) -> Finding:
    cost = prices.rewrite_cost(bill, span.end - bill.read)
    before = prices.rewrite_cost(bill, span.start - bill.read)
    tokens = span.end - span.start
    paid = ZERO if cost is None or before is None else cost - before
    loss = span.loss
    code = causes()[loss.cause if loss else NOT_EXPLAINED]
    return Finding(
        code.code,
        code.cause,
        row.call,
        loss.first.layer if loss else Layer.MESSAGES,
        place(loss, call.request) if loss else "",
        tokens,
        paid,
        message(loss, call.request, tokens) if loss else _not_explained(bill.read, row.usage.read),
        code.fix,
        loss.since.number if loss and loss.since else None,
        excerpt(loss) if loss else None,
        code.word,
    )


def _not_explained(read: int, expected: int) -> str:
    return f"read {read:,} of {expected:,} tokens that should have been cached; the requests do not say why"


class HeldLosses(NamedTuple):
    """A workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    `replay` is that of the workload as it was; None: no bill shows a loss, or it was not tracked.
    """

    workload: Workload
    expected: dict[int, int]
    replay: TrackedReplay | None = None


def hold_losses(traffic: Workload) -> tuple[Workload, dict[int, int]]:
    """The workload with the losses of its bills held, and for each call with one the tokens that it should have read.

    Raises CannotEvaluate.
    """
    if not _has_bills(traffic):
        return traffic, {}
    priced = traffic.simulation(hosts=UnexplainedHosts(), kind=PricedSimulation)
    if not any(_is_short(call, priced.simulate(call)) for call in traffic.calls):
        return traffic, {}
    held, expected, _ = _hold(traffic, map(traffic.simulation().simulate, traffic.calls))
    return held, expected


def find_held_losses(traffic: Workload) -> HeldLosses:
    """As `hold_losses`, with a replay that others can be derived from. Raises CannotEvaluate."""
    if not _has_bills(traffic):
        return HeldLosses(traffic, {})
    replay = Replays(traffic).tracked_replay(as_sent(traffic.calls))
    return _hold(traffic, replay.run())._replace(replay=replay)


def _has_bills(traffic: Workload) -> bool:
    return any(_billed_read(call) is not None for call in traffic.calls)


def _hold(traffic: Workload, made: Iterable[SimulatedCall]) -> HeldLosses:
    calls, expected = list[Call](), dict[int, int]()
    for number, (call, one) in enumerate(zip(traffic.calls, made, strict=True), 1):
        calls.append(call)
        if _is_short(call, one):
            expected[number] = one.row.usage.read
            if not any(causes()[loss.cause].fixed_in == "prompt" for loss in one.losses):
                calls[-1] = replace_struct(call, most_read=_billed_read(call))
    return HeldLosses(replace(traffic, calls=calls) if expected else traffic, expected)


def _is_short(call: Call, expected: SimulatedCall) -> bool:
    read = _billed_read(call) if len(expected.passes) == 1 else None
    return read is not None and is_less_than_expected(read, expected.row.usage.read, expected.read_margin)


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
    known = [(call, bill) for call, bill in zip(calls, billed, strict=True) if bill and _is_known(call, setup)]
    has_requests = {id(bill) for _, bill in known}
    for file in sessions.files:
        file.has_requests = any(id(call) in has_requests for call in file.calls)
    logged = LoggedCalls(known, setup, name)
    findings: Iterable[Finding] = ()
    if known:
        replays = Replays(logged.workload())
        recorded, bills = zip(*known, strict=True)
        findings = find_request_rewrites(recorded, bills, observe_replay(replays, replays.recorded), prices)
    file_of = {id(call): file for file in sessions.files for call in file.calls}
    rewrites = [_rewrite(found, known[found.call - 1][1], known, file_of) for found in findings]
    return LogBills(sessions.files, logged, rewrites)


def _is_known(call: Call, setup: ReplaySetup) -> bool:
    """Whether a replay can say what the call should have read."""
    if call.why_unknown or call.is_bill_only or call.billed is None:
        return False
    try:
        return setup.rules_for(call).uses_breakpoints
    except CannotEvaluate:
        return False


def _rewrite(
    found: Finding,
    call: BilledCall,
    known: Sequence[tuple[Call, BilledCall]],
    file_of: dict[int, SessionFile],
) -> BilledRewrite:
    before = known[found.since - 1][1] if found.since else None
    idle = None
    if before is not None and before.start is not None and call.start is not None:
        idle = call.start - before.start
    is_placed = found.block and found.block not in found.message and causes()[found.cause].fixed_in != "time"
    where = f" at {found.block}" if is_placed else ""
    words = f"{found.message}{where}"
    is_static = found.layer is not Layer.MESSAGES
    return BilledRewrite(file_of[id(call)], call, before, found.cause, found.tokens, found.cost, words, idle, is_static)


FROM_BILLS = "the bills"
"""The source of token counts where all of them are billed."""


def explain_recording(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """The explanation of a log: of its bills where every call has one, else of the simulation.

    Raises CannotEvaluate.
    """
    if all(call.billed or call.has_failed for call in traffic.calls):
        return explain_bills(traffic, prices, assumptions)
    return explain_workload(traffic, assumptions)


def explain_bills(traffic: Workload, prices: CallPrices, assumptions: bool = False) -> Explanation:
    """The explanation of the calls of a log with bills. Raises CannotEvaluate.

    necessary + avoidable + not explained = billed, exactly. What a call without a bill cost is 0. No call's findings
    are above its bill, and none above what the bill shows to have been paid again.
    """
    held, expected, expected_replay = find_held_losses(traffic)
    bills = RecordedSessions(traffic.name).add_all(traffic.calls)
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
    is_changed = causes()[finding.cause].fixed_in == "prompt" and not finding.is_behind
    if bill is None or before is None or before.is_summed or bill.is_summed or not is_changed:
        return finding
    most = before.cached - bill.read
    if not 0 < most < finding.tokens:
        return finding
    return replace(finding, tokens=most, paid_again=finding.paid_again * most / finding.tokens)


def bill_cost(bill: BilledCall, prices: CallPrices) -> Decimal:
    """USD of a call with the passes that its usage leaves out; 0 without a price."""
    return sum(call_amounts(bill.usage, prices.prices(bill)) or (), prices.passes_cost(bill))


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
        self._in_session = {id(call): number for call, number in zip(calls, numbers_in_sessions(calls), strict=True)}

    def number(self, call: BilledCall | None) -> int | None:
        return self._all.get(id(call)) if call else None

    def in_session(self, call: BilledCall) -> int | None:
        return self._in_session[id(call)]


def _as_finding(rewrite: BilledRewrite, numbers: CallNumbers, usd: Decimal | None = None, fix: str = "") -> Finding:
    """`usd` is what the fix nets; None: what was written again costs."""
    code, call = causes()[rewrite.cause], rewrite.call
    return Finding(
        code.code,
        rewrite.cause,
        numbers.number(call) or 0,
        Layer.SYSTEM if rewrite.is_static else Layer.MESSAGES,
        "",
        rewrite.tokens,
        (rewrite.cost or ZERO) if usd is None else usd,
        rewrite.words,
        fix or code.fix,
        numbers.number(rewrite.before),
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
