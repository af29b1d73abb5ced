"""The caches of all hosts of a replay, by the rule `matching`: what they do with prompts, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from cachecost.account.causes import Cause
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.caches.causes import EarlierEntry, cause_of
from cachecost.caches.expiry import CacheEntry, State
from cachecost.caches.explicit_objects import ExplicitObjectCache
from cachecost.caches.fixed_blocks import FixedBlockCache
from cachecost.caches.fixed_units import FixedUnitCache
from cachecost.caches.inspection import BreakpointInspection, SentInspection
from cachecost.caches.losses import Lineage, Loss, Relatives
from cachecost.caches.reporting import build_outcome, round_down_to_block
from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.compare import begins_with
from cachecost.prompts.exact_json import has_content
from cachecost.prompts.passes import pass_times
from cachecost.prompts.render import AS_COUNTED, BreakpointPrefix, PrefixSizes, Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import TTLS

BREAKPOINT = "breakpoint"
GRID = "grid"


class CacheModel(Protocol):
    """A simulated cache. Calls come in the order they start; times are seconds."""

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """Look up `prompt`, keep what the provider keeps of it, and say how its tokens divide."""
        ...

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of what is cached up to `prefix`."""
        ...


class NoCache:
    """Keeps nothing and reads nothing: the host documents no cache for the model, or began it later."""

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """All of `prompt` is uncached."""
        return build_outcome(prompt, sizes, 0, None, rules)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """Always absent."""
        return "absent"


CACHE_MODELS: dict[str, Callable[[], CacheModel]] = {
    BREAKPOINT: PrefixCache,
    GRID: FixedBlockCache,
    "units": FixedUnitCache,
    "named": ExplicitObjectCache,
    "best_effort": FixedBlockCache,
    "none": NoCache,
}
"""A best-effort cache (Gemini implicit, Qwen implicit …) promises nothing and does not say how it matches. At most it
reads every earlier prefix, in steps of the rules (1 token where they state none) and for as long as they state (without
end where they state nothing). The least is no read, so that a result is a range."""


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
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        outcome = self._of(rules).call(prompt, rules, start, ttft_s, sizes)
        if rules.matching != BREAKPOINT or rules.step_tokens == 1:
            return outcome
        read = round_down_to_block(outcome.read, rules)  # the rest of the hit is uncached, not written
        uncached = outcome.uncached + outcome.read - read
        return replace(outcome, read=read, uncached=uncached, hit=outcome.hit if read else None)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        return self._of(rules).state(prefix, ttl, rules, now)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int, blocks: tuple[Block, ...] = ()) -> None:
        """The answer to the latest call, which had this prompt, was billed with so many tokens (0: not known) and has
        these blocks, where they are known: of use on a grid.
        """
        if rules.matching == GRID:
            cache = self._of(rules)
            assert isinstance(cache, FixedBlockCache)
            is_known = rules.keeps_answers and not rules.keeps_reasoning and blocks and all(map(has_content, blocks))
            cache.note_answer(prompt, rules, tokens, prompt.answered(blocks) if is_known else None)

    def warm_prefix(self, prompt: Prompt, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """Add breakpoint entries that were written before the call that starts at `start`, as `PrefixCache` does."""
        breakpoints = self._of(rules)
        assert isinstance(breakpoints, PrefixCache)
        breakpoints.warm_prefix(prompt, prefix, ttl, rules, start)

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens, on hosts that look back from
        breakpoints."""
        breakpoints = self._of(rules)
        if isinstance(breakpoints, PrefixCache) and rules.uses_breakpoints:
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


class CacheResult(msgspec.Struct, frozen=True):
    """What the cache did with each pass of a call, the cause of the first one's outcome, and what the call lost."""

    outcomes: list[Outcome]
    cause: Cause
    losses: tuple[Loss, ...] = ()
    cut: Loss | None = None
    """Of a call that lost nothing here: what changed since the call that it continues."""


class SimulatedHosts(HostCaches):
    """The caches of all hosts of a replay, and the calls that they saw."""

    explains = True
    """Whether calls with breakpoints are compared with earlier ones, so that their causes and losses are known."""

    def __init__(self, cache: PrefixCache | None = None, lineage: Lineage | None = None) -> None:
        super().__init__(cache)
        self._lineage = lineage or Lineage()
        self._calls = 0

    def inspect(
        self,
        request: Request,
        prompts: Sequence[Prompt],
        rules: ModelRules,
        workspace: str,
        times: tuple[float, float],
        sizes: Sequence[PrefixSizes],
        number: int = 0,
    ) -> CacheResult:
        """What the cache does with each pass of a call, and why.

        `times` are the start of the call and its time to first token, in seconds; calls come in the order they start.
        `number` is that of the call (0: calls are counted). The cause is `unknown` unless it `explains`.
        """
        if not (self.explains or rules.finds_without_lookback):
            return CacheResult(self._call_passes(prompts, rules, times, sizes), "unknown")
        self._calls = number or self._calls + 1
        pool, prompt, start = rules.pool(workspace), prompts[0], times[0]
        relatives = self._lineage.forerunner(request, rules.model, pool)
        losses, cut = tuple[Loss, ...](), None
        if rules.matching == "named":
            lost, seen = None, relatives.nearest
            if seen and seen.pool == pool:
                state = "changed" if seen.entry else "absent"
                if seen.entry and begins_with(prompt.end, seen.entry):
                    state = self.state(seen.entry, seen.ttl, seen.rules, start)
                lost = EarlierEntry(seen, seen.entry, state)
            outcomes = self._call_passes(prompts, rules, times, sizes)
            cause = cause_of(request, prompt, outcomes[0], lost, rules)
        else:
            shared = self._lineage.find_shared(prompt)
            call = self._calls, request, prompt, rules, start, sizes[0]
            if rules.uses_breakpoints:
                before = BreakpointInspection(*call, 0, shared, relatives, self.with_breakpoints)
                if not before.is_healthy():
                    found = self.with_breakpoints.find(prompt, rules, start, sizes[0])
                    losses = tuple(replace(before, read=found[0].depth if found else 0).losses())
                outcomes = self._call_passes(prompts, rules, times, sizes)
            else:
                states = self._earlier_states(relatives, shared, start)
                outcomes = self._call_passes(prompts, rules, times, sizes)
                depth = outcomes[0].hit.depth if outcomes[0].hit else 0
                after = SentInspection(*call, depth, shared, relatives, outcomes[0].read, states, self)
                losses = tuple(after.losses())
                cut = None if losses else after.cut()
            is_first = not (losses or outcomes[0].hit or self._lineage.has_begun(request.thread, pool))
            cause = "hit" if outcomes[0].hit else "cold_start" if is_first else "new_content"
            if losses:  # the largest, the first of equal ones
                cause = max(losses, key=lambda loss: loss.tokens).cause
            elif rules.finds_without_lookback and not rules.is_automatic and not outcomes[0].breakpoints:
                cause = "below_minimum" if prompt.breakpoints else "no_breakpoint"
        deepest = BreakpointPrefix(prompt.end, "5m") if rules.is_automatic else None
        if deepest is None and outcomes[0].breakpoints:
            deepest = outcomes[0].breakpoints[-1]
        self._lineage.remember(self._calls, start, request, prompt, rules, deepest, relatives)
        return CacheResult(outcomes, cause, losses, cut)

    def _earlier_states(self, relatives: Relatives, shared: Prefix, start: float) -> dict[Prefix, State]:
        near = (relatives.nearest, relatives.latest)
        asked = {one.entry: (one.ttl, one.rules) for one in near if one and one.entry}
        sender = self._lineage.sender(shared)
        if sender is not None:
            asked.setdefault(shared, ("5m", sender.rules))
        return {prefix: self.state(prefix, ttl, rules, start) for prefix, (ttl, rules) in asked.items()}

    def _call_passes(
        self, prompts: Sequence[Prompt], rules: ModelRules, times: tuple[float, float], sizes: Sequence[PrefixSizes]
    ) -> list[Outcome]:
        if len(prompts) == 1:
            return [self.call(prompts[0], rules, *times, sizes[0])]
        return [
            self.call(prompt, rules, *moment, size)
            for moment, prompt, size in zip(pass_times(*times, len(prompts)), prompts, sizes, strict=True)
        ]


class UnexplainedHosts(SimulatedHosts):
    """The caches of all hosts of a replay that is only priced: calls with breakpoints have no causes."""

    explains = False
