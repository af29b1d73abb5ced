"""What a primitive is, and how one finds a block that may carry a breakpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import ClassVar, Literal

from cachecost.prompts.blocks import Layer, Thread
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.prompts.request import TTL
from cachecost.strategies.placements.thread_index import View

BlockChoice = Literal["last", "first_eligible", "last_text", "second_last"]
Spot = tuple[Layer, Thread | None, int]

ELIGIBLE = ("text", "tool_result")


def blocks_back(tail: Thread) -> Iterator[tuple[Thread, int]]:
    """The blocks of the messages layer as (message, index), latest first."""
    for node in tail.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            yield node, index


def markable_blocks(tail: Thread, distance: int = 0) -> Iterator[Spot]:
    """The block `distance` before the last, or the blocks before it that may have a breakpoint, latest first."""
    for node, index in islice(blocks_back(tail), distance, None):
        assert node.message is not None
        if accepts_breakpoint(node.message.blocks[index]):
            yield Layer.MESSAGES, node, index


def within(node: Thread, which: BlockChoice) -> Iterator[Spot]:
    """The block of one message that `which` names; nothing where there is none."""
    assert node.message is not None
    blocks = node.message.blocks
    if which == "last":
        last = next((index for index in range(len(blocks) - 1, -1, -1) if accepts_breakpoint(blocks[index])), None)
        if last is not None:
            yield Layer.MESSAGES, node, last
        return
    kinds = {"first_eligible": ELIGIBLE, "last_text": ("text",)}.get(which)
    order = range(len(blocks)) if which == "first_eligible" else range(len(blocks) - 1, -1, -1)
    fitting = (i for i in order if accepts_breakpoint(blocks[i]) and (kinds is None or blocks[i].kind in kinds))
    skipped = 1 if which == "second_last" else 0
    yield from ((Layer.MESSAGES, node, index) for index in islice(fitting, skipped, skipped + 1))


@dataclass(frozen=True, slots=True)
class Primitive:
    """One rule for breakpoints. `ttl` is that of its breakpoints; left out, the placement's."""

    ttl: TTL | None = field(default=None, kw_only=True)
    rank: ClassVar[int] = 2
    """Where its breakpoints stand as far as that is certain: 0 tools, 1 system, 2 messages, 3 the very end."""
    least: ClassVar[int] = 1
    """The least value of its whole-number options."""
    sees_forks: ClassVar[bool] = False
    """Whether it looks at how else the threads of its tree went on."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and value < self.least:
                raise ValueError(f"{option.name}={value}: expected at least {self.least}")

    def spots(self, view: View) -> Iterator[Spot]:
        """The blocks to breakpoint, the most wanted first."""
        raise NotImplementedError
