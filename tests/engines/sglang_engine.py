"""SGLang's own radix tree, without a model: requests are token ids, served one after the other."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from stand_ins import stand_ins

MEMORY = "sglang.srt.mem_cache"
NAMES = ("radix_cache", "base_prefix_cache", "events", "utils", "evict_policy", "cache_init_params")
CODE = tuple(f"{MEMORY}.{name}" for name in NAMES)
"""The modules that run as they are in the wheel; all others of it are stand-ins."""


class Slots(list[int]):
    """What the tree keeps for each token: as much of a tensor as it uses."""

    def __getitem__(self, place: Any) -> Any:
        return Slots(super().__getitem__(place)) if isinstance(place, slice) else super().__getitem__(place)

    def clone(self) -> Slots:
        return Slots(self)


class SglangEngine:
    """A server with pages of `step` tokens, and room for `capacity` tokens (None: for all)."""

    def __init__(self, wheel: Path, step: int, capacity: int | None = None) -> None:
        with stand_ins(wheel, ("sglang", "torch"), CODE):
            self.code = import_module(CODE[0])
            self.base = import_module(CODE[1])
        self.tree = self.code.RadixCache.create_simulated(page_size=step)
        self.tree.token_to_kv_pool_allocator = MagicMock()
        self.step = step
        self.capacity = capacity

    def serve(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> int | None:
        """The tokens of `prompt` that are read, never its last; None where it does not fit.

        Its answer is computed but for its last token, as far as it fits.
        """
        if self.capacity is not None and self._paged(len(prompt)) > self.capacity:
            return None
        found = self.tree.match_prefix(self.base.MatchPrefixParams(key=self._key(prompt[:-1])))
        read = int(found.device_prefix_len)
        self.tree.inc_lock_ref(found.last_device_node)
        kept = list(prompt)
        self._make_room(self._paged(len(kept)) - read)
        for token in answer[:-1]:
            if not self._make_room(self._paged(len(kept) + 1) - read):
                break
            kept.append(token)
        self.tree.insert(self.base.InsertParams(key=self._key(kept), value=Slots([0] * len(kept))))
        self.tree.dec_lock_ref(found.last_device_node)
        return read

    def _make_room(self, tokens: int) -> bool:
        """Evict until there is room for so many tokens that are not in the tree. Returns whether there is."""
        if self.capacity is None:
            return True
        lacking = tokens - (self.capacity - self.tree.total_size())
        if lacking > 0:
            self.tree.evict(self.base.EvictParams(num_tokens=lacking))
        return bool(tokens <= self.capacity - self.tree.total_size())

    def _paged(self, tokens: int) -> int:
        return -(-tokens // self.step) * self.step

    def _key(self, tokens: Sequence[int]) -> Any:
        return self.code.RadixKey(array("q", tokens))
