"""What to change: another TTL, earlier compaction or a setting that would have saved most; and logged requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from cachecost.account.causes import causes
from cachecost.analysis.bill.account import BillAccount, session_key, with_usage
from cachecost.analysis.bill.savings import (
    InScope,
    compact_calls,
    is_main,
    is_sub_agent,
    measure_compactions,
    saved_by_five_minutes,
    saved_by_hour,
    saved_by_reading,
    with_reads,
)
from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.clients.settings import ClientSetting, client_settings, ttl_words
from cachecost.providers.usage import ZERO

if TYPE_CHECKING:
    from cachecost.ledger.findings import Finding


MOST = 3
LEAST_SHARE = Decimal("0.005")
"""Of what was rewritten: what saves less is no advice."""
WINDOWS = (100_000, 150_000, 200_000)
"""Values of the compaction window that are tried; it takes no smaller one."""
RESERVE = 13_000
"""The client compacts so many tokens before the window is full."""
CLIENT = "claude-code"
MOST_REPLAYED = 500
"""Logged calls that are replayed for advice; of more, `explain` says what to change."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One change, the USD that it would have saved, and how to make it.

    `setting` is the row of the client's setting and `value` what to set it to (None: it is no setting). Of pieces
    with one `about` only one can be followed. `assumption` is what the price takes for granted, `needs` what the
    client must be, `alternative` the name of the change in `whatif` ("": it has none). `price` prices the change on
    another account of the same calls, `apply` makes it there.
    """

    about: str
    change: str
    how: str
    saved: Decimal
    setting: ClientSetting | None = None
    value: object = None
    assumption: str = ""
    needs: str = ""
    alternative: str = ""
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
        yield _ttl_advice(account, main, "main_ttl")
        yield from _window_advice(account, main)
        for row in causes().values():
            if row.habit is None:
                continue
            price = partial(saved_by_reading, cause=row.cause, in_scope=main.includes)
            if saved := price(account):
                apply = partial(with_reads, cause=row.cause, in_scope=main.includes)
                yield Advice(row.cause, row.habit["change"], row.habit["how"], saved, price=price, apply=apply)
    if (side := find_present(account, is_sub_agent)) is not None:
        yield _ttl_advice(account, side, "side_ttl")
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


def _ttl_advice(account: BillAccount, present: PresentClient, name: str) -> Advice:
    setting, ttl = client_settings().settings[name], "5m" if present.ttl == "1h" else "1h"
    price = partial(saved_by_hour if ttl == "1h" else saved_by_five_minutes, in_scope=present.includes)
    kind = "main-ttl" if name == "main_ttl" else "sub-agents-ttl"
    how = f'"{setting.key}": "{ttl}" in the settings, or {setting.variable}={ttl}'
    needs = present.needs(setting)
    return Advice(name, ttl_words(ttl, name), how, price(account), setting, ttl, "", needs, f"{kind}={ttl}", price)


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
                "compaction",
                f"compacting at {limit // 1000}k tokens: a window of {window // 1000}k less the client's reserve of "
                f"{RESERVE // 1000}k",
                f'"{setting.key}": {window} in the settings, or {setting.variable}={window}',
                found.saved,
                setting,
                window,
                "the answers stay the same after a summary",
                present.needs(setting),
                f"compaction={limit // 1000}k",
                apply=partial(with_usage, changed=found.tokens),
            )


def _log_advice(account: BillAccount) -> Iterator[Advice]:
    """What `explain` finds in the logs; nothing where nothing was lost, or the log is long."""
    from cachecost.base.errors import CannotEvaluate

    logged = account.logged
    if logged is None or len(logged.calls) > MOST_REPLAYED:
        return
    bills = [bill for _, bill in logged.calls]
    was_lost = any(one.file.has_requests for one in account.rewrites) or not all(bill.cached for bill in bills)
    if not was_lost or not any(file.has_requests for file in account.files):
        return
    from cachecost.analysis.bill.explanation import explain_bills  # heavy: most bills have no log

    try:
        findings = explain_bills(logged.workload(), account.prices).findings
    except CannotEvaluate:
        return
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        bill = bills[one.call - 1]
        if account.is_counted(bill) and not account.is_copy(bill):
            place = "" if one.alternative else one.block
            groups.setdefault((one.code, place, one.fix), []).append(one)
    for (code, place, fix), found in groups.items():
        saved = sum((one.cost for one in found), ZERO)
        yield Advice(f"log {code} {place} {fix}", _finding_words(found), fix, saved, alternative=found[0].alternative)


def _finding_words(findings: Sequence[Finding]) -> str:
    first, more = findings[0], len(findings) - 1
    if more and not causes()[first.cause].has_place:
        return f"{causes()[first.cause].name}: {count_text(more + 1, 'call')}"
    where = f" at {first.block}" if first.block and first.block not in first.message else ""
    file = PurePath(first.file).name if first.file else ""
    place = f"{file}:{first.line}" if file and first.line != first.call else f"call {first.call}"
    of_file = f" of {file}" if file and first.line == first.call else ""
    also = f" and {count_text(more, 'other call')}" if more else ""
    if len({one.block for one in findings}) > 1:
        also += ", there or at other blocks"
    return f"{first.message}{where} in {place}{of_file}{also}"
