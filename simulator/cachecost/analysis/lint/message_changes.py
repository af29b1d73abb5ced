"""Messages of a request that differ in the next one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from cachecost.analysis.lint.blocks import CHANGED, KEY_ORDER, VOLATILE, Difference
from cachecost.analysis.lint.changes import block_finding, difference_finding
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest, Place, message_blocks, message_place
from cachecost.caches.changes import LONG_TEXT, share_of_long_text
from cachecost.prompts.blocks import Block, Thread

GONE = Difference(CHANGED, "", "is missing from the next request")


def check_messages(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """What was changed in messages that go on: one finding a code, at the first block that has it.

    Another conversation, a message that was taken back, a fork: those are no faults. So a difference counts only
    if later messages of `a` stand in `b` again, or if it is in the last message of `a`, and `b` goes on from there.
    """
    shared = a.request.thread.common(b.request.thread).length
    old, new = a.messages(shared), b.messages(shared)
    if not old or not new:
        return
    stays, is_same = (
        _stays(old, new) or (shared == 0 and _rest_stays(old[0], new[0])),
        shared > 0 or _begins_alike(old[0], new[0]),
    )
    found: dict[str, LintFinding] = {}
    for one in _differences(a, b, old, new):
        is_word = one.code in (VOLATILE, KEY_ORDER)
        if stays or (_goes_on(a, b, old) and (is_same or is_word)):
            found.setdefault(one.code, one)
        if not is_word:
            break
    yield from found.values()


def _stays(old: list[Thread], new: list[Thread]) -> bool:
    """Whether an answer, or results of tools, after the first difference stand in both. People repeat themselves."""
    kept = {node.message.digest for node in new if node.message and not node.message.is_human}
    return any(node.message.digest in kept for node in old if node.message)


def _rest_stays(old: Thread, new: Thread) -> bool:
    """Whether a long block, or most of a long text, of a first message is in both, and not where they begin."""
    one, other = message_blocks(old), message_blocks(new)
    known = {block.digest for block in one if block.size >= LONG_TEXT}
    first = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a.digest != b.digest), len(other))
    if any(block.digest in known for block in other[first:]):
        return True
    return any(share_of_long_text(a, b) for a, b in zip(one[first:], other[first:], strict=False))


def _goes_on(a: LoadedRequest, b: LoadedRequest, old: list[Thread]) -> bool:
    """Whether only the last message of `a` differs, and `b` has more after it."""
    return len(old) == 1 and b.request.thread.length > a.request.thread.length


def _begins_alike(old: Thread, new: Thread) -> bool:
    one, other = message_blocks(old), message_blocks(new)
    return bool(one and other) and one[0].digest == other[0].digest


def _differences(a: LoadedRequest, b: LoadedRequest, old: list[Thread], new: list[Thread]) -> Iterator[LintFinding]:
    """Block by block, until messages no longer correspond, or no breakpoint of `a` comes after."""
    for one, other in zip(old, new, strict=False):
        if one.message is None or other.message is None or one.message.digest == other.message.digest:
            continue
        for before, after in zip_longest(_counted_blocks(one, b), _counted_blocks(other, b)):
            if before is None or not a.reaches(before[0]):
                return
            place, block = before
            if after is None:
                yield difference_finding(a, b, place, block, a.path(place), GONE)
                return
            if block.digest != after[1].digest:
                yield block_finding(a, b, place, block, *after)


def _counted_blocks(node: Thread, b: LoadedRequest) -> Iterator[tuple[Place, Block]]:
    """The blocks of a message as they count in `b`: where the model drops thinking, it does not matter who does."""
    human = b.request.thread.human
    drops = not b.rules.keeps_thinking and human is not None and node.length < human.length
    for index, block in enumerate(message_blocks(node)):
        if not (drops and block.is_thinking):
            yield message_place(node, index), block
