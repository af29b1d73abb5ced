"""The distributions of a number in a synthetic conversation.

As written: a number · [low, high] (uniform, both included) · {mean, sd, min?, max?} (lognormal with
that mean and standard deviation) · {choices: […], weights?: […]}.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import exp, floor, log, sqrt
from operator import mul
from random import Random

from cachecost.base.errors import nearest
from cachecost.base.limits import MOST_NUMBER, is_number

WIDEST = 1_000_000
"""The largest standard deviation, in means: beyond it the sums of squares overflow."""
SHAPES = "a number, [low, high], {mean, sd} or {choices, weights}"


@dataclass(frozen=True, slots=True)
class Uniform:
    low: float
    high: float

    def draw(self, random: Random) -> float:
        return self.low + (self.high - self.low) * random.random()

    def whole(self, random: Random) -> int:
        """Each whole number from low to high is equally likely."""
        low = round(self.low)
        return low + floor((round(self.high) - low + 1) * random.random())


@dataclass(frozen=True, slots=True)
class LogNormal:
    """`mean` and `sd` of the numbers drawn, not of their logarithms; then cut at `min` and `max`."""

    mean: float
    sd: float
    min: float = 0.0
    max: float = MOST_NUMBER

    def draw(self, random: Random) -> float:
        if self.mean == 0:
            return max(self.min, 0.0)
        variance = log(1 + (self.sd / self.mean) ** 2)
        drawn = exp(log(self.mean) - variance / 2 + sqrt(variance) * random.gauss(0, 1))
        return min(max(drawn, self.min), self.max)

    def whole(self, random: Random) -> int:
        return round(self.draw(random))


@dataclass(frozen=True, slots=True)
class Choice:
    choices: tuple[float, ...]
    weights: tuple[float, ...]

    def draw(self, random: Random) -> float:
        edges = list(accumulate(self.weights))
        return self.choices[min(bisect_right(edges, random.random() * edges[-1]), len(self.choices) - 1)]

    def whole(self, random: Random) -> int:
        return round(self.draw(random))


Distribution = int | float | Uniform | LogNormal | Choice
"""A plain number is drawn as itself."""


def draw(of: Distribution, random: Random) -> float:
    """One number of the distribution."""
    return of if isinstance(of, (int, float)) else of.draw(random)


def mean(of: Distribution) -> float:
    """The mean, ignoring what `min` or `max` cut off."""
    if isinstance(of, Uniform):
        return (of.low + of.high) / 2
    if isinstance(of, Choice):
        return float(sum(map(mul, of.choices, of.weights)) / sum(of.weights))
    return of.mean if isinstance(of, LogNormal) else of


def whole(of: Distribution, random: Random) -> int:
    """One whole number of the distribution."""
    return round(of) if isinstance(of, (int, float)) else of.whole(random)


def distribution(value: object) -> Distribution:
    """Parse a distribution, for example from a scenario. Raises ValueError that says what was expected."""
    if isinstance(value, Uniform | LogNormal | Choice):
        return value
    if _is_number(value):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return _uniform(value)
    if isinstance(value, Mapping):
        return _choice(value) if "choices" in value else _lognormal(value)
    raise ValueError(f"expected {SHAPES}; got {value!r}")


def _uniform(value: list[object] | tuple[object, ...]) -> Uniform:
    if len(value) != 2 or not all(map(_is_number, value)) or _number(value[0]) > _number(value[1]):
        raise ValueError(f"expected [low, high], low first, both from 0; got {value!r}")
    return Uniform(_number(value[0]), _number(value[1]))


def _lognormal(value: Mapping[str, object]) -> LogNormal:
    _refuse_unknown_keys(value, ("mean", "sd", "min", "max"))
    for name in ("mean", "sd"):
        if name not in value:
            raise ValueError(f"expected {SHAPES}; {name} is missing in {dict(value)!r}")
    drawn = LogNormal(**{name: _number(number) for name, number in value.items()})
    if drawn.sd > drawn.mean * WIDEST > 0:
        raise ValueError(f"expected an sd of at most {WIDEST:,} times the mean; got {dict(value)!r}")
    return drawn


def _choice(value: Mapping[str, object]) -> Choice:
    _refuse_unknown_keys(value, ("choices", "weights"))
    choices, weights = value["choices"], value.get("weights")
    if not isinstance(choices, (list, tuple)) or not choices:
        raise ValueError(f"expected choices, one number or more; got {choices!r}")
    weights = [1] * len(choices) if weights is None else weights
    if not isinstance(weights, (list, tuple)) or len(weights) != len(choices):
        raise ValueError(f"expected as many weights as choices, {len(choices)}; got {weights!r}")
    drawn = Choice(tuple(map(_number, choices)), tuple(map(_number, weights)))
    if not sum(drawn.weights):
        raise ValueError("expected a weight above 0; got none")
    return drawn


def _refuse_unknown_keys(value: Mapping[str, object], names: tuple[str, ...]) -> None:
    for name in value:
        if name not in names:
            raise ValueError(f"{name}: unknown key{nearest(str(name), names)}; expected {SHAPES}")


def _is_number(value: object) -> bool:
    return is_number(value)


def _number(value: object) -> float:
    if not _is_number(value):
        raise ValueError(f"expected a number from 0; got {value!r}")
    return value  # type: ignore[return-value]
