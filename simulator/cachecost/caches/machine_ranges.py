"""What a call may read where each machine of a host has a cache of its own: a range, by the shares of its rules.

A prompt that goes on from several earlier ones reads the latest of them on the machine that has that. On another it
reads what was read before that, on a third what an older call read, and on a fourth nothing. `machine_shares`
say how often each was seen, `first_shares` the same where no call has read the prompt yet: its first repetition may
come before the entry can be read, or to a machine without it. The range has the fewest of these places, in that order,
that make up `COVERED` of the calls; so it holds more often than that rather than less. With the last of them it is from
nothing to all, which holds for every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cachecost.caches.read_ranges import ReadBounds
from cachecost.caches.reporting import reported_read, shared_with, tail_of
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.rules import ModelRules

COVERED = 0.9
"""The share of calls whose read the range is to hold."""
PLACES = ("latest", "previous", "older")


class _Sender(NamedTuple):
    """A call, in tokens: what is counted after its prompt's last block, its answer, and what it read (0: nothing); of
    the calls on the way to it, the longest read that was shorter, and the shortest."""

    tail: int
    answer: int
    read: int
    shorter: int
    least: int

    def read_before(self, most: int) -> int:
        """The longest read on its way that is shorter than `most`, or `most` where none is."""
        return next((read for read in (self.read, self.shorter) if 0 < read < most), most)


class MachineRanges:
    """The prompts of a replay so far: for each prefix, a call that sent it, the latest where prompts end or part."""

    def __init__(self) -> None:
        self._senders: dict[Prefix, _Sender] = {}

    def add(self, prompt: Prompt, read: int, answer: int = 0) -> None:
        """Record the prompt of a call that read so many tokens and was answered with so many (0: not known).

        Takes time for the blocks that are new in it.
        """
        new: list[Prefix] = []
        node: Prefix | None = prompt.end
        while node is not None and node not in self._senders:
            new.append(node)
            node = node.parent
        before = self._senders[node] if node else _Sender(0, 0, 0, 0, 0)
        shorter = before.read if before.read < read else before.shorter
        least = min(filter(None, (before.least, read)), default=0)
        sender = _Sender(0, 0, read, shorter, least)
        self._senders.update(dict.fromkeys(new, sender))
        if node is not None and read:
            self._senders[node] = before._replace(read=read, shorter=shorter, least=least)
        self._senders[prompt.end] = sender._replace(tail=tail_of(prompt), answer=answer)

    def range_of(
        self, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules, most: int, reach: int = 0
    ) -> ReadBounds | None:
        """The range of a call that reads `most` tokens on the machine that has the latest prompt it goes on from.

        None where it reads nothing anywhere, or its rules know no other machine. Earlier calls sent the first `reach`
        tokens: a range that holds for every call goes up to there.
        """
        if not most or not rules.varies_by_machine:
            return None
        node: Prefix | None = prompt.end
        while node is not None and node not in self._senders:
            node = node.parent
        latest = self._senders[node] if node else None
        place = _worst_place(rules.machine_shares if latest and latest.read else rules.first_shares)
        if node is None or latest is None or place == "none":
            return ReadBounds(0, max(most, reach - reach % rules.reported_step_tokens), 1.0)
        least = {"latest": most, "previous": latest.read_before(most), "older": latest.least}[place]
        return ReadBounds(min(least, most), max(most, _with_answer(node, latest, prompt, sizes, rules)), COVERED)


def _with_answer(node: Prefix, sender: _Sender, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules) -> int:
    """The most that a call reads of a prompt that ended at `node` and of its answer, where answers are kept.

    What a client wrote in the place of an answer may begin with the same words.
    """
    if not rules.keeps_answers or not sender.answer or node is prompt.end:
        return 0
    shared = shared_with(node, sender.tail, sizes, rules) + rules.opener_tokens + sender.answer
    return reported_read(shared, sizes.total(prompt), rules)


def _worst_place(shares: Mapping[str, float]) -> str:
    """The last of the places that the range takes in."""
    covered = 0.0
    for place in PLACES:
        covered += shares.get(place, 0.0)
        if covered >= COVERED:
            return place
    return "none"
