"""The clock of a command's second run: it is ahead, so that every time, date, weekday and month is another one.

Nothing that the command asks for the time is known beforehand, so there are three ways, the surest first: libfaketime,
where it is installed and works, for every program that is linked to the C library; what Python and Node programs ask,
replaced in them; and, for programs that are neither, another time zone, 13 hours and 37 minutes from where it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SHIFT_S = 33 * 86_400 + 5 * 3600 + 37 * 60 + 11
"""Seconds: another month, day of the month, weekday, hour, minute and second, and mostly the same year."""
SHIMS = Path(__file__).with_name("shifted_clock")
FAKETIME = "libfaketimeMT.so.1"
FOLDERS = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime", "/opt/*/lib/faketime")
ASKED = "import time; print(int(time.time()))"
CLOSE_S = 60
OTHER_ZONE = "<+13>-13:37"
"""As POSIX writes a zone 13 hours and 37 minutes ahead of UTC."""


@dataclass(frozen=True, slots=True)
class RunClock:
    """A way to set the clock of a command ahead. `seen` is where programs leave word that theirs is."""

    name: str
    variables: Mapping[str, str]
    seen: Path | None = None

    def set_in(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment with the variables of this clock; lists of paths and options are continued."""
        found = dict(environment)
        for name, value in self.variables.items():
            found[name] = f"{value}{JOINTS[name]}{found[name]}" if name in JOINTS and found.get(name) else value
        return found

    @property
    def programs(self) -> list[str]:
        """The kinds of programs whose clock was ahead, by name."""
        return sorted(one.name for one in self.seen.iterdir()) if self.seen else []

    @property
    def description(self) -> str:
        """What was done, for people; "" where no program is known to have had another clock."""
        if self.seen is None:
            return self.name
        return f"set ahead in {' and '.join(self.programs)}" if self.programs else ""


JOINTS = {"LD_PRELOAD": ":", "PYTHONPATH": os.pathsep, "NODE_OPTIONS": " "}


def run_clocks(folder: Path) -> Iterator[RunClock]:
    """The ways to be tried, the surest first: the next one where the one before reached no program. `folder` exists."""
    if library := find_faketime():
        yield RunClock("set ahead by libfaketime", _with_library(library))
        return
    variables = {
        "PYTHONPATH": str(SHIMS),
        "NODE_OPTIONS": f'--require "{(SHIMS / "shifted_date.cjs").as_posix()}"',
        "CACHECOST_CLOCK_SHIFT": str(SHIFT_S),
        "CACHECOST_CLOCK_SEEN": str(folder),
    }
    yield RunClock("in programs", variables, folder)
    yield RunClock("in another time zone (TZ); libfaketime would set it ahead", {"TZ": OTHER_ZONE})


@cache
def find_faketime() -> Path | None:
    """The library of libfaketime, if it is installed and sets a clock ahead here."""
    root = Path("/")
    for pattern in FOLDERS:
        for library in sorted(root.glob(f"{pattern[1:]}/{FAKETIME}")):
            if _works(library):
                return library
    return None


def _works(library: Path) -> bool:
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        command = [sys.executable, "-I", "-S", "-c", ASKED]
        done = subprocess.run(command, env=_with_library(library), capture_output=True, timeout=10, check=True)
        return abs(int(done.stdout) - time.time() - SHIFT_S) < CLOSE_S
    return False


def _with_library(library: Path) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "FAKETIME": f"+{SHIFT_S}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
