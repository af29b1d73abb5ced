"""Asking more than once: an answer is one that two rounds agree on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cachecost.live.probes.harness import Bench
from cachecost.live.probes.model import Answer, Reading, Unsettled

MOST = 3
ENOUGH = 2


async def agreed(bench: Bench, once: Callable[[Bench], Awaitable[Reading]]) -> Answer:
    """Two rounds, and a third where they differ. A round that got lost on the way counts as one that says nothing."""
    readings: list[Reading] = []
    while len(readings) < MOST and together(readings).value is None:
        readings.append(await _round(bench, once))
        if readings[-1].is_final or _are_mute(readings):
            break
    return together(readings)


def _are_mute(readings: list[Reading]) -> bool:
    """Two rounds that say the same nothing: a third would not help."""
    return len(readings) == ENOUGH and all(one.value is None for one in readings)


async def _round(bench: Bench, once: Callable[[Bench], Awaitable[Reading]]) -> Reading:
    try:
        return await once(bench)
    except Unsettled as error:
        return Reading(None, str(error))


def together(readings: list[Reading]) -> Answer:
    """What so many rounds come to; no value where no two agree."""
    for reading in readings:
        same = sum(other.value == reading.value for other in readings)
        if reading.value is not None and same >= ENOUGH:
            return Answer(reading.value, reading.told, same, len(readings))
    told = list(dict.fromkeys(reading.told for reading in readings))
    return Answer(None, "; but another round: ".join(told), 0, len(readings))
