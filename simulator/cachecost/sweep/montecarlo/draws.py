"""What a seed draws: the pauses between main calls, first tokens and retries, independent of which other seeds run.

`retime` puts conversations at the times that a seed draws: for agents that look at the clock and must plan anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cachecost.conversations.calls import Call
from cachecost.conversations.distributions import Choice, Distribution, DistributionShape
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results

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
    messages = [call.request.thread.message for call in main]
    after_human = [message is not None and message.is_human for message in messages]
    return MainCalls([call.start for call in main], after_human)


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
        # none before the first, and none where there was none
        pause: Floats | float = start - anchors.starts[number - 1] if number else 0.0
        of = draw.turn if anchors.after_human[number] else draw.loop
        if of is not None and pause:
            pause = numbers(of, uniform[:, number, 0], uniform[:, number, 1])
        first[:, number] = np.round(final[:, number - 1] + pause, PLACES) if number else start
        wait = numbers(draw.retries.wait, uniform[:, number, 5], uniform[:, number, 6])
        final[:, number] = np.where(retried[:, number], np.round(first[:, number] + wait, PLACES), first[:, number])
    waited = draw.first_token
    tokens = None if waited is None else numbers(waited, uniform[:, :, 2], uniform[:, :, 3])
    return Times(anchors, first, final, retried, tokens)


def resample_pauses(calls: Sequence[Call]) -> Draw:
    """Pauses drawn from those that the calls have themselves, each as likely as it is frequent."""
    anchors = main_calls(calls)
    pauses: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, len(anchors.starts)):
        if gap := round(anchors.starts[number] - anchors.starts[number - 1], PLACES):
            pauses[anchors.after_human[number]].append(gap)
    turn, loop = (Choice(tuple(own), (1.0,) * len(own)) if own else None for own in (pauses[True], pauses[False]))
    return Draw(turn=turn, loop=loop)


def retime(conversations: Sequence[Conversation], draw: Draw, seed: int) -> list[Conversation]:
    """The conversations with each event at the time that `seed` gives it: replies as main calls, the rest between."""
    replies: list[tuple[float, int, int, bool]] = []  # time, conversation, place, whether a person spoke just before
    for number, conversation in enumerate(conversations):
        after_human = False
        for place, event in enumerate(conversation.events):
            if isinstance(event, Human | Results):
                after_human = isinstance(event, Human) or any(block.kind != "tool_result" for block in event.blocks)
            elif isinstance(event, Reply):
                replies.append((event.at, number, place, after_human))
                after_human = False
    replies.sort()
    times = draw_times(MainCalls([one[0] for one in replies], [one[3] for one in replies]), draw, [seed])
    columns = {(number, place): column for column, (_, number, place, _) in enumerate(replies)}
    return [
        replace(
            conversation,
            events=tuple(
                _move_event(event, times, columns.get((number, place)))
                for place, event in enumerate(conversation.events)
            ),
        )
        for number, conversation in enumerate(conversations)
    ]


def _move_event(event: Event, times: Times, column: int | None) -> Event:
    if isinstance(event, Reply) and column is not None:
        waited = event.first_token_s if times.waited is None else float(times.waited[0, column])
        return replace(event, at=float(times.final[0, column]), first_token_s=waited)
    at = float(times.at(event.at)[0])
    if isinstance(event, Aside):
        return replace(event, at=at, reply=replace(event.reply, at=at))
    return replace(event, at=at)
