"""Two versions of a list beside each other: which items correspond, which came, which went, whether the order changed.

The list that lies between the two versions, with some of the changes made and others not, is `between`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(eq=False, slots=True)
class Slot(Generic[Item]):
    """An item before and now; None where a version has none. `edit` names the change of it; None: there is none."""

    old: Item | None
    new: Item | None
    edit: Hashable = None

    def item(self, made: Collection[Hashable]) -> Item | None:
        """The item after the changes `made`; None where it is not there (yet)."""
        return self.new if self.edit is None or self.edit in made else self.old


@dataclass(eq=False, slots=True)
class SlotList(Generic[Item]):
    """The slots of two versions, in the order of each. `moved` names the change of the order; None: there is none."""

    old: Sequence[Slot[Item]]
    new: Sequence[Slot[Item]]
    moved: Hashable = None

    @property
    def all(self) -> list[Slot[Item]]:
        """Every slot once, in the new order; what went stands where it stood."""
        return _merge(self.new, self.old)

    def edits(self) -> Iterable[Hashable]:
        """The names of all changes."""
        return [edit for edit in (*(slot.edit for slot in self.all), self.moved) if edit is not None]

    def between(self, made: Collection[Hashable]) -> list[tuple[Slot[Item], Item]]:
        """The slots and items after the changes `made`, in order."""
        is_new_order = self.moved is None or self.moved in made
        slots = _merge(self.new, self.old) if is_new_order else _merge(self.old, self.new)
        return [(slot, item) for slot in slots if (item := slot.item(made)) is not None]


def _merge(base: Sequence[Slot[Item]], extra: Sequence[Slot[Item]]) -> list[Slot[Item]]:
    """`base`, and each slot that only `extra` has behind the one that it follows there."""
    merged, known = list(base), set(map(id, base))
    if len(known | set(map(id, extra))) == len(known):
        return merged
    at = 0
    for slot in extra:
        if id(slot) in known:
            at = next(number for number, one in enumerate(merged) if one is slot) + 1
        else:
            merged.insert(at, slot)
            at += 1
    return merged


def pair_in_order(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int | None, int | None]]:
    """Indices that correspond: of equal keys; between those, in the order they stand. None where one has no more."""
    begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    pairs: list[tuple[int | None, int | None]] = [(number, number) for number in range(begin)]
    matcher = SequenceMatcher(None, old[begin:], new[begin:], autojunk=False)
    for _, i, j, k, m in matcher.get_opcodes():
        both = min(j - i, m - k)
        pairs += [(begin + i + number, begin + k + number) for number in range(both)]
        pairs += [(begin + number, None) for number in range(i + both, j)]
        pairs += [(None, begin + number) for number in range(k + both, m)]
    return pairs


def pair_anywhere(old: Sequence[Hashable], new: Sequence[Hashable]) -> dict[int, int]:
    """Indices of equal keys wherever they stand, the first with the first; old → new."""
    places: dict[Hashable, list[int]] = {}
    for number, key in enumerate(new):
        places.setdefault(key, []).append(number)
    return {number: places[key].pop(0) for number, key in enumerate(old) if places.get(key)}
