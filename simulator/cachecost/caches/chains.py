"""The cached tokens of prompts that extend each other: when they were last sent, and when they can be read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cachecost.caches.breakpoints import State
from cachecost.prompts.blocks import Prefix

Moment = tuple[float, float]
"""When tokens can be read (seconds), and the start of the call that sent them: never at that start itself (rule 11)."""
FROM_BEST: tuple[State, ...] = ("live", "unreadable", "expired", "absent")
READ_BEFORE: Moment = (float("-inf"), float("-inf"))


@dataclass(slots=True)
class ChainStep:
    """Tokens up to `end` that were last sent by the same call, the `call`-th. `touched` is when the call that wrote or
    refreshed them started (seconds)."""

    end: int
    call: int
    touched: float
    ready: Moment

    def state(self, now: float, life_s: float) -> State:
        """Expired once no call sent them for `life_s`; before that readable from the earliest sender's first token."""
        if now - self.touched >= life_s:
            return "expired"
        return "unreadable" if now < self.ready[0] or now <= self.ready[1] else "live"


class Chain:
    """Prefixes that each extend the one before, from `start` tokens on, where they diverge from `parent`.

    `steps` are their cached tokens, the deepest first. A call that sends a prefix sends everything before it, so less
    deep tokens were sent later, can be read earlier and, if reads refresh, expire later: the whole state is a short
    staircase.
    """

    __slots__ = ("fork", "last", "number", "parent", "queued", "start", "steps")

    def __init__(self, number: int, parent: Chain | None, start: int, last: Prefix) -> None:
        self.number = number
        self.parent = parent
        self.start = start
        self.last = last
        self.fork = 0
        """The number of tokens after which the last chain diverges from this one; 0: none does."""
        self.queued = False
        self.steps: list[ChainStep] = []

    @property
    def cached_end(self) -> int:
        """The number of tokens up to the last cached one."""
        return self.steps[0].end if self.steps else self.start

    def state(self, tokens: int, now: float, life_s: float) -> State:
        """The state of the first `tokens` of the prompt."""
        worst = FROM_BEST[0]
        for step in reversed(self.steps):
            worst = max(worst, step.state(now, life_s), key=FROM_BEST.index)
            if step.end >= tokens:
                return worst
        return "absent"

    def send(
        self,
        upto: int,
        call: int,
        now: float,
        ready: Moment,
        life_s: float,
        refreshes: bool = True,
        is_reached: bool = True,
    ) -> int:
        """Record a call that sends the tokens up to `upto`. Returns how far they could be read; `start`: not at all.

        Live tokens are refreshed, if reads do that. Tokens that cannot be read yet become readable when they would
        have, or with this call if that is earlier. What expired, and all after it, is written again; without
        `is_reached` everything is.
        """
        live = self.start
        pieces: list[ChainStep] = []
        while self.steps:
            step = self.steps[-1]
            state, end = step.state(now, life_s), min(step.end, upto)
            is_reached = is_reached and state == "live"
            if is_reached:
                live = end
                _extend(pieces, ChainStep(end, call, now if refreshes else step.touched, READ_BEFORE))
            elif state == "unreadable" and step.ready < ready:
                pieces.append(ChainStep(end, call, now, step.ready))
            else:
                _extend(pieces, ChainStep(end, call, now, ready))
            if step.end > upto:
                break
            self.steps.pop()
        _extend(pieces, ChainStep(upto, call, now, ready))
        self.steps += reversed(pieces)
        return live

    def split(self, number: int, at: Prefix) -> Chain:
        """End this chain at `at`. Returns the rest as a chain that diverges from it there."""
        tail = Chain(number, self, at.tokens, self.last)
        tail.steps = [step for step in self.steps if step.end > at.tokens]
        self.steps = self.steps[len(tail.steps) :]
        self.last = at
        if tail.steps and self.cached_end < at.tokens:
            self.steps.insert(0, replace(tail.steps[-1], end=at.tokens))
        return tail

    def drop(self, most: int) -> int:
        """Evict up to `most` tokens of the deepest step, its last ones first. Returns how many."""
        step = self.steps[0]
        begin = self.steps[1].end if len(self.steps) > 1 else self.start
        dropped = min(most, step.end - begin)
        step.end -= dropped
        if step.end == begin:
            del self.steps[0]
        return dropped


def _extend(pieces: list[ChainStep], step: ChainStep) -> None:
    """Add a step after `pieces`; the last of them goes on where nothing else differs."""
    last = pieces[-1] if pieces else None
    if last and last.end >= step.end:
        return
    if last and (last.touched, last.ready) == (step.touched, step.ready):
        last.end = step.end
    else:
        pieces.append(step)
