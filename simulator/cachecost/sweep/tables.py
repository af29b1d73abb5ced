"""Rows as files: Parquet where pyarrow is there, CSV without it. The same rows are the same bytes."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cachecost.faults import CannotEvaluate, Fault, InputError
from cachecost.numbers import exact
from cachecost.sweep.rows import COUNTS, FIELDS, Key, Row

PARQUET, CSV = ".parquet", ".csv"
DOLLARS = (38, 18)
"""Digits of a dollar column, and how many of them are after the point: enough for any price times any modifier."""
NEEDS = "Parquet wants pyarrow: pip install 'cachecost[traces]', or write a .csv"


def has_pyarrow() -> bool:
    """Whether Parquet can be written; does not import it."""
    return find_spec("pyarrow") is not None


def suffix_of(out: Path) -> str:
    """The format of `out`: by its name; of a folder Parquet, where that can be. Raises InputError, CannotEvaluate."""
    if out.suffix == CSV or (not out.suffix and not has_pyarrow()):
        return CSV
    if out.suffix not in ("", PARQUET):
        raise InputError([Fault(f"--out {out}:", "expected F.parquet, F.csv or a folder")])
    if not has_pyarrow():
        raise CannotEvaluate(f"--out {out}: {NEEDS}")
    return PARQUET


def write(path: Path, axes: Sequence[str], rows: Sequence[Row]) -> None:
    """The rows as a table at `path`, whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        (_write_parquet if path.suffix == PARQUET else _write_csv)(part, axes, rows)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read(path: Path, axes: Sequence[str]) -> list[Row]:
    """The rows of a table that `write` made."""
    records = _read_parquet(path) if path.suffix == PARQUET else _read_csv(path)
    return [_row(record, axes) for record in records]


def record_of(row: Row, axes: Sequence[str]) -> dict[str, Any]:
    """A row as a flat record: axes, seed, then the rest."""
    named = zip(FIELDS, row[1:], strict=True)
    return {**dict(zip(axes, row.key.labels, strict=True)), "seed": row.key.seed, **dict(named)}


def _row(record: dict[str, Any], axes: Sequence[str]) -> Row:
    key = Key(tuple(str(record[axis]) for axis in axes), int(record["seed"]))
    counts = {name: int(record[name]) for name in COUNTS}
    cost = Decimal(record["cost_usd"]).normalize()
    return Row(key, record["strategy"], **counts, cost_usd=cost, fault=record["fault"])


def _write_csv(path: Path, axes: Sequence[str], rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*axes, "seed", *FIELDS])
        for row in rows:
            record = record_of(row, axes) | {"cost_usd": exact(row.cost_usd)}
            writer.writerow(record.values())


def _read_csv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _write_parquet(path: Path, axes: Sequence[str], rows: Sequence[Row]) -> None:
    pa: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    schema = _schema(axes)
    columns = [list(column) for column in zip(*(record_of(row, axes).values() for row in rows), strict=True)]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd")


def _schema(axes: Sequence[str]) -> Any:
    pa: Any = import_module("pyarrow")
    text, whole = pa.string(), pa.int64()
    kinds = {"strategy": text, "fault": text, "cost_usd": pa.decimal128(*DOLLARS)}
    names = [*axes, "seed", *FIELDS]
    return pa.schema([(name, text if name in axes else kinds.get(name, whole)) for name in names])


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    parquet: Any = import_module("pyarrow.parquet")
    yield from parquet.ParquetFile(path).read().to_pylist()
