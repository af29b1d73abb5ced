"""What varies from seed to seed, and the numbers that a seed draws: the same for it in whatever company."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cachecost.conversations.distributions import Distribution, DistributionShape

Floats = NDArray[np.float64]
PLACES = 6
"""Times are whole microseconds, so that the last bit of a logarithm decides nothing."""
GOLDEN = 0x9E3779B97F4A7C15
TO_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class Retries:
    """A share `rate` of the main calls is sent again, `wait` seconds after the first attempt.

    `billed`: the API answered, and the answer was lost on the way (a timeout): the first attempt reads, writes and
    costs as any call. Otherwise it failed (overloaded): it writes and costs nothing, and only time is lost.
    """

    rate: float = 0.0
    wait: Distribution = 1.0
    billed: bool = False


@dataclass(frozen=True, slots=True)
class Draw:
    """What is drawn for each seed. None stays as planned. Times are seconds.

    `turn` is from the start of a main call to the next one where a person spoke in between, `loop` where only tools
    did; calls that start together stay together. `first_token` is from the start of a main call to its first token.
    `eviction`, `lag_probability` and `lag_s` go over the rulebook's assumptions of rule 14; their draws follow the
    seed.
    """

    turn: Distribution | None = None
    loop: Distribution | None = None
    first_token: Distribution | None = None
    retries: Retries = Retries()
    eviction: float | None = None
    lag_probability: float | None = None
    lag_s: float | None = None

    @property
    def readings(self) -> dict[str, float]:
        """The assumptions that are set, by the rulebook's names."""
        named = {
            "early_eviction_probability": self.eviction,
            "visibility_lag_probability": self.lag_probability,
            "visibility_lag_s": self.lag_s,
        }
        return {name: value for name, value in named.items() if value is not None}


def uniforms(seeds: Sequence[int], columns: int) -> Floats:
    """Numbers in [0, 1), a row a seed: SplitMix64 (Steele, Lea and Flood 2014), started from a digest of the seed."""
    states = [blake2b(f"montecarlo:{seed}".encode(), digest_size=8).digest() for seed in seeds]
    start = np.array([int.from_bytes(state, "big") for state in states], dtype=np.uint64)
    steps = np.arange(1, columns + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    mixed: NDArray[np.uint64] = start[:, None] + steps[None, :]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    shares: Floats = (mixed >> np.uint64(11)).astype(np.float64) * TO_UNIT
    return shares


@dataclass(frozen=True, slots=True)
class PairedUniforms:
    """A RandomSource that makes a number of each pair of uniform ones."""

    first: Floats
    second: Floats

    def constant(self, value: float) -> Floats:
        return np.full(self.first.shape, value)

    def uniform(self) -> Floats:
        return self.first

    def normal(self) -> Floats:
        """Box and Muller's transform; 1 − u is never 0."""
        drawn: Floats = np.sqrt(-2 * np.log(1 - self.first)) * np.cos(2 * np.pi * self.second)
        return drawn

    def exp(self, power: Floats) -> Floats:
        return np.exp(power)

    def log(self, value: Floats) -> Floats:
        return np.log(value)

    def clip(self, value: Floats, low: float, high: float) -> Floats:
        return np.clip(value, low, high)

    def pick(self, choices: Sequence[float], edges: Sequence[float], position: Floats) -> Floats:
        places = np.searchsorted(np.array(edges), position, side="right")
        drawn: Floats = np.array(choices, dtype=np.float64)[np.minimum(places, len(choices) - 1)]
        return drawn


def numbers(of: Distribution, first: Floats, second: Floats) -> Floats:
    """Numbers with the distribution for pairs of uniform ones, in whole microseconds."""
    source = PairedUniforms(first, second)
    drawn = of.draw(source) if isinstance(of, DistributionShape) else source.constant(float(of))
    rounded: Floats = np.round(drawn, PLACES)
    return rounded
