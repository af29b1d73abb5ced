"""Follows a session while it runs: by the bill of a simulated API at /cachecost.json, or by its files.

What was added to the bill between two looks is a call. Files are followed by their sizes and times; what was read of a
transcript is remembered in memory, so that only what was added is read, and a file that was replaced is read anew.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import msgspec

from cachecost.analysis.bill.account import account_for
from cachecost.analysis.bill.found_sessions import account_of_found, prices_under
from cachecost.analysis.next_message.watching import MOST_CALLS, WatchedSession, WatchedTotals, watch_account
from cachecost.base.store import IN_MEMORY, DiskStore
from cachecost.base.structs import replace
from cachecost.conversations.calls import parse_usage
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.prompts.request import NotAMessage
from cachecost.providers.usage import Usage
from cachecost.sessions.reading import FILES, STATES, SessionReading
from cachecost.simulation.setup import ReplaySetup

AGENT, MOST_NOTES = "agent-", 3
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
GONE = "the file is gone; what was read of it is shown"


class FileFollower:
    def __init__(self, path: Path, setup: ReplaySetup, format_: str = "auto") -> None:
        self.path = path
        self._setup, self._format = setup, format_
        self._store = DiskStore(IN_MEMORY, FILES, STATES)
        self._seen: list[tuple[Path, int, int, int]] | None = None
        """Path, inode, size and time of each file."""
        self._last = WatchedSession(str(path))

    def poll(self, now: float) -> WatchedSession | None:
        """The session as it is now; None where no file changed since the last call."""
        seen = []
        for path in session_files(self.path):
            with suppress(OSError):
                status = path.stat()
                seen.append((path, status.st_ino, status.st_size, status.st_mtime_ns))
        if seen == self._seen:
            return None
        self._seen = seen
        self._last = self._read([path for path, _, size, _ in seen if size])
        return self._last

    def close(self) -> None:
        self._store.close()

    def _read(self, paths: Sequence[Path]) -> WatchedSession:
        """The session in the files. Where nothing can be read any more, what was read before and the reason."""
        if self._last.calls and not self.path.exists():
            return replace(self._last, notes=(GONE,))
        found = SessionReading(self._store, self._format).read_all(paths)
        account = account_of_found(found, self._setup, self._format)
        notes = tuple([*map(str, found.skipped), *found.notes][-MOST_NOTES:])
        if found.logs and not found.skipped and not any(account.calls()):
            notes = ("no call has a usage: `cachecost record` writes logs with it, `cachecost replay` simulates it",)
        made = watch_account(account, str(self.path), notes)
        return replace(self._last, notes=notes) if found.skipped and not made.calls else made


def session_files(path: Path) -> Iterator[Path]:
    """The file of a session, and those of its sub-agents: in a folder of its name."""
    yield path
    folder = path.with_suffix("")
    if folder != path and folder.is_dir():
        yield from sorted(folder.rglob("*.jsonl"))


def newest_file(paths: Iterable[Path]) -> Path | None:
    """The session file that was written last; for a sub-agent's, that of its session."""
    return next(iter(newest_first(paths)), None)


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """The session files, the one written last first. A sub-agent writes for its session."""
    changed: dict[Path, int] = {}
    for path in paths:
        main: Path | None = path
        if path.name.startswith(AGENT):
            mains = (folder.with_suffix(".jsonl") for folder in path.parents)
            main = next((main for main in mains if main.is_file()), None)
        if main is not None:
            with suppress(OSError):
                changed[main] = max(changed.get(main, 0), path.stat().st_mtime_ns)
    return sorted(changed, key=lambda path: -changed[path])


def session_name(path: Path) -> str:
    """The id in the name of a session file, else its name."""
    found = UUID.search(path.stem)
    return found[0] if found else path.stem


BILL = "/cachecost.json"
CLIENT = "cachecost serve"
TIMEOUT_S = 5.0
MOST_BYTES = 16 << 20
NO_BILL = "{url} is no bill of cachecost serve"
SEVERAL = "several models"


def is_loopback(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port != 0
    except ValueError:
        return False


class BillShares(msgspec.Struct):
    name: str = ""
    calls: int = 0
    refused: int = 0
    usage: dict[str, Any] = {}
    cost_usd: str = "0"

    @property
    def billed(self) -> int:
        return self.calls - self.refused


class ServedBill(msgspec.Struct):
    format: int
    total: BillShares
    models: list[BillShares] = []
    conversations: list[BillShares] = []


class ServerFollower:
    """Follows the server at `url`. Calls between two looks in one conversation are one row with their sum."""

    def __init__(self, url: str, setup: ReplaySetup) -> None:
        self.url = url.rstrip("/").removesuffix(BILL).removesuffix("/cachecost") + BILL
        self._prices = prices_under(setup)
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())  # nothing leads elsewhere than to this machine
        self._calls: deque[BilledCall] = deque(maxlen=MOST_CALLS)
        self._costs: dict[int, Decimal] = {}
        self._number = 0
        self._last_of: dict[int, int] = {}
        self._bill: ServedBill | None = None
        self._shown = WatchedSession(self.url)
        self._notes: tuple[str, ...] = ()

    def poll(self, now: float) -> WatchedSession | None:
        """The bill as it is now; None where nothing changed since the last look."""
        bill, notes = self._bill, tuple[str, ...]()
        try:
            bill = self._read()
        except (msgspec.MsgspecError, NotAMessage, ValueError, InvalidOperation):
            notes = (NO_BILL.format(url=self.url),)
        except (URLError, HTTPException, OSError):
            notes = (f"no answer from {self.url}",)
        if bill == self._bill and notes == self._notes:
            return None
        if bill is not None and bill != self._bill:
            self._add_calls(bill, now)
        self._notes = notes
        account = account_for([SessionFile(self.url, CLIENT, calls=list(self._calls))], self._prices)
        made = watch_account(account, self.url, notes, self._costs)
        totals = WatchedTotals()
        if bill is not None:
            usage = _usage(bill.total)
            rate = Decimal(usage.read) / usage.total_input if usage.total_input else None
            totals = WatchedTotals(bill.total.billed, Decimal(bill.total.cost_usd), rate)
        if totals.calls and not made.calls and not notes:
            notes = ("of earlier calls the server keeps sums only: calls are shown as they come",)
        return WatchedSession(self.url, totals, made.calls, made.next, notes)

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

    def _add_calls(self, bill: ServedBill, now: float) -> None:
        """Note the calls since the last look. A server that began anew has fewer."""
        before = self._bill
        if before is not None and bill.total.calls < before.total.calls:
            self._calls.clear()
            self._last_of.clear()
            before = ServedBill(bill.format, BillShares())
        self._bill = bill
        if before is None:
            return
        known = {share.name: share.billed for share in before.models}
        changed = [share.name for share in bill.models if share.billed > known.get(share.name, 0)]
        model = changed[0] if len(changed) == 1 else SEVERAL
        for place, share in enumerate(bill.conversations):
            old = before.conversations[place] if place < len(before.conversations) else BillShares()
            if share.billed <= old.billed:
                continue
            self._number += 1
            now_used, used_before = _usage(share), _usage(old)
            tokens = (
                max(0, now_used.input_tokens - used_before.input_tokens),
                max(0, now_used.read - used_before.read),
                max(0, now_used.write_5m - used_before.write_5m),
                max(0, now_used.write_1h - used_before.write_1h),
                max(0, now_used.output_tokens - used_before.output_tokens),
            )
            session, is_summed = f"{place + 1}: {share.name}", share.billed - old.billed > 1
            last = self._last_of.get(place, 0)
            call = BilledCall(self._number, 0, model, tokens, now, before=last, session=session, is_summed=is_summed)
            self._calls.append(call)
            self._last_of[place] = self._number
            self._costs = {call.number: self._costs.get(call.number, Decimal(0)) for call in self._calls}
            self._costs[self._number] = Decimal(share.cost_usd) - Decimal(old.cost_usd)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *others: Any) -> None:
        return None


def _usage(share: BillShares) -> Usage:
    return parse_usage(share.usage, "usage")
