"""The calls of a recording in time order, independent of their order in the file.

- Calls are sorted by time. Equal times, and calls without a time, keep the order of the file (rule 11: a call without a
  time starts 2 s after the one before it in the file).
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
from cachecost.conversations.start_times import SECONDS_BETWEEN_UNTIMED

Times = Callable[[Path], Iterator[float]]
"""When the calls of a file start, in its order, as far as it can be read."""
Kind = TypeVar("Kind")


def order_by_time(calls: Iterable[RecordedCall], path: Path, warn: Warn, times: Times | None) -> Iterator[RecordedCall]:
    """The calls of a file in time order; if the file has another order, each call has its `number` in the file.

    The same time on all calls is dropped, with a warning. Raises what iterating over `calls` raises.
    """
    if times is not None and path.is_file() and _is_rising(path, times):
        yield from _check_rising(calls, path)
    else:
        yield from _sort(list(calls), path, warn)


def _sort(found: list[RecordedCall], path: Path, warn: Warn) -> Iterator[RecordedCall]:
    if len(found) > 1 and all(call.timestamp is not None and call.start == found[0].start for call in found):
        warn(f"{path}: all {len(found):,} calls have the same timestamp: ignored, taken as 2 s apart in file order")
        yield from _drop_times(found)
    elif all(one.start <= other.start for one, other in pairwise(found)):
        yield from found
    else:
        numbered = [replace(call, number=number) for number, call in enumerate(found, 1)]
        yield from sorted(numbered, key=attrgetter("start"))


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


def _is_rising(path: Path, times: Times) -> bool:
    """Whether no call starts before the one before it, and not all start at once."""
    token = WATCH.set(lambda size: None)
    try:
        first: float | None = None
        last: float | None = None
        for start in times(path):
            if last is not None and start < last:
                return False
            first = start if first is None else first
            last = start
        return first != last
    finally:
        WATCH.reset(token)


def _drop_times(calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
    """The calls without their times; rules and prices stay those of their day."""
    for place, call in enumerate(calls):
        start = call.start + place * SECONDS_BETWEEN_UNTIMED
        yield replace(call, start=start, timestamp=None)
