"""The fit: medians for content ratios, least absolute deviations for structure constants."""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cachecost.base.errors import CannotEvaluate

FILLER_CHARS = 1000
FILLER_SHARE = 0.2
"""A longer text that deflates to less than this is padding (cache tests repeat a sentence): it tells no ratio."""
SPREAD = 0.5
"""Tokens. Within this distance of a bill a sample pulls no harder for being nearer."""
PULL = 0.01
"""How strongly a constant is held to where it starts, so that two which only occur together stay apart."""
TELLING = 10
"""A constant that fewer samples tell stays where it starts: it would be tuned to a file."""
ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a source: its content kind, its bytes, its cl100k tokens, its tokens in each generation."""

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
        raise CannotEvaluate(f"no text of kind '{kind}' to tell a ratio from: give more with --text")
    half = sum(weight for _, weight in found) / 2
    for value, weight in found:
        half -= weight
        if half <= 0:
            return round(value, 3)
    return round(found[-1][0], 3)


def tokens_per_byte(texts: Iterable[Text], kind: str, generation: str) -> float:
    """Claude tokens per byte of texts of `kind`, all together."""
    mine = [text for text in texts if text.kind == kind]
    return round(sum(text.tokens[generation] for text in mine) / sum(text.size for text in mine), 3)


@dataclass(frozen=True, slots=True)
class Bill:
    """What a billed prompt says of the constants: Σ constant × feature = `rest`, of `length` tokens in all."""

    features: Mapping[str, int]
    rest: float
    length: int


def least_absolute(bills: Sequence[Bill], known: Mapping[str, float], held: Container[str] = ()) -> dict[str, int]:
    """Whole tokens of each constant of `known` that bring the bills' relative errors nearest to 0.

    Absolute deviations, so a few odd samples do not matter. `known` is where each constant starts; one
    in `held` stays there.
    """
    import numpy as np

    often = {name for name in known if sum(name in bill.features for bill in bills) >= TELLING}
    told = [name for name in sorted(often) if name not in held]
    whole = {name: max(0, round(value)) for name, value in known.items()}
    if not told:
        return whole
    matrix = np.array([[bill.features.get(name, 0) for name in told] for bill in bills], dtype=float)
    others = [sum(whole.get(name, 0) * n for name, n in bill.features.items() if name not in told) for bill in bills]
    start = np.array([known[name] for name in told])
    rest = np.array([bill.rest for bill in bills]) - np.array(others) - matrix @ start
    length = np.array([bill.length for bill in bills], dtype=float)
    step = np.zeros(len(told))
    pull = np.eye(len(told)) * PULL**0.5
    for _ in range(ROUNDS):
        weight = (np.maximum(np.abs(rest - matrix @ step), SPREAD) * length / length.mean()) ** -0.5
        rows = np.vstack([matrix * weight[:, None], pull])
        step = np.linalg.lstsq(rows, np.concatenate([rest * weight, np.zeros(len(told))]), rcond=None)[0]
    return whole | {name: max(0, round(float(value))) for name, value in zip(told, start + step, strict=True)}


def median(values: Sequence[float]) -> float:
    """The middle value; 0 of none."""
    return percentile(values, 50)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` of all values do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0
