"""Models without a prompt cache: every prompt is billed in full, whatever came before it."""

from __future__ import annotations

from cachecost.caches.breakpoints import Outcome, State
from cachecost.caches.reporting import build_outcome
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.rules import ModelRules


class NoCache:
    """Keeps nothing and reads nothing: the host documents no cache for the model, or began it later."""

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """All of `prompt` is uncached."""
        return build_outcome(prompt, sizes, 0, None, rules)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """Always absent."""
        return "absent"
