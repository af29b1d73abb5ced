"""The rows of a sweep (what one strategy uses and costs in one cell, or the error), and their files.

A table is Parquet where pyarrow is there, else CSV; the same rows are the same bytes. While a sweep runs, its rows are
parts: JSON Lines files of some cells each, written in any order, merged into the table in the order of the grid. One
sweep at a time writes to an `--out`: the folder of its parts holds a lock.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from heapq import heappop, heappush
from importlib import import_module
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from cachecost.base.atomic_files import InUse, lock_file, replace_when_done, safe_name, write_whole
from cachecost.base.errors import Fault, InputError
from cachecost.base.extras import is_installed, require
from cachecost.base.formatting import exact, inert_cell
from cachecost.base.limits import json_value
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import NOT_EVALUATED
from cachecost.providers.usage import ZERO, Usage
from cachecost.sweep.grid import Axis, CellOrder

NO_SEED = 0
"""Of a sweep without seeds."""


class CellKey(NamedTuple):
    """A cell: the values of its axes in words, and its seed."""

    labels: tuple[str, ...]
    seed: int


class SweepRow(NamedTuple):
    """Tokens are whole tokens, `cost_usd` exact dollars, None where no price is known (a server of one's own);
    `errors` counts calls without usage. Where hits are best effort `cost_usd` is the least that it may be, and
    `cost_if_missed_usd` the most; else that is None. `fault`: "" is none."""

    key: CellKey
    strategy: str
    calls: int = 0
    errors: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    input: int = 0
    output: int = 0
    cost_usd: Decimal | None = ZERO
    cost_if_missed_usd: Decimal | None = None
    fault: str = ""

    @property
    def prefill(self) -> int:
        """Input tokens that must be computed."""
        return self.write_5m + self.write_1h + self.input


FIELDS = SweepRow._fields[1:]
COUNTS = ("calls", "errors", "read", "write_5m", "write_1h", "input", "output")


def ledger_row(key: CellKey, ledger: Ledger) -> SweepRow:
    """The sums of a ledger."""
    not_evaluated = (row.error for row in ledger.rows if row.error_type == NOT_EVALUATED)
    fault = next(not_evaluated, None) or ""
    cost, most = (ledger.cost.total, ledger.most) if ledger.is_priced else (None, None)
    return usage_row(key, ledger.strategy, len(ledger.rows), ledger.errors, ledger.usage, cost, fault, most)


def usage_row(
    key: CellKey,
    strategy: str,
    calls: int,
    errors: int,
    usage: Usage,
    cost_usd: Decimal | None,
    fault: str = "",
    cost_if_missed_usd: Decimal | None = None,
) -> SweepRow:
    """A row of a cell that could be evaluated."""
    tokens = (usage.read, usage.write_5m, usage.write_1h, usage.input_tokens, usage.output_tokens)
    return SweepRow(key, strategy, calls, errors, *tokens, cost_usd, cost_if_missed_usd, fault)


def error_row(key: CellKey, fault: str) -> SweepRow:
    """The row of a cell that could not be evaluated at all."""
    return SweepRow(key, "", fault=fault)


PARQUET, CSV = ".parquet", ".csv"
DOLLARS = (38, 18)
"""Digits of a dollar column, and how many of them are after the point: enough for any price times any modifier."""
ROWS_A_GROUP, ROWS_A_BATCH = 1 << 16, 1 << 12
"""Rows of a Parquet file's groups, which decide its bytes, and rows that are in memory at once."""


def has_pyarrow() -> bool:
    """Whether Parquet can be written; does not import it."""
    return is_installed("pyarrow")


def suffix_of(out: Path) -> str:
    """The format of `out`: by its name; of a folder Parquet, where that can be. Raises InputError, NotInstalled."""
    if out.suffix == CSV or (not out.suffix and not has_pyarrow()):
        return CSV
    if out.suffix not in ("", PARQUET):
        raise InputError([Fault(f"--out {out}:", "expected F.parquet, F.csv or a folder")])
    require(f"--out {out}", "pyarrow", instead="or write a .csv")
    return PARQUET


def write_table(path: Path, axes: Sequence[str], rows: Iterable[SweepRow]) -> None:
    """Write the table whole or not at all. Rows are written as they come; at most one group of them is in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_when_done(path) as part:
        if path.suffix == PARQUET:
            _write_parquet(part, axes, rows)
            return
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*axes, "seed", *FIELDS])
            for row in rows:
                dollars = ("" if usd is None else exact(usd) for usd in (row.cost_usd, row.cost_if_missed_usd))
                strategy, fault, *labels = map(inert_cell, (row.strategy, row.fault, *map(str, row.key.labels)))
                counts = (getattr(row, name) for name in COUNTS)
                writer.writerow((*labels, row.key.seed, strategy, *counts, *dollars, fault))


def read_table(path: Path, axes: Sequence[str]) -> Iterator[SweepRow]:
    """The rows of a table that `write` made, a group at a time."""
    for record in _read_records(path):
        seed, strategy, *counts, cost_usd, missed, fault = record[len(axes) :]
        key = CellKey(tuple(record[: len(axes)]), int(seed))
        dollars = (None if one in (None, "") else Decimal(one).normalize() for one in (cost_usd, missed))
        yield SweepRow._make((key, strategy, *map(int, counts), *dollars, fault))


def _read_records(path: Path) -> Iterator[Sequence[Any]]:
    if path.suffix == PARQUET:
        parquet: Any = import_module("pyarrow.parquet")
        for group in parquet.ParquetFile(path).iter_batches(ROWS_A_BATCH):
            yield from zip(*(column.to_pylist() for column in group.columns), strict=True)
        return
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        yield from lines


def _write_parquet(path: Path, axes: Sequence[str], rows: Iterable[SweepRow]) -> None:
    pa: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    text, whole, dollars = pa.string(), pa.int64(), pa.decimal128(*DOLLARS)
    kinds = {"strategy": text, "fault": text, "cost_usd": dollars, "cost_if_missed_usd": dollars}
    names = [*axes, "seed", *FIELDS]
    schema, source = pa.schema([(name, text if name in axes else kinds.get(name, whole)) for name in names]), iter(rows)

    def batches() -> Iterator[Any]:
        """Rows in columns, which take a tenth of their memory."""
        while some := list(islice(source, ROWS_A_BATCH)):
            columns = zip(*((*row.key.labels, row.key.seed, *row[1:]) for row in some), strict=True)
            arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(batches(), ROWS_A_GROUP // ROWS_A_BATCH)):
            writer.write_table(pa.Table.from_batches(group, schema).combine_chunks())


_decoder = msgspec.json.Decoder(SweepRow)


class PartFile(NamedTuple):
    """A part, its first and last cell in the order of the grid that it was computed for, and how many they are."""

    path: Path
    first: CellKey
    last: CellKey
    cells: int


def write_part(folder: Path, rows: Sequence[SweepRow]) -> Path:
    """Write the rows as a part, whole or not at all; its name says what is in it. Raises OSError."""
    content = msgspec.json.Encoder().encode_lines(rows)
    path = folder / _name(content)
    write_whole(path, content)
    return path


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


ABOUT = "sweep.json"


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of tables on disk, one table after the other. Can be iterated repeatedly."""

    tables: tuple[Path, ...]
    axes: tuple[str, ...]

    def __iter__(self) -> Iterator[SweepRow]:
        return (row for table in self.tables for row in read_table(table, self.axes))


@dataclass(frozen=True, slots=True)
class Store:
    """The parts of a sweep that goes to `out`. `about` is what its cells depend on besides their keys."""

    out: Path
    suffix: str
    axes: tuple[str, ...]
    about: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Where the parts are, until the table is whole."""
        return parts_folder(self.out)

    def keep(self, rows: Sequence[SweepRow]) -> PartFile:
        """Write a bundle's rows down: after this they are never computed again."""
        keys = list(dict.fromkeys(row.key for row in rows))
        return PartFile(write_part(self.folder, rows), keys[0], keys[-1], len(keys))

    @property
    def parts(self) -> list[Path]:
        """The parts that are there already."""
        return sorted(self.folder.glob("part-*.jsonl"))

    def find_parts(self, places: CellOrder) -> Iterator[tuple[Path, list[int]]]:
        """The parts that are there already, and the cells of this grid that each has. Raises InputError."""
        words = "is damaged: remove it, and its cells are computed again"
        if damaged := [path for path in self.parts if path.name != _name(path.read_bytes())]:
            raise InputError([Fault(str(path), words) for path in damaged])
        for path in self.parts:
            if cells := read_cells(path, places):
                yield path, [cell.number for cell in cells]

    def finish(self, parts: Iterable[PartRange], places: CellOrder) -> None:
        """Write the table, or one a value of the first axis into a folder; the parts go."""
        rows = merge_parts(parts, places)
        if self.out.suffix or not self.axes:
            write_table(self._table(""), self.axes, rows)
        else:
            for value, some in groupby(rows, lambda row: row.key.labels[0]):
                write_table(self._table(value), self.axes, some)
        over = self.folder.with_name(f"{self.folder.name}.over")
        self.folder.replace(over)
        shutil.rmtree(over, ignore_errors=True)  # the next sweep may do the same

    def rows(self, axes: Sequence[Axis]) -> StoredRows:
        """The rows of the finished table, in the order of the grid."""
        names = axes[0].labels if axes and not self.out.suffix else ("",)
        return StoredRows(tuple(map(self._table, names)), self.axes)

    def _table(self, value: str) -> Path:
        if self.out.suffix:
            return self.out
        return (self.out / f"{self.axes[0]}={safe_name(value)}" if self.axes else self.out) / f"rows{self.suffix}"


def parts_folder(out: Path) -> Path:
    """Where the parts of a sweep to `out` are."""
    return out.with_name(f"{out.name}.parts") if out.suffix else out / ".parts"


def open_store(out: Path, axes: Sequence[str], about: dict[str, Any], resume: bool) -> Store:
    """The store of a sweep, with or without parts of one that was interrupted.

    Raises InputError if there are parts and `resume` is not set, or if they are of another sweep or one that is
    not known; CannotEvaluate where Parquet cannot be written.
    """
    store = Store(out, suffix_of(out), tuple(axes), about)
    shutil.rmtree(store.folder.with_name(f"{store.folder.name}.over"), ignore_errors=True)
    about_file, found = store.folder / ABOUT, None
    if not about_file.exists():
        if store.parts:
            words = "expected what the parts beside it are of; got no file: remove its folder, and start again"
            raise InputError([Fault(str(about_file), words)])
        write_whole(about_file, (json.dumps({"axes": list(axes), **about}, indent=1) + "\n").encode())
        return store
    with suppress(ValueError):  # neither JSON nor text
        found = json_value(about_file.read_bytes())
    if not isinstance(found, dict):
        words = "expected what the unfinished sweep is of; got a damaged file: remove its folder, and start again"
        raise InputError([Fault(str(about_file), words)])
    if not resume:
        words = f"holds an unfinished sweep; continue it with --resume, or remove {store.folder}"
        raise InputError([Fault(f"--out {store.out}:", words)])
    now = json.loads(json.dumps({"axes": list(axes), **about}))
    if other := [name for name in now if now[name] != found.get(name)]:
        words = f"expected the sweep that was started; got another {', '.join(other)}; remove {store.folder}"
        raise InputError([Fault("--resume:", words)])
    return store


@contextmanager
def temporary_store(axes: Sequence[str]) -> Iterator[Store]:
    """A store in a temporary folder, for a sweep whose table is not kept."""
    with TemporaryDirectory(prefix="cachecost-") as folder:
        yield open_store(Path(folder) / "rows.csv", axes, {}, False)


LOCK = "lock"


@contextmanager
def exclusive_store(out: Path, axes: Sequence[str], about: dict[str, Any], resume: bool) -> Iterator[Store]:
    """What `open_store` opens, while no other process has it. Raises InputError where one does, and as `open_store`."""
    suffix_of(out)  # what cannot be written leaves no folder
    place = f"--out {out}:"
    try:
        file = _lock(parts_folder(out))
    except InUse:
        raise InputError([Fault(place, "another sweep is writing it; wait for its end, or choose another")]) from None
    except OSError as error:
        raise InputError([Fault(place, f"cannot be written: {error.strerror or error}")]) from None
    try:
        yield open_store(out, axes, about, resume)
    finally:
        os.close(file)


def _lock(folder: Path) -> int:
    """A descriptor of the locked file. The folder, which a sweep removes, is made again. Raises InUse, OSError."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        try:
            lock_file(file)
            with suppress(FileNotFoundError):
                if os.path.samestat((folder / LOCK).stat(), os.fstat(file)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)
