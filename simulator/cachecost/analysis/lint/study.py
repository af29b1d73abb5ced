"""Requests one after another, each with the one it goes on from -> findings, each told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cachecost.analysis.lint.blocks import KEY_ORDER
from cachecost.analysis.lint.blocks import VOLATILE as CONFIRMED
from cachecost.analysis.lint.changes import TOOL_ORDER, system_changed, tools_changed
from cachecost.analysis.lint.finding import LintFinding, merged
from cachecost.analysis.lint.guesses import MAYBE, SURE, Guesser, early
from cachecost.analysis.lint.lengths import lengths
from cachecost.analysis.lint.parameters import parameters
from cachecost.analysis.lint.refused import refused
from cachecost.analysis.lint.rewritten import messages_changed
from cachecost.analysis.lint.sent import Sent
from cachecost.analysis.lint.tails import lookback, stuck

MARGIN = 3
"""A mark that fewer more positions than these would put out of reach is too near to the end of the lookback."""
NOTHING, NO_MARK, HEAD_ONLY = "CC510", "CC520", "CC522"
ACCIDENTS = frozenset({CONFIRMED, KEY_ORDER, TOOL_ORDER})
"""What nobody does on purpose."""
Index = int


class Study:
    """Takes requests in order; `findings` are what is wrong with them, alone and in pairs."""

    def __init__(self, margin: int = MARGIN) -> None:
        self._margin = margin
        self._guesser = Guesser()
        self._found: list[tuple[Index, LintFinding]] = []
        self._before: list[Index | None] = []
        self._is_live: list[bool] = []
        self._is_log: list[bool] = []
        self._sent_again: set[bytes] = set()

    def add(
        self, sent: Sent, before: Sent | None = None, before_index: Index | None = None, *, is_aside: bool = False
    ) -> Index:
        """Look at a request, and at the step to it from the one before; its number.

        One that is aside is sent otherwise on purpose: of the step to it only accidents are told.
        """
        index = len(self._before)
        self._before.append(before_index)
        self._is_live.append(bool(sent.live))
        self._is_log.append(sent.call is not None)
        found = list(self._alone(sent))
        if before is not None:
            self._sent_again |= {one.digest for one in found if one.digest} & {block.digest for block in early(before)}
            pair = _pair(before, sent, self._margin, {one.code for one in found})
            found += [one for one in pair if not is_aside or one.code in ACCIDENTS]
        self._found += [(index, replace(one, request=sent.label, call=sent.call)) for one in found]
        return index

    def _alone(self, sent: Sent) -> Iterator[LintFinding]:
        yield from refused(sent)
        yield from lengths(sent)
        yield from self._guesser.guesses(sent)

    @property
    def findings(self) -> list[LintFinding]:
        """All findings, the worst first, each told once."""
        grows, in_pair = self._grown(), self._in_pairs()
        kept = [
            one
            for index, one in self._found
            if not (one.code == NOTHING and index in grows)
            and not (one.code == NO_MARK and self._is_log[index] and index not in in_pair)
        ]
        return merged(_settled(kept, self._sent_again))

    def _grown(self) -> set[Index]:
        """Requests that a later one with a mark that counts goes on from: their conversation was only short yet."""
        grown: set[Index] = set()
        for index in range(len(self._before) - 1, -1, -1):
            before = self._before[index]
            if before is not None and (self._is_live[index] or index in grown):
                grown.add(before)
        return grown

    def _in_pairs(self) -> set[Index]:
        pairs = [(index, before) for index, before in enumerate(self._before) if before is not None]
        return {one for pair in pairs for one in pair}


def _pair(a: Sent, b: Sent, margin: int, alone: set[str]) -> Iterator[LintFinding]:
    """What the step from a request to the next one loses, or may."""
    if a.live:
        yield from parameters(a, b)
        yield from tools_changed(a, b)
        yield from system_changed(a, b)
        yield from messages_changed(a, b)
    yield from lookback(a, b, margin)
    yield from (one for one in stuck(a, b) if HEAD_ONLY not in alone)


def _settled(found: Sequence[LintFinding], sent_again: set[bytes]) -> Iterator[LintFinding]:
    """Without guesses that pairs have settled: the same block was sent again, or it was seen to change."""
    sightings = {(one.digest, one.request, one.call) for one in found if one.digest}
    again = Counter(digest for digest, _, _ in sightings)
    seen = tuple({one.path for one in found if one.code == CONFIRMED})
    for one in found:
        is_guess = one.code in (SURE, MAYBE)
        if not is_guess or not (one.digest in sent_again or again[one.digest] > 1 or one.path in seen):
            yield one
