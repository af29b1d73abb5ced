"""Times of a log in whole seconds, such as `created` of OpenAI's answers: each is an interval of one second.

An entry is unreadable only if it is for every time in the interval. A first token that came a fraction of a second
after its rounded start may have come before the rounded start of the next call, so its writer is given that much less
(`Call.ready_s`). Calls with equal stamps began at once as far as the log tells (rule 11).

A call that goes on from another, with the answer to it, began after that answer: whatever the stamps and the time to
first token say, it could read what the other wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Thread

ROUNDED_S = 1.0
"""What a stamp of whole seconds hides, at most."""
NEXT_S = 2.0**-10
"""How much later than its equal stamp a call starts that goes on from another: about a millisecond, and exact."""


def is_whole(start: float) -> bool:
    """Whether a time is of whole seconds."""
    return start == start // 1


def read_rounded(calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
    """Calls in time order whose stamps are all of whole seconds, each with how far it is rounded.

    Calls without a stamp stay as they are. A call is held back while later ones may start before its first token.
    """
    log = _RoundedLog()
    for call in calls:
        yield from log.add(call)
    yield from log.held


class _RoundedLog:
    """A log while it is read. `held` are calls that a later one may show to have been answered earlier."""

    def __init__(self) -> None:
        self.held: list[RecordedCall] = []
        self._second = 0.0
        self._same: list[RecordedCall] = []
        """The calls of the latest second."""

    def add(self, call: RecordedCall) -> Iterator[RecordedCall]:
        """Take the next call; those that no later one can change any more."""
        rounded = call if call.timestamp is None else self._rounded(call)
        self.held = [_ready_by(one, rounded.start) if _goes_on(rounded, one) else one for one in self.held]
        self.held.append(rounded)
        while self.held and self.held[0].start + self.held[0].ready_s <= rounded.start:
            yield self.held.pop(0)

    def _rounded(self, call: RecordedCall) -> RecordedCall:
        """The call, later than those of its second that it goes on from."""
        if self._second != call.start:
            self._second, self._same = call.start, []
        before = max((one.start for one in self._same if _goes_on(call, one)), default=None)
        start = call.start if before is None else min(before + NEXT_S, call.start + ROUNDED_S - NEXT_S)
        self._same.append(replace(call, start=start, rounding_s=ROUNDED_S))
        return self._same[-1]


def _ready_by(call: RecordedCall, moment: float) -> RecordedCall:
    """The call, with what it writes readable at that moment."""
    needed = call.first_token_s - max(0.0, moment - call.start)
    return replace(call, rounding_s=needed) if needed > call.rounding_s else call


def _goes_on(call: RecordedCall, earlier: RecordedCall) -> bool:
    """Whether the messages of a call begin with all of an earlier one's, and go on with an answer to it."""
    node: Thread | None = call.request.thread
    while node is not None and node.length > earlier.request.thread.length + 1:
        node = node.parent
    if node is None or node.parent is not earlier.request.thread or node.message is None:
        return False
    return node.message.role == "assistant"
