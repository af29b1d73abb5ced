"""Objects that the caller makes, pays by the hour and names in its requests (Gemini's `CachedContent`).

An object holds the stable head of a prompt: up to the last mark in tools or system. The first call with that head
makes it, which is charged as a write; those that come within its lifetime read it, the whole of it. After that the
next call makes a new one: a read lengthens its life only where the rules say so. Marks in messages are no objects.
"""

from __future__ import annotations

from cachecost.caches.breakpoints import Entry, Outcome, State, new_entry
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import MarkedPrefix, Prompt
from cachecost.prompts.sizes import AS_COUNTED, Sizes
from cachecost.providers.rules import ModelRules


class ExplicitObjectCache:
    """Objects of all projects and models (a prefix belongs to one: its root or its salt differs)."""

    def __init__(self) -> None:
        self._objects: dict[Prefix, Entry] = {}

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, first_token_s: float = 0.0, sizes: Sizes = AS_COUNTED
    ) -> Outcome:
        """Read the object of `prompt`'s head or make it. Times are seconds; calls come in the order they start."""
        mark = _head_mark(prompt)
        total = sizes.total(prompt)
        if mark is None or sizes.of(mark.prefix) < rules.minimum_tokens:
            return Outcome(0, 0, 0, total, None, ())
        tokens, entry = sizes.of(mark.prefix), self._objects.get(mark.prefix)
        if entry and entry.state(start) == "live":
            entry.touched = start if rules.refreshes_on_read else entry.touched
            return Outcome(tokens, 0, 0, total - tokens, mark.prefix, (mark,))
        ttl_s = rules.ttl_s[mark.ttl]
        self._objects[mark.prefix] = new_entry(rules, mark.ttl, ttl_s, start, start + first_token_s)
        hour = tokens if mark.ttl == "1h" else 0
        return Outcome(0, hour, tokens - hour, total - tokens, None, (mark,))

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """How the object that ends at `prefix` stands at `now`."""
        entry = self._objects.get(prefix)
        return entry.state(now) if entry else "absent"


def _head_mark(prompt: Prompt) -> MarkedPrefix | None:
    """The last mark in tools or system."""
    return next((mark for mark in reversed(prompt.marks) if mark.prefix.layer is not Layer.MESSAGES), None)
