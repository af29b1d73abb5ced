"""Caches of fixed units, each of which matches fully or not at all (DeepSeek)."""

from __future__ import annotations

from copy import copy

from cachecost.caches.breakpoints import Outcome
from cachecost.caches.expiry import CacheEntry, State, new_entry
from cachecost.caches.reporting import PromptHistory, build_outcome
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.compare import prefixes_back
from cachecost.prompts.render import AS_COUNTED, PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules


class FixedUnitCache:
    """Units of all accounts and models. A prefix belongs to one of each: its root or its cache key differs."""

    def __init__(self) -> None:
        self._units: dict[Prefix, CacheEntry] = {}
        self._answers = PromptHistory()

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start.

        The hit is the longest unit that can be read at or before the shared prefix: nothing after it can be one. Of
        the shared prefix, the hit and the prompt, a live unit is refreshed, one that another call makes readable sooner
        is kept, and any other is written.
        """
        shared, answer, *_ = self._answers.add_call(prompt.end)
        answer = answer if rules.keeps_answers else None
        units, readable_at = self._units, start + ttft_s
        if shared and answer and shared in units:
            units[answer] = copy(units[shared])  # as old as that of its prompt
        end = answer or shared
        known = ((node, units.get(node)) for node in prefixes_back(end)) if end else ()
        hit = next((node for node, unit in known if unit and unit.state(start) == "live"), None)
        for node in (shared, hit, prompt.end):
            if not node or not node.tokens:
                continue
            unit = units.get(node)
            state = unit.state(start) if unit else "absent"
            if unit and state == "live":
                unit.read(start, rules)
            elif unit and state == "unreadable" and unit.readable_at <= readable_at:
                unit.touched = start
            else:
                units[node] = new_entry(rules, "5m", start, readable_at)
        return build_outcome(prompt, sizes, sizes.of(hit) if hit else 0, hit, rules)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of the unit that ends at `prefix`. There is one TTL; `ttl` is ignored."""
        unit = self._units.get(prefix)
        return unit.state(now) if unit else "absent"
