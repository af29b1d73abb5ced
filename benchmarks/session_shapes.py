"""The shapes of real Claude Code sessions, as figures: what benchmarks/sessions.py draws sizes, pauses and counts from.

Measured on 27 sessions of Claude Code 2.0.74 to 2.1.37 (12.98 MB, 864 calls, 4,350 lines).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from statistics import NormalDist

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
RESULT_LINE = (608, 784, 1_228, 3_237, 8_164, 24_674, 40_927, 84_285, 160_564)
"""Bytes of a line with a tool result."""
TWICE_RATIO = (0.1, 0.75, 1.0, 1.2, 6.2, 68, 198, 418, 810)
"""`toolUseResult`, which the client keeps for itself, over the result that the model sees."""
PROGRESS_LINE = (580, 604, 637, 651, 791, 3_994, 5_118, 20_655, 59_376)
HUMAN_LINE = (450, 535, 556, 601, 710, 1_139, 6_052, 14_557, 14_625)
BLOCK = {
    "thinking": (335, 403, 460, 571, 1_111, 2_147, 3_497, 7_994, 25_550),
    "text": (32, 69, 88, 129, 253, 760, 1_259, 2_009, 4_047),
    "tool_use": (107, 160, 188, 229, 499, 1_085, 2_069, 4_759, 18_050),
}
"""Bytes of a block of an answer."""
PAUSE = (2.1, 3.6, 4.6, 6.8, 14.1, 55.7, 138, 606, 66_730)
"""Seconds between the answers of two calls."""
TURN_CALLS = (1, 1, 2, 5, 10, 22, 32, 96, 96)
"""Calls between two messages of a person."""
LINES_OF_ANSWER = ((1, 153), (2, 493), (3, 181), (4, 31), (5, 5), (6, 1))
TEXT_SHARE = 0.6
"""Of the second blocks of answers with three and more blocks, those that are a text and not a tool's."""
PROGRESS_PER_RESULT = 1.45
OTHER_SHARE = 0.25
"""Of the results and of the blocks of answers, those with a character that is not ASCII."""
AGENT_PROGRESS_SHARE, AGENT_RESULT_SHARE = 0.05, 0.012
"""Of the lines with progress and with a result, those that hold the usage of a sub-agent's call: not a call."""
CALLS_MEDIAN, CALLS_MEAN, CALLS_MOST = 34, 57, 900
"""Calls of a session: the mean is that of 348 sessions with 19,677 calls."""
BYTES_PER_CALL = 15_024
"""Of the 27 sessions; results are scaled where a folder is to have more or less."""


class Draws:
    """Random figures. Only `Random.random` is used: its sequence is the same on every Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def of(self, values: Sequence[float]) -> float:
        """A value between quantiles, on a logarithmic scale."""
        share = self.random()
        for (low, high), (least, most) in zip(pairwise(QUANTILES), pairwise(values), strict=True):
            if share <= high:
                return float(least * exp(log(most / least) * (share - low) / (high - low)))
        return float(values[-1])

    def below(self, limit: int) -> int:
        return int(self.random() * limit)

    def weighted(self, choices: Sequence[tuple[int, int]]) -> int:
        left = self.random() * sum(weight for _, weight in choices)
        for value, weight in choices:
            left -= weight
            if left < 0:
                return value
        return choices[-1][0]

    def calls_of_sessions(self, sessions: int) -> list[int]:
        """Calls of each session: log-normal, a draw from each of so many equal parts, shuffled."""
        spread = (2 * log(CALLS_MEAN / CALLS_MEDIAN)) ** 0.5
        normal = NormalDist(log(CALLS_MEDIAN), spread)
        shares = [(number + 0.05 + 0.9 * self.random()) / sessions for number in range(sessions)]
        calls = [min(CALLS_MOST, max(1, round(exp(normal.inv_cdf(share))))) for share in shares]
        for last in range(sessions - 1, 0, -1):
            other = self.below(last + 1)
            calls[last], calls[other] = calls[other], calls[last]
        return calls


class EscapedText:
    """Filler as the inside of a JSON string, in cells that neither an escape nor a character crosses.

    The first half is ASCII, in the second every third cell has a character that is not.
    """

    CELL, CELLS = 32, 65_536
    ENDS = ("\\n    ", '\\"', "\\n", ". ", "\\t", "\\n\\t")

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        syllables = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
        words = ["".join(syllables[draws.below(len(syllables))] for _ in range(1 + draws.below(4))) for _ in range(997)]
        self._text = b"".join(self._cell(words, number) for number in range(self.CELLS))

    def _cell(self, words: list[str], number: int) -> bytes:
        """Exactly CELL bytes."""
        is_other = number >= self.CELLS // 2 and number % 3 == 0
        end = ("→✓─é"[number // 3 % 4] if is_other else self.ENDS[self._draws.below(len(self.ENDS))]).encode()
        text = " ".join(words[self._draws.below(len(words))] for _ in range(12)).encode()
        return text[: self.CELL - len(end)] + end

    def take(self, size: float, is_ascii: bool = True) -> bytes:
        """About so many bytes, whole cells, beginning anywhere in their half; two are hardly ever equal."""
        half = self.CELLS // 2
        cells = min(half, max(1, round(size / self.CELL)))
        start = (self._draws.below(half - cells + 1) + (0 if is_ascii else half)) * self.CELL
        return self._text[start : start + cells * self.CELL]
