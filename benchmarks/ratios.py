"""How long and how much memory a replay takes, against the least that any reader of the log must do: parse its lines.

    python benchmarks/ratios.py [LOG] [--runs 5] [--json] [--check] [--no-growth]

Both are timed as whole processes, A B A B, so that a machine that slows down slows both; medians are compared, and the
peak is the worst of all runs. Without LOG, growing_log.py writes one to a temporary folder. With --check the exit code
is 1 if a limit is missed.

Nothing big is imported here, on purpose: on Linux the peak memory of a child includes what its parent held at the fork.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from growing_log import Shape, write_log

MAXIMUM_RATIO = 3.0
MAXIMUM_MIB = 80.0
MAXIMUM_EXPONENT = 1.15
LAUNCHER = """
import os, sys, time
start = time.perf_counter()
null = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - start, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
BARE_PARSING = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as log:
    for line in log:
        json.loads(line)
"""
MIB = 1024 * 1024
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall seconds and the most memory it held."""

    seconds: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Result:
    """Medians in seconds, the peak in MiB; `exponent` is None where growth was not measured."""

    log_bytes: int
    runs: int
    parse_s: float
    replay_s: float
    ratio: float
    peak_mib: float
    exponent: float | None

    def misses(self) -> list[str]:
        """What is over its limit, in sentences."""
        limits = [
            ("ratio", self.ratio, MAXIMUM_RATIO),
            ("peak_mib", self.peak_mib, MAXIMUM_MIB),
            ("exponent", self.exponent or 0.0, MAXIMUM_EXPONENT),
        ]
        return [f"{name}={value:.2f}: the limit is {limit:g}" for name, value, limit in limits if value > limit]


INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of somebody who installed the package: its modules are compiled once, not in each run."""


def measured(command: Sequence[str]) -> Run:
    """Runs `command` with its output thrown away. Raises CalledProcessError if it fails.

    A small process starts it: the system counts the starter's memory as the peak of what it starts.
    """
    launched = [sys.executable, "-S", "-c", LAUNCHER, *command]
    told = subprocess.run(launched, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, env=INSTALLED).stdout
    seconds, peak, code = told.split()
    if int(code):
        raise subprocess.CalledProcessError(int(code), command)
    return Run(float(seconds), int(peak) * RSS_UNIT / MIB)


def compared(log: Path, runs: int) -> tuple[list[Run], list[Run]]:
    """(bare parsing, replay), taken in turns, after one of each that does not count."""
    parsing = [sys.executable, "-c", BARE_PARSING, str(log)]
    replay = [sys.executable, "-m", "cachecost", "replay", str(log), "--tokens", "bytes", "--json"]
    pairs = [(measured(parsing), measured(replay)) for _ in range(1 + runs)][1:]
    return [first for first, _ in pairs], [second for _, second in pairs]


def growth_exponent() -> float:
    """The exponent that growth.py fits, in a process of its own."""
    script = Path(__file__).with_name("growth.py")
    text = subprocess.run([sys.executable, script, "--json"], stdout=subprocess.PIPE, check=True).stdout
    return float(json.loads(text)["exponent"])


def result_of(log: Path, runs: int, with_growth: bool) -> Result:
    parsing, replay = compared(log, runs)
    parse_s, replay_s = (median(run.seconds for run in side) for side in (parsing, replay))
    peak = max(run.peak_mib for run in replay)
    exponent = growth_exponent() if with_growth else None
    return Result(log.stat().st_size, runs, parse_s, replay_s, replay_s / parse_s, peak, exponent)


def told(result: Result) -> str:
    lines = [
        f"log      {result.log_bytes / 1e6:.0f} MB, {result.runs} runs of each",
        f"parse    {result.parse_s:.3f} s   json.loads of each line",
        f"replay   {result.replay_s:.3f} s   {result.ratio:.2f} × parse (at most {MAXIMUM_RATIO:g})",
        f"memory   {result.peak_mib:.0f} MiB at the peak (at most {MAXIMUM_MIB:g})",
    ]
    if result.exponent is not None:
        lines.append(
            f"growth   time of a synthetic replay ~ length ^ {result.exponent:.2f} (at most {MAXIMUM_EXPONENT:g})"
        )
    return "\n".join(lines)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Time and memory of a replay against bare JSON parsing.")
    parser.add_argument("log", type=Path, nargs="?", help="a request log; without it, one is made")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is missed")
    parser.add_argument("--no-growth", action="store_false", dest="growth", help="leave the synthetic replays out")
    return parser


def main() -> int:
    options = arguments().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log: Path = options.log or Path(folder) / "growing.jsonl"
        if options.log is None:
            write_log(log, Shape())
        result = result_of(log, options.runs, options.growth)
    misses = result.misses()
    print(json.dumps({**asdict(result), "misses": misses}) if options.json else "\n".join([told(result), *misses]))
    return 1 if misses and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
