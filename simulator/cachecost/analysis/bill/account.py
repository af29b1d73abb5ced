"""The account of a bill: every call priced, and every dollar necessary, rewritten or not explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING

from cachecost.account.causes import Cause
from cachecost.analysis.bill.call_prices import CachedPrefix, CallPrices
from cachecost.analysis.bill.loss_places import LossPlaces, UnexplainedLoss, find_known_fault
from cachecost.analysis.bill.rewrites import (
    UNEXPLAINED,
    CauseEvidence,
    LastCall,
    Rewrite,
    SharedPrefixes,
    find_evidence,
    find_rewrites,
)
from cachecost.base.structs import replace
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.providers.clients.settings import ClientFault
from cachecost.providers.usage import Prices

if TYPE_CHECKING:
    from cachecost.analysis.bill.explanation import LoggedCalls


IsCounted = Callable[[BilledCall], bool]
Tokens = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class BilledRewrite:
    """A call that paid again for what had been cached.

    `tokens` were charged at more than the read price, and `cost` is the difference in USD (None: no price is known).
    `before` is the call that had cached them, where one call had. `words` say what shows the cause.
    """

    file: SessionFile
    call: BilledCall
    before: BilledCall | None
    cause: Cause
    tokens: int
    cost: Decimal | None
    words: str
    idle_s: float | None = None
    is_static: bool = False
    """Whether tools and system prompt were written again, too."""
    unexplained: UnexplainedLoss | None = None
    """Where the cache broke and what stood before, where a session shows no cause."""
    fault: ClientFault | None = None
    """The known fault of the client whose losses have this form."""


@dataclass(slots=True)
class BillAccount:
    """The files of a bill, without the copies of calls, and their rewrites in the order of time.

    `is_counted` says which calls are in the period asked for.
    """

    files: Sequence[SessionFile]
    prices: CallPrices
    is_counted: IsCounted
    rewrites: list[BilledRewrite] = field(default_factory=list)
    copies: int = 0
    warm_calls: int = 0
    """First calls that read what was cached before them; that is no loss."""
    warm_tokens: int = 0
    states: dict[int, dict[int, CachedPrefix]] = field(default_factory=dict)
    """The cache after each call, by the `id()` of its file and its number; filled where it is first asked for."""
    zone: tzinfo = UTC
    """In which days, weeks and months are counted."""
    logged: LoggedCalls | None = None
    """The calls of logs whose requests are known."""
    _copied: frozenset[int] = frozenset()
    _originals: Mapping[int, tuple[SessionFile, BilledCall]] = field(default_factory=dict)
    _priced: list[tuple[SessionFile, BilledCall, Prices | None]] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[SessionFile, BilledCall]]:
        """The calls that count, each once, file by file."""
        for file in self.files:
            yield from ((file, call) for call in file.calls if self.counts(call))

    def counts(self, call: BilledCall) -> bool:
        """Whether a call is in the period, and no copy."""
        return id(call) not in self._copied and self.is_counted(call)

    def priced_calls(self) -> Sequence[tuple[SessionFile, BilledCall, Prices | None]]:
        """The calls that count, with their files and prices (None: unknown); looked up once."""
        if not self._priced:
            prices = self.prices.prices
            self._priced = [(file, call, prices(call)) for file, call in self.calls()]
        return self._priced

    def is_copy(self, call: BilledCall) -> bool:
        """Whether another file holds the call, too, and it counts there."""
        return id(call) in self._copied

    def original(self, file: SessionFile, call: BilledCall) -> tuple[SessionFile, BilledCall]:
        """The first copy of a call that counts: a resumed session writes its own branch and version on the others."""
        return self._originals.get(id(call), (file, call)) if self._originals else (file, call)


def account_for(
    files: Sequence[SessionFile],
    prices: CallPrices,
    is_counted: IsCounted = bool,
    known: Sequence[BilledRewrite] = (),
    zone: tzinfo = UTC,
) -> BillAccount:
    """The account of these files. What came before the period still counts as cached.

    `known` are the rewrites of files whose requests are known.
    """

    def begin_and_end(file: SessionFile) -> tuple[float, float, str]:
        starts = [call.start for call in file.calls if call.start is not None]
        return min(starts, default=0.0), max(starts, default=0.0), file.path

    ordered = sorted(files, key=begin_and_end)  # of copies, the original ends first
    copied, first_of = _find_copies(ordered)
    account = BillAccount(ordered, prices, is_counted, copies=len(copied), zone=zone, _copied=copied)
    if first_of:
        copies = {id(call): (file, call) for file in ordered for call in file.calls if id(call) in copied}
        account._originals = {kept: copies[first] for kept, first in first_of.items()}
    shared, places, found = SharedPrefixes(), LossPlaces(), list[BilledRewrite]()
    in_sessions = list(_find_rewrites(account, shared, places))
    losses = places.describe()
    for file, one, evidence in in_sessions:
        loss = next(losses) if evidence.cause == UNEXPLAINED else None
        fault = loss.fault if loss else find_known_fault(file, one.call, evidence.cause)
        words = (loss.words if loss else evidence.words) + (f"; {fault.words}" if fault else "")
        cost = prices.rewrite_cost(one.call, one.tokens)
        what = evidence.cause, one.tokens, cost, words, one.idle_s, one.is_static, loss, fault
        found.append(BilledRewrite(file, one.call, one.before, *what))
    for file, call, tokens, evidence in shared.rewrites():
        if is_counted(call):
            cost, words = prices.rewrite_cost(call, tokens), evidence.words
            found.append(BilledRewrite(file, call, None, evidence.cause, tokens, cost, words, is_static=True))
    found += [one for one in known if id(one.call) not in copied and is_counted(one.call)]
    account.rewrites = sorted(found, key=lambda one: (one.call.start or 0.0, one.file.path, one.call.number))
    return account


def with_usage(account: BillAccount, changed: Mapping[int, Tokens]) -> BillAccount:
    """The account with the tokens of some calls changed, by the `id()` of the call."""
    original: dict[int, BilledCall] = {}
    files: list[SessionFile] = []
    for file in account.files:
        calls = [replace(call, tokens=changed[id(call)]) if id(call) in changed else call for call in file.calls]
        original.update((id(new), old) for new, old in zip(calls, file.calls, strict=True))
        files.append(replace(file, calls=calls))
    is_counted = account.is_counted
    return account_for(files, account.prices, lambda call: is_counted(original.get(id(call), call)), (), account.zone)


def session_key(file: SessionFile, call: BilledCall) -> str:
    """What identifies a session: its id, or its file where it has none."""
    return call.session or file.path


def _find_copies(files: Sequence[SessionFile]) -> tuple[frozenset[int], Mapping[int, int]]:
    """The `id()` of duplicate calls; the copy with the largest bill is kept (ties: the first). And the `id()` of the
    first copy, by that of the one that is kept instead.

    Copies share the request's id, which telemetry has too, else that of the message; and the input, as some gateways
    give all their messages one id. All get the times of the earliest: a session that is resumed may copy its calls
    under a new one.
    """
    found: dict[tuple[str, int, int, int], list[BilledCall]] = {}
    for file in files:
        for call in file.calls:
            if call.id:
                last = call.id.rpartition(" ")[2]
                key = last if last.startswith("req_") else call.id
                found.setdefault((key, call.tokens[0], call.read, call.written), []).append(call)
    copied, first_of = set[int](), dict[int, int]()
    for copies in found.values():
        if len(copies) > 1:
            copied.update(id(call) for call in copies)
            kept = max(copies, key=lambda call: sum(call.tokens))
            copied.remove(id(kept))
            first = min(copies, key=lambda call: inf if call.start is None else call.start)
            for call in copies:
                call.start, call.answered, call.end = first.start, first.answered, first.end
            if kept is not first:
                first_of[id(kept)] = id(first)
    return frozenset(copied), first_of


def _find_rewrites(
    account: BillAccount, shared: SharedPrefixes, places: LossPlaces
) -> Iterator[tuple[SessionFile, Rewrite, CauseEvidence]]:
    """The rewrites within threads; those that nothing explains are added to `places`, first calls to `shared`."""
    is_counted, last_of = account.is_counted, dict[str, LastCall]()
    for file in account.files:
        if file.has_requests:
            continue
        for call in file.calls:
            if account.is_copy(call):
                continue
            is_later_part = not call.agent and call.session in last_of
            is_first = (not call.before or "clear" in call.events) and not call.is_summed and not is_later_part
            shared.add(file, call, is_first)
            if is_first and call.read and is_counted(call):
                account.warm_calls += 1
                account.warm_tokens += call.read
        rewrites = [one for one in find_rewrites(file, account.prices.rules_of, last_of) if account.counts(one.call)]
        lost = {one.call.number for one in rewrites}
        places.add_file(file, (one for one in file.calls if one.number not in lost and account.counts(one)))
        for one in rewrites:
            evidence = find_evidence(one)
            if evidence.cause == UNEXPLAINED:
                places.add(session_key(file, one.call), file, one)
            yield file, one, evidence
