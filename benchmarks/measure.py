"""How long a process takes, in wall and in processor time, and how much memory it holds.

Nothing big is imported here, on purpose: the scripts that measure are to be as small as what they measure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LAUNCHER = """
import os, sys, time
start = time.perf_counter()
null = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, used = os.wait4(child, 0)
wall = time.perf_counter() - start
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
BARE_PARSING = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as log:
    for line in log:
        json.loads(line)
"""
MIB = 1024 * 1024
RSS_UNIT = 1 if sys.platform == "darwin" else 1024

INSTALLED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of somebody who installed the package: its modules are compiled once, not in each run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall seconds, seconds of processor time (user and system), and the most memory it held."""

    seconds: float
    processor_s: float
    peak_mib: float


def measured(command: Sequence[str], settings: Mapping[str, str] | None = None) -> Run:
    """Runs `command` with its output thrown away and `settings` in its environment.

    A small process starts it: the system counts the starter's memory as the peak of what it starts. Raises
    CalledProcessError if it fails.
    """
    launched = [sys.executable, "-S", "-c", LAUNCHER, *command]
    environment = {**INSTALLED, **(settings or {})}
    figures = subprocess.run(
        launched, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, env=environment
    ).stdout
    seconds, processor_s, peak, code = figures.split()
    if int(code):
        raise subprocess.CalledProcessError(int(code), command)
    return Run(float(seconds), float(processor_s), int(peak) * RSS_UNIT / MIB)


def in_turns(first: Sequence[str], second: Sequence[str], runs: int) -> list[tuple[Run, Run]]:
    """Both commands `runs` times, A B A B, so that a machine that slows down slows both."""
    return [(measured(first), measured(second)) for _ in range(runs)]
