"""How long `cachecost bill` takes over a folder of sessions, beside other tools that read them and bare parsing.

    python benchmarks/bill_speed.py [FOLDER] [--peers BIN] [--runs 3] [--json] [--sessions 350] [--megabytes 380]

Without FOLDER, sessions.py writes one and it is removed afterwards. Sides take turns: the first run with an empty
store, a second run with what the first one remembered, each tool of PEERS that is installed (in the folder BIN, or on
PATH), and a bare script that parses each line with a usage. `pip install kvleak replay-doctor claude-cache-audit` in a
virtual environment of its own, whose `bin` is BIN, installs them. Shown are the least processor time, the least wall
time and the most memory of each, and their ratios to the first run's. A side's processor time includes its child
processes; its memory is that of its biggest process.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import Run, measured
from sessions import write_sessions

STORE = "store.sqlite"
"""The file of the store, in the folder that CACHECOST_STORE names."""
CACHECOST = (sys.executable, "-m", "cachecost")
FIRST, AGAIN, BARE = "first run", "second run", "bare parsing"
FOLDER, CONFIG = "FOLDER", "CONFIG"
"""In a command: the folder of sessions, and one whose `projects` it is, as Claude Code has it."""
PEERS = {
    "kvleak": ("audit", "--path", FOLDER, "--json"),
    "replay-doctor": ("replay", FOLDER),
    "claude-cache-audit": ("--all", "--json", "--config-dir", CONFIG),
}
PARSING = """
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.jsonl")):
    with path.open("rb") as lines:
        for line in lines:
            if b'"usage"' in line:
                json.loads(line)
"""
CASE = {"sessions": 40, "megabytes": 44.0}
"""The folder of the cases of bench.py."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is measured: a command, its settings, and files that are removed before each run."""

    name: str
    command: Sequence[str]
    settings: Mapping[str, str]
    fresh: Path | None = None

    def run(self) -> Run:
        if self.fresh is not None:
            for path in self.fresh.parent.glob(f"{self.fresh.name}*"):
                path.unlink()
        return measured(self.command, self.settings)


def bill_sides(folder: Path, kept: Path, command: Sequence[str] = CACHECOST) -> list[Side]:
    """Both runs of the bill. The second finds in the folder `kept` what the first one left there."""
    bill, settings = (*command, "bill", str(folder), "--json"), {"CACHECOST_STORE": str(kept)}
    return [Side(FIRST, bill, settings, kept / STORE), Side(AGAIN, bill, settings)]


def bare_side(folder: Path) -> Side:
    return Side(BARE, (sys.executable, "-c", PARSING, str(folder)), {})


def peer_sides(folder: Path, config: Path, where: str | None) -> list[Side]:
    """The tools of PEERS that are in the folder `where`, or on PATH if that is None. `config` need not exist yet."""
    places = {name: shutil.which(name, path=where) for name in PEERS}
    found = {name: place for name, place in places.items() if place}
    if "claude-cache-audit" in found:
        config.mkdir()
        (config / "projects").symlink_to(folder.resolve(), target_is_directory=True)
    files = {FOLDER: str(folder), CONFIG: str(config)}
    return [Side(name, (place, *(files.get(word, word) for word in PEERS[name])), {}) for name, place in found.items()]


def in_rounds(sides: Sequence[Side], runs: int) -> dict[str, list[Run]]:
    """All sides in turns, so that a machine that slows down slows all of them."""
    found: dict[str, list[Run]] = {side.name: [] for side in sides}
    for _ in range(runs):
        for side in sides:
            found[side.name].append(side.run())
    return found


def best(runs: Sequence[Run]) -> Run:
    """The least time of each kind, and the most memory."""
    seconds, processor = min(run.seconds for run in runs), min(run.processor_s for run in runs)
    return Run(seconds, processor, max(run.peak_mib for run in runs))


def ratios(found: Mapping[str, Run]) -> dict[str, dict[str, float]]:
    """Each side's figures over those of the first run."""
    first = asdict(found[FIRST])
    return {name: {key: value / first[key] for key, value in asdict(run).items()} for name, run in found.items()}


def case_runs(name: str, folder: Path, runs: int) -> list[tuple[Run, Run]]:
    """(bare parsing, the run of that name) of a small folder, as pairs for bench.py."""
    sessions = folder / "sessions"
    write_sessions(sessions, int(CASE["sessions"]), CASE["megabytes"])
    found = in_rounds([bare_side(sessions), *bill_sides(sessions, folder / "store")], runs)
    return list(zip(found[BARE], found[name], strict=True))


def table(found: Mapping[str, Run]) -> list[str]:
    lines = [f"{'':19}{'processor s':>12}{'wall s':>9}{'MiB':>7}   ratio to the first run"]
    for (name, run), ratio in zip(found.items(), ratios(found).values(), strict=True):
        shown = " · ".join(f"{ratio[key]:.2f}" for key in ("processor_s", "seconds", "peak_mib"))
        lines.append(f"{name:19}{run.processor_s:12.2f}{run.seconds:9.2f}{run.peak_mib:7.0f}   {shown}")
    return lines


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Times `cachecost bill` over a folder of sessions, beside other tools."
    )
    parser.add_argument("folder", type=Path, nargs="?", help="of Claude Code sessions (default: generated)")
    parser.add_argument("--peers", metavar="BIN", help="folder with the programs of other tools (default: PATH)")
    parser.add_argument("--cachecost", type=shlex.split, default=CACHECOST, metavar="WORDS", help="how it is started")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=350, help="of the generated folder")
    parser.add_argument("--megabytes", type=float, default=380.0, help="of the generated folder")
    parser.add_argument("--json", action="store_true")
    return parser


def main() -> int:
    options = arguments().parse_args()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = options.folder or scratch / "sessions"
        if options.folder is None:
            write_sessions(folder, options.sessions, options.megabytes)
        peers = peer_sides(folder, scratch / "claude", options.peers)
        sides = [*bill_sides(folder, scratch / "store", options.cachecost), *peers]
        try:
            rounds = in_rounds([*sides, bare_side(folder)], options.runs)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"nothing measured: {error}", file=sys.stderr)
            return 1
    found = {name: best(runs) for name, runs in rounds.items()}
    if options.json:
        print(json.dumps({"figures": {name: asdict(run) for name, run in found.items()}, "ratios": ratios(found)}))
    else:
        print("\n".join(table(found)))
    missing = [name for name in PEERS if name not in found]
    if missing and not options.json:
        print(f"not installed: {', '.join(missing)}; --peers BIN names the folder of their programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
