"""Kept bytes come back as they were, in memory, in a file, and where the file cannot be written."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from io import BytesIO
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base import digests as kept_bytes
from cachecost.base.digests import SHORT, StoredBytes, allow_file, keep_bytes, read_bytes

LONG = b"x" * (SHORT + 1)


def unnamed_file() -> BinaryIO:
    return cast("BinaryIO", TemporaryFile(buffering=0))


class FullDisk(BytesIO):
    """Takes the first bytes and no more."""

    def write(self, data: object) -> int:
        if self.tell():
            raise OSError(28, "No space left on device")
        return super().write(b"x")


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kept_bytes, "MOST_IN_MEMORY", 300)
    monkeypatch.setattr(kept_bytes, "WRITTEN_AT_ONCE", 200)
    allow_file(None)
    yield
    allow_file(None)


@given(st.lists(st.binary(max_size=3 * SHORT), max_size=40))
def test_bytes_come_back_as_they_were(pieces: list[bytes]) -> None:
    allow_file(unnamed_file)
    kept = [keep_bytes(piece) for piece in pieces]
    assert [read_bytes(one) for one in kept] == pieces
    assert [read_bytes(pickle.loads(pickle.dumps(one))) for one in kept] == pieces
    assert all(type(one) is bytes for one in kept if len(read_bytes(one)) <= SHORT)


def test_what_is_over_the_limit_goes_to_the_file() -> None:
    files: list[BinaryIO] = []
    allow_file(lambda: files.append(unnamed_file()) or files[-1])  # type: ignore[func-returns-value]
    kept = [keep_bytes(LONG) for _ in range(4)]
    assert not files  # 260 bytes
    kept += [keep_bytes(LONG) for _ in range(4)]
    assert os.fstat(files[0].fileno()).st_size == 5 * len(LONG)
    assert [read_bytes(one) for one in kept] == [LONG] * 8
    kept.clear()
    assert files[0].closed


def test_a_full_disk_leaves_all_in_memory() -> None:
    allow_file(FullDisk)
    pieces = [bytes([number]) * 100 for number in range(10)]
    kept = [keep_bytes(piece) for piece in pieces]
    assert [read_bytes(one) for one in kept] == pieces


def test_no_file_is_opened_where_none_is_allowed() -> None:
    assert keep_bytes(LONG) is LONG and read_bytes(LONG) is LONG


def test_a_forked_process_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_file(unnamed_file)
    first = keep_bytes(LONG)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    second = keep_bytes(LONG)
    assert isinstance(first, StoredBytes) and isinstance(second, StoredBytes)
    assert first.store is not second.store and read_bytes(first) == read_bytes(second) == LONG
