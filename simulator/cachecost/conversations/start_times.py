"""The times of calls: when they start, lines of a log in a buffer, calls as billed calls, and a file in time order.

A call starts at its timestamp, or 2 s after the one before it (rule 11). Where stamps do not tell which of two calls
came first, as they are equal or of whole seconds, the one that goes on from the other starts later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import inf
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import LINE
from cachecost.base.structs import replace
from cachecost.base.times import seconds
from cachecost.conversations.calls import APART, Call
from cachecost.conversations.input_files import (
    BOM,
    COMMENT,
    WATCH,
    BilledCall,
    SessionFile,
    Warn,
    billed_call,
    open_input,
    token_counts,
    too_long,
)
from cachecost.prompts.blocks import Thread
from cachecost.prompts.request import NotAMessage
from cachecost.providers.prices import terms_of
from cachecost.providers.rules import VIA

PIECE = 1 << 20
"""Bytes of the buffer to begin with; it doubles when a line does not fit."""


class BufferLine(NamedTuple):
    """One line, its newline included: `buffer[start:stop]`. Valid until the next line is read."""

    number: int
    buffer: bytearray
    start: int
    stop: int

    def copy(self) -> bytes:
        """The line as bytes of its own."""
        return bytes(memoryview(self.buffer)[self.start : self.stop])

    def without(self, start: int, stop: int, instead: bytes) -> bytes:
        """A copy with `instead` in place of `buffer[start:stop]`."""
        view = memoryview(self.buffer)
        return b"".join((view[self.start : start], instead, view[stop : self.stop]))


def lines_in_place(path: Path) -> Iterator[BufferLine]:
    """The lines of a file, as `byte_lines` has them. Raises InputError where it cannot be read."""
    watch, most, is_head = WATCH.get(), LINE.value(), True
    buffer, start, filled, number = bytearray(PIECE), 0, 0, 0
    with open_input(path) as stream:
        while True:
            searched = start
            while (end := buffer.find(b"\n", searched, filled) + 1) == 0:
                searched = filled - start
                if start:
                    buffer[:searched] = buffer[start:filled]
                start, filled = 0, searched
                if filled == len(buffer):
                    if filled > most:
                        raise too_long(path, number + 1)
                    buffer = buffer + bytearray(len(buffer))
                read = stream.readinto1(memoryview(buffer)[filled:])
                filled += read
                if not read:
                    break
            end = end or filled
            if end == start:
                return
            number += 1
            if end - start > most:
                raise too_long(path, number)
            watch(end - start)
            line = BufferLine(number, buffer, start, end)
            if is_head:
                text = line.copy().removeprefix(BOM)
                is_comment = text.lstrip().startswith(COMMENT)
                line, is_head = (
                    line._replace(start=line.stop if is_comment else line.stop - len(text)),
                    is_comment or text.isspace(),
                )
            yield line
            start = end


REQUESTS = "requests"
"""The client of calls that were recorded one by one, not read from an agent's session store."""
SERVER_TOOLS = "server_tool_use"


class RecordedSessions:
    """Groups the recorded calls of a log by session, and finds which call continues which."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files: dict[tuple[str, str], SessionFile] = {}
        self._at_thread: dict[tuple[str, str, Thread], int] = {}

    def add_all(self, calls: Iterable[Call]) -> list[BilledCall | None]:
        """The billed calls, in order; None for a call that has no bill or failed."""
        return [self.add(call) for call in calls]

    def add(self, call: Call) -> BilledCall | None:
        returned = call.returned_usage
        if returned is None or call.has_failed:
            return None
        path = call.file or self.path
        key = (path, call.session)
        file = self._files.get(key)
        if file is None:
            file = self._files[key] = SessionFile(path, REQUESTS, call.project, [])
            file.has_requests = not call.is_bill_only
        start = call.start if call.timestamp is not None else None
        made = billed_call(call.line, call.request.model, returned, start, agent=call.agent, id=call.id)
        made.number, made.session, made.host = len(file.calls) + 1, call.session or call.file, call.host or ""
        made.upstream = call.workspace.partition(VIA)[2]
        made.modes = terms_of(call.request.params, call.is_batch).modes
        made.extra = tuple((one.model, token_counts(one.usage)) for one in call.iterations if one.kind in APART)
        passes = sum(one.kind == "message" for one in call.iterations)
        made.is_summed = passes > 1 or any(block.kind == SERVER_TOOLS for block in call.response)
        made.answered = None if start is None else start + call.first_token_s
        if call.is_bill_only:
            made.before = len(file.calls)
        else:  # the latest call whose messages this one begins with
            nodes = ((*key, node) for node in call.request.thread.back())
            made.before = next((self._at_thread[node] for node in nodes if node in self._at_thread), 0)
            self._at_thread[(*key, call.request.thread)] = made.number
        file.calls.append(made)
        return made

    @property
    def files(self) -> list[SessionFile]:
        return list(self._files.values())


ROUNDED_S = 1.0
"""What a stamp of whole seconds hides, at most."""
NEXT_S = 2.0**-10
"""How much later than its stamp of whole seconds a call starts that goes on from another with that stamp."""
NEXT_EXACT_S = 2.0**-21
"""The same of exact stamps: two thousand such calls come before the next millisecond. Both are exact as numbers."""


def is_whole(start: float) -> bool:
    """Whether a time is of whole seconds."""
    return start == start // 1


def separate_equal(calls: Iterable[Call]) -> Iterator[Call]:
    """Calls in time order; those with equal stamps that go on from each other start one after another. Calls without a
    stamp stay as they are. A call is held back while others with its stamp may come before its first token."""
    stamp, held = _Stamp(NEXT_EXACT_S), list[Call]()
    for call in calls:
        if held and call.start != stamp.start:
            yield from held
            held = []
        placed = call if call.timestamp is None else stamp.place(call)
        if held or placed.first_token_s:
            held = [_ready_by(one, placed.start) if _goes_on(placed, one) else one for one in held]
            held.append(placed)
        else:
            yield placed
    yield from held


def read_rounded(calls: Iterable[Call]) -> Iterator[Call]:
    """Calls in time order whose stamps are all of whole seconds, each with how far it is rounded. Calls without a stamp
    stay as they are. A call is held back while later ones may start before its first token."""
    stamp, held = _Stamp(NEXT_S, ROUNDED_S - NEXT_S), list[Call]()
    for call in calls:
        placed = call if call.timestamp is None else replace(stamp.place(call), rounding_s=ROUNDED_S)
        held = [_ready_by(one, placed.start) if _goes_on(placed, one) else one for one in held]
        held.append(placed)
        while held and held[0].start + held[0].ready_s <= placed.start:
            yield held.pop(0)
    yield from held


class _Stamp:
    """The calls with one stamp, each `step_s` later than those that it goes on from, and at most `most_s` in all."""

    def __init__(self, step_s: float, most_s: float = inf) -> None:
        self.start: float | None = None
        self._step_s, self._most_s = step_s, most_s
        self._first: Call | None = None
        """A call that is not noted yet: most stamps have only one."""
        self._at_thread: dict[Thread, float] = {}
        self._at_line: dict[int, float] = {}

    def place(self, call: Call) -> Call:
        if self.start != call.start:
            self.start, self._first = call.start, call
            return call
        if self._first is not None:
            self._at_thread, self._at_line = {}, {}
            self._note(self._first)
            self._first = None
        recorded = self._at_line.get(call.before) if call.before else None
        earlier = recorded, _nearest(call, self._at_thread)
        if known := [start for start in earlier if start is not None]:
            call = replace(call, start=min(max(known) + self._step_s, self.start + self._most_s))
        self._note(call)
        return call

    def _note(self, call: Call) -> None:
        thread, line = call.request.thread, call.line
        self._at_thread[thread] = max(call.start, self._at_thread.get(thread, call.start))
        self._at_line[line] = max(call.start, self._at_line.get(line, call.start))


def _nearest(call: Call, starts: dict[Thread, float]) -> float | None:
    """The start of the last call whose messages and answer this one goes on from."""
    for node in call.request.thread.back():
        if node.message is not None and node.message.role == "assistant" and node.parent in starts:
            return starts[node.parent]
    return None


def _ready_by(call: Call, moment: float) -> Call:
    needed = call.first_token_s - max(0.0, moment - call.start)
    return replace(call, rounding_s=needed) if needed > call.rounding_s else call


def _goes_on(call: Call, earlier: Call) -> bool:
    """Whether a call goes on from an earlier one: as recorded, or with all its messages and an answer to it."""
    return _nearest(call, {earlier.request.thread: 0.0}) is not None or 0 < call.before == earlier.line


SECONDS_BETWEEN_UNTIMED = 2.0


def parse_time(timestamp: str) -> float:
    """ISO 8601 -> seconds since the epoch; a time without a zone is UTC. Raises NotAMessage."""
    try:
        return seconds(timestamp)
    except (ValueError, OverflowError):
        raise NotAMessage("timestamp", "an ISO 8601 time", timestamp) from None


class StartTimes:
    """The start of each call of a file. Rule 11: a call without a time starts 2 s after the one before it."""

    def __init__(self) -> None:
        self.last: float | None = None

    def next(self, timestamp: str | None, start: float | None = None) -> float:
        """Seconds since the epoch of the next call; without a timestamp, `start` if given. Raises NotAMessage."""
        if timestamp is not None:
            self.last = parse_time(timestamp)
        elif start is not None:
            self.last = start
        else:
            self.last = 0.0 if self.last is None else self.last + SECONDS_BETWEEN_UNTIMED
        return self.last

    def next_if_unusual(self, start: float, timestamp: str | None) -> float | None:
        """`start` if neither the timestamp nor rule 11 gives it; else None."""
        usual = self.next(timestamp)
        self.last = start
        return start if timestamp is None and start != usual else None


Times = Callable[[Path], Iterator[float]]
"""When the calls of a file start, in its order, as far as it can be read."""
Kind = TypeVar("Kind")


def order_by_time(calls: Iterable[Call], path: Path, warn: Warn, times: Times | None) -> Iterator[Call]:
    """The calls of a file in time order; if the file has another order, each call has its `number` in the file. The
    same time on all calls is dropped, with a warning. Raises what iterating over `calls` raises."""
    is_rising, all_whole = _order_of(path, times) if times is not None and path.is_file() else (False, False)
    if is_rising:
        found = _check_rising(calls, path)
        yield from read_rounded(found) if all_whole else separate_equal(found)
        return
    read = list(calls)
    if len(read) > 1 and all(call.timestamp is not None and call.start == read[0].start for call in read):
        warn(f"{path}: all {len(read):,} calls have the same timestamp: ignored, taken as 2 s apart in file order")
        for place, call in enumerate(read):  # rules and prices stay those of their day
            read[place] = replace(call, start=call.start + place * SECONDS_BETWEEN_UNTIMED, timestamp=None)
    else:
        read = _by_start(read)
    if all(is_whole(call.start) for call in read):
        yield from read_rounded(read)
    else:
        yield from _by_start(list(separate_equal(read)))


def _by_start(found: list[Call]) -> list[Call]:
    if all(one.start <= other.start for one, other in pairwise(found)):
        return found
    numbered = [replace(call, number=call.number or number) for number, call in enumerate(found, 1)]
    return sorted(numbered, key=attrgetter("start"))


def in_file_order(made: Iterable[tuple[int, Kind]]) -> Iterator[Kind]:
    """Results of calls in time order, sorted back to file order by the `number` of each call (0: already in order)."""
    waiting = []
    for number, one in made:
        if number:
            waiting.append((number, one))
        else:
            yield one
    yield from (one for _, one in sorted(waiting, key=itemgetter(0)))


def _check_rising(calls: Iterable[Call], path: Path) -> Iterator[Call]:
    """Calls whose times were checked before. Raises InputError if one has another time now."""
    last = -inf
    for call in calls:
        if call.start < last:
            raise InputError([Fault(str(path), "timestamp: expected one in this line; got several", call.line)])
        last = call.start
        yield call


def _order_of(path: Path, times: Times) -> tuple[bool, bool]:
    """(whether no call of a file starts before the one before it, and not all at once; whether all start at whole
    seconds), from one pass over its times."""
    all_whole, first, last = True, None, -inf
    token = WATCH.set(lambda size: None)
    try:
        for start in times(path):
            if start < last:
                return False, all_whole
            all_whole = all_whole and is_whole(start)
            first, last = start if first is None else first, start
    finally:
        WATCH.reset(token)
    return first is not None and first != last, all_whole
