"""How long each command takes over sessions shaped like real ones, beside bare parsing of the same lines.

    python benchmarks/session_speed.py [--sessions 350] [--megabytes 380] [--only NAME…] [--runs 1] [--json]
    python benchmarks/session_speed.py --record now [--sessions 20 --megabytes 22]

sessions.py writes a folder of Claude Code transcripts: by default 350 sessions with about 20,000 calls. `import` and
`bill` read the folder, everything else the recording that the import makes of it. All are whole processes in turns;
shown are the least processor time, what that is for each call, the most memory, and the ratio of the processor time
to that of a script that parses every line of the folder with `json`. Below them stand the physical limits: the bytes of
the folder read, and read and hashed. --record keeps what was found under a name (`before`, `now`) in session_speed.json
and writes the tables of README.md anew.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from time import process_time

from cachecost.base.store import FILE as STORE
from cachecost.sessions.reading import FILES, STATES
from measure import Run, measured
from session_tables import BARE, NAMES, Cost, Limits, SpeedTable, record
from sessions import write_sessions

CACHECOST = (sys.executable, "-m", "cachecost")
SETTINGS = {"CACHECOST_TOKENS": "tiktoken"}
"""The same tokenizer on every machine."""
PARSING = """
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.jsonl")) * int(sys.argv[2]):
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)
"""
CHUNK = 1 << 20
STRATEGIES = (
    *("claude-code", "automatic", "base", "progressive", "system-only"),
    *("lagging-tail", "claude-code@1h", "none"),
)
SCENARIO = """\
format: 1
name: sessions
model: claude-opus-4-5
conversation: {{recording: {recording}}}
strategies: [claude-code, automatic]
"""
LIMIT_RUNS = 3
FOLDER, RECORDING, SCENARIO_FILE = "sessions", "recording.jsonl", "sessions.yaml"
COMMANDS = {
    "import": ("import", FOLDER, "--out", "imported.jsonl"),
    "bill": ("bill", FOLDER, "--json"),
    "replay": ("replay", RECORDING),
    "strategy": ("replay", RECORDING, "--strategy", STRATEGIES[0]),
    "2-strategies": ("replay", RECORDING, *(word for name in STRATEGIES[:2] for word in ("--strategy", name))),
    "8-strategies": ("replay", RECORDING, *(word for name in STRATEGIES for word in ("--strategy", name))),
    "all-strategies": ("replay", RECORDING, "--all"),
    "explain": ("explain", RECORDING),
    "whatif": ("whatif", RECORDING),
    "optimize": ("optimize", RECORDING),
    "run": ("run", SCENARIO_FILE, "--no-report"),
}
"""What is measured, in words that stand for files of a `Sessions`."""


def forget_sessions(store: Path) -> None:
    """Leaves the counts of texts alone."""
    if store.exists():
        with closing(sqlite3.connect(store)) as database, database:
            found = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            for table in found & {FILES.name, STATES.name}:
                database.execute(f"DELETE FROM {table}")


@dataclass(frozen=True, slots=True)
class Sessions:
    """A folder with transcripts, the recording of their calls, and a scenario of it."""

    folder: Path
    calls: int
    parsings: int = 1
    """How many times bare parsing goes through the folder: once is too little to be timed where the folder is small."""

    @classmethod
    def written(cls, folder: Path, sessions: int, megabytes: float, parsings: int = 1) -> Sessions:
        write_sessions(folder / FOLDER, sessions, megabytes)
        (folder / SCENARIO_FILE).write_text(SCENARIO.format(recording=RECORDING))
        made = cls(folder, 0)
        imported = [*CACHECOST, *made.words(("import", FOLDER, "--out", RECORDING, "--json"))]
        stdout = subprocess.run(imported, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        return cls(folder, json.loads(stdout)["calls"], parsings)

    def words(self, words: Sequence[str]) -> list[str]:
        files = (FOLDER, RECORDING, SCENARIO_FILE, "imported.jsonl")
        return [str(self.folder / word) if word in files else word for word in words]

    def run(self, name: str) -> Run:
        if name == BARE:
            return measured([sys.executable, "-c", PARSING, str(self.folder / FOLDER), str(self.parsings)])
        kept = self.folder / "kept"  # counts of tokens, but no session that another run has read
        forget_sessions(kept / STORE)
        return measured([*CACHECOST, *self.words(COMMANDS[name])], {**SETTINGS, "CACHECOST_STORE": str(kept)})

    def count_tokens(self) -> None:
        """Leaves the counts of all texts on disk, so that no run that is measured counts them for the first time."""
        self.run("replay")

    def in_turns(self, names: Sequence[str], runs: int) -> dict[str, list[Run]]:
        """All in turns, so that a machine that slows down slows all of them."""
        found: dict[str, list[Run]] = {name: [] for name in names}
        for _ in range(runs):
            for name in names:
                found[name].append(self.run(name))
        return found

    def limits(self, runs: int) -> Limits:
        """Seconds to read all bytes of the transcripts, and to read and hash them, the least of the runs."""
        rounds = [(self._read_s(), self._read_s(blake2b(digest_size=16).update)) for _ in range(runs)]
        return Limits(*map(min, zip(*rounds, strict=True)))

    def _read_s(self, use: Callable[[bytes], object] = len) -> float:
        start = process_time()
        for path in (self.folder / FOLDER).rglob("*.jsonl"):
            with path.open("rb", buffering=0) as file:
                while chunk := file.read(CHUNK):
                    use(chunk)
        return process_time() - start


@dataclass(frozen=True, slots=True)
class CaseSize:
    """The folder of cases of bench.py, and how many times bare parsing goes through it."""

    sessions: int
    megabytes: float
    parsings: int = 1


CASE, SMALL_CASE = CaseSize(20, 22), CaseSize(5, 5.4, parsings=10)
SMALL_COMMANDS = ("import", "bill", "replay", "strategy", "explain", "whatif", "optimize", "run")
"""Those that CI measures, on the small folder."""


def case_runs(name: str, size: CaseSize, folder: Path, runs: int) -> list[tuple[Run, Run]]:
    """(bare parsing, the command of that name) on a folder of that size, as pairs for bench.py.

    A run before them counts the tokens of new texts, which takes time and memory that later runs do not need.
    """
    sessions = Sessions.written(folder, size.sessions, size.megabytes, size.parsings)
    sessions.run(name)
    found = sessions.in_turns((BARE, name), runs)
    return list(zip(found[BARE], found[name], strict=True))


GOALS = {"import": 1.5}
BEFORE = {
    "import": 9.7,
    "bill": 2.3,
    "replay": 7.0,
    "strategy": 17.1,
    "2-strategies": 28.5,
    "8-strategies": 83.2,
    "explain": 33.0,
    "whatif": 80.9,
    "run": 25.2,
}
"""Ratios when these were measured for the first time; `optimize` ended with an error then."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The least processor seconds, milliseconds of it for each call, the most MiB, the ratio to bare parsing."""

    name: str
    processor_s: float
    ms_a_call: float
    peak_mib: float
    ratio: float


def figures(found: dict[str, list[Run]], calls: int) -> list[Figure]:
    least = {name: min(run.processor_s for run in runs) for name, runs in found.items()}
    peaks = {name: max(run.peak_mib for run in runs) for name, runs in found.items()}
    return [Figure(name, s, s / calls * 1000, peaks[name], s / least[BARE]) for name, s in least.items()]


def table(found: Sequence[Figure]) -> list[str]:
    lines = [f"{'':16}{'processor s':>12}{'ms a call':>11}{'MiB':>7}{'ratio':>8}"]
    for one in found:
        lines.append(f"{one.name:16}{one.processor_s:12.2f}{one.ms_a_call:11.3f}{one.peak_mib:7.0f}{one.ratio:8.1f}")
    return lines


def limit_lines(limits: Limits, found: Sequence[Figure]) -> list[str]:
    """Each command over the time that reading and hashing the folder takes."""
    lines = [f"reading the bytes takes {limits.read_s:.3f} s, reading and hashing them {limits.hash_s:.3f} s, of which"]
    return lines + [f"{one.name:16}{one.processor_s / limits.hash_s:12.1f} times" for one in found]


def main() -> int:
    parser = argparse.ArgumentParser(description="Times every command over sessions shaped like real ones.")
    parser.add_argument("--sessions", type=int, default=350)
    parser.add_argument("--megabytes", type=float, default=380.0)
    parser.add_argument("--only", nargs="+", default=list(COMMANDS), choices=list(COMMANDS), metavar="NAME")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", choices=NAMES, help="keep the figures under this name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sessions = Sessions.written(Path(folder), options.sessions, options.megabytes)
        sessions.count_tokens()
        found = figures(sessions.in_turns([BARE, *options.only], options.runs), sessions.calls)
        limits = sessions.limits(LIMIT_RUNS)
    if options.record:
        costs = {one.name: Cost(one.processor_s, one.peak_mib) for one in found}
        record(SpeedTable(sessions.calls, options.megabytes, limits, {options.record: costs}))
    if options.json:
        print(json.dumps({"calls": sessions.calls, **asdict(limits), "figures": [asdict(one) for one in found]}))
    else:
        print("\n".join([f"{sessions.calls:,} calls", *table(found), *limit_lines(limits, found)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
