"""Times of a log in whole seconds, such as `created` of OpenAI's answers: each is an interval of one second.

An entry is unreadable only if it is for every time in the interval. A first token that came a fraction of a second
after its rounded start may have come before the rounded start of the next call, so its writer is given that much less
(`Call.ready_s`). Calls with equal stamps began at once as far as the log tells (rule 11), unless one goes on from the
other: then that one was answered before.
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

    Calls without a stamp stay as they are. A call that goes on from one with the same stamp starts after it.
    """
    same: list[RecordedCall] = []
    for call in calls:
        if call.timestamp is None:
            yield call
            continue
        if not same or same[0].start != call.start:
            same = []
        before = max((one.start for one in same if _goes_on(call, one)), default=None)
        start = call.start if before is None else min(before + NEXT_S, call.start + ROUNDED_S - NEXT_S)
        rounded = replace(call, start=start, rounding_s=ROUNDED_S)
        same.append(rounded)
        yield rounded


def _goes_on(call: RecordedCall, earlier: RecordedCall) -> bool:
    """Whether the messages of a call begin with all of an earlier one's, and go on with an answer to it."""
    node: Thread | None = call.request.thread
    while node is not None and node.length > earlier.request.thread.length + 1:
        node = node.parent
    if node is None or node.parent is not earlier.request.thread or node.message is None:
        return False
    return node.message.role == "assistant"
