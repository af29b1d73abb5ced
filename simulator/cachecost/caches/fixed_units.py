"""Caches of fixed units, each of which matches fully or not at all (DeepSeek)."""

from __future__ import annotations

from bisect import insort
from copy import copy
from typing import NamedTuple

from cachecost.caches.block_starts import BlockStarts, SharedTokens, shared_characters
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.expiry import CacheEntry, State, new_entry
from cachecost.caches.reporting import PromptHistory, build_outcome
from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.compare import new_prefixes, prefixes_back
from cachecost.prompts.render import AS_COUNTED, PrefixSizes, Prompt
from cachecost.providers.rules import ModelRules


class InnerUnit(NamedTuple):
    """A unit that ends inside a block: it holds the first `characters` of the text of `block`."""

    unit: Prefix
    block: Block
    characters: int


class FixedUnitCache:
    """Units of all accounts and models. A prefix belongs to one of each: its root or its cache key differs."""

    def __init__(self) -> None:
        self._units: dict[Prefix, CacheEntry] = {}
        self._answers = PromptHistory()
        self._starts = BlockStarts(self._answers.seen)
        self._inside: dict[Prefix, list[InnerUnit]] = {}
        """Units that end inside a block, by the prefix before it, the longest first."""

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start.

        The hit is the longest unit that can be read at or before the shared prefix, which may end inside a block:
        nothing after it can be one. Of the shared prefix, the hit and the prompt, a live unit is refreshed, one that
        another call makes readable sooner is kept, and any other is written.
        """
        shares = prompt.counter.shared if prompt.counter else None
        new, _ = new_prefixes(prompt.end, self._answers.seen)
        inside = self._unit_inside(new[-1], shares) if new and shares else None
        shared, answer, *_ = self._answers.add_call(prompt.end)
        shared = shared and _without_layer_start(shared)
        answer = answer if rules.keeps_answers else None
        units, readable_at = self._units, start + ttft_s
        if shared and answer and shared in units:
            units[answer] = copy(units[shared])  # as old as that of its prompt
        end = answer or (new[-1] if new else shared)
        hit = self._longest_live(end, start) if end else None
        for node in dict.fromkeys((inside or shared, hit, prompt.end)):
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
        if hit and hit.block is None and hit.parent:
            return build_outcome(prompt, sizes, sizes.at(hit.tokens), hit.parent, rules)
        return build_outcome(prompt, sizes, sizes.of(hit) if hit else 0, hit, rules)

    def _unit_inside(self, new: Prefix, shares: SharedTokens) -> Prefix | None:
        """The unit inside the block of a new prefix up to where another prompt parts from it; None where none does."""
        begun, node = self._starts.add(new, shares), new.parent
        if begun is None or node is None or new.block is None:
            return None
        inside = self._inside.setdefault(node, [])
        characters = shared_characters(new.block, begun[1].block)
        for one in inside:
            if one.unit.tokens == begun[0] and shared_characters(new.block, one.block) >= one.characters:
                return one.unit
        unit = node.cache_key(new.block.digest, new.layer, begun[0] - node.tokens)
        insort(inside, InnerUnit(unit, new.block, characters), key=lambda one: -one.unit.tokens)
        return unit

    def _longest_live(self, end: Prefix, now: float) -> Prefix | None:
        for node in prefixes_back(end):
            if self.state(node, "5m", None, now) == "live":
                return node
            for one in self._inside.get(node.parent, ()) if node.parent else ():
                if (
                    one.unit.tokens <= node.tokens
                    and self.state(one.unit, "5m", None, now) == "live"
                    and shared_characters(one.block, node.block) >= one.characters
                ):
                    return one.unit
        return None

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules | None, now: float) -> State:
        """The state at `now` of the unit that ends at `prefix`. There is one TTL; `ttl` is ignored."""
        unit = self._units.get(prefix)
        return unit.state(now) if unit else "absent"


def _without_layer_start(prefix: Prefix) -> Prefix:
    """The same tokens without the start of a layer that they end with: later prompts may go on before it."""
    while prefix.block is None and prefix.parent is not None and prefix.parent.tokens == prefix.tokens:
        prefix = prefix.parent
    return prefix
