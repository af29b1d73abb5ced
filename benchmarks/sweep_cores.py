"""Parallel efficiency of `cachecost sweep`: seconds of one process, over those of several times how many they are.

    python benchmarks/sweep_cores.py [--jobs 2] [--runs 3] [--cells 64] [--json]

The same sweep with --jobs 1 and with --jobs N, as whole processes in turns, start-up included; medians are compared,
and both tables must be the same bytes. Beside it stands what the machine itself gives: processes that only count, at
once, against one after the other. On a machine that others use, only the two together say something.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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


def swept(scenario: Path, cells: int, jobs: int, out: Path) -> tuple[float, float]:
    """(wall seconds, processor seconds) of a sweep."""
    grid = ",".join(str(20_000 + number) for number in range(cells))
    words = ["sweep", str(scenario), "--grid", f"conversation.head.tools.tokens={grid}", "--jobs", str(jobs)]
    before = processor_seconds()
    wall = seconds([sys.executable, "-m", "cachecost", *words, "--out", str(out)])
    return wall, processor_seconds() - before


def measured(jobs: int, runs: int, cells: int) -> dict[str, float]:
    """Medians in seconds, and the efficiencies of the sweep and of the machine, in turns."""
    rounds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario = folder / "cores.yaml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        tables = [folder / "one.csv", folder / "many.csv"]
        for _ in range(runs):
            alone, many = swept(scenario, cells, 1, tables[0]), swept(scenario, cells, jobs, tables[1])
            rounds.append((*alone, *many, machine(jobs)))
        assert tables[0].read_bytes() == tables[1].read_bytes(), "the tables differ"
    alone_s, alone_work, many_s, many_work, of_machine = (median(column) for column in zip(*rounds, strict=True))
    return {
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
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.jobs, options.runs, options.cells)
    if options.json:
        print(json.dumps(found))
        return
    print(f"one process   {found['alone_s']:.2f} s")
    print(f"{options.jobs} processes   {found['many_s']:.2f} s   efficiency {found['efficiency']:.2f}")
    print(
        f"work          {found['work']:.2f} of the processor time is one process's own: the rest is what sharing costs"
    )
    print(f"the machine   {found['machine']:.2f} for processes that share nothing")


if __name__ == "__main__":
    main()
