"""Reads under a capacity against a plain pool of blocks or nodes; `test_engines.py` has those of the engines."""

from __future__ import annotations

from random import Random

import pytest
from block_pool import BlockPool, NodePool
from engine_logs import random_log, served_reads, simulated_reads

from cachecost.base.structs import replace
from cachecost.providers.rules import RuleBook


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("step", [2, 16])
@pytest.mark.parametrize("blocks", [1, 8, 16, 40, 2_000])
def test_calls_read_what_a_pool_of_blocks_reads(blocks: int, step: int, answers: bool) -> None:
    rules = replace(RuleBook().rules("vllm", "Qwen/Qwen3-8B"), minimum_tokens=step, step_tokens=step)
    holds = replace(rules, capacity_tokens=(blocks + rules.null_blocks) * step)
    for seed in range(12):
        chance = Random(seed)
        opens, log = chance.random() < 0.5, random_log(chance, 20, answers)
        reads = served_reads(log, BlockPool(blocks, step), opens)
        assert simulated_reads(log, holds, opens) == reads, f"seed {seed}"
        if blocks == 2_000:
            assert simulated_reads(log, rules, opens) == reads, f"seed {seed}"


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("step", [1, 16])
@pytest.mark.parametrize("capacity", [16, 160, 320, 640, 20_000])
def test_calls_read_what_a_tree_that_evicts_whole_nodes_reads(capacity: int, step: int, answers: bool) -> None:
    rules = replace(RuleBook().rules("sglang", "my-model"), step_tokens=step, capacity_tokens=capacity)
    for seed in range(12):
        chance = Random(seed)
        opens, log = chance.random() < 0.5, random_log(chance, 20, answers)
        assert simulated_reads(log, rules, opens) == served_reads(log, NodePool(capacity, step), opens), f"seed {seed}"
