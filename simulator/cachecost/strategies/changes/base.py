"""What a change is, and what changes are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from cachecost.conversations.calls import PlannedCall
from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Block, Thread, digest_of
from cachecost.strategies.model_facts import Facts

BYTES_PER_TOKEN = 4
"""What agents assume when they decide whether a context is full."""


@dataclass(frozen=True, slots=True)
class AgentChange:
    """What an agent does besides placing breakpoints: rewrite or split the conversation, or plan other calls.

    A rate is a share of occasions, spread evenly (even_sampling.py). Token counts are assumed, not measured.
    """

    least: ClassVar[int] = 0
    """The least value of its whole-number options."""

    @property
    def lead_s(self) -> float:
        """How many seconds before its first event a conversation may have a call."""
        return 0.0

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and not isinstance(value, bool) and value < self.least:
                raise ValueError(f"{option.name}={value}: expected at least {self.least}")
            if option.name.endswith("_s") and value is not None and value < 0:
                raise ValueError(f"{option.name}={value}: expected no less than 0 seconds")
            if option.name.endswith("rate") and not 0 <= value <= 1:
                raise ValueError(f"{option.name}={value}: expected a share from 0 to 1")

    def apply_to(self, conversation: Conversation, facts: Facts | None) -> Iterable[Conversation]:
        """The conversation as this agent sends it, and the side conversations it adds."""
        return (conversation,)

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
        """The calls as this agent makes them, in the order they start."""
        return calls


@dataclass(slots=True)
class GrowingThread:
    """The main thread of a conversation as its events make it grow."""

    thread: Thread = field(default_factory=Thread)
    _grafts: dict[Thread, Thread] = field(default_factory=dict)

    def graft(self, other: Thread) -> Thread:
        """The same messages as `other` in the tree of this thread. Costs work for what was not grafted before."""
        return other.fold(self._grafts, self.thread.root, Thread.then)

    def take(self, event: Event) -> None:
        """Go on by one event."""
        if isinstance(event, Reply):
            self._grow("assistant", event.blocks)
        elif isinstance(event, Human | Results):
            self._grow("user", event.blocks)
        elif isinstance(event, ThreadRewrite):
            self._rewrite(event)

    def _grow(self, role: str, blocks: tuple[Block, ...]) -> None:
        if blocks:
            self.thread = self.thread.saying(role, blocks)

    def _rewrite(self, event: ThreadRewrite) -> None:
        self.thread = self.thread.up_to(event.keep)
        for message in event.messages:
            self.thread = self.thread.then(message)


def estimate_tokens(block: Block) -> int:
    """Tokens of a block as an agent estimates them."""
    return block.tokens if block.tokens is not None else -(-block.size // BYTES_PER_TOKEN)


def placeholder_for(block: Block, why: str, tokens: int) -> Block:
    """A block of the same kind and role that stands where `block` stood, `tokens` long: cleared, cut, summed up.

    It is the same wherever the same block was treated in the same way.
    """
    digest = digest_of(block.role, block.kind, block.digest + f"{why} {tokens}".encode())
    size = tokens * BYTES_PER_TOKEN
    return replace(block, digest=digest, size=size, content=None, tokens=tokens, counts={}, has_image=False)
