"""Seeded synthetic conversations (same spec, same conversation, to the byte), and the distributions of their numbers.

In YAML: a number · [low, high] (uniform, both included) · {mean, sd, min?, max?} (lognormal with that mean and standard
deviation) · {choices: […], weights?: […]}. A distribution is one class, listed in `SHAPES`. Its draw takes random
numbers from a `RandomSource`: one from `random.Random` or, in sweep/montecarlo, an array with one number per seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from itertools import accumulate
from math import exp, floor, log, sqrt
from operator import mul
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from cachecost.base.errors import nearest
from cachecost.base.limits import BLOCKS, MOST_NUMBER, OutOfLimits, is_number
from cachecost.base.times import LATEST
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import NOTHING, Block, Part, given_block

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Numbers = TypeVar("Numbers", float, "NDArray[np.float64]")
WIDEST = 1_000_000
"""The largest standard deviation, in means: the sum of squares overflows beyond it."""
AMOUNT = {"type": "number", "minimum": 0}
AMOUNTS = {"type": "array", "items": AMOUNT, "minItems": 1}


class RandomSource(Protocol[Numbers]):
    """Random numbers for a draw, as one float or as an array, and the functions that a draw applies to them."""

    def constant(self, value: float) -> Numbers: ...
    def uniform(self) -> Numbers:
        """In [0, 1)."""
        ...

    def normal(self) -> Numbers:
        """With mean 0 and standard deviation 1."""
        ...

    def exp(self, power: Numbers) -> Numbers: ...
    def log(self, value: Numbers) -> Numbers: ...
    def clip(self, value: Numbers, low: float, high: float) -> Numbers: ...
    def pick(self, choices: Sequence[float], edges: Sequence[float], position: Numbers) -> Numbers:
        """The choice whose right edge is the first one above `position`; the last choice if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class SingleDraw:
    """A RandomSource that draws one number at a time from a seeded generator."""

    random: Random

    def constant(self, value: float) -> float:
        return value

    def uniform(self) -> float:
        return self.random.random()

    def normal(self) -> float:
        return self.random.gauss(0, 1)

    def exp(self, power: float) -> float:
        return exp(power)

    def log(self, value: float) -> float:
        return log(value)

    def clip(self, value: float, low: float, high: float) -> float:
        return min(max(value, low), high)

    def pick(self, choices: Sequence[float], edges: Sequence[float], position: float) -> float:
        return choices[min(bisect_right(edges, position), len(choices) - 1)]


class DistributionShape(ABC):
    """A distribution. `syntax` is its YAML as an error message shows it, `schema` its JSON Schema."""

    __slots__ = ()
    syntax: ClassVar[str]
    schema: ClassVar[Mapping[str, Any]]

    @classmethod
    @abstractmethod
    def matches(cls, value: list[object] | tuple[object, ...] | Mapping[str, object]) -> bool:
        """Whether a YAML list or mapping is meant as this distribution."""

    @classmethod
    @abstractmethod
    def parse(cls, value: Any) -> Self:
        """The distribution written as `value`, which matches. Raises ValueError."""

    @property
    @abstractmethod
    def average(self) -> float:
        """About the mean of the numbers drawn; cuts at `min` and `max` are ignored."""

    @abstractmethod
    def draw(self, source: RandomSource[Numbers]) -> Numbers:
        """Random numbers with this distribution."""

    def draw_whole(self, random: Random) -> int:
        """One random whole number."""
        return round(self.draw(SingleDraw(random)))


@dataclass(frozen=True, slots=True)
class Uniform(DistributionShape):
    low: float
    high: float
    syntax: ClassVar[str] = "[low, high]"
    schema: ClassVar[Mapping[str, Any]] = {"type": "array", "items": AMOUNT, "minItems": 2, "maxItems": 2}

    @classmethod
    def matches(cls, value: object) -> bool:
        return isinstance(value, (list, tuple))

    @classmethod
    def parse(cls, value: Any) -> Self:
        if len(value) != 2 or not all(map(is_number, value)) or value[0] > value[1]:
            raise ValueError(f"expected [low, high], low first, both from 0; got {value!r}")
        return cls(*value)

    @property
    def average(self) -> float:
        return (self.low + self.high) / 2

    def draw(self, source: RandomSource[Numbers]) -> Numbers:
        return self.low + (self.high - self.low) * source.uniform()

    def draw_whole(self, random: Random) -> int:
        """Each whole number from low to high is equally likely."""
        low = round(self.low)
        return low + floor((round(self.high) - low + 1) * random.random())


@dataclass(frozen=True, slots=True)
class LogNormal(DistributionShape):
    """`mean` and `sd` of the numbers drawn, not of their logarithms; then cut at `min` and `max`."""

    mean: float
    sd: float
    min: float = 0.0
    max: float = MOST_NUMBER
    syntax: ClassVar[str] = "{mean, sd}"
    schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": dict.fromkeys(("mean", "sd", "min", "max"), AMOUNT),
        "required": ["mean", "sd"],
        "additionalProperties": False,
    }

    @classmethod
    def matches(cls, value: object) -> bool:
        return isinstance(value, Mapping) and ("mean" in value or "sd" in value)

    @classmethod
    def parse(cls, value: Any) -> Self:
        _check_keys(cls, value)
        drawn = cls(**{name: _number(number) for name, number in value.items()})
        if drawn.sd > drawn.mean * WIDEST > 0:
            raise ValueError(f"expected an sd of at most {WIDEST:,} times the mean; got {dict(value)!r}")
        return drawn

    @property
    def average(self) -> float:
        return self.mean

    def draw(self, source: RandomSource[Numbers]) -> Numbers:
        if self.mean == 0:
            return source.constant(max(self.min, 0.0))
        variance = log(1 + (self.sd / self.mean) ** 2)
        drawn = source.exp(log(self.mean) - variance / 2 + sqrt(variance) * source.normal())
        return source.clip(drawn, self.min, self.max)


@dataclass(frozen=True, slots=True)
class Choice(DistributionShape):
    choices: tuple[float, ...]
    weights: tuple[float, ...]
    syntax: ClassVar[str] = "{choices, weights}"
    schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"choices": AMOUNTS, "weights": AMOUNTS},
        "required": ["choices"],
        "additionalProperties": False,
    }

    @classmethod
    def matches(cls, value: object) -> bool:
        return isinstance(value, Mapping) and "choices" in value

    @classmethod
    def parse(cls, value: Any) -> Self:
        _check_keys(cls, value)
        choices, weights = value["choices"], value.get("weights")
        if not isinstance(choices, (list, tuple)) or not choices:
            raise ValueError(f"expected choices, one number or more; got {choices!r}")
        weights = [1] * len(choices) if weights is None else weights
        if not isinstance(weights, (list, tuple)) or len(weights) != len(choices):
            raise ValueError(f"expected as many weights as choices, {len(choices)}; got {weights!r}")
        drawn = cls(tuple(map(_number, choices)), tuple(map(_number, weights)))
        if not sum(drawn.weights):
            raise ValueError("expected a weight above 0; got none")
        return drawn

    @property
    def average(self) -> float:
        return float(sum(map(mul, self.choices, self.weights)) / sum(self.weights))

    def draw(self, source: RandomSource[Numbers]) -> Numbers:
        edges = list(accumulate(self.weights))
        return source.pick(self.choices, edges, source.uniform() * edges[-1])


Distribution = int | float | DistributionShape
"""A plain number is drawn as itself."""
SHAPES: tuple[type[DistributionShape], ...] = (Uniform, LogNormal, Choice)
SYNTAX = f"a number, {', '.join(shape.syntax for shape in SHAPES[:-1])} or {SHAPES[-1].syntax}"
SCHEMA: dict[str, Any] = {"anyOf": [AMOUNT, *(shape.schema for shape in SHAPES)]}
"""The JSON Schema of what `parse_distribution` accepts."""


def draw(of: Distribution, random: Random) -> float:
    """One random number with the distribution."""
    return of.draw(SingleDraw(random)) if isinstance(of, DistributionShape) else of


def draw_whole(of: Distribution, random: Random) -> int:
    """One random whole number with the distribution."""
    return of.draw_whole(random) if isinstance(of, DistributionShape) else round(of)


def average(of: Distribution) -> float:
    """About the mean of the numbers drawn."""
    return of.average if isinstance(of, DistributionShape) else of


def parse_distribution(value: object) -> Distribution:
    """The distribution that `value` writes, e.g. in a scenario. Raises ValueError that says what was expected."""
    if isinstance(value, DistributionShape) or is_number(value):
        return value
    if isinstance(value, (list, tuple, Mapping)):
        matching = (shape for shape in reversed(SHAPES) if shape.matches(value))
        return next(matching, LogNormal).parse(value)
    raise ValueError(f"expected {SYNTAX}; got {value!r}")


def _check_keys(shape: type[DistributionShape], value: Mapping[str, object]) -> None:
    for name in value:
        if name not in shape.schema["properties"]:
            raise ValueError(f"{name}: unknown key{nearest(str(name), shape.schema['properties'])}; expected {SYNTAX}")
    for name in shape.schema["required"]:
        if name not in value:
            raise ValueError(f"expected {SYNTAX}; {name} is missing in {dict(value)!r}")


def _number(value: object) -> float:
    if not is_number(value):
        raise ValueError(f"expected a number from 0; got {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class SyntheticForks:
    """Turns after which a person goes back and asks something else: one message then has several continuations.

    The branches follow one another in time; children that run at once are the change `fan_out`.
    """

    after: Collection[int] = ()
    """The human turns, counted from 1 over all branches, after which the person goes back."""
    rate: float = 0.0
    """Probability that the person goes back after any other turn."""
    back: Distribution = 1
    """How many of the branch's turns are taken back: at least one, at most all."""


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
        drawn = [getattr(part, one.name) for part in (self.sizes, self.pauses) for one in fields(part)]
        drawn += [self.calls, self.tools]
        drawn += [asked.batch, asked.question, asked.answer] if asked else []
        drawn += [forks.back] if forks else []
        rates = [*([asked.rate] if asked else []), *([forks.rate] if forks else [])]
        return any(isinstance(one, DistributionShape) for one in drawn) or any(0 < rate < 1 for rate in rates)


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
    """A synthetic conversation while it is made: the clock and the counts of batches, blocks and messages."""

    def __init__(self, spec: SyntheticSpec) -> None:
        self.spec = spec
        self.at = spec.start
        self.batch = 0
        self.blocks = 0
        self.messages = 0
        """Of the branch that the conversation is on."""
        self.most = BLOCKS.value()

    def events(self) -> Iterator[Event]:
        spec, asking = self.spec, self.spec.inquiries
        questions = 2 * asking.rate * average(asking.batch) if asking else 0.0
        self._count_blocks(round(spec.turns * (2 + (average(spec.calls) - 1) * (2 * average(spec.tools) + questions))))
        self.blocks, before_turn = 0, list[int]()
        for turn in range(spec.turns):
            if spec.forks:  # the draws do not depend on `after`, so that naming a turn changes no other one
                random = self._random(f"{turn}/fork")
                is_drawn, back = random.random() < spec.forks.rate, draw_whole(spec.forks.back, random)
                if before_turn and (is_drawn or turn in spec.forks.after):
                    kept = max(0, len(before_turn) - max(1, back))
                    self.messages = before_turn[kept]
                    del before_turn[kept:]
                    yield ThreadRewrite(self.at, self.messages, (), "fork")
            before_turn.append(self.messages)
            self._count_blocks(2)
            random = self._random(f"{turn}")
            yield Human(self.at, self._blocks(f"{turn}", "user", (("text", spec.sizes.human),), random))
            calls = max(1, draw_whole(spec.calls, random))
            for call in range(1, calls):
                yield from self._tool_call(f"{turn}/{call}")
            yield self._reply(f"{turn}/{calls}", [("text", spec.sizes.answer)], self._random(f"{turn}/{calls}"))
            self._wait(spec.pauses.turn, random)

    def _tool_call(self, place: str) -> Iterator[Event]:
        """A call whose answer uses tools, the questions that they ask, and their results."""
        random, sizes, asking = self._random(place), self.spec.sizes, self.spec.inquiries
        tools = max(1, draw_whole(self.spec.tools, random))
        self._count_blocks(2 * tools)
        reply = self._reply(place, [("text", sizes.text), *[("tool_use", sizes.tool_use)] * tools], random)
        yield reply
        self._wait(self.spec.pauses.loop, random)
        at, name = round((reply.at + self.at) / 2, 6), f"{place}/asks"
        if asking and (drawn := self._random(name)).random() < asking.rate:
            self.batch += 1
            questions = max(1, draw_whole(asking.batch, drawn))
            self._count_blocks(2 * questions)
            for n in range(questions):
                question = self._block(f"{name}/{n}", "text", "user", draw_whole(asking.question, drawn))
                answer = self._block(f"{name}/{n}", "text", "assistant", draw_whole(asking.answer, drawn))
                yield Inquiry(at, question, answer, "boolean", f"{name}/{n % tools}", self.batch)
        yield Results(self.at, self._blocks(place, "user", [("tool_result", sizes.tool_result)] * tools, random))

    def _reply(self, place: str, parts: Parts, random: Random) -> Reply:
        first = self.spec.pauses.first_token
        waited = None if first is None else round(draw(first, random), 6)
        blocks = self._blocks(place, "assistant", (("thinking", self.spec.sizes.thinking), *parts), random)
        return Reply(self.at, blocks, waited)

    def _blocks(self, place: str, role: str, parts: Parts, random: Random) -> tuple[Block, ...]:
        """The blocks of the message at `place`. What the assistant leaves empty, its tool calls aside, is no block."""
        blocks = []
        for n, (kind, size) in enumerate(parts):
            tokens = draw_whole(size, random)
            if tokens or role == "user" or kind == "tool_use":
                blocks.append(self._block(f"{place}/{n}", kind, role, tokens))
        self.messages += bool(blocks)  # without blocks it is no message
        return tuple(blocks)

    def _block(self, place: str, kind: str, role: str, tokens: int) -> Block:
        """The name tells the tokens too: another size is another text."""
        return given_block(kind, role, f"{self.spec.seed}/{place}:{tokens}", tokens)

    def _wait(self, pause: Distribution, random: Random) -> None:
        self.at = round(self.at + draw(pause, random), 6)
        if self.at >= LATEST:
            raise OutOfLimits("pauses that end before the year 9000", "longer ones")

    def _count_blocks(self, blocks: int) -> None:
        """Count blocks before they are made. Raises OutOfLimits."""
        self.blocks += blocks
        if self.blocks > self.most:
            raise BLOCKS.error(f"{self.blocks:,}")

    def _random(self, place: str) -> Random:
        seed = blake2b(f"{self.spec.seed}/{place}".encode(), digest_size=16).digest()
        return Random(int.from_bytes(seed, "big"))
