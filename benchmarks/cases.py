"""Every ratio that is held: what is measured, against what, in the same run. A new one is one more row of CASES.

A case gives pairs, each of one run: how much this took, and how much what stands beside it took. The least of each
side is what it costs when nothing else is in the way, and the two make the ratio.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import log_shapes
import session_speed
from bill_speed import AGAIN, FIRST, case_runs
from growing_log import Shape, write_log
from measure import BARE_PARSING, Run, in_turns, measured
from sweep_counts import rounds

PYTHON = sys.executable
CACHECOST = [PYTHON, "-m", "cachecost"]
CLICK = [PYTHON, "-c", "import click"]
HERE = Path(__file__).parent
SHORT = 3
"""How many times as often a process of a tenth of a second runs."""
LENGTHS = (200, 1_600)


@dataclass(frozen=True, slots=True)
class Pair:
    """One run: what is measured and what it is measured against, in the same unit. `peak_mib` is of the measured."""

    cost: float
    reference: float
    peak_mib: float | None = None


Pairs = Sequence[Pair]


@dataclass(frozen=True, slots=True)
class Case:
    """`pairs` measures so many runs, with an empty folder for its files; `quick` tells that CI has time for it.

    `goal` is the ratio that the project wants, `before` the one that it had when it was first measured.
    """

    name: str
    against: str
    pairs: Callable[[Path, int], Pairs]
    quick: bool = True
    goal: float | None = None
    before: float | None = None


def replay(log: Path) -> list[str]:
    return [*CACHECOST, "replay", str(log), "--tokens", "bytes", "--json"]


def of_runs(runs: Sequence[tuple[Run, Run]]) -> Pairs:
    """Processor time, which a busy machine moves less than wall time, and the peak of the measured one."""
    return [Pair(ours.processor_s, theirs.processor_s, ours.peak_mib) for theirs, ours in runs]


def log_shape(case: log_shapes.Case, folder: Path, runs: int) -> Pairs:
    """Replay of a log of that shape, against a script that parses each of its lines."""
    log = folder / "log.jsonl"
    write_log(log, case.shape)
    script = log_shapes.ORJSON if case.parser == "orjson" else BARE_PARSING
    return of_runs(in_turns([PYTHON, "-c", script, str(log)], replay(log), runs))


def bill(name: str, folder: Path, runs: int) -> Pairs:
    """A bill over 40 generated sessions, against a script that parses each line with a usage."""
    return of_runs(case_runs(name, folder, runs))


def sessions(name: str, size: session_speed.CaseSize, folder: Path, runs: int) -> Pairs:
    """A command over a folder of generated sessions, against a script that parses each line."""
    return of_runs(session_speed.case_runs(name, size, folder, runs))


def memory(folder: Path, _runs: int) -> Pairs:
    """Peak of a log of 1.1 GB over that of a tenth of it, one conversation after another; the same in each run."""
    peaks = []
    for conversations in (20, 200):
        log = folder / "log.jsonl"
        write_log(log, Shape(conversations=conversations, interleaved=False))
        peaks.append(measured(replay(log)).peak_mib)
    return [Pair(peaks[1], peaks[0], peaks[1])]


def start_help(_folder: Path, runs: int) -> Pairs:
    return of_runs(in_turns(CLICK, [*CACHECOST, "--help"], runs * SHORT))


def start_replay(folder: Path, runs: int) -> Pairs:
    log = folder / "log.jsonl"
    write_log(log, Shape(conversations=1, requests=1))
    return of_runs(in_turns(CLICK, replay(log), runs * SHORT))


def counts(folder: Path, runs: int) -> Pairs:
    """Replays that count tokens, with every count on disk against without a disk."""
    log = folder / "log.jsonl"
    write_log(log, Shape(conversations=4))
    return of_runs([(one.off, one.again) for one in rounds(log, folder, runs)])


def script(words: str, pair: Callable[[Any], Pair], _folder: Path, runs: int) -> Pairs:
    """A script of this folder, run in a process of its own; `pair` is made of the JSON that it prints."""
    name, *options = words.split()
    command = [PYTHON, str(HERE / name), *options, "--json"]
    return [pair(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)) for _ in range(runs)]


def growth(found: dict[str, Any]) -> Pair:
    """Seconds a call at both lengths, all models together."""
    short, long = (sum(column) for column in zip(*found["seconds"].values(), strict=True))
    return Pair(long / LENGTHS[1], short / LENGTHS[0])


def seeds(found: dict[str, Any]) -> Pair:
    return Pair(found["all"]["seconds"], found["all"]["engine_s"])


def grid(found: dict[str, Any]) -> Pair:
    return Pair(found["grid_us"], found["plain_us"])


def grid_seeds(found: dict[str, Any]) -> Pair:
    return Pair(found["seeds_us"], found["plain_us"])


def strategies(found: dict[str, Any]) -> Pair:
    """The script has compared them itself; start-up is in neither."""
    return Pair(found["one_process"], 1)


def cores(found: dict[str, Any]) -> Pair:
    """Wall time: what a sweep on all processes loses, against what processes that share nothing lose there and then."""
    return Pair(1 / found["efficiency"], 1 / found["machine"])


def log_case(shape: log_shapes.Case) -> Case:
    name = f"log-{shape.name.replace(' ', '-')}"
    against = f"{shape.parser}.loads of every line"
    return Case(name, against, partial(log_shape, shape), goal=shape.goal, before=BEFORE.get(shape.name))


def session_case(name: str) -> Case:
    before, goal = session_speed.BEFORE.get(name), session_speed.GOALS.get(name)
    pairs = partial(sessions, name, session_speed.CASE)
    return Case(f"sessions-{name}", "json.loads of each line", pairs, False, goal, before)


def small_session_case(name: str) -> Case:
    """On a folder so small that CI has time for it: start-up is a good part of it."""
    times = session_speed.SMALL_CASE.parsings
    pairs = partial(sessions, name, session_speed.SMALL_CASE)
    return Case(f"small-{name}", f"json.loads of each line, {times} times", pairs)


BEFORE = {"long": 1.3, "interleaved": 3.5, "in a row": 3.5, "unique": 27.0}
"""Of wall time, when each block of each line was parsed and hashed anew."""
GROWTH = f"growth.py --turns {LENGTHS[0]} {LENGTHS[1]} --runs 1"
GRID = "grid.py --turns 40 --runs 1"
CASES = (
    *map(log_case, log_shapes.CASES),
    Case("log-memory", "the peak on a tenth of the log", memory, goal=1.3),
    Case("bill-first", "json.loads of each line with a usage", partial(bill, FIRST)),
    Case("bill-again", "json.loads of each line with a usage", partial(bill, AGAIN)),
    *map(session_case, session_speed.COMMANDS),
    *map(small_session_case, session_speed.SMALL_COMMANDS),
    Case("start-help", 'python -c "import click"', start_help),
    Case("start-replay", 'python -c "import click"', start_replay),
    Case("growth", f"a call of {LENGTHS[0]:,} turns (this: {LENGTHS[1]:,})", partial(script, GROWTH, growth), goal=1.0),
    Case("seeds", "the same seeds one by one", partial(script, "sweep_seeds.py --seeds 2000", seeds)),
    Case("grid", "a call of a replay of its own", partial(script, GRID, grid)),
    Case("grid-seeds", "a call of a replay of its own", partial(script, GRID, grid_seeds), quick=False),
    Case(
        "strategies", "a replay of each, start-up left out", partial(script, GRID, strategies), quick=False, goal=0.25
    ),
    Case("counts-on-disk", "counting without a disk", counts),
    Case("cores", "processes that share nothing", partial(script, "sweep_cores.py --runs 1", cores), quick=False),
)
