"""Work that this process and its helpers share: nothing lost, nothing done twice, whoever takes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from sweep_bench import ENVIRONMENT

from cachecost.sweep.processes import share_work


def told(number: int) -> tuple[int, int]:
    return number, os.getpid()


def refused(number: int) -> None:
    raise ValueError(number)


def killed(parent: int) -> None:
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def outcome(work: Callable[[int], Any], items: list[int], jobs: int) -> Any:
    try:
        return list(share_work(work, iter(items), jobs))
    except (ValueError, BrokenProcessPool) as error:
        return next(kind.__name__ for kind in (ValueError, BrokenProcessPool) if isinstance(error, kind))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What came of each case, in a process of its own, whose helpers end with it."""
    code = f"import json, {Path(__file__).stem} as cases; print(json.dumps(cases.all_cases()))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def all_cases() -> dict[str, Any]:
    numbers = list(range(50))
    return {
        **{f"told {jobs}": outcome(told, numbers, jobs) for jobs in (1, 2, 3)},
        **{f"nothing {jobs}": outcome(told, [], jobs) for jobs in (1, 2)},
        "after": outcome(told, numbers, 2),
        **{f"refused {jobs}": outcome(refused, numbers, jobs) for jobs in (1, 2)},
        "killed": outcome(killed, [os.getpid()] * 50, 2),
        "here": os.getpid(),
    }


@pytest.mark.parametrize(("case", "most"), [("told 1", 1), ("told 2", 2), ("told 3", 3), ("after", 2)])
def test_each_item_is_done_once(found: dict[str, Any], case: str, most: int) -> None:
    assert sorted(number for number, _ in found[case]) == list(range(50))
    processes = {process for _, process in found[case]}
    assert found["here"] in processes
    assert len(processes) <= most


def test_nothing_is_nothing(found: dict[str, Any]) -> None:
    assert [found["nothing 1"], found["nothing 2"]] == [[], []]


def test_what_work_raises_ends_it(found: dict[str, Any]) -> None:
    assert [found["refused 1"], found["refused 2"]] == ["ValueError", "ValueError"]


def test_a_helper_that_is_killed_is_told(found: dict[str, Any]) -> None:
    assert found["killed"] == "BrokenProcessPool"
