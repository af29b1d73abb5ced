"""What counting costs without a disk, while counts are put there, and once they are: `replay --tokens tiktoken`.

    python benchmarks/sweep_counts.py [LOG] [--runs 3] [--json]

Processor seconds of whole processes, in turns; medians. Without LOG, growing_log.py writes the usual one (110 MB).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from growing_log import Shape, write_log


def processor_seconds(log: Path, cache: str) -> float:
    """Processor seconds of a replay that keeps its counts at `cache`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "cachecost", "replay", str(log), "--tokens", "tiktoken", "--json"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "CACHECOST_CACHE": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(log: Path, folder: Path, runs: int) -> dict[str, float]:
    """Medians: without a disk, with an empty one, with one that has every count."""
    processor_seconds(log, "off")
    rounds = []
    for number in range(runs):
        cache = str(folder / str(number))
        rounds.append((processor_seconds(log, "off"), processor_seconds(log, cache), processor_seconds(log, cache)))
    names = ("off_s", "first_s", "again_s")
    medians = {name: median(column) for name, column in zip(names, zip(*rounds, strict=True), strict=True)}
    size = sum(path.stat().st_size for path in (folder / "0" / "counts").iterdir())
    return {**medians, "log_mb": log.stat().st_size / 1e6, "disk_kb": size / 1e3}


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
        found = measured(log, folder, options.runs)
    if options.json:
        print(json.dumps(found))
        return
    print(f"log         {found['log_mb']:.0f} MB")
    print(f"no disk     {found['off_s']:.2f} s")
    print(f"first run   {found['first_s']:.2f} s   {found['disk_kb']:.0f} kB on disk after it")
    print(f"next runs   {found['again_s']:.2f} s")


if __name__ == "__main__":
    main()
