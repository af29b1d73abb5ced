"""The matching model of a name, as rules have it under `matching`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cachecost.cache import Outcome, PrefixCache, State
from cachecost.matching.best_effort import BestEffort
from cachecost.matching.grid import Grid
from cachecost.matching.named import NamedObjects
from cachecost.matching.units import Units
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED, Sizes
from cachecost.providers.rules import ModelRules


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


MATCHINGS: dict[str, Callable[[], Matching]] = {
    "breakpoint": PrefixCache,
    "grid": Grid,
    "units": Units,
    "named": NamedObjects,
    "best_effort": BestEffort,
}


def matching_for(kind: str) -> Matching:
    """A fresh cache of that kind. Raises ValueError for a kind that no rule may state."""
    if kind not in MATCHINGS:
        raise ValueError(f"matching={kind!r}: expected one of {', '.join(MATCHINGS)}")
    return MATCHINGS[kind]()
