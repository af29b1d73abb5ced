"""Where breakpoints go: primitives that compose into placements.

A primitive says which blocks of a request it would breakpoint, best first; a `Placement` puts several in order of
priority, within a budget of slots. Nothing here counts tokens (a few go by an agent's own estimate) or knows a
provider, and no primitive walks further back than it must: `ThreadIndex` remembers what was walked before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations, islice, pairwise
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from cachecost.base.structs import replace
from cachecost.prompts.blocks import NOTHING, Layer, Message, Part, Thread, estimate_tokens
from cachecost.prompts.compare import first_changed_block
from cachecost.prompts.request import TTL, Breakpoint, accepts_breakpoint, is_server_tool

Role = Literal["any", "assistant", "user_wire", "human", "prompt", "tool", "not_system"]
State = TypeVar("State")


ROLES: dict[Role, Callable[[Message], bool]] = {
    "any": lambda message: True,
    "assistant": lambda message: message.role == "assistant",
    "user_wire": lambda message: message.role == "user",
    "human": lambda message: message.is_human,
    "prompt": lambda message: message.role == "user" and all(one.kind != "tool_result" for one in message.blocks),
    "tool": lambda message: message.role == "user" and any(one.kind == "tool_result" for one in message.blocks),
    "not_system": lambda message: message.role != "system",
}
"""What a message can count as. `user_wire` is what the wire calls a user: tool results count.

`human` is a user message with anything besides tool results; `prompt` one without any. `not_system` leaves
out messages of `role: system` in mid-conversation.
"""


class ThreadIndex:
    """Results per message of the threads of one plan: each question visits each message once.

    `memory` is for what a primitive learns from one request for the next.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, dict[Thread, Any]] = {}
        self.memory: dict[Hashable, Any] = {}

    def fold(self, key: Hashable, tail: Thread, start: State, step: Callable[[State, Thread], State]) -> State:
        """`start`, stepped on by every message from the first to `tail`. `key` names the question."""
        known: dict[Thread, State] = self._known.setdefault(key, {})
        path: list[Thread] = []
        node: Thread | None = tail
        while node is not None and node.message is not None and node not in known:
            path.append(node)
            node = node.parent
        state = known.get(node, start) if node else start
        for passed in reversed(path):
            state = known[passed] = step(state, passed)
        return state

    def latest(self, role: Role, tail: Thread) -> Thread | None:

        def step(found: Thread | None, node: Thread) -> Thread | None:
            return node if node.message is not None and ROLES[role](node.message) else found

        return self.fold(("latest", role), tail, None, step)

    def back(self, role: Role, tail: Thread) -> Iterator[Thread]:
        """The messages of a role, latest first."""
        node = self.latest(role, tail)
        while node is not None:
            yield node
            node = self.latest(role, node.parent) if node.parent else None


@dataclass(frozen=True, slots=True)
class View:
    """What a placement may look at: a request before it gets breakpoints."""

    thread: Thread
    tools: Part = NOTHING
    system: Part = NOTHING
    trail: ThreadIndex = field(default_factory=ThreadIndex)


BlockChoice = Literal["last", "first_eligible", "last_text", "second_last"]
Position = tuple[Layer, Thread | None, int]
Positions = tuple[Position, ...]
Nodes = tuple[Thread, ...]
NO_POSITIONS: Positions = ()
NO_NODES: Nodes = ()


def blocks_back(tail: Thread) -> Iterator[tuple[Thread, int]]:
    """The blocks of the messages layer as (message, index), latest first."""
    for node in tail.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            yield node, index


def markable_blocks(tail: Thread, distance: int = 0) -> Iterator[Position]:
    """The block `distance` before the last, or the blocks before it that may have a breakpoint, latest first."""
    for node, index in islice(blocks_back(tail), distance, None):
        assert node.message is not None
        if accepts_breakpoint(node.message.blocks[index]):
            yield Layer.MESSAGES, node, index


def within(node: Thread, which: BlockChoice) -> Iterator[Position]:
    """The block of one message that `which` names; nothing where there is none."""
    assert node.message is not None
    blocks = node.message.blocks
    if which == "last":
        last = next((index for index in range(len(blocks) - 1, -1, -1) if accepts_breakpoint(blocks[index])), None)
        if last is not None:
            yield Layer.MESSAGES, node, last
        return
    kinds = {"first_eligible": ("text", "tool_result"), "last_text": ("text",)}.get(which)
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

    def positions(self, view: View) -> Iterator[Position]:
        """The blocks to breakpoint, the most wanted first."""
        raise NotImplementedError


NAMED: Mapping[str | int, slice] = {
    "last": slice(-1, None),
    "last_two": slice(-2, None),
    "first": slice(1),
    "first_two": slice(2),
    "each": slice(None),
}
"""Which of the system blocks that may carry a breakpoint."""


@dataclass(frozen=True, slots=True)
class LastTool(Primitive):
    """The last tool that is not deferred."""

    rank: ClassVar[int] = 0

    def positions(self, view: View) -> Iterator[Position]:
        for index in range(len(view.tools.blocks) - 1, -1, -1):
            if not (view.tools.blocks[index].content or {}).get("defer_loading"):
                yield Layer.TOOLS, None, index
                return


@dataclass(frozen=True, slots=True)
class SystemBlock(Primitive):
    """A system block: the last, the last two, the first, the first two, each, or one by its number from 0.

    Definitions of web search and web fetch are rendered before them and are none: a breakpoint there writes nothing.
    """

    which: Literal["last", "last_two", "first", "first_two", "each"] | int = "last"
    rank: ClassVar[int] = 1
    least: ClassVar[int] = 0

    def positions(self, view: View) -> Iterator[Position]:
        blocks, named = enumerate(view.system.blocks), NAMED.get(self.which)
        places = [index for index, block in blocks if accepts_breakpoint(block) and not is_server_tool(block)]
        for index in places[named] if named else places:
            if named or index == self.which:
                yield Layer.SYSTEM, None, index


@dataclass(frozen=True, slots=True)
class SegmentEnd(Primitive):
    """The end of a static part: `head` is the last system block, or the last tool where there is no system prompt.

    `documents` is the last document block of the first user message, where attachments go. The ends of tools and
    of one system block are `last_tool` and `system_block`.
    """

    segment: Literal["head", "documents"] = "head"

    def positions(self, view: View) -> Iterator[Position]:
        if self.segment == "documents":
            yield from view.trail.fold(self, view.thread, NO_POSITIONS, self._step)
        else:
            yield from (*SystemBlock("last").positions(view), *LastTool().positions(view))[:1]

    def _step(self, found: Positions, node: Thread) -> Positions:
        if node.length > 1 or node.message is None or node.message.role != "user":
            return found
        places = [index for index, block in enumerate(node.message.blocks) if block.kind == "document"]
        return tuple((Layer.MESSAGES, node, index) for index in places[-1:])


@dataclass(frozen=True, slots=True)
class LastMessage(Primitive):
    """A block at the end: the last or the second last of all messages, or one of the last message."""

    block: BlockChoice = "last"
    rank: ClassVar[int] = 3

    def positions(self, view: View) -> Iterator[Position]:
        if self.block in ("last", "second_last"):
            skipped = 0 if self.block == "last" else 1
            yield from islice(markable_blocks(view.thread), skipped, skipped + 1)
        elif view.thread.message is not None:
            yield from within(view.thread, self.block)


@dataclass(frozen=True, slots=True)
class LastN(Primitive):
    """One block of each of the last `n` messages of a role."""

    role: Role = "any"
    n: int = 2
    block: BlockChoice = "last"

    def positions(self, view: View) -> Iterator[Position]:
        for node in islice(view.trail.back(self.role, view.thread), self.n):
            yield from within(node, self.block)


@dataclass(frozen=True, slots=True)
class BeforeHuman(Primitive):
    """The message before the `k`-th most recent human message: where a conversation would branch."""

    k: int = 1
    role: Literal["human", "prompt"] = "human"
    block: BlockChoice = "last"

    def positions(self, view: View) -> Iterator[Position]:
        for node in islice(view.trail.back(self.role, view.thread), self.k - 1, self.k):
            if node.parent is not None and node.parent.message is not None:
                yield from within(node.parent, self.block)


@dataclass(frozen=True, slots=True)
class TurnBoundary(Primitive):
    """The last `n` ends of a turn: the markable block before a human message, in whichever message it stands."""

    n: int = 2
    role: Literal["human", "prompt"] = "human"

    def positions(self, view: View) -> Iterator[Position]:
        for node in islice(view.trail.back(self.role, view.thread), self.n):
            if node.parent is not None:
                yield from islice(markable_blocks(node.parent), 1)


@dataclass(frozen=True, slots=True)
class PreviousHuman(Primitive):
    """The human message before the most recent one."""

    block: BlockChoice = "last"

    def positions(self, view: View) -> Iterator[Position]:
        for node in islice(view.trail.back("human", view.thread), 1, 2):
            yield from within(node, self.block)


@dataclass(frozen=True, slots=True)
class Lag(Primitive):
    """The block `blocks` before the last one."""

    blocks: int = 20

    def positions(self, view: View) -> Iterator[Position]:
        yield from islice(markable_blocks(view.thread, self.blocks), 1)


@dataclass(frozen=True, slots=True)
class Hint(Primitive):
    """The end of the message `offset` before the last: what stays when the last one is thrown away."""

    offset: int = 1

    def positions(self, view: View) -> Iterator[Position]:
        for node in islice(view.thread.back(), self.offset, self.offset + 1):
            yield from islice(markable_blocks(node), 1)


@dataclass(frozen=True, slots=True)
class Automatic(Primitive):
    """The top-level `cache_control`: the provider places a breakpoint on the last block that may have one."""

    rank: ClassVar[int] = 3

    def positions(self, view: View) -> Iterator[Position]:
        return iter(())


def tokens_of(node: Thread) -> int:
    """Tokens of one message, as an agent estimates them."""
    return sum(map(estimate_tokens, node.message.blocks)) if node.message else 0


def add_tokens(tokens: int, node: Thread) -> int:
    """For `ThreadIndex.fold`: the tokens of a thread up to `node`."""
    return tokens + tokens_of(node)


@dataclass(frozen=True, slots=True)
class EveryKBlocks(Primitive):
    """Blocks `k`, 2`k`, 3`k` … of the messages, the latest `n` of them."""

    k: int = 20
    n: int = 1

    def positions(self, view: View) -> Iterator[Position]:
        total = view.thread.blocks
        for number in range(min(self.n, total // self.k)):
            yield from islice(markable_blocks(view.thread, total % self.k + number * self.k), 1)


@dataclass(frozen=True, slots=True)
class EveryKTurns(Primitive):
    """Human messages `k`, 2`k`, 3`k` …, the latest `n` of them."""

    k: int = 15
    n: int = 1

    def positions(self, view: View) -> Iterator[Position]:
        for node in reversed(view.trail.fold(self, view.thread, (0, NO_NODES), self._step)[1]):
            yield from within(node, "last")

    def _step(self, so_far: tuple[int, Nodes], node: Thread) -> tuple[int, Nodes]:
        if node.message is None or not node.message.is_human:
            return so_far
        humans = so_far[0] + 1
        return humans, so_far[1] if humans % self.k else (*so_far[1], node)[-self.n :]


Counted = tuple[int, tuple[tuple[Thread, int], ...]]
"""Tokens, and messages with a number each."""
NOTHING_COUNTED: Counted = (0, ())


@dataclass(frozen=True, slots=True)
class EveryKTokens(Primitive):
    """The blocks in which the messages pass `k`, 2`k`, 3`k` … tokens as the agent estimates them, the latest `n`."""

    k: int = 100_000
    n: int = 1

    def positions(self, view: View) -> Iterator[Position]:
        for node, after in reversed(view.trail.fold(self, view.thread, NOTHING_COUNTED, self._step)[1]):
            yield from islice(markable_blocks(node, after), 1)

    def _step(self, so_far: Counted, node: Thread) -> Counted:
        """Tokens so far, and the latest blocks that filled a step, as (message, blocks after it in the message)."""
        assert node.message is not None
        tokens, places = so_far
        for index, block in enumerate(node.message.blocks, 1):
            before, tokens = tokens, tokens + estimate_tokens(block)
            if tokens // self.k > before // self.k:
                places = (*places, (node, len(node.message.blocks) - index))[-self.n :]
        return tokens, places


@dataclass(frozen=True, slots=True)
class Sticky(Primitive):
    """Breakpoints that stay: one on a user message as soon as `least_tokens` (estimated) came since the last
    breakpoint.

    With `n` in place, the two that cover least become one if what came since is `worth` times as long. Roo Code
    keeps the placements between requests; here they are found again from the messages, a request at each user
    message, which gives the same for conversations that were marked so from their start.
    """

    least_tokens: int = 1024
    n: int = 3
    worth: float = 1.2

    def positions(self, view: View) -> Iterator[Position]:
        for node, _ in reversed(view.trail.fold(self, view.thread, NOTHING_COUNTED, self._step)[1]):
            yield from within(node, "last")

    def _step(self, kept: Counted, node: Thread) -> Counted:
        """Tokens since the last marked message, and these, each with the tokens since the breakpoint before it."""
        since, points = kept[0] + tokens_of(node), kept[1]
        if node.message is None or node.message.role != "user" or since < self.least_tokens:
            return since, points
        if len(points) >= self.n:  # the two least ones become one, where that is worth it
            pairs = [one + other for (_, one), (_, other) in pairwise(points)]
            if not pairs or since < self.worth * min(pairs):
                return since, points
            least = pairs.index(min(pairs))
            points = (*points[:least], (points[least + 1][0], pairs[least]), *points[least + 2 :])
        return 0, (*points, (node, since))


@dataclass(frozen=True, slots=True)
class FirstN(Primitive):
    """One block of each of the first `n` messages of a role."""

    role: Role = "any"
    n: int = 1
    block: BlockChoice = "last"

    def positions(self, view: View) -> Iterator[Position]:
        for node in view.trail.fold(self, view.thread, NO_NODES, self._step):
            yield from within(node, self.block)

    def _step(self, found: Nodes, node: Thread) -> Nodes:
        assert node.message is not None
        return (*found, node) if len(found) < self.n and ROLES[self.role](node.message) else found


@dataclass(frozen=True, slots=True)
class AtMessage(Primitive):
    """The message with this `number` (1 is the first): the end of a static part that is made of messages."""

    number: int = 1
    block: BlockChoice = "last"

    def positions(self, view: View) -> Iterator[Position]:
        node = view.trail.fold(self, view.thread, None, self._step)
        if node is not None:
            yield from within(node, self.block)

    def _step(self, found: Thread | None, node: Thread) -> Thread | None:
        return node if node.length == self.number else found


@dataclass(frozen=True, slots=True)
class OldestOver(Primitive):
    """The oldest `n` messages with a text of more than `tokens` (estimated): its first such text.

    The oldest come first, so where slots run out the newest go without, and in the end nothing moves any more.
    """

    tokens: int = 500
    n: int = 4

    def positions(self, view: View) -> Iterator[Position]:
        yield from view.trail.fold(self, view.thread, NO_POSITIONS, self._step)

    def _step(self, found: Positions, node: Thread) -> Positions:
        assert node.message is not None
        if len(found) >= self.n:
            return found
        blocks = enumerate(node.message.blocks)
        texts = ((index, block) for index, block in blocks if block.kind == "text" and accepts_breakpoint(block))
        index = next((index for index, block in texts if estimate_tokens(block) > self.tokens), None)
        return found if index is None else (*found, (Layer.MESSAGES, node, index))


@dataclass(frozen=True, slots=True)
class Freeze(Primitive):
    """The first user message and every `every`-th tool result, until `n` breakpoints stand; then nothing moves any
    more.
    """

    every: int = 10
    n: int = 4

    def positions(self, view: View) -> Iterator[Position]:
        yield from view.trail.fold(self, view.thread, (0, NO_POSITIONS), self._step)[1]

    def _step(self, so_far: tuple[int, Positions], node: Thread) -> tuple[int, Positions]:
        assert node.message is not None
        results, found = so_far
        if len(found) >= self.n or node.message.role != "user":
            return so_far
        if not found:
            found = tuple(within(node, "last"))
        for index, block in enumerate(node.message.blocks):
            results += block.kind == "tool_result"
            if block.kind == "tool_result" and results % self.every == 0:
                found = (*found, (Layer.MESSAGES, node, index))
        return results, found[: self.n]


@dataclass(frozen=True, slots=True)
class ForkPoint(Primitive):
    """The latest `n` messages after which the conversation went on in more than one way.

    A message counts as forked if another one followed it in the tree before this thread went on from it: one that
    was recorded, or that was sent earlier. What branches off later is not known yet.
    """

    n: int = 1
    sees_forks: ClassVar[bool] = True

    def positions(self, view: View) -> Iterator[Position]:
        found = view.trail.fold(self, view.thread, NO_NODES, self._step)
        for node in reversed(found):
            yield from islice(markable_blocks(node), 1)

    def _step(self, found: Nodes, node: Thread) -> Nodes:
        parent = node.parent
        is_fork = parent is not None and parent.message is not None and parent.is_fork
        return (*found, parent)[-self.n :] if is_fork and parent is not None else found


@dataclass(frozen=True, slots=True)
class LongSegments(Primitive):
    """The ends of tools, system, all turns but the last, and the last turn; parts shorter than `tokens` go without.

    A part counts from the breakpoint before it, in tokens as the agent estimates them. (The API's least length is
    one of the whole prefix, not of a part.)
    """

    tokens: int = 1024

    def positions(self, view: View) -> Iterator[Position]:
        tools, system = (sum(map(estimate_tokens, part.blocks)) for part in (view.tools, view.system))
        ends = [(position, tools) for position in LastTool().positions(view)]
        ends += [(position, tools + system) for position in SystemBlock("last").positions(view)]
        human = view.trail.latest("human", view.thread)
        for end in (human.parent if human else None, view.thread):
            if end is not None:
                tokens = tools + system + view.trail.fold("tokens", end, 0, add_tokens)
                ends += [(position, tokens) for position in islice(markable_blocks(end), 1)]
        marked = 0
        for position, upto in ends:
            if upto - marked >= self.tokens:
                marked = upto
                yield position


@dataclass(frozen=True, slots=True)
class Adaptive(Primitive):
    """What stayed equal from the last request to this one: of tools, system blocks and messages the common start.

    The very end is marked, too, unless the last request's end was thrown away. Of the first request all is taken
    to stay. Only past requests of the same plan are looked at.
    """

    def positions(self, view: View) -> Iterator[Position]:
        last: View = view.trail.memory.get(self, view)
        view.trail.memory[self] = view
        stable = last.thread.common(view.thread)
        yield from islice(markable_blocks(stable), 1)
        if stable is last.thread:
            yield from islice(markable_blocks(view.thread), 1)
        blocks = view.system.blocks
        equal = range(first_changed_block(last.system.blocks, blocks))
        places = [index for index in equal if accepts_breakpoint(blocks[index])]
        yield from ((Layer.SYSTEM, None, index) for index in places[-1:])
        if last.tools.digest == view.tools.digest:
            yield from LastTool().positions(view)


PRIMITIVES: dict[str, type[Primitive]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind
    for kind in (
        *(Adaptive, AtMessage, Automatic, BeforeHuman, EveryKBlocks, EveryKTokens, EveryKTurns, FirstN, ForkPoint),
        *(Freeze, Hint, Lag, LastMessage, LastN, LastTool, LongSegments, OldestOver, PreviousHuman, SegmentEnd),
        *(Sticky, SystemBlock, TurnBoundary),
    )
}
"""Every primitive by the name a scenario gives it: that of its class, in lower case."""
NAMES = {primitive: name for name, primitive in PRIMITIVES.items()}
SHORTHANDS: dict[str, Primitive] = {
    "each_system": SystemBlock("each"),
    "first_system": SystemBlock("first"),
    "last_system": SystemBlock("last"),
}
"""Names for a primitive with its option; they take a `ttl` only."""


def primitive_named(entry: str | Mapping[str, Mapping[str, Any]]) -> Primitive:
    """The primitive of a row in a table: its name, or one name with its options. Raises KeyError, ValueError."""
    name, options = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
    return replace(SHORTHANDS[name], **options) if name in SHORTHANDS else PRIMITIVES[name](**options)


MAXIMUM_BREAKPOINTS = 4
"""The API's limit, automatic caching included (rule 6)."""
ORDER = {Layer.TOOLS: 0, Layer.SYSTEM: 1, Layer.MESSAGES: 2}


class BreakpointSet(NamedTuple):
    """The breakpoints of a request in prompt order, and the TTL of its top-level `cache_control`."""

    breakpoints: tuple[Breakpoint, ...]
    automatic: TTL | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Primitives in order of priority, and what happens when the slots run out.

    A block that two primitives choose gets one breakpoint, with the TTL of the first. `automatic` keeps
    a slot for itself. Of the rest the first in order stay (`trim` "priority"), or the oldest breakpoints in
    messages go first ("oldest_message"). More than four `slots` is for agents that overflow. A thread of
    fewer than `from_message` messages gets no breakpoints at all.
    """

    primitives: tuple[Primitive, ...] = ()
    ttl: TTL = "5m"
    slots: int = MAXIMUM_BREAKPOINTS
    trim: Literal["priority", "oldest_message"] = "priority"
    from_message: int = 0

    def place(self, view: View) -> BreakpointSet:
        if view.thread.length < self.from_message:
            return BreakpointSet((), None)
        found: dict[Position, Breakpoint] = {}
        for primitive in self.primitives:
            ttl = self.ttl_of(primitive)
            for position in primitive.positions(view):
                if position not in found:
                    layer, node, index = position
                    found[position] = Breakpoint(layer, index, ttl, node)
        automatic, kept = self.automatic, list(found.values())
        room = max(self.slots - (automatic is not None), 0)
        if self.trim == "oldest_message" and len(kept) > room:
            inside = sorted((breakpoint for breakpoint in kept if breakpoint.node is not None), key=prompt_order)
            oldest = inside[: len(kept) - room]
            kept = [breakpoint for breakpoint in kept if breakpoint not in oldest]
        kept = kept[:room]
        return BreakpointSet(tuple(sorted(kept, key=prompt_order) if len(kept) > 1 else kept), automatic)

    @property
    def most(self) -> int:
        """How many breakpoints the primitives can choose, as far as they say: more than `slots` are not sent."""
        return sum(each.n if isinstance(each, LastN) else 1 for each in self.primitives)

    @property
    def automatic(self) -> TTL | None:
        return next((self.ttl_of(each) for each in self.primitives if isinstance(each, Automatic)), None)

    def ttl_of(self, primitive: Primitive) -> TTL:
        return primitive.ttl or self.ttl

    def ttl_error(self) -> str | None:
        """Why the API would refuse these TTLs on any request; None where it depends on the request."""
        by_rank = sorted(self.primitives, key=lambda each: each.rank)
        for before, after in combinations(by_rank, 2):
            one, other = self.ttl_of(before), self.ttl_of(after)
            names = f"{NAMES[type(before)]} at {one} and {NAMES[type(after)]} at {other}"
            if before.rank < after.rank and (one, other) == ("5m", "1h"):
                return f"{names}: a 1h breakpoint must not come after a 5m one"
            if _is_tail(before) and _is_tail(after) and one != other:
                return f"{names}: they breakpoint the same block, which can have one TTL only"
        return None


def _is_tail(primitive: Primitive) -> bool:
    return isinstance(primitive, Automatic) or primitive == LastMessage("last", ttl=primitive.ttl)


def prompt_order(breakpoint: Breakpoint) -> tuple[int, int, int]:
    """The key by which breakpoints sort as they stand in the prompt."""
    return ORDER[breakpoint.layer], breakpoint.node.length if breakpoint.node else 0, breakpoint.index
