"""Caches of fixed units, each of which matches fully or not at all (DeepSeek)."""

from __future__ import annotations

from copy import copy

from cachecost.caches.breakpoints import Outcome
from cachecost.caches.expiry import CacheEntry, State, new_entry
from cachecost.caches.reporting import PromptHistory, build_outcome
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import AS_COUNTED, PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules


class FixedUnitCache:
    """Units of all accounts and models. A prefix belongs to one of each: its root or its cache key differs."""

    def __init__(self) -> None:
        self._units: dict[Prefix, CacheEntry] = {}
        self._answers = PromptHistory()

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start."""
        shared, answer, *_ = self._answers.add_call(prompt.end)
        answer = answer if rules.keeps_answers else None
        if shared and answer and shared in self._units:
            self._units[answer] = copy(self._units[shared])  # as old as that of its prompt
        hit = self._find(answer or shared, start)
        for node in (shared, hit, prompt.end):
            if node and node.tokens:
                self._keep(node, rules, start, start + first_token_s)
        return build_outcome(prompt, sizes, sizes.of(hit) if hit else 0, hit, rules)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of the unit that ends at `prefix`. There is one TTL; `ttl` is ignored."""
        unit = self._units.get(prefix)
        return unit.state(now) if unit else "absent"

    def _find(self, node: Prefix | None, now: float) -> Prefix | None:
        """The longest unit at or before `node` that can be read. Nothing after the shared prefix can be one."""
        while node is not None:
            unit = self._units.get(node)
            if unit and unit.state(now) == "live":
                return node
            node = node.parent
        return None

    def _keep(self, node: Prefix, rules: ModelRules, start: float, readable_at: float) -> None:
        """Refresh a live unit, keep one that another call makes readable sooner, and write any other."""
        unit = self._units.get(node)
        state = unit.state(start) if unit else "absent"
        if unit and state == "live":
            unit.read(start, rules)
        elif unit and state == "unreadable" and unit.readable_at <= readable_at:
            unit.touched = start
        else:
            self._units[node] = new_entry(rules, "5m", start, readable_at)
