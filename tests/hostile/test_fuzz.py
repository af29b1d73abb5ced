"""Damaged files of every format under every command: a known exit code, no traceback, little time and memory.

`make fuzz` tries 10,000: as many as CACHECOST_FUZZ says, from CACHECOST_FUZZ_FROM on. Input N is always the same.
60 of 300 are part of the suite, the others of `-m slow`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from hostile.attempts import COMMANDS, Ended, attempt, command_for
from hostile.damage import damaged
from hostile.seeds import Seed, seeds
from slow_cases import mostly_slow

INPUTS = int(os.environ.get("CACHECOST_FUZZ", "300"))
FIRST = int(os.environ.get("CACHECOST_FUZZ_FROM", "0"))
PARTS = 10
MOST_TOLD = 10
CHECKS = dict.fromkeys(("log", "recording"), "import LOG -o OUT/made.jsonl")
WEIGHTS = {"requests.jsonl": 12, "session.jsonl": 4, "recording": 1, "scenario": 10, "prices": 4, "rules": 4, "body": 4}
"""How often each is tried: what is read most loosely most often."""


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> list[Seed]:
    return seeds(tmp_path_factory.mktemp("seeds"))


def test_every_seed_is_valid(valid: list[Seed], tmp_path: Path) -> None:
    good = _good(valid, tmp_path)
    for number, seed in enumerate(valid):
        command = CHECKS.get(seed.kind) or COMMANDS[seed.kind][0]
        ended = attempt(command, _written(seed, seed.data, tmp_path / str(number)), tmp_path / f"out-{number}", good)
        assert ended.code in (0, 1, 3), f"{seed.name}: {ended.err}"


@pytest.mark.parametrize("part", mostly_slow(range(PARTS), 2))
def test_damaged_files_end_in_a_documented_exit_code(part: int, valid: list[Seed], tmp_path: Path) -> None:
    good = _good(valid, tmp_path)
    complaints = []
    for number in range(FIRST + part, FIRST + INPUTS, PARTS):
        ended = _tried(number, valid, tmp_path / "tried", good)
        if ended.complaint:
            complaints.append(f"input {number}: {ended.complaint}")
    assert not complaints, "\n".join([f"{len(complaints)} inputs:", *complaints[:MOST_TOLD]])


def _tried(number: int, valid: list[Seed], folder: Path, good: Path) -> Ended:
    random = Random(number)
    seed = random.choices(valid, [WEIGHTS.get(seed.name, WEIGHTS.get(seed.kind, 2)) for seed in valid])[0]
    shutil.rmtree(folder, ignore_errors=True)
    log = _written(seed, damaged(seed.data, random), folder)
    return attempt(command_for(seed, random), log, folder / "out", good)


def _good(valid: list[Seed], folder: Path) -> Path:
    return _written(next(seed for seed in valid if seed.name == "requests.jsonl"), None, folder / "good")


def _written(seed: Seed, data: bytes | None, folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / seed.name
    path.write_bytes(seed.data if data is None else data)
    return path
