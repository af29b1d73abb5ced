"""The bills of recorded calls whose requests may be known: request logs, traces, recordings, and other formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.requests import find_request_rewrites
from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.observed_replay import observe_replay
from cachecost.analysis.replays.replays import Replays
from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.recorded_bills import RecordedSessions
from cachecost.ledger.findings import Finding
from cachecost.prompts.blocks import Layer
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload


@dataclass(frozen=True, slots=True)
class LoggedCalls:
    """Calls of logs whose requests are known, in the order of time, each with its bill, and how they are replayed."""

    calls: Sequence[tuple[RecordedCall, BilledCall]]
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


def bills_of_calls(calls: Sequence[RecordedCall], setup: ReplaySetup, prices: CallPrices, name: str) -> LogBills:
    """The bills of recorded calls in the order of time. Raises InputError for wrong assumptions."""
    sessions = RecordedSessions(name)
    billed = sessions.add_all(calls)
    known = [(call, bill) for call, bill in zip(calls, billed, strict=True) if bill and _is_known(call, setup)]
    has_requests = {id(bill) for _, bill in known}
    for file in sessions.files:
        file.has_requests = any(id(call) in has_requests for call in file.calls)
    logged = LoggedCalls(known, setup, name)
    findings = _findings(logged, prices)
    file_of = {id(call): file for file in sessions.files for call in file.calls}
    rewrites = [_rewrite(found, known[found.call - 1][1], known, file_of) for found in findings]
    return LogBills(sessions.files, logged, rewrites)


def _is_known(call: RecordedCall, setup: ReplaySetup) -> bool:
    """Whether a replay can say what the call should have read."""
    if call.why_unknown or call.is_bill_only or call.billed is None:
        return False
    try:
        return setup.rules_for(call).uses_breakpoints
    except CannotEvaluate:
        return False


def _findings(logged: LoggedCalls, prices: CallPrices) -> Iterable[Finding]:
    if not logged.calls:
        return ()
    replays = Replays(logged.workload())
    calls, bills = zip(*logged.calls, strict=True)
    return find_request_rewrites(calls, bills, observe_replay(replays, replays.recorded), prices)


def _rewrite(
    found: Finding,
    call: BilledCall,
    known: Sequence[tuple[RecordedCall, BilledCall]],
    file_of: dict[int, SessionFile],
) -> BilledRewrite:
    before = known[found.since - 1][1] if found.since else None
    idle = None
    if before is not None and before.start is not None and call.start is not None:
        idle = call.start - before.start
    is_placed = found.block and found.block not in found.message and codes()[found.cause].fixed_in != "time"
    where = f" at {found.block}" if is_placed else ""
    words = f"{found.message}{where}"
    is_static = found.layer is not Layer.MESSAGES
    return BilledRewrite(file_of[id(call)], call, before, found.cause, found.tokens, found.cost, words, idle, is_static)
