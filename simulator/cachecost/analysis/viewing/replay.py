"""A session replayed as it was sent: the recorded calls behind its bill, and what the cache did with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cachecost.analysis.bill.held_losses import hold_losses
from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.analysis.replays.steps import NO_CALL
from cachecost.analysis.viewing.listing import ViewedSession
from cachecost.analysis.viewing.logged_sessions import key_of_call
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.work_checks import current_work_check
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import input_path
from cachecost.conversations.logs import Logs, read_logs
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload

KEPT_READINGS = 3


class NoRequests(CannotEvaluate):
    """The requests of a session are not known."""

    def __init__(self) -> None:
        super().__init__("the session has no requests: only its bill is known")


class Reading(Protocol):
    """Gives the calls of files."""

    def read(self, files: Sequence[str]) -> Sequence[RecordedCall]:
        """Raises InputError where none can be read."""
        ...


@dataclass(slots=True)
class CallReading:
    """Reads the calls of files; the last few readings are kept, so that sessions of one log share one."""

    format_: str = "auto"
    _kept: dict[tuple[str, ...], Sequence[RecordedCall]] = field(default_factory=dict)

    def read(self, files: Sequence[str]) -> Sequence[RecordedCall]:
        """The calls of these files. Raises InputError where none can be read."""
        key = tuple(files)
        found = self._kept.pop(key, None)
        if found is None:
            found = _read_what_can_be([input_path(path) for path in files], self.format_)
        self._kept[key] = found
        while len(self._kept) > KEPT_READINGS:
            del self._kept[next(iter(self._kept))]
        return found


def _read_what_can_be(paths: Sequence[Path], format_: str) -> Sequence[RecordedCall]:
    """The calls up to the first error. Raises InputError where there is none."""
    calls: list[RecordedCall] = []
    check = current_work_check()
    try:
        for call in read_logs(Logs(paths, format_)):
            calls.append(call)
            if check is not None:
                check()
    except InputError:
        if not calls:
            raise
    return calls


def calls_of_session(session: ViewedSession, read: Sequence[RecordedCall]) -> list[tuple[int, RecordedCall]]:
    """The recorded calls of a session, in the order read, each with its number there; 0 for one that does not count:
    it has no bill, or is a copy of a call of another session.

    A call is found by the line it was recorded at, else by its id.
    """
    by_place = {(one.file.path, one.call.line): one for one in session.calls}
    by_id = {one.call.id: one for one in session.calls if one.call.id}
    found: list[tuple[int, RecordedCall]] = []
    seen: set[int] = set()
    for call in read:
        one = _counterpart(call, by_place, by_id)
        if one is None and key_of_call(call) == session.key:
            found.append((NO_CALL, call))
        elif one is not None and one.number not in seen:
            seen.add(one.number)
            found.append((one.number, call))
    return found


def _counterpart(
    call: RecordedCall, by_place: Mapping[tuple[str, int], TimelineCall], by_id: Mapping[str, TimelineCall]
) -> TimelineCall | None:
    found = by_place.get((call.file, call.line)) if call.line else None
    if found is not None and (not call.session or found.call.session in (call.session, "", call.file)):
        return found
    return by_id.get(call.id) if call.id else None


@dataclass(slots=True)
class SessionReplay:
    """The recorded calls of a session with their `numbers` in it, and what a replay of them says, made once.

    `shares_files`: the files hold calls of other sessions, too.
    """

    session: ViewedSession
    numbers: Sequence[int]
    workload: Workload
    shares_files: bool
    _held: Workload | None = None
    _calls: dict[int, RecordedCall] = field(default_factory=dict)
    _made: dict[int, SimulatedCall] = field(default_factory=dict)

    @classmethod
    def of(cls, session: ViewedSession, reading: Reading, setup: ReplaySetup) -> SessionReplay:
        """Raises NoRequests where the requests are not known, InputError where they cannot be read."""
        if not session.has_blocks:
            raise NoRequests
        read = reading.read(session.files)
        pairs = calls_of_session(session, read)
        calls = [call for _, call in pairs]
        if not any(not call.is_bill_only for call in calls):
            raise NoRequests
        workload = recorded_workload(session.key, calls, setup.with_recorded(calls, None))
        return cls(session, [number for number, _ in pairs], workload, len(pairs) < len(read))

    @property
    def counts_all(self) -> bool:
        """Whether no call is replayed that could cost something and does not count in this session."""
        pairs = zip(self.numbers, self.workload.calls, strict=True)
        return all(number != NO_CALL or call.has_failed for number, call in pairs)

    @property
    def held(self) -> Workload:
        """The workload with the losses of its bills that nothing explains: what alternatives are compared with. Calls
        that are not cached by breakpoints are as they were. Raises CannotEvaluate.
        """
        if self._held is None:
            self._held = hold_losses(self.workload)[0] if self._uses_breakpoints() else self.workload
        return self._held

    def _uses_breakpoints(self) -> bool:
        try:
            self.workload.require_breakpoints("view")
        except CannotEvaluate:
            return False
        return True

    @property
    def made(self) -> Mapping[int, SimulatedCall]:
        """What the cache did with each call, by its number in the session. Raises CannotEvaluate."""
        if not self._made:
            simulation = self.held.simulation()
            made = dict(zip(self.numbers, map(simulation.simulate, self.held.calls), strict=True))
            made.pop(NO_CALL, None)
            self._made = made
        return self._made

    def recorded(self, number: int) -> RecordedCall | None:
        """The recorded call of this number in the session; None where it is not among those that were read."""
        return self._by_number().get(number)

    def _by_number(self) -> Mapping[int, RecordedCall]:
        if not self._calls:
            pairs = zip(self.numbers, self.workload.calls, strict=True)
            self._calls.update((number, call) for number, call in pairs if isinstance(call, RecordedCall))
        return self._calls
