"""A fix: the calls as they would have been sent, and what that costs besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cachecost.analysis.explain.fixes.scopes import ScopeOf, in_conversation
from cachecost.analysis.explain.observed_replay import ObservedReplay
from cachecost.analysis.replays.replays import Replays
from cachecost.analysis.replays.steps import ReplayStep
from cachecost.caches.losses import Loss


@dataclass(frozen=True, slots=True)
class Fix:
    """Calls without some losses.

    `words` name the choice that was made among several, for the finding. With `keeps_prices` only the
    tokens that are cached otherwise count, at the prices of the call as it was sent: a cheaper model saves more, and
    the finding says how much.
    """

    steps: list[ReplayStep]
    words: str = ""
    keeps_prices: bool = False
    names_others: bool = False
    """Whether the finding also says what the other fixes save: they give up different things."""


@dataclass(frozen=True, slots=True)
class FixContext:
    """What fixes are made from: the replay in which the losses were found."""

    replays: Replays
    observed: ObservedReplay

    @property
    def steps(self) -> Sequence[ReplayStep]:
        return self.observed.steps


MakeFixes = Callable[[FixContext, Sequence[Loss]], Iterator[Fix]]
"""Makes the fixes for losses of one cause; of several the one that saves most is taken."""


@dataclass(frozen=True, slots=True)
class Fixer:
    """How losses of a cause are fixed, and the `scope` of a fix: it is made for all calls that are equal in this, or
    for none of them. A conversation can be sent otherwise by itself; a policy is one for all conversations of a kind,
    since nobody knows at their beginning how they will go on. `tries` is how many fixes there usually are.
    """

    make: MakeFixes
    scope: ScopeOf = in_conversation
    tries: int = 2
