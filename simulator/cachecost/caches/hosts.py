"""What the hosts' caches do with prompts, and why. Replays and fidelity checks share this."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.structs import replace, value
from cachecost.caches.breakpoints import CacheEntry, Outcome, PrefixCache
from cachecost.caches.causes import Cause, cause_of, find_earlier_entry
from cachecost.caches.inspection import CallInspection
from cachecost.caches.lineage import Lineage, Relatives
from cachecost.caches.losses import Loss, cause_of_losses
from cachecost.caches.models import HostCaches
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.rules import ModelRules


@value
class LookedUp:
    """What the cache did with each pass of a call, the cause of the first one's outcome, and what the call lost."""

    outcomes: list[Outcome]
    cause: Cause
    losses: tuple[Loss, ...] = ()


class SimulatedHosts:
    """The caches of all hosts of a replay, and the calls that they saw."""

    explains = True
    """Whether each call is compared with earlier ones, so that its cause and its losses are known."""

    def __init__(self, cache: PrefixCache | None = None, lineage: Lineage | None = None) -> None:
        self._cache = HostCaches(cache)
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
        file: str = "",
        number: int = 0,
    ) -> LookedUp:
        """What the cache does with each pass of a call, and why.

        `times` are the start of the call and its time to first token, in seconds; calls come in the order they start.
        `number` is that of the call (0: calls are counted), `file` where it is from: calls of different files are of
        one conversation only if they begin with the same message. The cause is `unknown` unless it `explains`.
        """
        if not self.explains:
            return LookedUp(self._call(prompts, rules, times, sizes), "unknown")
        self._calls = number or self._calls + 1
        pool = rules.pool(workspace)
        relatives = self._lineage.forerunner(request, rules.model, pool, file)
        losses: tuple[Loss, ...] = ()
        if rules.uses_breakpoints:
            losses = self._losses(request, prompts[0], rules, times[0], sizes[0], relatives)
            outcomes = self._call(prompts, rules, times, sizes)
            is_first = not (losses or outcomes[0].hit or self._lineage.has_begun(request.thread, pool))
            cause = cause_of_losses(losses, outcomes[0], is_first)
        else:
            seen = relatives.nearest
            seen = seen if seen and seen.pool == pool else None
            lost = find_earlier_entry(self._cache, prompts[0], seen, times[0])
            outcomes = self._call(prompts, rules, times, sizes)
            cause = cause_of(request, prompts[0], outcomes[0], lost, rules)
        deepest = BreakpointPrefix(prompts[0].end, "5m") if rules.is_automatic else None
        if deepest is None and outcomes[0].breakpoints:
            deepest = outcomes[0].breakpoints[-1]
        self._lineage.remember(self._calls, times[0], request, prompts[0], rules, deepest, relatives)
        return LookedUp(outcomes, cause, losses)

    def _losses(
        self,
        request: Request,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        sizes: PrefixSizes,
        relatives: Relatives,
    ) -> tuple[Loss, ...]:
        cache, shared = self._cache.with_breakpoints, self._lineage.find_shared(prompt)
        call = CallInspection(self._calls, request, prompt, rules, start, sizes, cache, 0, shared, relatives)
        if call.is_healthy():
            return ()
        found = cache.find(prompt.breakpoints, rules, start, sizes)
        return tuple(replace(call, read=found[0].depth if found else 0).losses())

    def _call(
        self,
        prompts: Sequence[Prompt],
        rules: ModelRules,
        times: tuple[float, float],
        sizes: Sequence[PrefixSizes],
    ) -> list[Outcome]:
        if len(prompts) == 1:
            return [self._cache.call(prompts[0], rules, *times, sizes[0])]
        return [
            self._cache.call(prompt, rules, *moment, size)
            for moment, prompt, size in zip(pass_times(*times, len(prompts)), prompts, sizes, strict=True)
        ]

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens, on hosts with breakpoints."""
        self._cache.forget_longer(prompt, most, rules, sizes)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None:
        """The answer to the latest call with this prompt was billed with so many tokens."""
        self._cache.note_answer(prompt, rules, tokens)

    def warm_prefix(self, prompt: Prompt, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """Add `prefix` of a prompt to the cache, and the entries that its breakpoints before it would have written."""
        for breakpoint in prompt.breakpoints:
            if breakpoint.prefix.depth < prefix.depth:
                self._cache.warm(breakpoint.prefix, breakpoint.ttl, rules, start)
        self._cache.warm(prefix, ttl, rules, start)

    def entry(self, prefix: Prefix, rules: ModelRules) -> CacheEntry | None:
        """The entry at `prefix`, expired or not. None on hosts without breakpoints."""
        return self._cache.entry(prefix, rules)


class UnexplainedHosts(SimulatedHosts):
    """The caches of all hosts of a replay that is only priced: no call is compared with earlier ones."""

    explains = False
