"""Where tasks are computed: processes of this machine (loky), a dask cluster or a ray one, all through joblib."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any

from cachecost.faults import CannotEvaluate, Fault, InputError
from cachecost.sweep.cells import Job, Task, evaluated
from cachecost.sweep.processes import processes, shared
from cachecost.sweep.rows import Row
from cachecost.sweep.store import Part, Store

BACKENDS = ("loky", "dask", "ray")
WANTED = {"dask": ("distributed", "pip install 'cachecost[dask]'"), "ray": ("ray", "pip install ray")}
MOST_TASKS, MOST_CELLS, BUNDLES_A_WORKER = 32, 1_000, 4
BUNDLES_A_ROUND = 4
"""For each process of a cluster: such backends answer as a whole, so they are asked in rounds, kept in between."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Who computes: `jobs` processes of this machine (−1: one a core), or those of the cluster at `scheduler`."""

    backend: str = "loky"
    jobs: int = -1
    scheduler: str | None = None

    def check(self) -> None:
        """Raises InputError for a cluster without an address, CannotEvaluate for a backend that is not installed."""
        if self.backend == "dask" and not self.scheduler:
            raise InputError([Fault("--backend dask:", "expected --scheduler ADDRESS beside it; got none")])
        if self.backend == "loky" and self.scheduler:
            words = "expected --backend dask or ray beside it; got loky"
            raise InputError([Fault(f"--scheduler {self.scheduler}:", words)])
        package, advice = WANTED.get(self.backend, ("joblib", ""))
        if find_spec(package) is None:
            raise CannotEvaluate(f"--backend {self.backend}: {package} is not installed: {advice}")


def computed(job: Job, tasks: Iterable[Task], count: int, workers: Workers, store: Store) -> Iterator[Part]:
    """The parts of `store` that bundles of `count` tasks became, in whatever order they are ready.

    Processes of this machine write their parts themselves; what a cluster answers is written here, as nobody knows
    what its machines share. Raises CannotEvaluate where no cluster answers, or a process was killed.
    """
    if workers.backend != "loky":
        yield from map(store.keep, _there(job, tasks, count, workers))
        return
    jobs = max(1, min(processes(workers.jobs), count))
    try:
        yield from shared(partial(kept, job, store), bundles(tasks, count, jobs), jobs)
    except BrokenProcessPool:
        raise CannotEvaluate("a process of the sweep was killed; is memory short? --jobs 1 takes least") from None


def kept(job: Job, store: Store, tasks: Sequence[Task]) -> Part:
    """The part of `store` that some tasks became."""
    return store.keep(bundle(job, tasks))


def bundle(job: Job, tasks: Sequence[Task]) -> list[Row]:
    """The rows of some tasks, one after the other."""
    return [row for task in tasks for row in evaluated(job, task)]


def bundles(tasks: Iterable[Task], count: int, workers: int) -> Iterator[Sequence[Task]]:
    """`count` tasks, neighbours in the grid together, as they share most; ever fewer, so that all workers end together.

    What is in a bundle is in memory at once, and is computed again if its worker dies.
    """
    some: list[Task] = []
    for task in tasks:
        some.append(task)
        cells = len(some) * len(task.seeds)
        if len(some) >= min(MOST_TASKS, count // (BUNDLES_A_WORKER * workers)) or cells >= MOST_CELLS:
            count -= len(some)
            yield some
            some = []
    if some:
        yield some


def _there(job: Job, tasks: Iterable[Task], tasks_count: int, workers: Workers) -> Iterator[list[Row]]:
    from joblib import Parallel, delayed, parallel_config

    with ExitStack() as stack:
        count = _connected(workers, stack)
        stack.enter_context(parallel_config(backend=workers.backend))
        todo, size = bundles(tasks, tasks_count, count), BUNDLES_A_ROUND * count
        while some := list(islice(todo, size)):
            yield from Parallel(batch_size=1)(delayed(bundle)(job, one) for one in some)


def _connected(workers: Workers, stack: ExitStack) -> int:
    """How many processes the cluster has, once it answers."""
    try:
        return (_dask if workers.backend == "dask" else _ray)(workers, stack)
    except (OSError, TimeoutError, ConnectionError) as error:
        raise CannotEvaluate(f"--scheduler {workers.scheduler}: no cluster answers ({error})") from None


def _dask(workers: Workers, stack: ExitStack) -> int:
    distributed: Any = import_module("distributed")
    client = stack.enter_context(distributed.Client(workers.scheduler, set_as_default=True))
    client.wait_for_workers(1)
    return sum(client.nthreads().values()) or 1


def _ray(workers: Workers, stack: ExitStack) -> int:
    ray: Any = import_module("ray")
    ray.init(address=workers.scheduler, ignore_reinit_error=True)
    stack.callback(ray.shutdown)
    import_module("ray.util.joblib").register_ray()
    return int(ray.cluster_resources().get("CPU", 1))
