"""`cachecost bill` and `cachecost sweep` over many sessions: one process, and a dask cluster that loses a worker.

    python benchmarks/fleet.py [FOLDER] [--sessions 10000] [--megabytes 600] [--workers 3] [--only bill|sweep] [--json]

Without FOLDER, sessions.py writes one (10,000 sessions take 3.9 GB) and it is removed afterwards. `sweep` reads a log
of one conversation for each session, which growing_log.py writes. Each command runs in one process, then on a scheduler
and `--workers` worker processes of this machine, one of which is killed (SIGKILL) when the cluster has computed a third
of its tasks. Both must print or write the same bytes, or this script fails. Needs the extra `dask`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from growing_log import Shape, write_log
from sessions import write_sessions

CACHECOST = (sys.executable, "-m", "cachecost")
ENVIRONMENT = {**os.environ, "CACHECOST_STORE": "off"}
DIFFERENT_LOGS = 100
"""Logs that are written; the others are copies of them, as writing takes longer than a sweep."""
SCENARIO = """\
format: 1
name: fleet
as_of: 2026-11-01
model: claude-opus-4-6
tokens: bytes
conversation: {recording: logs/00000.jsonl}
strategies: [automatic]
"""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One command, both ways; seconds are wall seconds of the whole command."""

    command: str
    sessions: int
    one_process_s: float
    cluster_s: float
    workers: int
    killed_after_s: float
    tasks_before: int
    tasks: int
    output_bytes: int


def start(*words: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen([sys.executable, "-m", *words], stdout=file, stderr=file, env=ENVIRONMENT)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler on loopback, and its workers, which nothing starts again."""
    about, here = folder / "scheduler.json", ("--host", "127.0.0.1", "--no-dashboard")
    one = ("distributed.cli.dask_worker", "--scheduler-file", str(about), *here, "--nthreads", "1", "--no-nanny")
    running: list[subprocess.Popen[bytes]] = []
    try:
        scheduler = ("distributed.cli.dask_scheduler", *here, "--port", "0", "--scheduler-file", str(about))
        running.append(start(*scheduler, log=folder / "scheduler.log"))
        for number in range(workers):
            own = ("--local-directory", str(folder / f"worker-{number}"))
            running.append(start(*one, *own, log=folder / f"worker-{number}.log"))
        while not about.exists():
            time.sleep(0.05)
        address = json.loads(about.read_text())["address"]
        with import_module("distributed").Client(address) as client:
            client.wait_for_workers(workers, timeout=120)
        yield address, running[1:]
    finally:
        for process in running:
            process.kill()
            process.wait()


def _finished(dask_scheduler: Any = None) -> int:
    """How often a task was finished by now: asked of the scheduler, in its process."""
    return sum(prefix.state_counts["memory"] for prefix in dask_scheduler.task_prefixes.values())


def run_alone(words: Sequence[str], out: Path) -> float:
    """Seconds of a command whose stdout goes to `out`. Raises CalledProcessError."""
    begun = time.perf_counter()
    with out.open("wb") as file:
        subprocess.run([*CACHECOST, *words], stdout=file, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=True)
    return time.perf_counter() - begun


def run_on_cluster(words: Sequence[str], out: Path, folder: Path, workers: int, third: int) -> tuple[float, float, int]:
    """Seconds of a command, seconds until a worker was killed, and the tasks done then. Raises CalledProcessError."""
    with cluster(folder, workers) as (address, running), out.open("wb") as file:
        with import_module("distributed").Client(address) as client:
            command = [*CACHECOST, *words, "--backend", "dask", "--scheduler", address]
            begun = time.perf_counter()
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, env=ENVIRONMENT)
            while (done := client.run_on_scheduler(_finished)) < third and process.poll() is None:
                time.sleep(0.05)
            if process.poll() is not None:
                raise RuntimeError(f"it ended before a worker could be killed: {process.communicate()[1].decode()}")
            running[0].kill()
            killed = time.perf_counter() - begun
        _, said = process.communicate()
        if process.returncode:
            sys.stderr.write(said.decode())
            raise subprocess.CalledProcessError(process.returncode, command)
        return time.perf_counter() - begun, killed, done


def compare(name: str, words: Sequence[str], sessions: int, tasks: int, folder: Path, workers: int) -> FleetRun:
    """Run a command both ways. Raises RuntimeError where the results differ."""
    alone, shared = folder / f"{name}-alone", folder / f"{name}-shared"
    files = [["--out", str(path.with_suffix(".csv"))] if name == "sweep" else [] for path in (alone, shared)]
    alone_s = run_alone([*words, *files[0], *(["--jobs", "1"] if name == "sweep" else [])], alone)
    place = folder / f"{name}-cluster"
    place.mkdir()
    shared_s, killed_s, done = run_on_cluster([*words, *files[1]], shared, place, workers, tasks // 3)
    if files[0]:
        alone, shared = alone.with_suffix(".csv"), shared.with_suffix(".csv")
    if alone.read_bytes() != shared.read_bytes():
        raise RuntimeError(f"{name}: the cluster's result is another one: {alone}, {shared}")
    return FleetRun(name, sessions, alone_s, shared_s, workers, killed_s, done, tasks, alone.stat().st_size)


def write_logs(folder: Path, sessions: int) -> Path:
    """A scenario, and a log of four calls for each session beside it; every hundredth has the same bytes."""
    logs = folder / "logs"
    logs.mkdir()
    for number in range(sessions):
        path = logs / f"{number:05}.jsonl"
        if number < DIFFERENT_LOGS:
            write_log(path, Shape(conversations=1, requests=4, seed=number + 1))
        else:
            path.write_bytes((logs / f"{number % DIFFERENT_LOGS:05}.jsonl").read_bytes())
    scenario = folder / "fleet.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    return scenario


def bill_run(options: argparse.Namespace, folder: Path) -> FleetRun:
    sessions = options.folder
    if sessions is None:
        sessions = folder / "sessions"
        write_sessions(sessions, options.sessions, options.megabytes)
    files = sum(1 for _ in sessions.rglob("*.jsonl"))
    bundle = max(1, min(64, files // (4 * options.workers)))
    words = ["bill", str(sessions.resolve()), "--json"]
    return compare("bill", words, options.sessions, -(-files // bundle), folder, options.workers)


def sweep_run(options: argparse.Namespace, folder: Path) -> FleetRun:
    scenario = write_logs(folder, options.sessions)
    words = ["sweep", str(scenario), "--grid", "conversation.recording='logs/*.jsonl'", "--json"]
    return compare("sweep", words, options.sessions, options.sessions // 32, folder, options.workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=600.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--only", choices=["bill", "sweep"])
    parser.add_argument("--json", action="store_true", dest="as_json")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-")))
        for name, run in (("bill", bill_run), ("sweep", sweep_run)):
            if options.only in (None, name):
                show(run(options, folder), options.as_json)


def show(run: FleetRun, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(run)), flush=True)
        return
    print(f"{run.command}, {run.sessions:,} sessions: one process {run.one_process_s:.1f} s")
    words = f"one killed after {run.killed_after_s:.1f} s with {run.tasks_before:,} of about {run.tasks:,} tasks done"
    print(f"  {run.workers} workers, {words}: {run.cluster_s:.1f} s")
    print(f"  the same {run.output_bytes:,} bytes", flush=True)


if __name__ == "__main__":
    main()
