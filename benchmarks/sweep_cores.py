"""Parallel efficiency of `cachecost sweep`: seconds of one process, over those of several times how many they are.

    python benchmarks/sweep_cores.py [--jobs 2] [--runs 3] [--seconds 10 | --cells 64 | --curve] [--json]

The same sweep with --jobs 1 and with --jobs N, as whole processes in turns, start-up included; medians are compared,
and both tables must be the same bytes. Start-up is a second, so the size decides: cells are doubled until one process
takes --seconds, as nobody shares out less; --curve shows smaller ones, too. Beside it stands what the machine itself
gives: processes that only count, at once, against one after the other. On a machine that others use, only the two
together say something.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

SCENARIO = """\
format: 1
name: cores
as_of: 2026-11-01
model: claude-opus-4-6
tokens: bytes
conversation:
  synthetic: {turns: 60, calls: 5}
  head: {tools: {count: 24, tokens: 21_000}, system: {tokens: 6_000}}
strategies: [automatic, progressive, none]
"""
COUNTING = "sum(number * number for number in range(20_000_000))"


def processor_seconds() -> float:
    """Of all processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(*commands: Sequence[str]) -> float:
    """Wall seconds of commands that run at once. Raises CalledProcessError if one fails."""
    start = perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    for one in running:
        if one.wait():
            raise subprocess.CalledProcessError(one.returncode, one.args)
    return perf_counter() - start


def machine(jobs: int) -> float:
    """What `jobs` processes that share nothing reach at once, of `jobs` times one."""
    counting = [sys.executable, "-c", COUNTING]
    alone = seconds(counting)
    return alone / seconds(*[counting] * jobs)


def swept(folder: Path, cells: int, jobs: int) -> tuple[float, float]:
    """(wall seconds, processor seconds) of a sweep."""
    grid = ",".join(str(20_000 + number) for number in range(cells))
    words = ["sweep", str(folder / "cores.yaml"), "--grid", f"conversation.head.tools.tokens={grid}"]
    before = processor_seconds()
    command = [sys.executable, "-m", "cachecost", *words, "--jobs", str(jobs), "--out", str(folder / f"{jobs}.csv")]
    wall = seconds(command)
    return wall, processor_seconds() - before


@contextmanager
def ground() -> Iterator[Path]:
    """A folder with the scenario; Python keeps what it compiles there, as an installed package has it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        (folder / "cores.yaml").write_text(SCENARIO, encoding="utf-8")
        swept(folder, 4, 2)
        yield folder


def doubled(folder: Path, least_s: float) -> int:
    """How many cells take one process so long."""
    cells = 64
    while swept(folder, cells, 1)[0] < least_s:
        cells *= 2
    return cells


def measured(folder: Path, jobs: int, runs: int, cells: int) -> dict[str, float]:
    """Medians in seconds, and the efficiencies of the sweep and of the machine, in turns."""
    rounds = []
    for _ in range(runs):
        rounds.append((*swept(folder, cells, 1), *swept(folder, cells, jobs), machine(jobs)))
    tables = {(folder / f"{count}.csv").read_bytes() for count in (1, jobs)}
    assert len(tables) == 1, "the tables differ"
    alone_s, alone_work, many_s, many_work, of_machine = (median(column) for column in zip(*rounds, strict=True))
    return {
        "cells": cells,
        "alone_s": alone_s,
        "many_s": many_s,
        "jobs": jobs,
        "efficiency": alone_s / many_s / jobs,
        "work": alone_work / many_work,
        "machine": of_machine,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Parallel efficiency of a sweep.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cells", type=int)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with ground() as folder:
        most = options.cells or doubled(folder, options.seconds)
        sizes = [most >> halvings for halvings in (4, 3, 2, 1, 0)] if options.curve else [most]
        found = [measured(folder, options.jobs, options.runs, cells) for cells in sizes]
    if options.json:
        print(json.dumps(found[-1] | ({"curve": found} if options.curve else {})))
        return
    print(f"{'cells':>6} {'1 process':>10} {options.jobs:>2} processes  efficiency  work  machine")
    for one in found:
        times = f"{one['cells']:6,} {one['alone_s']:8.2f} s {one['many_s']:10.2f} s"
        print(f"{times} {one['efficiency']:11.2f} {one['work']:5.2f} {one['machine']:8.2f}")
    print("\nwork: of the processor time, what one process alone needs; the rest is what sharing costs.")
    print("machine: the efficiency of processes that share nothing.")


if __name__ == "__main__":
    main()
