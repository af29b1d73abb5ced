"""The sessions that can be looked at, each by an id that fits into an address, and their calls beside those before.

Calls without a bill get the usage of a replay. Of two recordings it is found which call of one corresponds to which of
the other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Protocol

from cachecost.analysis.bill.account import BillAccount, session_key
from cachecost.analysis.bill.explanation import hold_losses
from cachecost.analysis.bill.summary import BillSummary, summarize
from cachecost.analysis.bill.timeline import TimelineCall, session_account, session_timelines
from cachecost.analysis.viewing.blocks import (
    CallChanges,
    SentBlock,
    TextDifference,
    compare_blocks,
    first_text_difference,
    readable_text,
    sent_blocks,
)
from cachecost.base.atomic_files import current_work_check
from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.structs import replace
from cachecost.changes.steps import NO_CALL
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import input_path
from cachecost.conversations.logs import Logs, read_logs
from cachecost.conversations.readers.detect import CALLS, detect
from cachecost.conversations.start_times import REQUESTS
from cachecost.prompts.compare import pair_in_order
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload


def key_of_call(call: Call) -> str:
    """The key of a call's session, as in `session_key`."""
    return call.session or call.file


@dataclass(slots=True)
class LoggedSessions:
    """What the calls of logs say of their sessions: which have no bill, which have requests, and which have text.

    `unknown` counts calls without a bill that cannot be simulated, by why.
    """

    setup: ReplaySetup
    without_bill: set[str] = field(default_factory=set)
    with_requests: set[str] = field(default_factory=set)
    with_text: set[str] = field(default_factory=set)
    unknown: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def complete(self, calls: list[Call]) -> Sequence[Call]:
        """The calls, those of sessions without any bill with what a replay says of them."""
        billed = {key_of_call(call) for call in calls if call.billed is not None}
        for call in calls:
            key, request = key_of_call(call), call.request
            if key not in billed:
                self.without_bill.add(key)
            if not call.is_bill_only:
                self.with_requests.add(key)
            blocks = (*request.system.blocks[:1], *request.tools.blocks[:1], *request.thread.message_blocks)
            if any(block.content is not None for block in blocks):
                self.with_text.add(key)
        if not self.without_bill:
            return calls
        simulation = recorded_workload("", calls, self.setup.with_recorded(calls, None)).simulation()
        made = []
        for call in calls:
            row = simulation.row(call)
            if key_of_call(call) not in self.without_bill or call.has_failed:
                made.append(call)
            elif row.error is not None:
                self.unknown[row.error] += 1
            else:
                made.append(replace(call, billed=row.usage))
        return made


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
        is_stored, logged = bool(stored) and has_calls(stored[0], self.format_), self.logged
        has_blocks, has_text = is_stored or key in logged.with_requests, is_stored or key in logged.with_text
        has_bill, summary = key not in logged.without_bill, summarize(alone)
        return ViewedSession(session_id(key), key, alone, summary, calls, has_bill, has_blocks, has_text)


class NoRequests(CannotEvaluate):
    """The requests of a session are not known."""

    def __init__(self) -> None:
        super().__init__("the session has no requests: only its bill is known")


class Reading(Protocol):
    """Gives the calls of files."""

    def read(self, files: Sequence[str]) -> Sequence[Call]:
        """Raises InputError where none can be read."""
        ...


@dataclass(slots=True)
class CallReading:
    """Reads the calls of files; the last few readings are kept, so that sessions of one log share one."""

    format_: str = "auto"
    _kept: dict[tuple[str, ...], Sequence[Call]] = field(default_factory=dict)

    def read(self, files: Sequence[str]) -> Sequence[Call]:
        """The calls of these files. Raises InputError where none can be read."""
        key = tuple(files)
        found = self._kept.pop(key, None)
        if found is None:
            paths = [input_path(path) for path in files]
            calls: list[Call] = []
            check = current_work_check()
            try:
                for call in read_logs(Logs(paths, self.format_)):
                    calls.append(call)
                    if check is not None:
                        check()
            except InputError:
                if not calls:
                    raise
            found = calls
        self._kept[key] = found
        while len(self._kept) > 3:
            del self._kept[next(iter(self._kept))]
        return found


def calls_of_session(session: ViewedSession, read: Sequence[Call]) -> list[tuple[int, Call]]:
    """The recorded calls of a session, in the order read, each with its number there; 0 for one that does not count:
    it has no bill, or is a copy of a call of another session.

    A call is found by the line it was recorded at, else by its id.
    """
    by_place = {(one.file.path, one.call.line): one for one in session.calls}
    by_id = {one.call.id: one for one in session.calls if one.call.id}
    found: list[tuple[int, Call]] = []
    seen: set[int] = set()
    for call in read:
        one = by_place.get((call.file, call.line)) if call.line else None
        if one is None or (call.session and one.call.session not in (call.session, "", call.file)):
            one = by_id.get(call.id) if call.id else None
        if one is None and key_of_call(call) == session.key:
            found.append((NO_CALL, call))
        elif one is not None and one.number not in seen:
            seen.add(one.number)
            found.append((one.number, call))
    return found


@dataclass
class SessionReplay:
    """The recorded calls of a session with their `numbers` in it, and what a replay of them says, made once.

    `shares_files`: the files hold calls of other sessions, too.
    """

    session: ViewedSession
    numbers: Sequence[int]
    workload: Workload
    shares_files: bool

    @classmethod
    def of(cls, session: ViewedSession, reading: Reading, setup: ReplaySetup) -> SessionReplay:
        """Raises NoRequests where the requests are not known, InputError where they cannot be read."""
        if not session.has_blocks:
            raise NoRequests
        read = reading.read(session.files)
        pairs = calls_of_session(session, read)
        calls = [call for _, call in pairs]
        if all(call.is_bill_only for call in calls):
            raise NoRequests
        workload = recorded_workload(session.key, calls, setup.with_recorded(calls, None))
        return cls(session, [number for number, _ in pairs], workload, len(pairs) < len(read))

    @property
    def counts_all(self) -> bool:
        """Whether no call is replayed that could cost something and does not count in this session."""
        pairs = zip(self.numbers, self.workload.calls, strict=True)
        return all(number != NO_CALL or call.has_failed for number, call in pairs)

    @cached_property
    def held(self) -> Workload:
        """The workload with the losses of its bills that nothing explains: what alternatives are compared with. Calls
        that are not cached by breakpoints are as they were. Raises CannotEvaluate.
        """
        try:
            self.workload.require_support("view")
        except CannotEvaluate:
            return self.workload
        return hold_losses(self.workload)[0]

    @cached_property
    def made(self) -> Mapping[int, SimulatedCall]:
        """What the cache did with each call, by its number in the session. Raises CannotEvaluate."""
        simulation = self.held.simulation()
        made = dict(zip(self.numbers, map(simulation.simulate, self.held.calls), strict=True))
        made.pop(NO_CALL, None)
        return made

    @cached_property
    def recorded(self) -> Mapping[int, Call]:
        """The recorded calls that were read, by their number in the session."""
        pairs = zip(self.numbers, self.workload.calls, strict=True)
        return {number: call for number, call in pairs if not call.is_simulated}


CallKey = bytes
"""What a call adds to its conversation; empty where that is not known."""


def call_keys(listing: SessionListing, reading: CallReading, calls: Sequence[TimelineCall]) -> list[CallKey]:
    """The key of each call, a digest of its last message: its text, else its blocks. Ids of tool calls differ from run
    to run. Raises InputError where a file can no longer be read."""
    keys: dict[int, CallKey] = {}
    for session in map(listing.open_key, listing.keys):
        for number, call in calls_of_session(session, reading.read(session.files)) if session.has_blocks else ():
            if not number:
                continue
            digest = blake2b(digest_size=16)
            for block in call.request.thread.message_blocks:
                text = readable_text(block)
                words = "" if text is None else f"{block.kind} {len(text)} {text}"
                digest.update(words.encode("utf-8", "surrogatepass") or block.digest)
            is_known = call.request.thread.message is not None
            keys[id(session.calls[number - 1].call)] = digest.digest() if is_known else b""
    return [keys.get(id(one.call), b"") for one in calls]


def pair_calls(left: Sequence[CallKey], right: Sequence[CallKey]) -> list[tuple[int, int]]:
    """The indices of calls that correspond, rising: of equal keys, and between those in the order they stand."""
    pairs = pair_in_order(left, right)
    return [(one, other) for one, other in pairs if one is not None and other is not None]


Blocks = Sequence[SentBlock]


@dataclass(frozen=True, slots=True)
class ViewedCall:
    """A call, the one that it continues (None: it begins a thread), and the blocks of both; none are known of a bill
    alone. `made` is what a replay says of it.
    """

    call: TimelineCall
    before: TimelineCall | None
    blocks: Blocks
    blocks_before: Blocks
    changes: CallChanges
    made: SimulatedCall | None

    @property
    def has_text(self) -> bool:
        """Whether the content of any block is known."""
        return any(one.block is not None and one.block.content is not None for one in self.blocks)

    @property
    def difference(self) -> TextDifference | None:
        """Where the first block that changed differs from its counterpart."""
        at = self.changes.first_changed
        old, new = (None, None) if at is None else (self.counterpart(at), self.blocks[at].block)
        if at is None or old is None or old.block is None or new is None:
            return None
        return first_text_difference(old.block, new, self.blocks[at].layer)

    def counterpart(self, at: int) -> SentBlock | None:
        """The block of the call before that a block corresponds to."""
        place = self.changes.blocks[at].before
        return None if place is None else self.blocks_before[place]


def view_call(session: ViewedSession, replay: SessionReplay | None, number: int) -> ViewedCall:
    """The call of this number (from 1); without `replay`, its bill alone. Raises KeyError."""
    if not 1 <= number <= len(session.calls):
        raise KeyError(number)
    one = session.calls[number - 1]
    earlier = reversed(session.calls[: number - 1])
    before = next((other for other in earlier if other.call is one.before), None) if one.before else None
    blocks = _find_blocks(session, replay, one)
    blocks_before = _find_blocks(session, replay, before) if before else ()
    made = replay.made.get(number) if replay else None
    return ViewedCall(one, before, blocks, blocks_before, compare_blocks(blocks_before, blocks), made)


def _find_blocks(session: ViewedSession, replay: SessionReplay | None, one: TimelineCall) -> Blocks:
    recorded = replay.recorded.get(one.number) if replay else None
    if replay is None or recorded is None or recorded.is_bill_only:
        return ()
    billed = None if one.call.is_summed else one.call.usage
    return sent_blocks(recorded, replay.made.get(one.number), billed)
