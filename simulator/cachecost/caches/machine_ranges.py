"""What a call may read where each machine of a host has a cache of its own: a range, by the shares of its rules.

A prompt that goes on from several earlier ones reads the latest of them on the machine that has that, an older one on
another machine, and nothing on a third. `machine_shares` say how often each was seen. The range has the fewest of them,
in that order, that make up `COVERED` of the calls; so it holds more often than that rather than less. With the last of
them it is from nothing to all, which holds for every call.
"""

from __future__ import annotations

from collections.abc import Mapping

from cachecost.analysis.fidelity.read_ranges import ReadBounds
from cachecost.caches.reporting import reported_read, shared_with, tail_of
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.rules import ModelRules

COVERED = 0.9
"""The share of calls whose read the range is to hold."""


class MachineRanges:
    """The prompts of a recording so far, and where they ended or parted from earlier ones."""

    def __init__(self) -> None:
        self._seen: set[Prefix] = set()
        self._places: dict[Prefix, int] = {}
        """Each with what is counted after it in the prompt that ended there; 0 where prompts parted."""

    def add(self, prompt: Prompt) -> None:
        """Record the prompt of a call. Takes time for the blocks that are new in it."""
        node: Prefix | None = prompt.end
        while node is not None and node not in self._seen:
            self._seen.add(node)
            node = node.parent
        if node is not None:
            self._places.setdefault(node, 0)
        self._places[prompt.end] = tail_of(prompt)

    def range_of(self, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules, most: int) -> ReadBounds | None:
        """The range of a call that reads `most` tokens on the machine that has the latest prompt it goes on from.

        None where it reads nothing anywhere, or its rules know no other machine.
        """
        if not most or not rules.machine_shares:
            return None
        worst = _worst_place(rules.machine_shares)
        if worst == "older":
            return ReadBounds(self._shortest(prompt, sizes, rules, most), most, COVERED)
        return ReadBounds(most, most, COVERED) if worst == "latest" else ReadBounds(0, most, 1.0)

    def _shortest(self, prompt: Prompt, sizes: PrefixSizes, rules: ModelRules, most: int) -> int:
        """The shortest read that one of the earlier prompts would give by itself."""
        total, node, shortest = sizes.total(prompt), prompt.end.parent, most
        while node is not None:
            if node in self._places:
                shared = shared_with(node, self._places[node], sizes, rules)
                shortest = min(shortest, reported_read(shared, total, rules) or most)
            node = node.parent
        return shortest


def _worst_place(shares: Mapping[str, float]) -> str:
    """The last of latest, older and none that the range takes in."""
    covered = 0.0
    for place in ("latest", "older"):
        covered += shares[place]
        if covered >= COVERED:
            return place
    return "none"
