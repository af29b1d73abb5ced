"""The same table on every backend: processes of this machine, or a cluster (dask, ray) that loses one on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex

import pytest
from sweep_bench import COMMAND, ENVIRONMENT, SCENARIO, scenario_at

from cachecost.base.errors import InputError
from cachecost.base.extras import NotInstalled
from cachecost.sweep.backends import MOST_CELLS, MOST_TASKS, Workers, split_tasks
from cachecost.sweep.cells import Task
from cachecost.sweep.grid import Point

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


def test_several_processes_write_what_one_does(tmp_path: Path) -> None:
    path = scenario_at(tmp_path)
    codes = [sweep(path, tmp_path / f"{jobs}.csv", *SEVERAL, "--jobs", str(jobs)) for jobs in (1, 2, 3)]
    assert codes == [0, 0, 0]
    assert len({(tmp_path / f"{jobs}.csv").read_bytes() for jobs in (1, 2, 3)}) == 1


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
    with pytest.raises(InputError, match="--scheduler x: expected --backend dask or ray with it; got loky"):
        Workers("loky", 1, "x").check()
    Workers("loky").check()


def test_a_backend_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ray", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NotInstalled, match=r"--backend ray: ray is not installed. To install: .* ray$"):
        Workers("ray").check()
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


RAY = """
import ray, sys
print(ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR").address_info["gcs_address"], flush=True)
sys.stdin.read()
"""
OWN_RAY = {
    **ENVIRONMENT,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": token_hex(32),
}
"""A cluster that only this test's processes know the token of."""


@contextmanager
def ray_cluster() -> Iterator[tuple[str, int]]:
    """The address of a ray cluster of two processes, and the process that all of it descends from."""
    head = [sys.executable, "-c", RAY]
    with subprocess.Popen(head, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=OWN_RAY) as running:
        assert running.stdin
        assert running.stdout
        yield running.stdout.readline().strip(), running.pid
        running.stdin.close()


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def descends(process: int, ancestor: int) -> bool:
    while process > 1 and process != ancestor:
        process = parent(process)
    return process == ancestor


def computing(ancestor: int) -> list[int]:
    """The processes of a ray cluster that compute a bundle at this moment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            process = int(path.parent.name)
            if path.read_bytes().startswith(b"ray::bundle") and descends(process, ancestor):
                found.append(process)
    return found


@pytest.mark.skipif(find_spec("ray") is None or not Path("/proc/self/stat").exists(), reason="ray is not installed")
@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_process_loses_no_cell_and_counts_none_twice(tmp_path: Path) -> None:
    path = scenario_at(tmp_path, SCENARIO.replace("turns: 3,", "turns: 100,"))
    expected, out = tmp_path / "expected.csv", tmp_path / "out.csv"
    assert sweep(path, expected, *FEWER, "--jobs", "1") == 3
    with ray_cluster() as (address, head):
        command = [*COMMAND, str(path), *FEWER, "--out", str(out), "--backend", "ray", "--scheduler", address]
        sweeping = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=OWN_RAY)
        parts = out.with_name(f"{out.name}.parts")
        until(lambda: len(list(parts.glob("part-*"))) >= 2 and bool(computing(head)))
        os.kill(computing(head)[0], signal.SIGKILL)
        _, words = sweeping.communicate(timeout=120)
        assert sweeping.returncode == 3, words.decode()
    assert out.read_bytes() == expected.read_bytes()
