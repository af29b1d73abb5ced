"""Which entries calls may find (rule 9): such as an earlier call could have written, no further back than they look."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.structs import value
from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules

NONE = -1
"""No entry."""
Numbers = tuple[int, ...]


class Entries:
    """Marked prefixes, numbered in the order they are met."""

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []
        self._numbers: dict[Prefix, int] = {}

    def number(self, prefix: Prefix) -> int:
        number = self._numbers.get(prefix)
        if number is None:
            number = self._numbers[prefix] = len(self.prefixes)
            self.prefixes.append(prefix)
        return number

    def before(self, number: int, most: int) -> int:
        """The deepest entry before this one, or NONE; it is looked for up to `most` positions back."""
        prefix = self.prefixes[number]
        node = prefix.parent
        while node is not None and prefix.position - node.position <= most:
            found = self._numbers.get(node)
            if found is not None:
                return found
            node = node.parent
        return NONE


@value
class Tree:
    """All that candidates depend on. Prefixes of different models are different; how they stand is mostly the same."""

    spots: list[Numbers]
    """Of each call the entries that its marks write, in prompt order."""
    rules: list[tuple[int, bool]]
    """Of each call, how far it looks back, and whether runs of blocks count as one position."""
    depths: list[int]
    positions: list[int]
    before: list[int]

    def candidates(self) -> list[Numbers]:
        """Of each call the entries that it may find, in the order it looks."""
        known, found = 0, []
        for spots, (most, collapses) in zip(self.spots, self.rules, strict=True):
            at = self.positions if collapses else self.depths
            found.append(self._of(spots, known, most, at))
            known = max(known, max(spots, default=NONE) + 1)
        return found

    def _of(self, spots: Numbers, known: int, most: int, at: Sequence[int]) -> Numbers:
        seen: dict[int, None] = {}
        for mark in reversed(spots):
            entry, last = mark, at[mark] - most
            while entry != NONE and at[entry] > last:
                if entry < known:
                    seen[entry] = None
                entry = self.before[entry]
        return tuple(seen)


def tree_of(entries: Entries, spots: list[Numbers], rules: Sequence[ModelRules], ways: Sequence[int]) -> Tree:
    """How the entries of calls stand to each other; `ways` says by which of the rules each call looks back."""
    back = [(one.lookback_positions, one.collapses_runs) for one in rules]
    most = max((positions for positions, _ in back), default=0)
    return Tree(
        spots,
        [back[way] for way in ways],
        [prefix.depth for prefix in entries.prefixes],
        [prefix.position for prefix in entries.prefixes],
        [entries.before(number, most) for number in range(len(entries.prefixes))],
    )
