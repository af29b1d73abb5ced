"""The entries that each call may find (rule 9): written by an earlier call, within reach of the call's lookback.

Entries are numbers here, so that the same answer serves many models, TTLs and seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules

NONE = -1
"""No entry."""
Numbers = tuple[int, ...]


class EntryIndex:
    """Numbers cache entries from 0, in the order they are first written.

    An entry is a marked prefix, and its TTL where the cache keeps one entry per TTL ("" elsewhere).
    """

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []
        self._ttls: list[str] = []
        self._numbers: defaultdict[str, dict[Prefix, int]] = defaultdict(dict)

    def number(self, prefix: Prefix, ttl: str = "") -> int:
        """The number of an entry; the next free one if the entry is new."""
        numbers = self._numbers[ttl]
        number = numbers.get(prefix)
        if number is None:
            number = numbers[prefix] = len(self.prefixes)
            self.prefixes.append(prefix)
            self._ttls.append(ttl)
        return number

    def parent(self, number: int, most: int) -> int:
        """The deepest entry of the same TTL above this one, at most `most` positions away; else NONE."""
        prefix, numbers = self.prefixes[number], self._numbers[self._ttls[number]]
        node = prefix.parent
        while node is not None and prefix.position - node.position <= most:
            found = numbers.get(node)
            if found is not None:
                return found
            node = node.parent
        return NONE


class EntryTree(msgspec.Struct, frozen=True):
    """Everything that candidates depend on. Models have different prefixes, but mostly equal trees."""

    writes: list[Numbers]
    """For each call, the entries that its breakpoints write, in prompt order."""
    rules: list[tuple[int, bool]]
    """For each call, how many positions it looks back, and whether a run of blocks counts as one position."""
    depths: list[int]
    positions: list[int]
    parents: list[int]

    def find_candidates(self) -> list[Numbers]:
        """For each call, the entries that it may find, in the order it looks.

        From its last breakpoint on, every entry in the window of one that an earlier call wrote (number below `known`).
        """
        known, found = 0, []
        for writes, (most, collapses) in zip(self.writes, self.rules, strict=True):
            at = self.positions if collapses else self.depths
            seen: dict[int, None] = {}
            for breakpoint in reversed(writes):
                entry, last = breakpoint, at[breakpoint] - most
                while entry != NONE and at[entry] > last:
                    if entry < known:
                        seen[entry] = None
                    entry = self.parents[entry]
            found.append(tuple(seen))
            known = max(known, max(writes, default=NONE) + 1)
        return found


def build_tree(
    entries: EntryIndex, writes: list[Numbers], rules: Sequence[ModelRules], rule_numbers: Sequence[int]
) -> EntryTree:
    """The tree of all entries. `rule_numbers` has, for each call, the index of its rules in `rules`."""
    back = [(one.lookback_positions, one.collapses_runs) for one in rules]
    most = max((positions for positions, _ in back), default=0)
    return EntryTree(
        writes,
        [back[number] for number in rule_numbers],
        [prefix.depth for prefix in entries.prefixes],
        [prefix.position for prefix in entries.prefixes],
        [entries.parent(number, most) for number in range(len(entries.prefixes))],
    )
