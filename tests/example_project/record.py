"""Writes the recording that scenarios/weather.yaml is about: the agent's own requests, without a key or a network."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from agent import answer

from cachecost.testing import CacheCost

RECORDING = Path(__file__).parent / "scenarios" / "recordings" / "weather.jsonl"
QUESTIONS = ("Can I sail from Kiel to Fehmarn today?", "And back tomorrow morning?", "Is Hiddensee better?")


def record(target: Path = RECORDING) -> None:
    with TemporaryDirectory() as folder, CacheCost(Path(folder), as_of="2026-11-09") as cost:
        answer(cost.client(), QUESTIONS)
        shutil.copyfile(cost.recording, target)


if __name__ == "__main__":
    record()
