"""Seeded conversations from distributions: same spec, same conversation, to the byte.

Every call draws from its own generator, seeded by (seed, turn, call); so a conversation of more
turns begins with the one of fewer, and inquiries and forks can be added without changing what is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from random import Random
from typing import Any

from cachecost.base.limits import BLOCKS, OutOfLimits
from cachecost.base.times import LATEST
from cachecost.conversations.branching import Branch, SyntheticForks
from cachecost.conversations.distributions import Distribution, DistributionShape, average, draw, draw_whole
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results
from cachecost.prompts.blocks import NOTHING, Block, Part, given_block

Parts = Sequence[tuple[str, Distribution]]
START = 1_772_442_000.0
"""2026-03-02T09:00:00Z, a Monday morning."""


@dataclass(frozen=True, slots=True)
class SyntheticSizes:
    """Tokens of each block of a synthetic conversation. A text, thinking or answer of 0 tokens is no block."""

    human: Distribution = 60
    """A person's message."""
    thinking: Distribution = 300
    """Thinking before each reply."""
    text: Distribution = 0
    """Text before the tool calls of a reply."""
    tool_use: Distribution = 80
    """One tool call."""
    tool_result: Distribution = 900
    """What one tool returns."""
    answer: Distribution = 250
    """The text of a turn's last reply."""


@dataclass(frozen=True, slots=True)
class SyntheticPauses:
    """Seconds between the calls of a synthetic conversation."""

    loop: Distribution = 6.0
    """From the start of a call to the results of its tools, when the next call starts."""
    turn: Distribution = 120.0
    """From the start of a turn's last call to the next human message."""
    first_token: Distribution | None = None
    """From the start of a call to its first token; null is unknown."""


@dataclass(frozen=True, slots=True)
class SyntheticInquiries:
    """Questions that tools ask the assistant while they run, all of a batch halfway to the results."""

    rate: float = 0.1
    """Probability that a reply with tool calls is followed by questions."""
    batch: Distribution = 1
    """How many are asked at once."""
    question: Distribution = 120
    """Tokens of a question."""
    answer: Distribution = 5
    """Tokens of its answer."""


@dataclass(frozen=True, slots=True)
class SyntheticSpec:
    """A seeded conversation: the same seed and numbers, the same conversation."""

    seed: int = 0
    """The seed of all random numbers."""
    turns: int = 10
    """Human turns."""
    calls: Distribution = 5
    """Calls in a turn; each but the last uses tools."""
    tools: Distribution = 1
    """Tools that a call uses in parallel."""
    sizes: SyntheticSizes = SyntheticSizes()
    """Tokens of each block."""
    pauses: SyntheticPauses = SyntheticPauses()
    """Seconds between calls."""
    inquiries: SyntheticInquiries | None = None
    """Questions that tools ask; null is none."""
    forks: SyntheticForks | None = None
    """Turns after which the conversation branches from an earlier message; null is none."""
    head_tools: tuple[int, ...] = ()
    """Tokens of each tool definition."""
    head_system: tuple[int, ...] = ()
    """Tokens of each block of the system prompt."""
    start: float = START
    """Seconds since the epoch."""
    name: str = "synthetic"
    model: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_random(self) -> bool:
        """Whether another seed is another conversation: some number of it is drawn."""
        asked, forks = self.inquiries, self.forks
        drawn = [self.calls, self.tools, *_numbers(self.sizes), *_numbers(self.pauses)]
        drawn += [asked.batch, asked.question, asked.answer] if asked else []
        drawn += [forks.back] if forks else []
        rates = [*([asked.rate] if asked else []), *([forks.rate] if forks else [])]
        return any(isinstance(each, DistributionShape) for each in drawn) or any(0 < rate < 1 for rate in rates)


def _numbers(spec: SyntheticSizes | SyntheticPauses) -> list[Distribution | None]:
    return [getattr(spec, each.name) for each in fields(spec)]


def synthetic(spec: SyntheticSpec) -> Conversation:
    """The conversation of `spec`. Its blocks have token counts and no content.

    Raises OutOfLimits where it would have too many blocks (`limits.BLOCKS`) or end beyond the years there are.
    """
    return Conversation(
        spec.name,
        tuple(_Generator(spec).events()),
        spec.model,
        _part(spec, "tool", "", spec.head_tools),
        _part(spec, "text", "system", spec.head_system),
        source=f"synthetic, seed {spec.seed}",
        params=spec.params,
    )


def _part(spec: SyntheticSpec, kind: str, role: str, sizes: tuple[int, ...]) -> Part:
    blocks = tuple(given_block(kind, role, f"{spec.seed}/{n}:{tokens}", tokens) for n, tokens in enumerate(sizes))
    return Part(blocks) if blocks else NOTHING


class _Generator:
    """A synthetic conversation while it is made: the clock and the count of batches."""

    def __init__(self, spec: SyntheticSpec) -> None:
        self.spec = spec
        self.at = spec.start
        self.batch = 0
        self.blocks = 0
        self.most = BLOCKS.value()

    def events(self) -> Iterator[Event]:
        self._take(round(self._estimate_blocks()))
        self.blocks = 0
        branch = Branch(self.spec.forks) if self.spec.forks else None
        for turn in range(self.spec.turns):
            if branch is None:
                yield from self._turn(turn)
                continue
            if back := branch.go_back(turn, self.at, self._random(f"{turn}/fork")):
                yield back
            for event in self._turn(turn):
                branch.take(event)
                yield event

    def _turn(self, turn: int) -> Iterator[Event]:
        """A human message, the tool loop, and the answer."""
        self._take(2)
        random = self._random(f"{turn}")
        yield Human(self.at, self._blocks(f"{turn}", "user", (("text", self.spec.sizes.human),), random))
        calls = max(1, draw_whole(self.spec.calls, random))
        for call in range(1, calls):
            yield from self._loop(f"{turn}/{call}")
        yield self._reply(f"{turn}/{calls}", [("text", self.spec.sizes.answer)], self._random(f"{turn}/{calls}"))
        self._wait(self.spec.pauses.turn, random)

    def _loop(self, place: str) -> Iterator[Event]:
        """A reply that calls tools, what they ask, and what they return."""
        random, sizes = self._random(place), self.spec.sizes
        tools = max(1, draw_whole(self.spec.tools, random))
        self._take(2 * tools)
        reply = self._reply(place, [("text", sizes.text), *[("tool_use", sizes.tool_use)] * tools], random)
        yield reply
        self._wait(self.spec.pauses.loop, random)
        yield from self._questions(f"{place}/asks", tools, at=round((reply.at + self.at) / 2, 6))
        yield Results(self.at, self._blocks(place, "user", [("tool_result", sizes.tool_result)] * tools, random))

    def _reply(self, place: str, parts: Parts, random: Random) -> Reply:
        first = self.spec.pauses.first_token
        waited = None if first is None else round(draw(first, random), 6)
        blocks = self._blocks(place, "assistant", (("thinking", self.spec.sizes.thinking), *parts), random)
        return Reply(self.at, blocks, waited)

    def _questions(self, place: str, tools: int, at: float) -> Iterator[Inquiry]:
        asking = self.spec.inquiries
        if asking is None:
            return
        random = self._random(place)
        if random.random() >= asking.rate:
            return
        self.batch += 1
        questions = max(1, draw_whole(asking.batch, random))
        self._take(2 * questions)
        for n in range(questions):
            question = self._block(f"{place}/{n}", "text", "user", draw_whole(asking.question, random))
            answer = self._block(f"{place}/{n}", "text", "assistant", draw_whole(asking.answer, random))
            yield Inquiry(at, question, answer, "boolean", f"{place}/{n % tools}", self.batch)

    def _blocks(self, place: str, role: str, parts: Parts, random: Random) -> tuple[Block, ...]:
        """The blocks at `place`. What the assistant leaves empty, its tool calls aside, is no block."""
        blocks = []
        for n, (kind, size) in enumerate(parts):
            tokens = draw_whole(size, random)
            if tokens or role == "user" or kind == "tool_use":
                blocks.append(self._block(f"{place}/{n}", kind, role, tokens))
        return tuple(blocks)

    def _block(self, place: str, kind: str, role: str, tokens: int) -> Block:
        """The name tells the tokens too: another size is another text."""
        return given_block(kind, role, f"{self.spec.seed}/{place}:{tokens}", tokens)

    def _wait(self, pause: Distribution, random: Random) -> None:
        self.at = round(self.at + draw(pause, random), 6)
        if self.at >= LATEST:
            raise OutOfLimits("pauses that end before the year 9000", "longer ones")

    def _estimate_blocks(self) -> float:
        """About how many blocks it will have, so that what is far too large is refused at once."""
        spec, asking = self.spec, self.spec.inquiries
        questions = 2 * asking.rate * average(asking.batch) if asking else 0.0
        return spec.turns * (2 + (average(spec.calls) - 1) * (2 * average(spec.tools) + questions))

    def _take(self, blocks: int) -> None:
        """Count blocks before they are made. Raises OutOfLimits."""
        self.blocks += blocks
        if self.blocks > self.most:
            raise BLOCKS.error(f"{self.blocks:,}")

    def _random(self, place: str) -> Random:
        seed = blake2b(f"{self.spec.seed}/{place}".encode(), digest_size=16).digest()
        return Random(int.from_bytes(seed, "big"))
