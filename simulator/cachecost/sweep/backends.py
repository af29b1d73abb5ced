"""Where tasks are computed: processes of this machine (loky), a dask cluster or a ray one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.extras import require
from cachecost.sweep.cells import Job, Task, evaluate_task
from cachecost.sweep.parts import PartFile
from cachecost.sweep.processes import processes, share_work
from cachecost.sweep.rows import SweepRow
from cachecost.sweep.store import Store

NEEDED = {"dask": "distributed", "ray": "ray"}
MOST_TASKS, MOST_CELLS, BUNDLES_A_WORKER = 32, 1_000, 4
AHEAD = 2
"""Bundles that each process of a cluster is given at once: one in work, and one to go on with."""
Answers = Callable[[Callable[[Any], Any], Iterator[Any], int], Iterator[Any]]
Cluster = tuple[Answers, int]
"""The function that does some work on each item on a cluster, and how many processes the cluster has."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Workers:
    """Who computes: `jobs` processes of this machine (−1: one a core), or those of the cluster at `scheduler`."""

    backend: str = "loky"
    jobs: int = -1
    scheduler: str | None = None

    def check(self) -> None:
        """Raises InputError for a cluster without an address, NotInstalled for a backend that is not."""
        if self.backend == "dask" and not self.scheduler:
            raise InputError([Fault("--backend dask:", "expected --scheduler ADDRESS with it; got none")])
        if self.backend == "loky" and self.scheduler:
            words = "expected --backend dask or ray with it; got loky"
            raise InputError([Fault(f"--scheduler {self.scheduler}:", words)])
        if self.backend in NEEDED:
            require(f"--backend {self.backend}", NEEDED[self.backend])


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
    """`work` of each item in processes of this machine. Raises CannotEvaluate."""
    try:
        yield from share_work(work, items, jobs)
    except BrokenProcessPool:
        raise CannotEvaluate(f"a {name} process was killed, perhaps for lack of memory; try --jobs 1") from None


def _there(
    work: Callable[[Item], Result], split: Callable[[int], Iterator[Item]], workers: Workers
) -> Iterator[Result]:
    """`work` of each item on a cluster, of whose size the items are a function.

    The cluster repeats the work of a lost worker; each result returns once. Raises CannotEvaluate.
    """
    with ExitStack() as stack:
        answers, size = (_dask if workers.backend == "dask" else _ray)(workers, stack)
        yield from answers(work, split(size), AHEAD * size)


def _apply(work: Callable[[Item], Result], item: Item) -> Result:
    return work(item)


def _dask(workers: Workers, stack: ExitStack) -> Cluster:
    distributed: Any = import_module("distributed")
    try:
        client = stack.enter_context(distributed.Client(workers.scheduler))
        client.wait_for_workers(1)
    except (OSError, TimeoutError) as error:
        raise _no_cluster(workers, error) from None

    def answers(work: Callable[[Any], Any], todo: Iterator[Any], ahead: int) -> Iterator[Any]:
        running = distributed.as_completed(client.submit(_apply, work, one, pure=False) for one in islice(todo, ahead))
        for done in running:
            running.update([client.submit(_apply, work, one, pure=False) for one in islice(todo, 1)])
            yield done.result()

    return answers, sum(client.nthreads().values()) or 1


def _ray(workers: Workers, stack: ExitStack) -> Cluster:
    ray: Any = import_module("ray")
    try:
        ray.init(address=workers.scheduler, log_to_driver=False, logging_level="ERROR")
    except (OSError, TimeoutError) as error:
        raise _no_cluster(workers, error) from None
    stack.callback(ray.shutdown)

    def answers(work: Callable[[Any], Any], todo: Iterator[Any], ahead: int) -> Iterator[Any]:
        remote, shared = ray.remote(max_retries=-1)(_apply), ray.put(work)
        running = [remote.remote(shared, one) for one in islice(todo, ahead)]
        while running:
            (done,), running = ray.wait(running)
            running += [remote.remote(shared, one) for one in islice(todo, 1)]
            yield ray.get(done)

    return answers, int(ray.cluster_resources().get("CPU", 1))


def _no_cluster(workers: Workers, error: Exception) -> CannotEvaluate:
    return CannotEvaluate(f"--scheduler {workers.scheduler}: cannot reach the cluster ({error})")
