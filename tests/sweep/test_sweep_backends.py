"""The same table on every backend: processes of this machine, or a dask cluster that loses one on the way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from sweep_bench import COMMAND, ENVIRONMENT, SCENARIO, scenario_at

import cachecost
from cachecost.base.errors import InputError
from cachecost.base.extras import NotInstalled
from cachecost.sweep.cells import Task
from cachecost.sweep.grid import Point
from cachecost.sweep.workers import MOST_CELLS, MOST_TASKS, Workers, split_tasks
from command_runs import run_here
from slow_cases import mostly_slow

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="dask is an extra")
SEVERAL = ["--grid", "conversation.synthetic.turns=1,2,3", "--grid", "model=claude-opus-4-6,claude-sonnet-4-6"]
MANY = [
    "--grid",
    f"conversation.head.system.tokens={','.join(str(4_000 + number) for number in range(60))}",
    "--grid",
    "model=claude-opus-4-6,claude-sonnet-4-6,claude-opus-9",
]
FEWER = ["--grid", "conversation.head.system.tokens=4_000,5_000,6_000,7_000,8_000", *MANY[2:]]
LONGER = SCENARIO.replace("turns: 3,", "turns: 12,")


def sweep(path: Path, out: Path, *options: str) -> int:
    command = [*COMMAND, str(path), *options, "--out", str(out)]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=120).returncode


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is so; how long that takes says nothing."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it never was"
        time.sleep(0.005)


@pytest.mark.parametrize("jobs", mostly_slow([2, 3], 1))
def test_several_processes_write_what_one_does(tmp_path: Path, jobs: int) -> None:
    path, alone, together = scenario_at(tmp_path), tmp_path / "1.csv", tmp_path / "n.csv"
    assert run_here("sweep", path, *SEVERAL, "--out", alone, "--jobs", 1).returncode == 0
    assert sweep(path, together, *SEVERAL, "--jobs", str(jobs)) == 0
    assert alone.read_bytes() == together.read_bytes()


@pytest.mark.slow
def test_a_sweep_that_is_killed_again_and_again_comes_to_the_same_table(tmp_path: Path) -> None:
    """Each time it is killed when it has kept three parts more; its helpers lose their parent."""
    path, out = scenario_at(tmp_path, LONGER), tmp_path / "out.csv"
    assert sweep(path, tmp_path / "expected.csv", *MANY, "--jobs", "1") == 3
    parts = out.with_name(f"{out.name}.parts")
    for jobs in ("2", "1", "3"):
        before = len(list(parts.glob("part-*")))
        command = [*COMMAND, str(path), *MANY, "--out", str(out), "--resume", "--jobs", jobs]
        sweeping = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        until(lambda before=before: len(list(parts.glob("part-*"))) >= before + 3)
        sweeping.kill()
        sweeping.wait()
        assert not out.exists()
    assert sweep(path, out, *MANY, "--resume", "--jobs", "2") == 3
    assert out.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert not parts.exists()


@pytest.mark.parametrize(
    ("tasks", "workers", "sizes"),
    [(1, 2, [1]), (15, 2, [1] * 15), (16, 2, [2] + [1] * 14), (24, 2, [3, 2, 2, 2] + [1] * 15)],
)
def test_bundles_become_smaller_so_that_workers_end_together(tasks: int, workers: int, sizes: list[int]) -> None:
    all_tasks = [Task(Point((number,)), (0,)) for number in range(tasks)]
    made = list(split_tasks(all_tasks, tasks, workers))
    assert [task for some in made for task in some] == all_tasks
    assert [len(some) for some in made] == sizes


@pytest.mark.parametrize(
    ("seeds", "most"), [(1, MOST_TASKS), (MOST_CELLS // 2, 2), (MOST_CELLS // 2 + 1, 2), (MOST_CELLS, 1)]
)
def test_a_bundle_is_bounded_in_tasks_and_cells(seeds: int, most: int) -> None:
    task = Task(Point((0,)), tuple(range(seeds)))
    assert max(map(len, split_tasks([task] * 1_000, 1_000, 2))) == most


def test_a_cluster_needs_an_address_and_an_address_a_cluster() -> None:
    with pytest.raises(InputError, match="--backend dask: expected --scheduler ADDRESS with it; got none"):
        Workers("dask").check()
    with pytest.raises(InputError, match="--scheduler x: expected --backend dask with it; got loky"):
        Workers("loky", 1, "x").check()
    Workers("loky").check()


def test_a_backend_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(NotInstalled, match=r"distributed is not installed. To install: .*\[dask\]'"):
        Workers("dask", 1, "tcp://127.0.0.1:1").check()


@contextmanager
def process(*words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        running = subprocess.Popen([sys.executable, "-m", *words], stdout=file, stderr=file, env=ENVIRONMENT)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler on loopback, and its two workers: three processes."""
    about = folder / "scheduler.json"
    here = ("--host", "127.0.0.1", "--no-dashboard")
    one = ("distributed.cli.dask_worker", "--scheduler-file", str(about), *here, "--nthreads", "1", "--no-nanny")
    with process(
        "distributed.cli.dask_scheduler", *here, "--port", "0", "--scheduler-file", str(about), log=folder / "s.log"
    ):
        until(about.exists)
        words = [(*one, "--local-directory", str(folder / f"worker-{number}")) for number in (1, 2)]
        with process(*words[0], log=folder / "1.log") as first, process(*words[1], log=folder / "2.log") as second:
            logs = [folder / "1.log", folder / "2.log"]
            until(lambda: all("Starting established connection" in log.read_text() for log in logs))
            yield json.loads(about.read_text())["address"], [first, second]


@needs_dask
@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_loses_no_cell_and_counts_none_twice(tmp_path: Path) -> None:
    """The worker is killed when some parts are kept and others are on their way. One model is unknown: exit 3."""
    path = scenario_at(tmp_path, LONGER)
    suffix = ".parquet" if find_spec("pyarrow") else ".csv"
    expected, out = tmp_path / f"expected{suffix}", tmp_path / f"out{suffix}"
    assert sweep(path, expected, *MANY, "--jobs", "1") == 3
    with cluster(tmp_path) as (address, workers):
        command = [*COMMAND, str(path), *MANY, "--out", str(out), "--backend", "dask", "--scheduler", address]
        sweeping = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
        parts = out.with_name(f"{out.name}.parts")
        until(lambda: len(list(parts.glob("part-*"))) >= 5)
        workers[0].kill()
        _, words = sweeping.communicate(timeout=120)
        assert sweeping.returncode == 3, words.decode()
    assert out.read_bytes() == expected.read_bytes()


@needs_dask
@pytest.mark.slow
def test_a_sweep_that_dies_with_its_cluster_goes_on_elsewhere(tmp_path: Path) -> None:
    path = scenario_at(tmp_path, LONGER)
    expected, out = tmp_path / "expected.csv", tmp_path / "out.csv"
    assert sweep(path, expected, *MANY) == 3
    with cluster(tmp_path) as (address, _):
        command = [*COMMAND, str(path), *MANY, "--out", str(out), "--backend", "dask", "--scheduler", address]
        sweeping = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        parts = out.with_name(f"{out.name}.parts")
        until(lambda: any(parts.glob("part-*")))
        sweeping.kill()
        sweeping.wait()
    assert not out.exists()
    assert sweep(path, out, *MANY, "--resume", "--jobs", "2") == 3
    assert out.read_bytes() == expected.read_bytes()
    with suppress(FileNotFoundError):
        assert not list(parts.iterdir())


# ------------------------------------------------------------------------------------- clusters that are no good


def dask_sweep(path: Path, out: Path, address: str, *options: str) -> tuple[int, str]:
    """Exit code and stderr of a sweep on a cluster."""
    command = [*COMMAND, str(path), *FEWER, "--out", str(out), "--backend", "dask", "--scheduler", address, *options]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    return done.returncode, done.stderr


@contextmanager
def dask(folder: Path, *workers: dict[str, str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler, and a worker for each environment; the scheduler is the first of the processes."""
    about = folder / "scheduler.json"
    here = ("--host", "127.0.0.1", "--no-dashboard")
    running = []
    try:
        start = [sys.executable, "-m", "distributed.cli.dask_scheduler", *here, "--port", "0"]
        with (folder / "log").open("wb") as log:
            running.append(subprocess.Popen([*start, "--scheduler-file", str(about)], stdout=log, stderr=log))
            until(about.exists)
            for number, environment in enumerate(workers):
                words = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(about), *here]
                more = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder / f"w{number}")]
                env = {**ENVIRONMENT, **environment}
                running.append(subprocess.Popen([*words, *more], stdout=log, stderr=log, env=env))
            until(lambda: (folder / "log").read_text().count("Starting established connection") >= 2 * len(workers))
        yield json.loads(about.read_text())["address"], running
    finally:
        for one in running:
            one.kill()
            one.wait()


def other_package(folder: Path, change: Callable[[Path], None]) -> dict[str, str]:
    """The environment of a worker that imports a changed copy of the package."""
    root = Path(cachecost.__file__).parent
    shutil.copytree(root, folder / "cachecost", ignore=shutil.ignore_patterns("__pycache__"))
    change(folder / "cachecost")
    return {"PYTHONPATH": str(folder)}


def dearer(package: Path) -> None:
    path = package / "providers" / "prices" / "overlay.toml"
    path.write_text(path.read_text() + "\n# another day\n")


def unusable(package: Path) -> None:
    (package / "__init__.py").write_text("raise ImportError('no such package here')\n")


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [(dearer, "rules, prices and code"), (unusable, "has no cachecost that works (no such package here)")],
)
def test_a_worker_that_differs_ends_it_before_the_first_task(
    tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    path, out = scenario_at(tmp_path), tmp_path / "out.csv"
    with dask(tmp_path, {}, other_package(tmp_path / "other", change)) as (address, _):
        code, said = dask_sweep(path, out, address)
    assert code == 3
    assert [line for line in said.splitlines() if f"--scheduler {address}: worker tcp://" in line and words in line]
    assert len(said.splitlines()) <= 2
    assert not out.exists()


@needs_dask
@pytest.mark.slow
def test_no_worker_is_not_waited_for_long(tmp_path: Path) -> None:
    with dask(tmp_path) as (address, _):
        code, said = dask_sweep(scenario_at(tmp_path), tmp_path / "out.csv", address, "--worker-timeout", "1")
    assert (code, said.count("no worker within 1 s; start one, or --worker-timeout")) == (3, 1)


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_a_cluster_that_is_lost_ends_it_and_says_how_to_go_on(tmp_path: Path, lost: str) -> None:
    endless = SCENARIO.replace("turns: 3,", "turns: 150,")  # a sweep that ended before the kill would be no test
    path, out = scenario_at(tmp_path, endless), tmp_path / "out.csv"
    with dask(tmp_path, {}, {}) as (address, running):
        options = ["--out", str(out), "--backend", "dask", "--scheduler", address, "--worker-timeout", "3"]
        command = [*COMMAND, str(path), *MANY, *options]
        sweeping = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        until(lambda: any(out.with_name(f"{out.name}.parts").glob("part-*")))
        for one in running[1:] if lost == "workers" else running[:1]:
            one.kill()
        _, said = sweeping.communicate(timeout=60)
    assert sweeping.returncode == 3, said
    assert "--resume" in said
    assert "internal error" not in said
    assert len(said) < 1_000


@needs_dask
@pytest.mark.parametrize(
    "address", mostly_slow(["tcp://127.0.0.1:1", "nonsense", "tcp://nowhere.invalid:1", "x://1", "tcp://[::"], 1)
)
def test_an_address_without_a_cluster_is_one_line(tmp_path: Path, address: str) -> None:
    code, said = dask_sweep(scenario_at(tmp_path), tmp_path / "out.csv", address, "--worker-timeout", "1")
    assert code == 3
    assert f"--scheduler {address}: cannot reach the cluster (" in said
    assert len(said) < 600


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_a_sweep_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    path, out = scenario_at(tmp_path, LONGER), tmp_path / "out.csv"
    command = [*COMMAND, str(path), *MANY, "--out", str(out), "--jobs", "3"]
    sweeping = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    until(lambda: any(out.with_name(f"{out.name}.parts").glob("part-*")))
    left = children(sweeping.pid)
    assert left
    sweeping.kill()
    sweeping.wait()
    until(lambda: not [one for one in left if Path(f"/proc/{one}").exists()], 10)


def children(process: int) -> list[int]:
    """All processes that descend from one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]
