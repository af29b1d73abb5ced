"""What counting costs without a disk, while counts are put there, and once they are: `replay --tokens tiktoken`.

    python benchmarks/sweep_counts.py [LOG] [--runs 3] [--json]

Processor seconds of whole processes, in turns; medians. Without LOG, growing_log.py writes the usual one (110 MB).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from growing_log import Shape, write_log
from measure import Run, measured


@dataclass(frozen=True, slots=True)
class Round:
    """A replay without a disk, one with an empty one, one with every count on it."""

    off: Run
    first: Run
    again: Run


def rounds(log: Path, folder: Path, runs: int) -> list[Round]:
    """So many rounds, each with a cache of its own in `folder`."""
    caches = [str(folder / str(number)) for number in range(runs)]
    return [Round(counted(log, "off"), counted(log, cache), counted(log, cache)) for cache in caches]


def counted(log: Path, cache: str) -> Run:
    """A replay that keeps its counts at `cache`."""
    command = [sys.executable, "-m", "cachecost", "replay", str(log), "--tokens", "tiktoken", "--json"]
    return measured(command, {"CACHECOST_STORE": cache})


def medians(found: Sequence[Round]) -> dict[str, float]:
    """Processor seconds."""
    names = ("off", "first", "again")
    return {f"{name}_s": median(getattr(one, name).processor_s for one in found) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description="Counting with and without counts on disk.")
    parser.add_argument("log", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log: Path = options.log or folder / "growing.jsonl"
        if options.log is None:
            write_log(log, Shape())
        found = medians(rounds(log, folder, options.runs))
        log_mb = log.stat().st_size / 1e6
        disk_kb = sum(path.stat().st_size for path in (folder / "0" / "counts").iterdir()) / 1e3
    if options.json:
        print(json.dumps({**found, "log_mb": log_mb, "disk_kb": disk_kb}))
        return
    print(f"log         {log_mb:.0f} MB")
    print(f"no disk     {found['off_s']:.2f} s")
    print(f"first run   {found['first_s']:.2f} s   {disk_kb:.0f} kB on disk after it")
    print(f"next runs   {found['again_s']:.2f} s")


if __name__ == "__main__":
    main()
