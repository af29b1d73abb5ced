"""Synthetic conversations that branch: a person goes back to an earlier message and goes on another way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random

from cachecost.conversations.distributions import Distribution, draw_whole
from cachecost.conversations.model import Event, Human, Reply, Results, ThreadRewrite


@dataclass(frozen=True, slots=True)
class SyntheticForks:
    """Turns after which a person goes back and asks something else: one message then has several continuations.

    The branches follow one another in time; children that run at once are the change `fan_out`.
    """

    after: Collection[int] = ()
    """The human turns, counted from 1 over all branches, after which the person goes back."""
    rate: float = 0.0
    """Probability that the person goes back after any other turn."""
    back: Distribution = 1
    """How many of the branch's turns are taken back: at least one, at most all."""


class Branch:
    """The branch that a conversation is on: how many messages it has, and how many before each of its turns."""

    def __init__(self, forks: SyntheticForks) -> None:
        self._forks = forks
        self._after = frozenset(forks.after)
        self._messages = 0
        self._before_turn: list[int] = []

    def take(self, event: Event) -> None:
        """Go on by one event. One without blocks is no message."""
        if isinstance(event, Human):
            self._before_turn.append(self._messages)
        self._messages += isinstance(event, Human | Reply | Results) and bool(event.blocks)

    def go_back(self, turn: int, at: float, random: Random) -> ThreadRewrite | None:
        """The return to an earlier message before human turn `turn` (from 0); None where the branch goes on.

        The draws do not depend on `after`, so that naming a turn changes no other one.
        """
        is_drawn, back = random.random() < self._forks.rate, draw_whole(self._forks.back, random)
        if not self._before_turn or not (is_drawn or turn in self._after):
            return None
        kept = max(0, len(self._before_turn) - max(1, back))
        self._messages = self._before_turn[kept]
        del self._before_turn[kept:]
        return ThreadRewrite(at, self._messages, (), "fork")
