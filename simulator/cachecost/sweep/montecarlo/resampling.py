"""Pauses as the calls have them themselves, for drawing."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.conversations.calls import Call
from cachecost.conversations.distributions import Choice
from cachecost.sweep.montecarlo.draws import PLACES, Draw
from cachecost.sweep.montecarlo.times import of_calls


def resampled(calls: Sequence[Call]) -> Draw:
    """Pauses drawn from those that the calls have themselves, each as likely as it is frequent."""
    anchors = of_calls(calls)
    pauses: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, len(anchors.starts)):
        if gap := round(anchors.starts[number] - anchors.starts[number - 1], PLACES):
            pauses[anchors.after_human[number]].append(gap)
    return Draw(turn=_frequencies(pauses[True]), loop=_frequencies(pauses[False]))


def _frequencies(pauses: Sequence[float]) -> Choice | None:
    return Choice(tuple(pauses), (1.0,) * len(pauses)) if pauses else None
