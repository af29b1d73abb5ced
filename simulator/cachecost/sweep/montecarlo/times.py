"""When calls start under each seed: the pauses between main calls are drawn, what lies between them keeps its share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cachecost.conversations.calls import Call
from cachecost.conversations.distributions import Choice
from cachecost.sweep.montecarlo.draws import PLACES, Draw, Floats, numbers, uniforms

MAIN = "main"
DRAWS_A_CALL = 8
"""Two numbers for the pause, two for the first token, one for whether it is retried, two for how long that takes."""


@dataclass(frozen=True, slots=True)
class MainCalls:
    """The main calls: when they start (seconds), and whether a person spoke just before."""

    starts: Sequence[float]
    after_human: Sequence[bool]


def main_calls(calls: Sequence[Call]) -> MainCalls:
    """The anchors of calls in the order they start."""
    main = [call for call in calls if call.purpose == MAIN]
    return MainCalls([call.start for call in main], [_after_human(call) for call in main])


def _after_human(call: Call) -> bool:
    message = call.request.thread.message
    return message is not None and message.is_human


@dataclass(frozen=True, slots=True)
class Times:
    """The main calls' times, a row a seed, a column a call.

    `first` is the start of the first attempt, `final` that of the one whose answer arrived: the same, unless `retried`.
    `waited` are the seconds to the first token; None: as planned.
    """

    anchors: MainCalls
    first: Floats
    final: Floats
    retried: NDArray[np.bool_]
    waited: Floats | None

    def at(self, moment: float) -> Floats:
        """The time that `moment`, between main calls, becomes under each seed."""
        starts = self.anchors.starts
        before = bisect_right(starts, moment) - 1
        if before < 0:
            return np.full(len(self.first), moment)
        since = moment - starts[before]
        if before + 1 == len(starts):
            return np.round(self.final[:, before] + since, PLACES)
        stretched = (self.first[:, before + 1] - self.final[:, before]) / (starts[before + 1] - starts[before])
        return np.round(self.final[:, before] + since * stretched, PLACES)


def draw_times(anchors: MainCalls, draw: Draw, seeds: Sequence[int]) -> Times:
    """The times of `seeds`. A call's draws depend on the seed and the call's number alone."""
    count = len(anchors.starts)
    uniform = uniforms(seeds, count * DRAWS_A_CALL).reshape(len(seeds), count, DRAWS_A_CALL)
    first, final = np.empty((len(seeds), count)), np.empty((len(seeds), count))
    retried = uniform[:, :, 4] < draw.retries.rate
    for number, start in enumerate(anchors.starts):
        pause = _pauses(anchors, draw, number, uniform[:, number])
        first[:, number] = np.round(final[:, number - 1] + pause, PLACES) if number else start
        wait = numbers(draw.retries.wait, uniform[:, number, 5], uniform[:, number, 6])
        final[:, number] = np.where(retried[:, number], np.round(first[:, number] + wait, PLACES), first[:, number])
    waited = draw.first_token
    tokens = None if waited is None else numbers(waited, uniform[:, :, 2], uniform[:, :, 3])
    return Times(anchors, first, final, retried, tokens)


def _pauses(anchors: MainCalls, draw: Draw, number: int, uniform: Floats) -> Floats | float:
    """Seconds before the `number`-th main call (from 0); none before the first, and none where there was none."""
    planned = anchors.starts[number] - anchors.starts[number - 1] if number else 0.0
    of = draw.turn if anchors.after_human[number] else draw.loop
    return planned if of is None or not planned else numbers(of, uniform[:, 0], uniform[:, 1])


def resample_pauses(calls: Sequence[Call]) -> Draw:
    """Pauses drawn from those that the calls have themselves, each as likely as it is frequent."""
    anchors = main_calls(calls)
    pauses: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, len(anchors.starts)):
        if gap := round(anchors.starts[number] - anchors.starts[number - 1], PLACES):
            pauses[anchors.after_human[number]].append(gap)
    return Draw(turn=_frequencies(pauses[True]), loop=_frequencies(pauses[False]))


def _frequencies(pauses: Sequence[float]) -> Choice | None:
    return Choice(tuple(pauses), (1.0,) * len(pauses)) if pauses else None
