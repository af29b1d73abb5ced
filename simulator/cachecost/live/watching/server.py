"""Follows a simulated API by its bill at /cachecost.json: what was added between two looks is a call."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, build_opener

import msgspec

from cachecost.analysis.bill.account import account_for
from cachecost.analysis.bill.found_sessions import prices_under
from cachecost.analysis.next_message.watching import MOST_CALLS, WatchedSession, WatchedTotals, watch_account
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.conversations.wire_usage import parse_usage
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import Usage
from cachecost.simulation.setup import ReplaySetup

BILL = "/cachecost.json"
CLIENT = "cachecost serve"
TIMEOUT_S = 5.0
MOST_BYTES = 16 << 20
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
NO_ANSWER = "no answer from {url}"
NO_BILL = "{url} is no bill of cachecost serve"
ONLY_SUMS = "of earlier calls the server keeps sums only: calls are shown as they come"
SEVERAL = "several models"


def is_loopback(url: str) -> bool:
    """Whether a URL names a server on this machine."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and parts.hostname in LOOPBACK_NAMES and parts.port != 0
    except ValueError:
        return False


class BillShares(msgspec.Struct):
    """What is needed of a share of the bill."""

    name: str = ""
    calls: int = 0
    refused: int = 0
    usage: dict[str, Any] = {}
    cost_usd: str = "0"

    @property
    def billed(self) -> int:
        return self.calls - self.refused


class ServedBill(msgspec.Struct):
    """What is needed of the bill."""

    format: int
    total: BillShares
    models: list[BillShares] = []
    conversations: list[BillShares] = []


class ServerFollower:
    """Follows the server at `url`. Calls between two looks in one conversation are one row with their sum."""

    def __init__(self, url: str, setup: ReplaySetup) -> None:
        self.url = url.rstrip("/").removesuffix(BILL).removesuffix("/cachecost") + BILL
        self._prices = prices_under(setup)
        self._opener = local_opener()
        self._calls: deque[BilledCall] = deque(maxlen=MOST_CALLS)
        self._costs: dict[int, Decimal] = {}
        self._number = 0
        self._last_of: dict[int, int] = {}
        self._bill: ServedBill | None = None
        self._shown = WatchedSession(self.url)
        self._notes: tuple[str, ...] = ()

    def poll(self, now: float) -> WatchedSession | None:
        """The bill as it is now; None where nothing changed since the last look."""
        bill, notes = self._look()
        if bill == self._bill and notes == self._notes:
            return None
        if bill is not None and bill != self._bill:
            self._take(bill, now)
        self._notes = notes
        return self._watched(bill)

    def _look(self) -> tuple[ServedBill | None, tuple[str, ...]]:
        """The bill, or the one before and why there is no other."""
        try:
            return self._read(), ()
        except (msgspec.MsgspecError, NotAMessage, ValueError, InvalidOperation):
            return self._bill, (NO_BILL.format(url=self.url),)
        except (URLError, HTTPException, OSError):
            return self._bill, (NO_ANSWER.format(url=self.url),)

    def close(self) -> None:
        """Nothing is open between two looks."""

    def _read(self) -> ServedBill:
        """Raises URLError, OSError, MsgspecError, NotAMessage, ValueError, InvalidOperation."""
        with self._opener.open(self.url, timeout=TIMEOUT_S) as answer:
            text = answer.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ValueError(self.url)
        bill = msgspec.json.decode(text, type=ServedBill)
        for share in (bill.total, *bill.conversations):
            _usage(share), Decimal(share.cost_usd)
        return bill

    def _take(self, bill: ServedBill, now: float) -> None:
        """Note the calls since the last look. A server that began anew has fewer."""
        before = self._bill
        if before is not None and bill.total.calls < before.total.calls:
            self._calls.clear()
            self._last_of.clear()
            before = ServedBill(bill.format, BillShares())
        self._bill = bill
        if before is None:
            return
        model = _changed_model(before.models, bill.models)
        for place, share in enumerate(bill.conversations):
            old = before.conversations[place] if place < len(before.conversations) else BillShares()
            if share.billed > old.billed:
                self._add(place, model, old, share, now)

    def _add(self, place: int, model: str, old: BillShares, new: BillShares, now: float) -> None:
        self._number += 1
        number = self._number
        tokens = _difference(_usage(old), _usage(new))
        self._calls.append(
            BilledCall(
                number,
                0,
                model,
                tokens,
                now,
                before=self._last_of.get(place, 0),
                session=f"{place + 1}: {new.name}",
                is_summed=new.billed - old.billed > 1,
            )
        )
        self._last_of[place] = number
        self._costs = {call.number: self._costs.get(call.number, Decimal(0)) for call in self._calls}
        self._costs[number] = Decimal(new.cost_usd) - Decimal(old.cost_usd)

    def _watched(self, bill: ServedBill | None) -> WatchedSession:
        account = account_for([SessionFile(self.url, CLIENT, calls=list(self._calls))], self._prices)
        made = watch_account(account, self.url, self._notes, self._costs)
        totals = _totals(bill.total) if bill else WatchedTotals()
        notes = (ONLY_SUMS,) if totals.calls and not made.calls and not self._notes else self._notes
        return WatchedSession(self.url, totals, made.calls, made.next, notes)


def local_opener() -> OpenerDirector:
    """Opens URLs of this machine: without a proxy, and never redirected elsewhere."""
    return build_opener(ProxyHandler({}), _NoRedirect())


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *others: Any) -> None:
        return None


def _totals(share: BillShares) -> WatchedTotals:
    usage = _usage(share)
    rate = Decimal(usage.read) / usage.total_input if usage.total_input else None
    return WatchedTotals(share.billed, Decimal(share.cost_usd), rate)


def _usage(share: BillShares) -> Usage:
    return parse_usage(share.usage, "usage")


def _difference(old: Usage, new: Usage) -> tuple[int, int, int, int, int]:
    """Input, read, 5m write, 1h write and output that were added."""
    return (
        max(0, new.input_tokens - old.input_tokens),
        max(0, new.read - old.read),
        max(0, new.write_5m - old.write_5m),
        max(0, new.write_1h - old.write_1h),
        max(0, new.output_tokens - old.output_tokens),
    )


def _changed_model(old: Sequence[BillShares], new: Sequence[BillShares]) -> str:
    """The model of the calls that were added."""
    before: Mapping[str, int] = {share.name: share.billed for share in old}
    changed = [share.name for share in new if share.billed > before.get(share.name, 0)]
    return changed[0] if len(changed) == 1 else SEVERAL
