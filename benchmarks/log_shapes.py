"""Replays of logs of several shapes, each as a ratio to a bare script that parses the same lines.

    python benchmarks/log_shapes.py [--runs 5] [--json] [--check] [--only NAME]… [--memory]

Each shape is written by growing_log.py into a temporary folder (0.4 GB at most), and both are timed as whole processes
in turns (measure.py). `goal` is where the project wants to be; `limit` is what was reached on two shared cores and
a third, and with --check the exit code is 1 where it is missed. The bare script reads with orjson, which the package
does not need: `pip install orjson`. Where nothing repeats, it reads with Python's own parser.

With --memory it compares the peaks of a replay instead: of a log, and of one of ten times as many conversations, one
after another (1.1 GB).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from growing_log import Shape, write_log
from measure import BARE_PARSING, measured

ORJSON = """
import sys
import orjson
with open(sys.argv[1], "rb") as log:
    for line in log:
        orjson.loads(line)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A shape of log, what reads it bare, and the ratios: what is wanted, and what is held to."""

    name: str
    shape: Shape
    goal: float
    limit: float
    parser: str = "orjson"


CASES = (
    Case("long", Shape(conversations=4, requests=500), 0.4, 0.7),
    Case("interleaved", Shape(), 1.0, 2.2),
    Case("in a row", Shape(interleaved=False), 1.0, 2.2),
    Case("messages first", Shape(messages_first=True), 1.0, 2.4),
    Case("unique", Shape(unique=True), 3.0, 13.0, "json"),
)


TIMES = 10
SMALL = Shape(interleaved=False)
LARGE = Shape(conversations=TIMES * SMALL.conversations, interleaved=False)
MEMORY_GOAL, MEMORY_LIMIT = 1.3, 2.9
"""How many times the memory for ten times the log: what is wanted, and what is held to."""


@dataclass(frozen=True, slots=True)
class Found:
    """Wall seconds: the least and the median of all runs. The peak is the most of all replays, in MiB."""

    name: str
    parser: str
    parse_s: tuple[float, float]
    replay_s: tuple[float, float]
    ratio: tuple[float, float]
    peak_mib: float
    goal: float
    limit: float

    @property
    def is_missed(self) -> bool:
        return self.ratio[1] > self.limit


def found(case: Case, folder: Path, runs: int) -> Found:
    """Both sides in turns, after one of each that does not count."""
    log = folder / "log.jsonl"
    write_log(log, case.shape)
    bare = [sys.executable, "-c", ORJSON if case.parser == "orjson" else BARE_PARSING, str(log)]
    replay = replayed(log)
    pairs = [(measured(bare), measured(replay)) for _ in range(1 + runs)][1:]
    sides = [[run.seconds for run in side] for side in zip(*pairs, strict=True)]
    parse, took = ((min(side), median(side)) for side in sides)
    ratio = (took[0] / parse[0], took[1] / parse[1])
    peak = max(run.peak_mib for _, run in pairs)
    return Found(case.name, case.parser, parse, took, ratio, peak, case.goal, case.limit)


def replayed(log: Path) -> list[str]:
    """The command that is measured."""
    return [sys.executable, "-m", "cachecost", "replay", str(log), "--tokens", "bytes", "--json"]


@dataclass(frozen=True, slots=True)
class Peaks:
    """The most memory that a replay held, in MiB: of a log, and of one of ten times its conversations."""

    small_mib: float
    large_mib: float
    goal: float = MEMORY_GOAL
    limit: float = MEMORY_LIMIT

    @property
    def ratio(self) -> float:
        return self.large_mib / self.small_mib

    @property
    def is_missed(self) -> bool:
        return self.ratio > self.limit

    def __str__(self) -> str:
        words = f", over its limit of {self.limit:g}" if self.is_missed else ""
        peaks = f"{self.small_mib:.0f} MiB, of {TIMES} times the log {self.large_mib:.0f} MiB"
        return f"memory {peaks}: {self.ratio:.2f} × (goal {self.goal:g}){words}"


def peaks(folder: Path) -> Peaks:
    """Each log is written, replayed once and overwritten."""
    log = folder / "log.jsonl"
    found = []
    for shape in (SMALL, LARGE):
        write_log(log, shape)
        found.append(measured(replayed(log)).peak_mib)
    return Peaks(*found)


def describe_shape(one: Found) -> str:
    words = f"over its limit of {one.limit:g}" if one.is_missed else ""
    return (
        f"{one.name:15} {one.parser:7} {one.parse_s[0]:6.3f} {one.replay_s[0]:7.3f} "
        f"{one.ratio[0]:7.2f} {one.ratio[1]:7.2f} {one.goal:6g} {one.peak_mib:7.0f}  {words}".rstrip()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Replays of logs of several shapes against bare parsing.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="this shape; repeatable")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is missed")
    parser.add_argument("--memory", action="store_true", help="the peaks of a log and of one ten times as long, only")
    options = parser.parse_args()
    return memory(options) if options.memory else shapes(options, parser)


def memory(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = peaks(Path(folder))
    print(json.dumps({**asdict(found), "ratio": found.ratio}) if options.json else found)
    return 1 if options.check and found.is_missed else 0


def shapes(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if find_spec("orjson") is None:
        parser.error("orjson is what replays are compared with: pip install orjson")
    cases = [case for case in CASES if not options.only or case.name in options.only]
    with tempfile.TemporaryDirectory() as folder:
        results = [found(case, Path(folder), options.runs) for case in cases]
    if options.json:
        print(json.dumps([asdict(one) for one in results]))
    else:
        print("log             against  parse  replay   least  median   goal     MiB")
        print("\n".join(map(describe_shape, results)))
    return 1 if options.check and any(one.is_missed for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
