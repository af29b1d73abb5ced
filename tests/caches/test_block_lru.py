"""The cache of a server of one's own against one of blocks, written as plainly as possible: every read is the same."""

from __future__ import annotations

from random import Random

import pytest
from trees import Tree, rules

from cachecost.caches.fixed_blocks import FixedBlockCache

BLOCK = 16


class Blocks:
    """Each block by the whole way to it. The least recently used goes first, of one call its last."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.used: dict[tuple[str, ...], int] = {}
        self.calls = 0

    def call(self, names: tuple[str, ...]) -> int:
        """Blocks that are read of a prompt; its last token is computed anew, so its last block never is."""
        if len(names) > self.room:
            return 0  # not served
        ways = [names[: number + 1] for number in range(len(names))]
        found = next((number for number, way in enumerate(ways) if way not in self.used), len(ways))
        self.calls += 1
        self.used.update(dict.fromkeys(ways, self.calls))
        while len(self.used) > self.room:
            del self.used[min(self.used, key=lambda way: (self.used[way], -len(way)))]
        return min(found, len(names) - 1)


def traffic(seed: int) -> list[tuple[str, ...]]:
    """Conversations over shared documents: they go on, part, come again, and end. Each name is a block."""
    draw = Random(seed)
    documents = [tuple(f"d{one}.{block}" for block in range(draw.randint(2, 12))) for one in range(4)]
    known = list(documents)
    for number in range(60):
        before = draw.choice(known[-12:]) if draw.random() < 0.8 else draw.choice(documents)
        new = tuple(f"{number}.{block}" for block in range(draw.randint(0, 5)))
        known.append(before + new)
    return known[len(documents) :]


@pytest.mark.parametrize("room", [1, 7, 20, 40, 90, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_every_read_is_that_of_a_plain_cache_of_blocks(seed: int, room: int) -> None:
    tree, grid, plain = Tree(), FixedBlockCache(), Blocks(room)
    holds = rules(step_tokens=BLOCK, recomputed_tokens=1, capacity_tokens=room * BLOCK)
    for at, names in enumerate(traffic(seed)):
        read = grid.call(tree.prompt(*(f"{name}:{BLOCK}" for name in names)), holds, at).read
        assert read == plain.call(names) * BLOCK, f"call {at}"
