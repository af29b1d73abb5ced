"""Seeded conversations from distributions: same spec, same conversation, to the byte.

Every call draws from its own generator, seeded by (seed, turn, call); so a conversation of more
turns begins with the one of fewer, and inquiries can be added without changing anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Any

from cachecost.base.limits import BLOCKS, OutOfLimits
from cachecost.base.times import LATEST
from cachecost.conversations.distributions import Distribution, draw, mean, whole
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results
from cachecost.prompts.blocks import NOTHING, Block, Part, given_block

Parts = Sequence[tuple[str, Distribution]]
START = 1_772_442_000.0
"""2026-03-02T09:00:00Z, a Monday morning."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of each block. A text, thinking or answer of 0 tokens is no block.

    `text` stands before the tool calls of a reply, `answer` is the text of a turn's last reply.
    """

    human: Distribution = 60
    thinking: Distribution = 300
    text: Distribution = 0
    tool_use: Distribution = 80
    tool_result: Distribution = 900
    answer: Distribution = 250


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds. `loop` from the start of a call to the results of its tools, when the next one starts;
    `turn` from the start of a turn's last call to the next human message; `first_token` from the
    start of a call to its first token (None: not known).
    """

    loop: Distribution = 6.0
    turn: Distribution = 120.0
    first_token: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Inquiries:
    """A reply that calls tools is followed with probability `rate` by `batch` questions, all asked at
    once, halfway to its results. `question` and `answer` are tokens.
    """

    rate: float = 0.1
    batch: Distribution = 1
    question: Distribution = 120
    answer: Distribution = 5


@dataclass(frozen=True, slots=True)
class SyntheticSpec:
    """What to make: `turns` human turns of `calls` replies, each but the last calling `tools` tools in parallel.

    `head_tools` and `head_system` are the tokens of each block of those layers; `start` is seconds
    since the epoch.
    """

    seed: int = 0
    turns: int = 10
    calls: Distribution = 5
    tools: Distribution = 1
    sizes: Sizes = Sizes()
    pauses: Pauses = Pauses()
    inquiries: Inquiries | None = None
    head_tools: tuple[int, ...] = ()
    head_system: tuple[int, ...] = ()
    start: float = START
    name: str = "synthetic"
    model: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def synthetic(spec: SyntheticSpec) -> Conversation:
    """The conversation of `spec`. Its blocks have token counts and no content.

    Raises OutOfLimits where it would have too many blocks (`limits.BLOCKS`) or end beyond the years there are.
    """
    return Conversation(
        spec.name,
        tuple(_Making(spec).events()),
        spec.model,
        _part(spec, "tool", "", spec.head_tools),
        _part(spec, "text", "system", spec.head_system),
        source=f"synthetic, seed {spec.seed}",
        params=spec.params,
    )


def _part(spec: SyntheticSpec, kind: str, role: str, sizes: tuple[int, ...]) -> Part:
    blocks = tuple(given_block(kind, role, f"{spec.seed}/{n}:{tokens}", tokens) for n, tokens in enumerate(sizes))
    return Part(blocks) if blocks else NOTHING


class _Making:
    """A synthetic conversation while it is made: the clock and the count of batches."""

    def __init__(self, spec: SyntheticSpec) -> None:
        self.spec = spec
        self.at = spec.start
        self.batch = 0
        self.blocks = 0
        self.most = BLOCKS.value()

    def events(self) -> Iterator[Event]:
        self._take(round(self._expected_blocks()))
        self.blocks = 0
        for turn in range(self.spec.turns):
            self._take(2)
            random = self._random(f"{turn}")
            yield Human(self.at, self._blocks(f"{turn}", "user", (("text", self.spec.sizes.human),), random))
            calls = max(1, whole(self.spec.calls, random))
            for call in range(1, calls):
                yield from self._loop(f"{turn}/{call}")
            yield self._reply(f"{turn}/{calls}", [("text", self.spec.sizes.answer)], self._random(f"{turn}/{calls}"))
            self._wait(self.spec.pauses.turn, random)

    def _loop(self, place: str) -> Iterator[Event]:
        """A reply that calls tools, what they ask, and what they return."""
        random, sizes = self._random(place), self.spec.sizes
        tools = max(1, whole(self.spec.tools, random))
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
        questions = max(1, whole(asking.batch, random))
        self._take(2 * questions)
        for n in range(questions):
            question = self._block(f"{place}/{n}", "text", "user", whole(asking.question, random))
            answer = self._block(f"{place}/{n}", "text", "assistant", whole(asking.answer, random))
            yield Inquiry(at, question, answer, "boolean", f"{place}/{n % tools}", self.batch)

    def _blocks(self, place: str, role: str, parts: Parts, random: Random) -> tuple[Block, ...]:
        """The blocks at `place`. What the assistant leaves empty, its tool calls aside, is no block."""
        blocks = []
        for n, (kind, size) in enumerate(parts):
            tokens = whole(size, random)
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

    def _expected_blocks(self) -> float:
        """About how many blocks it will have, so that what is far too large is refused at once."""
        spec, asking = self.spec, self.spec.inquiries
        questions = 2 * asking.rate * mean(asking.batch) if asking else 0.0
        return spec.turns * (2 + (mean(spec.calls) - 1) * (2 * mean(spec.tools) + questions))

    def _take(self, blocks: int) -> None:
        """Count blocks before they are made. Raises OutOfLimits."""
        self.blocks += blocks
        if self.blocks > self.most:
            raise BLOCKS.error(f"{self.blocks:,}")

    def _random(self, place: str) -> Random:
        seed = blake2b(f"{self.spec.seed}/{place}".encode(), digest_size=16).digest()
        return Random(int.from_bytes(seed, "big"))
