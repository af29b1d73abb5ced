"""The sessions that can be looked at, by an id that fits into an address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.summary import BillSummary, summarize
from cachecost.analysis.bill.timeline import (
    TimelineCall,
    session_account,
    session_key,
    session_timelines,
    sessions_by_time,
)
from cachecost.analysis.viewing.logged_sessions import LoggedSessions
from cachecost.base.errors import Fault, InputError
from cachecost.conversations.input_files import input_path
from cachecost.conversations.readers.detect import CALLS, detect
from cachecost.conversations.recorded_bills import REQUESTS

ADDRESS = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,99}")
"""Session ids that are used as they are."""
DIGEST_BYTES = 6


def session_id(key: str) -> str:
    """The id of a session in addresses: its own, or 12 hex digits of a digest where that does not fit into one."""
    if ADDRESS.fullmatch(key):
        return key
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


def has_calls(path: str, format_: str) -> bool:
    """Whether a file holds calls with their requests, and not only what they cost."""
    try:
        return detect(input_path(path), format_)[0] in CALLS
    except (InputError, OSError):
        return False


@dataclass(frozen=True, slots=True)
class ViewedSession:
    """A session: its part of the account, that in figures, and its calls in the order of time.

    Without `has_bill` the calls have no bill, and all figures are those of a replay. `has_text` says whether the
    content of blocks is known, `has_blocks` whether at least their sizes are.
    """

    id: str
    key: str
    account: BillAccount
    summary: BillSummary
    calls: Sequence[TimelineCall]
    has_bill: bool
    has_blocks: bool
    has_text: bool

    @property
    def files(self) -> list[str]:
        """The paths of its files, in the order of their first calls."""
        return list(dict.fromkeys(one.file.path for one in self.calls))


@dataclass(slots=True)
class SessionListing:
    """All sessions of an account. `skipped` are the files and lines that could not be read, `format_` is that of the
    files ("auto": each has its own).
    """

    account: BillAccount
    logged: LoggedSessions
    skipped: Sequence[Fault] = ()
    format_: str = "auto"
    summary: BillSummary = field(init=False)
    _keys: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.summary = summarize(self.account)
        self._keys = {session_id(key): key for key in self.keys}

    @property
    def keys(self) -> list[str]:
        """The keys of all sessions, the most expensive first."""
        return [row.key for row in self.summary.rows]

    def keys_by_time(self) -> list[str]:
        """The keys of all sessions, the most recent first."""
        return sessions_by_time(self.account)

    def count_threads(self) -> dict[str, int]:
        """How many threads each session has: its main one and its sub-agents."""
        agents: dict[str, set[str]] = {key: {""} for key in self.keys}
        for file, call in self.account.calls():
            agents[session_key(file, call)].add(call.agent)
        return {key: len(names) for key, names in agents.items()}

    def count_calls(self) -> dict[str, int]:
        """How many calls each session has, by its id."""
        return {session_id(row.key): row.calls for row in self.summary.rows}

    def open(self, id_: str) -> ViewedSession:
        """The session of this id. Raises KeyError."""
        return self.open_key(self._keys[id_])

    def open_key(self, key: str) -> ViewedSession:
        """The session of this key."""
        alone = session_account(self.account, key)
        calls = session_timelines(alone, [key])[key]
        stored = [one.file.path for one in calls if one.file.client != REQUESTS]
        is_stored = bool(stored) and has_calls(stored[0], self.format_)
        return ViewedSession(
            session_id(key),
            key,
            alone,
            summarize(alone),
            calls,
            key not in self.logged.without_bill,
            is_stored or key in self.logged.with_requests,
            is_stored or key in self.logged.with_text,
        )
