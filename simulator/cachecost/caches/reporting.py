"""From the tokens that match to the read that usage reports."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from cachecost.caches.breakpoints import Outcome
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.rules import ModelRules


def reported_read(matched: int, total: int, rules: ModelRules) -> int:
    """The tokens that usage reports as read, of a prompt of `total` tokens whose first `matched` are cached.

    They end at a block, reach the minimum, exclude what is recomputed, and are reported in whole steps.
    """
    hit = round_down_to_block(matched, rules)
    if hit < rules.minimum_tokens:
        return 0
    hit = min(hit, round_down_to_block(total - rules.recomputed_tokens, rules))
    return hit - hit % rules.reported_step_tokens


def round_down_to_block(tokens: int, rules: ModelRules) -> int:
    """The last end of a fixed-size block at or before `tokens`; blocks start at the provider's own hidden text."""
    from_its_start = tokens + rules.grid_offset_tokens
    return max(0, from_its_start - from_its_start % rules.step_tokens - rules.grid_offset_tokens)


def shared_with(end: Prefix, tail: int, sizes: PrefixSizes, rules: ModelRules) -> int:
    """The tokens that a longer prompt shares with one that ended at `end`: all but those that opened its answer.

    A bill of the earlier prompt counts all of them, our own count the `tail` of them that it puts after `end`.
    """
    tokens = sizes.of(end)
    return tokens + tail - rules.opener_tokens if sizes.doubt(tokens) == 0 else tokens


def tail_of(prompt: Prompt) -> int:
    """The tokens that are counted after the last block of a prompt."""
    return prompt.total_tokens - prompt.end.tokens


def build_outcome(prompt: Prompt, sizes: PrefixSizes, matched: int, hit: Prefix | None, rules: ModelRules) -> Outcome:
    """The outcome where `matched` tokens are cached, up to `hit`. Writes are free, and breakpoints have no effect."""
    total = sizes.total(prompt)
    read = reported_read(matched, total, rules)
    return Outcome(read, 0, 0, total - read, hit if read else None, ())


def round_read(outcome: Outcome, rules: ModelRules) -> Outcome:
    """A breakpoint outcome with its read rounded down to a block: the rest of the hit is uncached, not written."""
    read = round_down_to_block(outcome.read, rules)
    hit = outcome.hit if read else None
    return replace(outcome, read=read, uncached=outcome.uncached + outcome.read - read, hit=hit)


def ttl_s_of(rules: ModelRules) -> float:
    """The host's only or short TTL in seconds; infinite where the rules state none."""
    return rules.ttl_s.get("5m", inf)
