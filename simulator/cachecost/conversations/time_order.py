"""The calls of a recording in time order, independent of their order in the file.

- Calls are sorted by time. Equal times, and calls without a time, keep the order of the file (rule 11: a call without a
  time starts 2 s after the one before it in the file). Of equal times, a call that goes on from another starts after
  it; where all stamps are of whole seconds, they are rounded down: rounded_times.py.
- The same time on all calls of a recording means no times: all were stamped at once.

A log in time order is read line by line and never held in memory. A pass over the times alone, if a reader offers one
(`times`), tells before the first call whether it is in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import WATCH, Warn
from cachecost.conversations.rounded_times import is_whole, read_rounded, separate_equal
from cachecost.conversations.start_times import SECONDS_BETWEEN_UNTIMED

Times = Callable[[Path], Iterator[float]]
"""When the calls of a file start, in its order, as far as it can be read."""
Kind = TypeVar("Kind")


def order_by_time(calls: Iterable[RecordedCall], path: Path, warn: Warn, times: Times | None) -> Iterator[RecordedCall]:
    """The calls of a file in time order; if the file has another order, each call has its `number` in the file.

    The same time on all calls is dropped, with a warning. Raises what iterating over `calls` raises.
    """
    order = _TimeOrder(path, times) if times is not None and path.is_file() else None
    if order is not None and order.is_rising:
        found = _check_rising(calls, path)
        yield from read_rounded(found) if order.is_whole else separate_equal(found)
    else:
        sorted_calls = list(_sort(list(calls), path, warn))
        if all(is_whole(call.start) for call in sorted_calls):
            yield from read_rounded(sorted_calls)
        else:
            yield from _by_start(list(separate_equal(sorted_calls)))


def _sort(found: list[RecordedCall], path: Path, warn: Warn) -> Iterator[RecordedCall]:
    if len(found) > 1 and all(call.timestamp is not None and call.start == found[0].start for call in found):
        warn(f"{path}: all {len(found):,} calls have the same timestamp: ignored, taken as 2 s apart in file order")
        yield from _drop_times(found)
    else:
        yield from _by_start(found)


def _by_start(found: list[RecordedCall]) -> list[RecordedCall]:
    """The calls by their start; if that is another order than theirs, each has its `number` in the file."""
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
    for _, one in sorted(waiting, key=lambda pair: pair[0]):
        yield one


def _check_rising(calls: Iterable[RecordedCall], path: Path) -> Iterator[RecordedCall]:
    """Calls whose times were checked before. Raises InputError if one has another time now."""
    last = -inf
    for call in calls:
        if call.start < last:
            raise InputError([Fault(str(path), "timestamp: expected one in this line; got several", call.line)])
        last = call.start
        yield call


class _TimeOrder:
    """What a pass over the times of a file tells. `is_rising`: no call starts before the one before it, and not all
    start at once; `is_whole`: all start at whole seconds."""

    def __init__(self, path: Path, times: Times) -> None:
        self.is_rising, self.is_whole = True, True
        token = WATCH.set(lambda size: None)
        try:
            self._read(times(path))
        finally:
            WATCH.reset(token)

    def _read(self, starts: Iterator[float]) -> None:
        first: float | None = None
        last: float | None = None
        for start in starts:
            self.is_whole = self.is_whole and is_whole(start)
            if last is not None and start < last:
                self.is_rising = False
                return
            first = start if first is None else first
            last = start
        self.is_rising = first != last


def _drop_times(calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
    """The calls without their times; rules and prices stay those of their day."""
    for place, call in enumerate(calls):
        start = call.start + place * SECONDS_BETWEEN_UNTIMED
        yield replace(call, start=start, timestamp=None)
