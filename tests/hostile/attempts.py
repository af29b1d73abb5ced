"""Commands over a damaged file, in this process: how they ended, how long that took, how much memory."""

from __future__ import annotations

import io
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from cachecost.cli import cachecost, exit_code
from hostile.seeds import Seed

FINE = frozenset({0, 1, 2, 3})
SECONDS = 2.0
MIB = 1 << 20
MOST_MIB = 300
LOG_COMMANDS = (
    "replay LOG",
    "replay LOG --json --tokens bytes",
    "replay LOG --strategy progressive --tokens bytes --csv OUT/rows.csv",
    "replay LOG --html OUT/page.html --tokens bytes",
    "validate LOG",
    "validate LOG --json --tokens tiktoken",
    "explain LOG --tokens bytes",
    "explain LOG --json",
    "explain LOG GOOD --tokens bytes --skip",
    "replay GOOD LOG --json --tokens bytes",
    "whatif LOG --tokens bytes",
    "whatif LOG --json",
    "optimize LOG --tokens bytes --emit OUT/plan",
    "lint LOG --tokens bytes",
    "next LOG --tokens 9 --model claude-sonnet-4-5 --tools 100",
    "watch LOG --once",
    "next LOG --json --at 2026-03-07T12:00 --counter bytes",
    "bill LOG --skip --html OUT/bill.html --csv OUT/bill.csv",
    "bill LOG --skip --json --by day",
    "view LOG --save OUT/page.html",
    "import LOG -o OUT/made.jsonl",
    "import LOG -o OUT/made.jsonl --content digest --json",
    "recording cut LOG --calls 1-2 -o OUT/cut.jsonl",
    "recording concat LOG LOG -o OUT/both.jsonl",
    "recording split LOG -o OUT/parts",
)
SCENARIO_COMMANDS = (
    "run LOG --no-report",
    "run LOG --json --no-report",
    "run LOG --out OUT/report",
    "explain LOG",
    "optimize LOG",
    "check LOG --reports OUT --github --junit OUT/j.xml --sarif OUT/s.json --markdown OUT/c.md",
    "sweep LOG --grid conversation.synthetic.turns=2,3 --jobs 1 --out OUT/sweep.csv",
)
COMMANDS = {
    "log": LOG_COMMANDS,
    "recording": LOG_COMMANDS,
    "scenario": SCENARIO_COMMANDS,
    "body": ("lint LOG --tokens bytes", "lint LOG --json", "lint LOG LOG", "replay LOG"),
    "prices": ("replay GOOD --prices LOG --tokens bytes", "explain GOOD --prices LOG", "models --prices LOG"),
    "rules": ("replay GOOD --rules LOG --tokens bytes", "rules --rules LOG", "whatif GOOD --rules LOG"),
}


class Ended(NamedTuple):
    """How a command ended: `seconds` of the processor, and the growth of the process's largest size in MiB."""

    command: str
    code: int
    out: str
    err: str
    seconds: float
    grown: float

    @property
    def complaint(self) -> str:
        """What is wrong with that; empty if nothing is."""
        wrong = [f"exit code {self.code}"] if self.code not in FINE else []
        wrong += ["a traceback"] if "Traceback" in self.err else []
        wrong += [f"{self.seconds:.1f} s"] if self.seconds > SECONDS else []
        wrong += [f"{self.grown:.0f} MiB"] if self.grown > MOST_MIB else []
        return f"{self.command}: {', '.join(wrong)}: {self.err[-600:]}" if wrong else ""


def command_for(seed: Seed, random: Random) -> str:
    return random.choice(COMMANDS[seed.kind])


def attempt(command: str, log: Path, out: Path, good: Path) -> Ended:
    """`command` on `log`, in this process; `out` is a folder of its own."""
    out.mkdir(parents=True, exist_ok=True)
    places = {"LOG": str(log), "GOOD": str(good)}
    words = [places.get(word, word.replace("OUT", str(out))) for word in command.split()]
    ended = _run(command, words)
    if ended.seconds > SECONDS:  # what is imported only once does not count
        return ended._replace(seconds=_run(command, words).seconds)
    return ended


def _run(command: str, words: list[str]) -> Ended:
    before, began = _peak(), time.process_time()
    with _captured() as (stdout, stderr):
        code = exit_code(lambda: cachecost.main(args=words, prog_name="cachecost", standalone_mode=False))
    seconds = time.process_time() - began
    return Ended(command, code, _text(stdout), _text(stderr), seconds, (_peak() - before) / MIB)


def _peak() -> int:
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


@contextmanager
def _captured() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    kept, raw = (sys.stdout, sys.stderr), (io.BytesIO(), io.BytesIO())
    sys.stdout, sys.stderr = (io.TextIOWrapper(one, encoding="utf-8", write_through=True) for one in raw)
    try:
        yield raw
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            stream.detach()
        sys.stdout, sys.stderr = kept


def _text(raw: io.BytesIO) -> str:
    return raw.getvalue().decode("utf-8", "backslashreplace")
