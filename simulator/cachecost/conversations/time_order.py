"""The calls of a recording in the order in which they happened, whatever their order in the file.

- Calls are put in the order of their times; where times are equal, and for calls without one, the order of the file
  decides (rule 11: a call without a time starts 2 s after the one before it in the file).
- Equal times on all calls of a recording mean no times: somebody stamped them all at once.

A log whose times rise is passed on line by line and never held in memory. Whether they do is known before the first
call is passed on, by a look at the times alone, where a reader offers one (`times`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import WATCH, Warn
from cachecost.conversations.start_times import SECONDS_BETWEEN_UNTIMED

Times = Callable[[Path], Iterator[float]]
"""When the calls of a file start, in its order, as far as it can be read."""
Kind = TypeVar("Kind")


def order_by_time(calls: Iterable[RecordedCall], path: Path, warn: Warn, times: Times | None) -> Iterator[RecordedCall]:
    """The calls of a file in the order of their times; where that is not the file's, they have their `number` there.

    Equal times on all calls are taken away, which is said to `warn`. Raises what iterating over `calls` raises.
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
    """What was made of calls in time order, in the order of their file, by the `number` of each call (0: the same)."""
    waiting = []
    for number, one in made:
        if number:
            waiting.append((number, one))
        else:
            yield one
    for _, one in sorted(waiting, key=lambda pair: pair[0]):
        yield one


def _check_rising(calls: Iterable[RecordedCall], path: Path) -> Iterator[RecordedCall]:
    """Calls whose times were looked at before. Raises InputError where one has another time than it seemed to have."""
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
