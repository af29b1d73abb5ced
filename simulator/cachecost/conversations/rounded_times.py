"""Calls whose stamps do not tell which of them came first: stamps that are equal, or of whole seconds.

A call that goes on from another, with the answer to it or as its recording says, began after that answer: whatever the
stamps and the time to first token say, it could read what the other wrote. Of equal stamps such calls start one after
another, all before the next stamp: a resumed session copies its earlier calls under one. Other calls with equal stamps
began at once as far as the log tells (rule 11).

Whole seconds, such as `created` of OpenAI's answers, are intervals of one second. An entry is unreadable only if it is
for every time in the interval. A first token that came a fraction of a second after its rounded start may have come
before the rounded start of the next call, so its writer is given that much less (`Call.ready_s`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Thread

ROUNDED_S = 1.0
"""What a stamp of whole seconds hides, at most."""
NEXT_S = 2.0**-10
"""How much later than its stamp of whole seconds a call starts that goes on from another with that stamp."""
NEXT_EXACT_S = 2.0**-21
"""The same of exact stamps: two thousand such calls come before the next millisecond. Both are exact as numbers."""


def is_whole(start: float) -> bool:
    """Whether a time is of whole seconds."""
    return start == start // 1


def separate_equal(calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
    """Calls in time order; those with equal stamps that go on from each other start one after another.

    Calls without a stamp stay as they are. A call is held back while others with its stamp may come before its first
    token.
    """
    stamp, held = _Stamp(NEXT_EXACT_S), list[RecordedCall]()
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


def read_rounded(calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
    """Calls in time order whose stamps are all of whole seconds, each with how far it is rounded.

    Calls without a stamp stay as they are. A call is held back while later ones may start before its first token.
    """
    stamp, held = _Stamp(NEXT_S, ROUNDED_S - NEXT_S), list[RecordedCall]()
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
        self._first: RecordedCall | None = None
        """A call that is not noted yet: most stamps have only one."""
        self._at_thread: dict[Thread, float] = {}
        self._at_line: dict[int, float] = {}

    def place(self, call: RecordedCall) -> RecordedCall:
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

    def _note(self, call: RecordedCall) -> None:
        thread, line = call.request.thread, call.line
        self._at_thread[thread] = max(call.start, self._at_thread.get(thread, call.start))
        self._at_line[line] = max(call.start, self._at_line.get(line, call.start))


def _nearest(call: RecordedCall, starts: dict[Thread, float]) -> float | None:
    """The start of the last call whose messages and answer this one goes on from."""
    node: Thread | None = call.request.thread
    while node is not None and node.parent is not None:
        is_answer = node.message is not None and node.message.role == "assistant"
        if is_answer and node.parent in starts:
            return starts[node.parent]
        node = node.parent
    return None


def _ready_by(call: RecordedCall, moment: float) -> RecordedCall:
    """The call, with what it writes readable at that moment."""
    needed = call.first_token_s - max(0.0, moment - call.start)
    return replace(call, rounding_s=needed) if needed > call.rounding_s else call


def _goes_on(call: RecordedCall, earlier: RecordedCall) -> bool:
    """Whether a call goes on from an earlier one: as recorded, or with all its messages and an answer to it."""
    return _nearest(call, {earlier.request.thread: 0.0}) is not None or 0 < call.before == earlier.line
