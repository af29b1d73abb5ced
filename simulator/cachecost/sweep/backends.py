"""Where tasks are computed: processes of this machine (loky), a dask cluster or a ray one, all through joblib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cachecost.faults import CannotEvaluate, Fault, InputError
from cachecost.sweep.cells import Job, Task, evaluated
from cachecost.sweep.rows import Row

BACKENDS = ("loky", "dask", "ray")
WANTED = {"dask": ("distributed", "pip install 'cachecost[dask]'"), "ray": ("ray", "pip install ray")}
MOST_TASKS, BUNDLES_A_WORKER = 32, 8
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


def computed(job: Job, tasks: Sequence[Task], workers: Workers) -> Iterator[list[Row]]:
    """The rows of each bundle of tasks, in whatever order they are ready.

    Raises CannotEvaluate where no cluster answers.
    """
    if workers.backend == "loky":
        yield from _here(job, tasks, workers.jobs)
    else:
        yield from _there(job, tasks, workers)


def bundle(job: Job, tasks: Sequence[Task]) -> list[Row]:
    """The rows of some tasks, one after the other."""
    return [row for task in tasks for row in evaluated(job, task)]


def bundles(tasks: Sequence[Task], workers: int) -> list[Sequence[Task]]:
    """Neighbours in the grid together, as they share most; many more bundles than workers, so that all end together."""
    size = max(1, min(MOST_TASKS, len(tasks) // (BUNDLES_A_WORKER * workers)))
    return [tasks[first : first + size] for first in range(0, len(tasks), size)]


def _here(job: Job, tasks: Sequence[Task], jobs: int) -> Iterator[list[Row]]:
    from joblib import Parallel, delayed, effective_n_jobs

    count = effective_n_jobs(jobs)
    if count == 1 or len(tasks) <= 1:
        yield from (bundle(job, some) for some in bundles(tasks, 1))
        return
    parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(bundle)(job, some) for some in bundles(tasks, count))


def _there(job: Job, tasks: Sequence[Task], workers: Workers) -> Iterator[list[Row]]:
    from joblib import Parallel, delayed, parallel_config

    with ExitStack() as stack:
        count = _connected(workers, stack)
        stack.enter_context(parallel_config(backend=workers.backend))
        some, size = bundles(tasks, count), BUNDLES_A_ROUND * count
        for first in range(0, len(some), size):
            yield from Parallel(batch_size=1)(delayed(bundle)(job, one) for one in some[first : first + size])


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
