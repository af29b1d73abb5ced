"""The cache model for each value of the rule `matching`, and the caches of all hosts of a replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from cachecost.caches.breakpoints import TTLS, CacheEntry, Outcome, PrefixCache, State
from cachecost.caches.reporting import round_read
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.rules import ModelRules

BREAKPOINT = "breakpoint"
GRID = "grid"


class CacheModel(Protocol):
    """A simulated cache. Calls come in the order they start; times are seconds."""

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Look up `prompt`, keep what the provider keeps of it, and say how its tokens divide."""
        ...

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of what is cached up to `prefix`."""
        ...


@runtime_checkable
class AnswerCache(Protocol):
    """A cache that keeps answers as long as they were billed."""

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None: ...


def _fixed_blocks() -> CacheModel:
    from cachecost.caches.fixed_blocks import FixedBlockCache

    return FixedBlockCache()


def _fixed_units() -> CacheModel:
    from cachecost.caches.fixed_units import FixedUnitCache

    return FixedUnitCache()


def _explicit_objects() -> CacheModel:
    from cachecost.caches.explicit_objects import ExplicitObjectCache

    return ExplicitObjectCache()


def _best_effort() -> CacheModel:
    from cachecost.caches.fixed_blocks import BestEffortCache

    return BestEffortCache()


def _no_cache() -> CacheModel:
    from cachecost.caches.no_cache import NoCache

    return NoCache()


CACHE_MODELS: dict[str, Callable[[], CacheModel]] = {
    BREAKPOINT: PrefixCache,
    GRID: _fixed_blocks,
    "units": _fixed_units,
    "named": _explicit_objects,
    "best_effort": _best_effort,
    "none": _no_cache,
}
"""Models are imported when they are first used: most replays need breakpoints only."""


def create_cache(kind: str) -> CacheModel:
    """An empty cache of that kind. Raises ValueError for a kind that is not in `CACHE_MODELS`."""
    if kind not in CACHE_MODELS:
        raise ValueError(f"matching={kind!r}: expected one of {', '.join(CACHE_MODELS)}")
    return CACHE_MODELS[kind]()


class HostCaches:
    """The caches of all hosts of a replay: each call goes to the model that its rules state."""

    def __init__(self, breakpoints: PrefixCache | None = None) -> None:
        self.with_breakpoints = breakpoints if breakpoints is not None else PrefixCache()
        self._kinds: dict[str, CacheModel] = {BREAKPOINT: self.with_breakpoints}

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        outcome = self._of(rules).call(prompt, rules, start, first_token_s, sizes)
        return round_read(outcome, rules) if rules.matching == BREAKPOINT and rules.step_tokens > 1 else outcome

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        return self._of(rules).state(prefix, ttl, rules, now)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None:
        """The answer to the latest call with this prompt was billed with so many tokens: of use on a grid."""
        if rules.matching == GRID:
            blocks = self._of(rules)
            assert isinstance(blocks, AnswerCache)
            blocks.note_answer(prompt, rules, tokens)

    def warm(self, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """Add a breakpoint entry that was written before the call that starts at `start`."""
        breakpoints = self._of(rules)
        assert isinstance(breakpoints, PrefixCache)
        breakpoints.warm(prefix, ttl, rules, start)

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens, on hosts with breakpoints."""
        breakpoints = self._of(rules)
        if isinstance(breakpoints, PrefixCache):
            breakpoints.forget_longer(prompt, most, rules, sizes)

    def entry(self, prefix: Prefix, rules: ModelRules) -> CacheEntry | None:
        """The entry at `prefix`, expired or not; of two TTLs the one used last. None on hosts without breakpoints."""
        breakpoints = self._of(rules)
        if not isinstance(breakpoints, PrefixCache):
            return None
        ttls = [ttl for ttl in TTLS if breakpoints.state(prefix, ttl, rules, 0.0) != "absent"]
        found = (breakpoints.entry(prefix, ttl, rules) for ttl in ttls)
        return max(found, key=lambda entry: entry.touched, default=None)

    def _of(self, rules: ModelRules) -> CacheModel:
        found = self._kinds.get(rules.matching)
        if found is None:
            found = self._kinds[rules.matching] = create_cache(rules.matching)
        return found
