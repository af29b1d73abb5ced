"""The fit: medians for content ratios, least absolute deviations for structure constants."""

from __future__ import annotations

import math
import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from cachecost.base.errors import CannotEvaluate
from cachecost.prompts.blocks import WHOLE, main_kind, shares_in

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

FILLER_CHARS = 1000
FILLER_SHARE = 0.2
"""A longer text that deflates to less than this is padding (cache tests repeat a sentence): it tells no ratio."""
SPREAD = 0.5
"""Tokens. Within this distance of a bill a sample pulls no harder for being nearer."""
PULL = 0.01
"""How strongly a constant is held to where it starts, so that two which only occur together stay apart."""
TELLING = 3
"""Different prompts. A constant that fewer tell stays where it starts: it would be tuned to a file."""
ROUNDS = 200
CLOSE = 0.001
"""Of a ratio: within this distance a text pulls no harder for being nearer."""
NO_TEXT = "no text of kind '{kind}' to tell a ratio from: give more with --text"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a source: its content kinds (as `Block.prose`), its bytes, its tokens in cl100k and each generation."""

    source: str
    kind: str
    size: int
    cl100k: int
    tokens: Mapping[str, int]


def is_filler(text: str) -> bool:
    """Whether `text` is one sentence many times over."""
    if len(text) <= FILLER_CHARS:
        return False
    data = text.encode("utf-8", "replace")
    return len(zlib.compress(data)) < FILLER_SHARE * len(data)


def ratio(texts: Iterable[Text], kind: str, generation: str) -> float:
    """Claude tokens per cl100k token: the median over texts, each weighing its length.

    Raises CannotEvaluate where there is no text of `kind`.
    """
    found = sorted(
        (text.tokens[generation] / text.cl100k, text.cl100k) for text in texts if text.kind == kind and text.cl100k
    )
    if not found:
        raise CannotEvaluate(NO_TEXT.format(kind=kind))
    half = sum(weight for _, weight in found) / 2
    for value, weight in found:
        half -= weight
        if half <= 0:
            return round(value, 3)
    return round(found[-1][0], 3)


def blended_ratios(texts: Iterable[Text], kinds: Sequence[str], generation: str) -> dict[str, float]:
    """Claude tokens per cl100k token of each kind of blended texts: least absolute deviations, each text weighing its
    length.

    Raises CannotEvaluate where there is no text that has a kind.
    """
    import numpy as np

    found = [(shares_in(text.kind), text) for text in texts if text.cl100k]
    mine = [(shares, text) for shares, text in found if shares.keys() <= set(kinds)]
    for kind in kinds:
        if not any(kind in shares for shares, _ in mine):
            raise CannotEvaluate(NO_TEXT.format(kind=kind))
    matrix = np.array([[shares.get(kind, 0) / WHOLE for kind in kinds] for shares, _ in mine])
    told = np.array([text.tokens[generation] / text.cl100k for _, text in mine])
    length = np.array([text.cl100k for _, text in mine], dtype=float)
    values = np.ones(len(kinds))
    for _ in range(ROUNDS):
        weight = (length / np.maximum(np.abs(told - matrix @ values), CLOSE)) ** 0.5
        values = np.linalg.lstsq(matrix * weight[:, None], told * weight, rcond=None)[0]
    return {kind: round(float(value), 3) for kind, value in zip(kinds, values, strict=True)}


def tokens_per_byte(texts: Iterable[Text], kind: str, generation: str) -> float:
    """Claude tokens per byte of texts of `kind`, all together."""
    mine = [text for text in texts if main_kind(text.kind) == kind]
    return round(sum(text.tokens[generation] for text in mine) / sum(text.size for text in mine), 3)


@dataclass(frozen=True, slots=True)
class Bill:
    """What a billed prompt says of the constants: Σ constant × feature = `rest`, of `length` tokens in all."""

    features: Mapping[str, float]
    rest: float
    length: int


def least_absolute(bills: Sequence[Bill], known: Mapping[str, float], held: Container[str] = ()) -> dict[str, float]:
    """Tokens of each constant of `known`, in halves, that bring the bills' relative errors nearest to 0.

    Absolute deviations, so a few odd samples do not matter. `known` is where each constant starts; one
    in `held`, or that fewer than `TELLING` bills have, stays there.
    """
    import numpy as np

    often = {name for name in known if sum(name in bill.features for bill in bills) >= TELLING}
    fitted = [name for name in sorted(often) if name not in held]
    whole = {name: float(max(0.0, round(2 * value) / 2)) for name, value in known.items()}
    if not fitted:
        return whole
    matrix = np.array([[bill.features.get(name, 0) for name in fitted] for bill in bills], dtype=float)
    others = [sum(whole.get(name, 0) * n for name, n in bill.features.items() if name not in fitted) for bill in bills]
    start = np.array([known[name] for name in fitted])
    rest = np.array([bill.rest for bill in bills]) - np.array(others) - matrix @ start
    length = np.array([bill.length for bill in bills], dtype=float)
    step = np.zeros(len(fitted))
    pull = np.eye(len(fitted)) * PULL**0.5
    for _ in range(ROUNDS):
        weight = (np.maximum(np.abs(rest - matrix @ step), SPREAD) * length / length.mean()) ** -0.5
        rows = np.vstack([matrix * weight[:, None], pull])
        step = np.linalg.lstsq(rows, np.concatenate([rest * weight, np.zeros(len(fitted))]), rcond=None)[0]
    found = _nearest_halves(matrix / length[:, None], (rest + matrix @ start) / length, start + step)
    return whole | dict(zip(fitted, found, strict=True))


def _nearest_halves(matrix: Floats, rest: Floats, values: Floats) -> list[float]:
    """The halves from 0 on near `values` that leave least of `rest`, absolutely, moved by one or two at a time.

    To round each by itself may be a token off in every bill: those that occur together make up for one another.
    """
    import numpy as np

    moves = np.array(_moves(len(values)))
    best = np.maximum(0.0, np.round(2 * values) / 2)
    while True:
        tried = np.maximum(0.0, best + moves)
        off = np.abs(rest[:, None] - matrix @ tried.T).sum(axis=0)
        if off.min() >= np.abs(rest - matrix @ best).sum() - 1e-9:
            return [float(value) for value in best]
        best = tried[off.argmin()]


def _moves(number: int) -> list[list[float]]:
    """All steps of half a token of one or two of so many constants."""
    steps = [(at, half) for at in range(number) for half in (-0.5, 0.5)]
    pairs = [((at, half), other) for at, half in steps for other in steps if other[0] > at or other == (at, half)]
    return [[dict(pair).get(at, 0.0) for at in range(number)] for pair in pairs]


def median(values: Sequence[float]) -> float:
    """The middle value; 0 of none."""
    return percentile(values, 50)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` of all values do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


NINE_OF_TEN = 90
LEAST_SOURCES = 9
"""Of fewer, nine of ten of a further source's values have no bound that the sources tell."""


def told_by_most(values: Sequence[float]) -> float:
    """What at least nine of ten further values are expected not to exceed: with few values, the largest."""
    ordered = sorted(values)
    return ordered[min(len(ordered), -(-(len(ordered) + 1) * NINE_OF_TEN // 100)) - 1]


def told_by_sources(values: Mapping[str, Sequence[float]], wider: float) -> float:
    """What nine of ten values of a further source are expected not to exceed; 0 of no source.

    Values of one source are alike, so each source weighs the same, and as much as the further one, whose values may be
    any (hierarchical conformal prediction: Lee, Barber and Willett 2023, arXiv:2306.06342). Fewer than `LEAST_SOURCES`
    say nothing then: the bound is that of the worst of them, times `wider`.
    """
    if len(values) < LEAST_SOURCES:
        return wider * max(map(told_by_most, values.values()), default=0.0)
    weighed = sorted((value, 1 / len(of) / (len(values) + 1)) for of in values.values() for value in of)
    reached = accumulate(weight for _, weight in weighed)
    return next(value for (value, _), share in zip(weighed, reached, strict=True) if share >= NINE_OF_TEN / 100 - 1e-9)


def round_up(number: float) -> float:
    """`number` to two digits, not less."""
    if not number:
        return 0.0
    digits = 1 - math.floor(math.log10(number))
    return round(math.ceil(number * 10.0**digits - 1e-6) / 10.0**digits, 6)
