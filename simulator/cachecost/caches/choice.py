"""The matching model of a name, as rules have it under `matching`; and all of them as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cachecost.caches.breakpoints import TTLS, Entry, Outcome, PrefixCache, State
from cachecost.caches.reporting import in_steps
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED, Sizes
from cachecost.providers.rules import ModelRules

BREAKPOINT = "breakpoint"


class Matching(Protocol):
    """What the calls of a replay are asked against. Calls come in the order they start; times are seconds."""

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, first_token_s: float = 0.0, sizes: Sizes = AS_COUNTED
    ) -> Outcome:
        """Look up `prompt`, keep what the provider keeps of it, and say how its tokens divide."""
        ...

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """How what is kept up to `prefix` stands at `now`."""
        ...


def _grid() -> Matching:
    from cachecost.caches.fixed_blocks import Grid

    return Grid()


def _units() -> Matching:
    from cachecost.caches.fixed_units import Units

    return Units()


def _named() -> Matching:
    from cachecost.caches.explicit_objects import NamedObjects

    return NamedObjects()


def _best_effort() -> Matching:
    from cachecost.caches.best_effort import BestEffort

    return BestEffort()


MATCHINGS: dict[str, Callable[[], Matching]] = {
    BREAKPOINT: PrefixCache,
    "grid": _grid,
    "units": _units,
    "named": _named,
    "best_effort": _best_effort,
}
"""Made where they are asked for: most replays need no more than breakpoints."""


def matching_for(kind: str) -> Matching:
    """A fresh cache of that kind. Raises ValueError for a kind that no rule may state."""
    if kind not in MATCHINGS:
        raise ValueError(f"matching={kind!r}: expected one of {', '.join(MATCHINGS)}")
    return MATCHINGS[kind]()


class ByRules:
    """The caches of all hosts of a replay: each call goes to the kind that its rules state."""

    def __init__(self, breakpoints: PrefixCache | None = None) -> None:
        self._kinds: dict[str, Matching] = {BREAKPOINT: breakpoints or PrefixCache()}

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, first_token_s: float = 0.0, sizes: Sizes = AS_COUNTED
    ) -> Outcome:
        outcome = self._of(rules).call(prompt, rules, start, first_token_s, sizes)
        return in_steps(outcome, rules) if rules.matching == BREAKPOINT and rules.step_tokens > 1 else outcome

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        return self._of(rules).state(prefix, ttl, rules, now)

    def warm(self, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """Put an entry into the cache of breakpoints that was written before the call that starts at `start`."""
        breakpoints = self._of(rules)
        assert isinstance(breakpoints, PrefixCache)
        breakpoints.warm(prefix, ttl, rules, start)

    def entry(self, prefix: Prefix, rules: ModelRules) -> Entry | None:
        """The entry at `prefix`, alive or not; with two TTLs, that used last. None on hosts without breakpoints."""
        breakpoints = self._of(rules)
        if not isinstance(breakpoints, PrefixCache):
            return None
        ttls = [ttl for ttl in TTLS if breakpoints.state(prefix, ttl, rules, 0.0) != "absent"]
        found = (breakpoints.entry(prefix, ttl, rules) for ttl in ttls)
        return max(found, key=lambda entry: entry.touched, default=None)

    def _of(self, rules: ModelRules) -> Matching:
        found = self._kinds.get(rules.matching)
        if found is None:
            found = self._kinds[rules.matching] = matching_for(rules.matching)
        return found
