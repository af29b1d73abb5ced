"""Cache objects that the caller creates, pays for by the hour and names in its requests (Gemini's `CachedContent`)."""

from __future__ import annotations

from cachecost.caches.breakpoints import Outcome
from cachecost.caches.expiry import CacheEntry, State, new_entry
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import AS_COUNTED, PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules


class ExplicitObjectCache:
    """Objects of all projects and models. A prefix belongs to one of each: its root or its cache key differs."""

    def __init__(self) -> None:
        self._objects: dict[Prefix, CacheEntry] = {}

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """Read or create the object of the static prefix. Times are seconds; calls come in the order they start."""
        static = [one for one in prompt.breakpoints if one.prefix.layer is not Layer.MESSAGES]
        breakpoint = static[-1] if static else None
        total = sizes.total(prompt)
        if breakpoint is None or sizes.of(breakpoint.prefix) < rules.minimum_tokens:
            return Outcome(0, 0, 0, total, None, ())
        tokens, entry = sizes.of(breakpoint.prefix), self._objects.get(breakpoint.prefix)
        if entry and entry.state(start) == "live":
            entry.read(start, rules)
            return Outcome(tokens, 0, 0, total - tokens, breakpoint.prefix, (breakpoint,))
        self._objects[breakpoint.prefix] = new_entry(rules, breakpoint.ttl, start, start + ttft_s)
        hour = tokens if breakpoint.ttl == "1h" else 0
        return Outcome(0, hour, tokens - hour, total - tokens, None, (breakpoint,))

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state at `now` of the object that ends at `prefix`."""
        entry = self._objects.get(prefix)
        return entry.state(now) if entry else "absent"
