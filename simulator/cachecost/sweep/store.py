"""The progress of a sweep on disk: one part file per bundle, merged into one table at the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cachecost.base.atomic_files import safe_name, write_whole
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import json_value
from cachecost.sweep.grid import Axis, CellOrder
from cachecost.sweep.parts import PartFile, PartRange, check_parts, merge_parts, read_cells, write_part
from cachecost.sweep.rows import SweepRow
from cachecost.sweep.tables import read_table, suffix_of, write_table

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
        check_parts(self.parts)
        for path in self.parts:
            if cells := read_cells(path, places):
                yield path, [cell.number for cell in cells]

    def finish(self, parts: Iterable[PartRange], places: CellOrder) -> None:
        """Write the table, or one a value of the first axis into a folder; the parts go."""
        for path, rows in self._tables(merge_parts(parts, places)):
            write_table(path, self.axes, rows)
        over = self.folder.with_name(f"{self.folder.name}.over")
        self.folder.replace(over)
        shutil.rmtree(over, ignore_errors=True)  # the next sweep may do the same

    def rows(self, axes: Sequence[Axis]) -> StoredRows:
        """The rows of the finished table, in the order of the grid."""
        names = axes[0].labels if axes and not self.out.suffix else ("",)
        return StoredRows(tuple(map(self._table, names)), self.axes)

    def _table(self, value: str) -> Path:
        """Where the rows of a value of the first axis go."""
        if self.out.suffix:
            return self.out
        return (self.out / f"{self.axes[0]}={safe_name(value)}" if self.axes else self.out) / f"rows{self.suffix}"

    def _tables(self, rows: Iterable[SweepRow]) -> Iterator[tuple[Path, Iterator[SweepRow]]]:
        if self.out.suffix or not self.axes:
            yield self._table(""), iter(rows)
            return
        for value, some in groupby(rows, lambda row: row.key.labels[0]):
            yield self._table(value), some


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
    about_file = store.folder / ABOUT
    if about_file.exists():
        _compare(store, _read_about(about_file), resume)
    elif store.parts:
        words = "expected what the parts beside it are of; got no file: remove its folder, and start again"
        raise InputError([Fault(str(about_file), words)])
    else:
        write_whole(about_file, (json.dumps({"axes": list(axes), **about}, indent=1) + "\n").encode())
    return store


def _read_about(path: Path) -> dict[str, Any]:
    """What an unfinished sweep is of. Raises InputError."""
    try:
        found = json_value(path.read_bytes())
    except ValueError:  # neither JSON nor text
        found = None
    if not isinstance(found, dict):
        words = "expected what the unfinished sweep is of; got a damaged file: remove its folder, and start again"
        raise InputError([Fault(str(path), words)])
    return found


def _compare(store: Store, found: dict[str, Any], resume: bool) -> None:
    place = f"--out {store.out}:"
    if not resume:
        raise InputError(
            [Fault(place, f"holds an unfinished sweep; continue it with --resume, or remove {store.folder}")]
        )
    now = json.loads(json.dumps({"axes": list(store.axes), **store.about}))
    if other := [name for name in now if now[name] != found.get(name)]:
        words = f"expected the sweep that was started; got another {', '.join(other)}; remove {store.folder}"
        raise InputError([Fault("--resume:", words)])


@contextmanager
def temporary_store(axes: Sequence[str]) -> Iterator[Store]:
    """A store in a temporary folder, for a sweep whose table is not kept."""
    with TemporaryDirectory(prefix="cachecost-") as folder:
        yield open_store(Path(folder) / "rows.csv", axes, {}, False)
