"""Databases of session stores with damaged bytes: what can be read counts, and nothing ends in a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import opencode_store
import pytest
import test_crush_reader

from command_runs import run_here


def crush(folder: Path) -> Path:
    return test_crush_reader.database(folder, test_crush_reader.TURN)


def opencode(folder: Path) -> Path:
    records = [*opencode_store.user("msg_1", 0, "hi"), *opencode_store.answer("msg_2", 5, (3, 100, 50, 9))]
    return opencode_store.database(folder, [opencode_store.session()], records)


@pytest.mark.parametrize("make", [crush, opencode])
def test_a_damaged_byte_never_ends_in_an_internal_error(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path)
    data, random = path.read_bytes(), Random(7)
    schema = data.index(b"CREATE TABLE")
    places = [random.randrange(len(data)) for _ in range(30)] + [schema + at for at in range(3, 120, 9)]
    for at in places:
        for value in (0xC3, 0x00):
            path.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            done = run_here("bill", path)
            assert done.returncode in (0, 2, 3), (at, value, done.stderr)
