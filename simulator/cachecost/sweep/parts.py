"""Parts: JSON Lines files of some cells each, written in any order, merged into one table in the order of the grid."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from cachecost.base.atomic_files import write_whole
from cachecost.base.errors import Fault, InputError
from cachecost.sweep.grid import CellOrder
from cachecost.sweep.rows import CellKey, SweepRow

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(SweepRow)


class PartFile(NamedTuple):
    """A part, its first and last cell in the order of the grid that it was computed for, and how many they are."""

    path: Path
    first: CellKey
    last: CellKey
    cells: int


def write_part(folder: Path, rows: Sequence[SweepRow]) -> Path:
    """Write the rows as a part, whole or not at all; its name says what is in it. Raises OSError."""
    content = _encoder.encode_lines(rows)
    path = folder / _name(content)
    write_whole(path, content)
    return path


def check_parts(paths: Iterable[Path]) -> None:
    """Raises InputError with every part that is not what was written."""
    words = "is damaged: remove it, and its cells are computed again"
    if faults := [Fault(str(path), words) for path in paths if path.name != _name(path.read_bytes())]:
        raise InputError(faults)


def _name(content: bytes) -> str:
    return f"part-{blake2b(content, digest_size=12).hexdigest()}.jsonl"


def read_part(path: Path) -> list[tuple[CellKey, list[SweepRow]]]:
    """The cells of a part, with their rows."""
    rows = _decoder.decode_lines(path.read_bytes())
    return [(key, list(some)) for key, some in groupby(rows, attrgetter("key"))]


class PartRange(NamedTuple):
    """Where a part's cells stand in the grid, from its first to its last: others may stand between them."""

    first: int
    last: int
    path: Path


class Cell(NamedTuple):
    """A cell of a part: its number in the grid, and its rows."""

    number: int
    path: Path
    rows: list[SweepRow]


def merge_parts(parts: Iterable[PartRange], places: CellOrder) -> Iterator[SweepRow]:
    """The rows of all parts in the order of the grid, each cell once even if several parts have it.

    A part is in memory from its first cell to its last: one at a time, unless a sweep was interrupted, and whoever
    went on with it filled gaps.
    """
    waiting = deque(sorted(parts))
    heap: list[tuple[Cell, Iterator[Cell]]] = []
    done = -1
    while waiting or heap:
        while waiting and (not heap or waiting[0].first <= heap[0][0].number):
            _push(heap, iter(read_cells(waiting.popleft().path, places)))
        cell, rest = heappop(heap)
        if cell.number != done:
            yield from cell.rows
        done = cell.number
        _push(heap, rest)


def _push(heap: list[tuple[Cell, Iterator[Cell]]], cells: Iterator[Cell]) -> None:
    if (cell := next(cells, None)) is not None:
        heappush(heap, (cell, cells))


def read_cells(path: Path, places: CellOrder) -> list[Cell]:
    """The cells of a part in the order of this grid; it may have been written for another."""
    found = ((places(*key), rows) for key, rows in read_part(path))
    return sorted(Cell(place, path, rows) for place, rows in found if place is not None)
