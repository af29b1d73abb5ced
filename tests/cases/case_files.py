"""The inputs of `tests/cases/`: logs, sessions and scenarios that were once answered wrongly, a folder each in `data/`.

Texts in them are made up. A test copies the folder, so that nothing that a command writes stays, and runs the command
there as a person would.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from command_runs import run_here

DATA = Path(__file__).parent / "data"
Run = Callable[..., CompletedProcess[str]]


def copy_case(name: str, to: Path) -> Path:
    """A copy of the case's folder below `to`."""
    return Path(shutil.copytree(DATA / name, to / name))


def run_in(folder: Path, *words: object, **environment: str) -> CompletedProcess[str]:
    """A command in `folder`, 140 columns wide; home is `folder`'s own `home`, whether it exists or not."""
    return run_here(*words, cwd=folder, **{"COLUMNS": "140", "HOME": str(folder / "home"), **environment})


@pytest.fixture
def run_case(tmp_path: Path) -> Run:
    """`run_case("03-short-pauses-1h", "whatif", "log.jsonl")`: a command in a fresh copy of the case's folder."""

    def run(name: str, *words: object, **environment: str) -> CompletedProcess[str]:
        folder = tmp_path / name
        if not folder.exists():
            copy_case(name, tmp_path)
        return run_in(folder, *words, **environment)

    return run


def json_of(done: CompletedProcess[str]) -> Any:
    """The one JSON object that a command printed; it must have ended well."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(done: CompletedProcess[str]) -> list[Any]:
    """The JSON Lines that a command printed; it must have ended well."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
