"""Rows as files: Parquet where pyarrow is there, CSV without it. The same rows are the same bytes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from cachecost.base.atomic_files import replace_when_done
from cachecost.base.errors import Fault, InputError
from cachecost.base.extras import is_installed, require
from cachecost.base.formatting import exact
from cachecost.base.inert import inert_cell
from cachecost.sweep.rows import COUNTS, FIELDS, CellKey, SweepRow

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
        (_write_parquet if path.suffix == PARQUET else _write_csv)(part, axes, rows)


def read_table(path: Path, axes: Sequence[str]) -> Iterator[SweepRow]:
    """The rows of a table that `write` made, a group at a time."""
    records = _read_parquet(path) if path.suffix == PARQUET else _read_csv(path)
    return (_row(record, len(axes)) for record in records)


def _row(record: Sequence[Any], axes: int) -> SweepRow:
    """A row from the fields of a table in their order: axes, seed, strategy, counts, dollars, fault."""
    seed, strategy, *counts, cost_usd, missed, fault = record[axes:]
    key = CellKey(tuple(record[:axes]), int(seed))
    dollars = (None if one in (None, "") else Decimal(one).normalize() for one in (cost_usd, missed))
    return SweepRow._make((key, strategy, *map(int, counts), *dollars, fault))


def _write_csv(path: Path, axes: Sequence[str], rows: Iterable[SweepRow]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*axes, "seed", *FIELDS])
        writer.writerows(_csv_row(row) for row in rows)


def _csv_row(row: SweepRow) -> Sequence[object]:
    dollars = ("" if amount is None else exact(amount) for amount in (row.cost_usd, row.cost_if_missed_usd))
    strategy, fault, *labels = map(inert_cell, (row.strategy, row.fault, *map(str, row.key.labels)))
    return (*labels, row.key.seed, strategy, *(getattr(row, name) for name in COUNTS), *dollars, fault)


def _read_csv(path: Path) -> Iterator[Sequence[Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        yield from lines


def _write_parquet(path: Path, axes: Sequence[str], rows: Iterable[SweepRow]) -> None:
    pa: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    schema, source = _schema(axes), iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(_batches(schema, source), ROWS_A_GROUP // ROWS_A_BATCH)):
            writer.write_table(pa.Table.from_batches(group, schema).combine_chunks())


def _batches(schema: Any, rows: Iterator[SweepRow]) -> Iterator[Any]:
    """Rows in columns, which take a tenth of their memory."""
    pa: Any = import_module("pyarrow")
    while some := list(islice(rows, ROWS_A_BATCH)):
        columns = zip(*((*row.key.labels, row.key.seed, *row[1:]) for row in some), strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(axes: Sequence[str]) -> Any:
    pa: Any = import_module("pyarrow")
    text, whole = pa.string(), pa.int64()
    dollars = pa.decimal128(*DOLLARS)
    kinds = {"strategy": text, "fault": text, "cost_usd": dollars, "cost_if_missed_usd": dollars}
    names = [*axes, "seed", *FIELDS]
    return pa.schema([(name, text if name in axes else kinds.get(name, whole)) for name in names])


def _read_parquet(path: Path) -> Iterator[Sequence[Any]]:
    parquet: Any = import_module("pyarrow.parquet")
    for group in parquet.ParquetFile(path).iter_batches(ROWS_A_BATCH):
        yield from zip(*(column.to_pylist() for column in group.columns), strict=True)
