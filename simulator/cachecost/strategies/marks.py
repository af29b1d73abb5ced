"""Where marks go: primitives that compose into every placement, each a few lines.

A primitive says which blocks of a request it would mark, best first; a `Placement` puts several in
order of priority, within a budget of slots. Nothing here counts tokens or knows a provider, and no
primitive walks further back than it must: `Trail` remembers what was walked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import ClassVar, Literal, NamedTuple

from cachecost.prompts.blocks import NOTHING, Layer, Message, Part, Thread
from cachecost.prompts.refusals import is_markable
from cachecost.prompts.request import TTL, Mark

Role = Literal["any", "assistant", "user_wire", "human", "prompt", "tool"]
Which = Literal["last", "first_eligible", "last_text", "second_last"]
Spot = tuple[Layer, Thread | None, int]

MAXIMUM_MARKS = 4
"""The API's limit, automatic caching included (rulebook, rule 6)."""
ORDER = {Layer.TOOLS: 0, Layer.SYSTEM: 1, Layer.MESSAGES: 2}
ELIGIBLE = ("text", "tool_result")


def _has_results(message: Message) -> bool:
    return any(block.kind == "tool_result" for block in message.blocks)


ROLES: dict[Role, Callable[[Message], bool]] = {
    "any": lambda message: True,
    "assistant": lambda message: message.role == "assistant",
    "user_wire": lambda message: message.role == "user",
    "human": lambda message: message.is_human,
    "prompt": lambda message: message.role == "user" and not _has_results(message),
    "tool": lambda message: message.role == "user" and _has_results(message),
}
"""What a message can count as. `user_wire` is what the wire calls a user: tool results count.

`human` is a user message with anything besides tool results; `prompt` one without any.
"""


class Station(NamedTuple):
    """The latest message of a role at or before some message, and how many there are up to it."""

    node: Thread | None
    number: int


class Trail:
    """Finds the latest message of a role; each message is looked at once a role, however many calls ask."""

    def __init__(self) -> None:
        self._known: dict[Role, dict[Thread, Station]] = {}

    def latest(self, role: Role, tail: Thread) -> Station:
        known = self._known.setdefault(role, {})
        path: list[Thread] = []
        node: Thread | None = tail
        while node is not None and node.message is not None and node not in known:
            path.append(node)
            node = node.parent
        station = known[node] if node in known else Station(None, 0)
        for step in reversed(path):
            assert step.message is not None
            if ROLES[role](step.message):
                station = Station(step, station.number + 1)
            known[step] = station
        return station

    def back(self, role: Role, tail: Thread) -> Iterator[Thread]:
        """The messages of a role, latest first."""
        node = self.latest(role, tail).node
        while node is not None:
            yield node
            node = self.latest(role, node.parent).node if node.parent else None


@dataclass(frozen=True, slots=True)
class View:
    """What a placement may look at: a request before it is marked."""

    thread: Thread
    tools: Part = NOTHING
    system: Part = NOTHING
    trail: Trail = field(default_factory=Trail)


def blocks_back(tail: Thread) -> Iterator[tuple[Thread, int]]:
    """The blocks of the messages layer as (message, index), latest first."""
    for node in tail.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            yield node, index


def snapped(tail: Thread, distance: int = 0) -> Iterator[Spot]:
    """The block `distance` before the last, or the markable blocks before it, latest first."""
    for node, index in islice(blocks_back(tail), distance, None):
        assert node.message is not None
        if is_markable(node.message.blocks[index]):
            yield Layer.MESSAGES, node, index


def within(node: Thread, which: Which) -> Iterator[Spot]:
    """The block of one message that `which` names; nothing where there is none."""
    assert node.message is not None
    blocks = node.message.blocks
    kinds = {"first_eligible": ELIGIBLE, "last_text": ("text",)}.get(which)
    order = range(len(blocks)) if which == "first_eligible" else range(len(blocks) - 1, -1, -1)
    fitting = (i for i in order if is_markable(blocks[i]) and (kinds is None or blocks[i].kind in kinds))
    skipped = 1 if which == "second_last" else 0
    yield from ((Layer.MESSAGES, node, index) for index in islice(fitting, skipped, skipped + 1))


@dataclass(frozen=True, slots=True)
class Primitive:
    """One rule for marks. `ttl` is that of its marks; left out, the placement's."""

    ttl: TTL | None = field(default=None, kw_only=True)
    rank: ClassVar[int] = 2
    """Where its marks stand as far as that is certain: 0 tools, 1 system, 2 messages, 3 the very end."""
    least: ClassVar[int] = 1
    """The least value of its whole-number options."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and value < self.least:
                raise ValueError(f"{option.name}={value}: expected at least {self.least}")

    def spots(self, view: View) -> Iterator[Spot]:
        """The blocks to mark, the most wanted first."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LastTool(Primitive):
    """The last tool that is not deferred."""

    rank: ClassVar[int] = 0

    def spots(self, view: View) -> Iterator[Spot]:
        for index in range(len(view.tools.blocks) - 1, -1, -1):
            if not (view.tools.blocks[index].content or {}).get("defer_loading"):
                yield Layer.TOOLS, None, index
                return


@dataclass(frozen=True, slots=True)
class SystemBlock(Primitive):
    """A system block: the last, the last two, the first, each, or one by its number from 0."""

    which: Literal["last", "last_two", "first", "each"] | int = "last"
    rank: ClassVar[int] = 1
    least: ClassVar[int] = 0

    def spots(self, view: View) -> Iterator[Spot]:
        markable = [index for index, block in enumerate(view.system.blocks) if is_markable(block)]
        named = {"last": markable[-1:], "last_two": markable[-2:], "first": markable[:1], "each": markable}
        chosen = named.get(str(self.which))
        if chosen is None:
            chosen = [index for index in markable if index == self.which]
        yield from ((Layer.SYSTEM, None, index) for index in chosen)


@dataclass(frozen=True, slots=True)
class LastMessage(Primitive):
    """A block at the end: the last or the second last of all messages, or one of the last message."""

    block: Which = "last"
    rank: ClassVar[int] = 3

    def spots(self, view: View) -> Iterator[Spot]:
        if self.block in ("last", "second_last"):
            skipped = 0 if self.block == "last" else 1
            yield from islice(snapped(view.thread), skipped, skipped + 1)
        elif view.thread.message is not None:
            yield from within(view.thread, self.block)


@dataclass(frozen=True, slots=True)
class LastN(Primitive):
    """One block of each of the last `n` messages of a role."""

    role: Role = "any"
    n: int = 2
    block: Which = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back(self.role, view.thread), self.n):
            yield from within(node, self.block)


@dataclass(frozen=True, slots=True)
class BeforeHuman(Primitive):
    """The message before the `k`-th most recent human message: where a conversation would branch."""

    k: int = 1
    role: Literal["human", "prompt"] = "human"
    block: Which = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back(self.role, view.thread), self.k - 1, self.k):
            if node.parent is not None and node.parent.message is not None:
                yield from within(node.parent, self.block)


@dataclass(frozen=True, slots=True)
class PreviousHuman(Primitive):
    """The human message before the most recent one."""

    block: Which = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back("human", view.thread), 1, 2):
            yield from within(node, self.block)


@dataclass(frozen=True, slots=True)
class EveryKBlocks(Primitive):
    """Blocks `k`, 2`k`, 3`k` … of the messages, the latest `n` of them."""

    k: int = 20
    n: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        total = view.thread.blocks
        for number in range(min(self.n, total // self.k)):
            yield from islice(snapped(view.thread, total % self.k + number * self.k), 1)


@dataclass(frozen=True, slots=True)
class EveryKTurns(Primitive):
    """Human messages `k`, 2`k`, 3`k` …, the latest `n` of them."""

    k: int = 15
    n: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        humans = view.trail.latest("human", view.thread).number
        for number in range(min(self.n, humans // self.k)):
            skipped = humans % self.k + number * self.k
            for node in islice(view.trail.back("human", view.thread), skipped, skipped + 1):
                yield from within(node, "last")


@dataclass(frozen=True, slots=True)
class Lag(Primitive):
    """The block `blocks` before the last one."""

    blocks: int = 20

    def spots(self, view: View) -> Iterator[Spot]:
        yield from islice(snapped(view.thread, self.blocks), 1)


@dataclass(frozen=True, slots=True)
class Hint(Primitive):
    """The end of the message `offset` before the last: what stays when the last one is thrown away."""

    offset: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.thread.back(), self.offset, self.offset + 1):
            yield from islice(snapped(node), 1)


@dataclass(frozen=True, slots=True)
class Automatic(Primitive):
    """The top-level `cache_control`: the provider marks the last markable block itself."""

    rank: ClassVar[int] = 3

    def spots(self, view: View) -> Iterator[Spot]:
        return iter(())


PRIMITIVES: dict[str, type[Primitive]] = {
    "automatic": Automatic,
    "before_human": BeforeHuman,
    "every_k_blocks": EveryKBlocks,
    "every_k_turns": EveryKTurns,
    "hint": Hint,
    "lag": Lag,
    "last_message": LastMessage,
    "last_n": LastN,
    "last_tool": LastTool,
    "previous_human": PreviousHuman,
    "system_block": SystemBlock,
}
"""Every primitive by the name a scenario gives it."""

NAMES = {primitive: name for name, primitive in PRIMITIVES.items()}

SHORTHANDS: dict[str, Primitive] = {
    "each_system": SystemBlock("each"),
    "first_system": SystemBlock("first"),
    "last_system": SystemBlock("last"),
}
"""Names for a primitive with its option; they take a `ttl` only."""


class Placed(NamedTuple):
    """The marks of a request in prompt order, and the TTL of its top-level `cache_control`."""

    marks: tuple[Mark, ...]
    automatic: TTL | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Primitives in order of priority, and what happens when the slots run out.

    A block that two primitives choose is marked once, as the first of them says. `automatic` keeps
    a slot for itself. Of the rest the first in order stay (`trim` "priority"), or the oldest marks in
    messages go first ("oldest_message"). More than four `slots` is for agents that overflow.
    """

    primitives: tuple[Primitive, ...] = ()
    ttl: TTL = "5m"
    slots: int = MAXIMUM_MARKS
    trim: Literal["priority", "oldest_message"] = "priority"

    def place(self, view: View) -> Placed:
        """The marks for one request."""
        found: dict[Spot, Mark] = {}
        for primitive in self.primitives:
            for spot in primitive.spots(view):
                layer, node, index = spot
                found.setdefault(spot, Mark(layer, index, self.ttl_of(primitive), node))
        room = self.slots - (self.automatic is not None)
        return Placed(tuple(sorted(self._trimmed(found.values(), max(room, 0)), key=_place_of)), self.automatic)

    @property
    def automatic(self) -> TTL | None:
        return next((self.ttl_of(each) for each in self.primitives if isinstance(each, Automatic)), None)

    def ttl_of(self, primitive: Primitive) -> TTL:
        return primitive.ttl or self.ttl

    def _trimmed(self, marks: Iterable[Mark], room: int) -> list[Mark]:
        kept = list(marks)
        if self.trim == "oldest_message" and len(kept) > room:
            inside = sorted((mark for mark in kept if mark.node is not None), key=_place_of)
            oldest = inside[: len(kept) - room]
            kept = [mark for mark in kept if mark not in oldest]
        return kept[:room]

    def ttl_fault(self) -> str | None:
        """Why the API would refuse these TTLs on any request; None where it depends on the request."""
        by_rank = sorted(self.primitives, key=lambda each: each.rank)
        for number, before in enumerate(by_rank):
            for after in by_rank[number + 1 :]:
                if fault := self._pair_fault(before, after):
                    return fault
        return None

    def _pair_fault(self, before: Primitive, after: Primitive) -> str | None:
        one, other = self.ttl_of(before), self.ttl_of(after)
        names = f"{NAMES[type(before)]} at {one} and {NAMES[type(after)]} at {other}"
        if before.rank < after.rank and (one, other) == ("5m", "1h"):
            return f"{names}: a 1h mark must not come after a 5m one"
        if _is_tail(before) and _is_tail(after) and one != other:
            return f"{names}: they mark the same block, which can have one TTL only"
        return None


def _is_tail(primitive: Primitive) -> bool:
    return isinstance(primitive, Automatic) or primitive == LastMessage("last", ttl=primitive.ttl)


def _place_of(mark: Mark) -> tuple[int, int, int]:
    return ORDER[mark.layer], mark.node.length if mark.node else 0, mark.index
