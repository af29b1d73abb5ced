"""The distributions a number of a synthetic conversation can have.

In YAML: a number · [low, high] (uniform, both included) · {mean, sd, min?, max?} (lognormal with
that mean and standard deviation) · {choices: […], weights?: […]}.

A distribution is one class in this file, listed in `SHAPES`: its YAML, its JSON Schema, its mean and its draw. The draw
takes its random numbers from a `RandomSource`, so the same formula gives one number from `random.Random` and, in
sweep/montecarlo, an array with one number per seed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, floor, log, sqrt
from operator import mul
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from cachecost.base.errors import nearest
from cachecost.base.limits import MOST_NUMBER, is_number

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
    if isinstance(value, DistributionShape):
        return value
    if is_number(value):
        return value
    if isinstance(value, (list, tuple, Mapping)):
        matching = (shape for shape in reversed(SHAPES) if shape.matches(value))
        return next(matching, LogNormal).parse(value)
    raise ValueError(f"expected {SYNTAX}; got {value!r}")


def _check_keys(shape: type[DistributionShape], value: Mapping[str, object]) -> None:
    """Raises ValueError for a key that is unknown or missing."""
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
