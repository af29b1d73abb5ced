"""Where tasks are computed: processes of this machine, or a dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial

from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.extras import require
from cachecost.sweep.cells import Job, Task, evaluate_task
from cachecost.sweep.processes import Item, Result, processes, share_work
from cachecost.sweep.rows import PartFile, Store, SweepRow

MOST_TASKS, MOST_CELLS, BUNDLES_A_WORKER = 32, 1_000, 4


@dataclass(frozen=True, slots=True)
class Workers:
    """Who computes: `jobs` processes of this machine (−1: one a core), or those of the dask cluster at `scheduler`.

    A cluster without a worker is waited for `wait_s` seconds.
    """

    backend: str = "loky"
    jobs: int = -1
    scheduler: str | None = None
    wait_s: float = 60.0

    def check(self) -> None:
        """Raises InputError for a cluster without an address, NotInstalled for a backend that is not."""
        if self.backend == "dask" and not self.scheduler:
            raise InputError([Fault("--backend dask:", "expected --scheduler ADDRESS with it; got none")])
        if self.backend == "loky" and self.scheduler:
            words = "expected --backend dask with it; got loky"
            raise InputError([Fault(f"--scheduler {self.scheduler}:", words)])
        if self.backend == "dask":
            require("--backend dask", "distributed")


def compute_parts(job: Job, tasks: Iterable[Task], count: int, workers: Workers, store: Store) -> Iterator[PartFile]:
    """The part files of `count` tasks, written to `store`, in the order they finish.

    Processes of this machine write their parts themselves; what a cluster answers is written here, because its
    machines may share no disk. Raises CannotEvaluate where no cluster answers, or a process was killed.
    """
    if workers.backend != "loky":
        yield from map(store.keep, _there(partial(compute_bundle, job), partial(split_tasks, tasks, count), workers))
        return
    jobs = max(1, min(processes(workers.jobs), count))
    yield from _here("sweep", partial(keep_bundle, job, store), split_tasks(tasks, count, jobs), jobs)


def keep_bundle(job: Job, store: Store, tasks: Sequence[Task]) -> PartFile:
    """Compute some tasks and write them to `store` as one part."""
    return store.keep(compute_bundle(job, tasks))


def compute_bundle(job: Job, tasks: Sequence[Task]) -> list[SweepRow]:
    """The rows of some tasks, one after the other."""
    return [row for task in tasks for row in evaluate_task(job, task)]


def split_tasks(tasks: Iterable[Task], count: int, workers: int) -> Iterator[Sequence[Task]]:
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


def share_items(
    name: str, split: Callable[[int], Iterator[Item]], work: Callable[[Item], Result], workers: Workers
) -> Iterator[Result]:
    """`work` of each item of what `split` makes for so many processes, in the order they finish.

    `name` is that of the command. Raises CannotEvaluate as `compute_parts` does.
    """
    if workers.backend != "loky":
        return _there(work, split, workers)
    jobs = processes(workers.jobs)
    return _here(name, work, split(jobs), jobs)


def _here(name: str, work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    try:
        yield from share_work(work, items, jobs)
    except BrokenProcessPool:
        raise CannotEvaluate(f"a {name} process was killed, perhaps for lack of memory; try --jobs 1") from None


def _there(
    work: Callable[[Item], Result], split: Callable[[int], Iterator[Item]], workers: Workers
) -> Iterator[Result]:
    """`work` of each item on a cluster, of whose size the items are a function. Raises CannotEvaluate."""
    from cachecost.sweep.cluster import DaskCluster

    with DaskCluster(workers.scheduler or "", workers.wait_s) as cluster:
        yield from cluster.share(work, split(cluster.size))
