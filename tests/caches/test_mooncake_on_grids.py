"""Mooncake traces against a self-hosted engine's cache: requests that share ids read them, while there is room."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trees import rules

from cachecost.caches.fixed_blocks import FixedBlockCache
from cachecost.conversations.readers.mooncake import calls
from cachecost.prompts.blocks import Block
from cachecost.prompts.render import NOTHING_HIDDEN, Hidden, Renderer
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

TRACE = [(0, 1300, [1, 2, 3]), (1000, 1536, [1, 2, 4]), (2000, 1024, [5, 6]), (3000, 1536, [1, 2, 4])]
"""Milliseconds, tokens, ids: a shared document of 1024 tokens, and another one in between."""


class Given:
    """Blocks have the tokens that the trace tells."""

    name, source, error_margin = "given", "given", 0.0

    def shared(self, one: Block, other: Block) -> int:
        return 0

    def block(self, block: Block) -> int:
        return block.tokens or 0

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


def reads(path: Path, stated: ModelRules) -> list[int]:
    rows = [{"timestamp": at, "input_length": n, "output_length": 9, "hash_ids": ids} for at, n, ids in TRACE]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    renderer, grid = Renderer(Given()), FixedBlockCache()
    return [
        grid.call(renderer.render(call.request, (), stated), stated, call.start).read
        for call in calls(path, pytest.fail)
    ]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        (None, [0, 1024, 0, 1520]),
        (2836, [0, 1024, 0, 1520]),
        (2560, [0, 1024, 0, 1520]),
        (2559, [0, 1024, 0, 1520]),
        (2500, [0, 1024, 0, 1472]),
        (1536, [0, 1024, 0, 512]),
        (1535, [0, 0, 0, 0]),
        (0, [0, 0, 0, 0]),
    ],
)
def test_what_is_read_depends_on_the_room(tmp_path: Path, capacity: int | None, expected: list[int]) -> None:
    vllm = rules(step_tokens=16, recomputed_tokens=1, capacity_tokens=capacity)
    assert reads(tmp_path / "trace.jsonl", vllm) == expected
