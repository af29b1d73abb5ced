"""vLLM's own cache manager, without a model: requests are token ids, served one after the other."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stand_ins import stand_ins

CORE = "vllm.v1.core"
CODE = (
    *(f"{CORE}.{name}" for name in ("kv_cache_manager", "kv_cache_coordinator", "single_type_kv_cache_manager")),
    *(f"{CORE}.{name}" for name in ("block_pool", "kv_cache_utils")),
    *("vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_spec_registry", "vllm.v1.request", "vllm.v1.utils"),
    "vllm.utils.math_utils",
)
"""The modules that run as they are in the wheel; all others of it are stand-ins."""
LONGEST = 1 << 20
"""Tokens of the longest request."""


class VllmEngine:
    """A server of `blocks` blocks, of which one is the null block, each of `step` tokens."""

    def __init__(self, wheel: Path, blocks: int, step: int) -> None:
        with stand_ins(wheel, ("vllm", "torch"), CODE):
            manager, utils, shapes, self.requests = (import_module(CODE[place]) for place in (0, 4, 5, 7))
            self.requests.length_from_prompt_token_ids_or_embeds = lambda ids, embeds: len(ids)
            utils.init_none_hash(digest)
            self.hasher = utils.get_request_block_hasher(step, digest)
            spec = shapes.FullAttentionSpec(block_size=step, num_kv_heads=1, head_size=1, dtype=None)
            self.manager = manager.KVCacheManager(
                shapes.KVCacheConfig(blocks, [], [shapes.KVCacheGroupSpec(["layer"], spec)]),
                max_model_len=LONGEST,
                scheduler_block_size=step,
                hash_block_size=step,
            )
        self.numbers = count()

    def serve(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> int | None:
        """The tokens of `prompt` that are read; None where it does not fit. Its answer is computed but for its last."""
        request = self._request(prompt)
        found, read, _ = self.manager.get_computed_blocks(request)
        if self.manager.allocate_slots(request, len(prompt) - read, read, found) is None:
            return None
        request.num_computed_tokens = len(prompt)
        for token in answer[:-1]:
            request.append_output_token_ids(token)
            if self.manager.allocate_slots(request, 1) is None:
                break
            request.num_computed_tokens += 1
        self.manager.free(request)
        return int(read)

    def _request(self, prompt: Sequence[int]) -> Any:
        sampling = SimpleNamespace(max_tokens=LONGEST, extra_args=None, skip_reading_prefix_cache=False)
        return self.requests.Request(
            str(next(self.numbers)), list(prompt), sampling, None, arrival_time=0.0, block_hasher=self.hasher
        )


def digest(value: object) -> bytes:
    """As vLLM's sha256 of a block."""
    return sha256(pickle.dumps(value)).digest()
