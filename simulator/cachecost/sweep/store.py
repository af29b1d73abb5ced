"""What a sweep has done so far, on disk: one part a task, written whole and then renamed; one table in the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from cachecost.faults import Fault, InputError
from cachecost.sweep.rows import Key, Row
from cachecost.sweep.tables import read, suffix_of, write

ABOUT = "sweep.json"


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
        return self.out.with_name(f"{self.out.name}.parts") if self.out.suffix else self.out / ".parts"

    def keep(self, rows: Sequence[Row]) -> None:
        """Write a task's rows down: after this they are never computed again."""
        told = json.dumps([row.key for row in rows]).encode()
        write(self.folder / f"part-{blake2b(told, digest_size=12).hexdigest()}{self.suffix}", self.axes, rows)

    def kept(self) -> list[Row]:
        """The rows of all parts, each cell once, whoever wrote it."""
        cells: dict[Key, list[Row]] = {}
        for path in sorted(self.folder.glob(f"part-*{self.suffix}")):
            for key, rows in groupby(read(path, self.axes), lambda row: row.key):
                cells.setdefault(key, list(rows))
        return [row for rows in cells.values() for row in rows]

    def finish(self, rows: Sequence[Row]) -> None:
        """Write the table, or one a value of the first axis into a folder; the parts go."""
        for path, some in self._tables(rows):
            write(path, self.axes, some)
        shutil.rmtree(self.folder)

    def _tables(self, rows: Sequence[Row]) -> Iterator[tuple[Path, list[Row]]]:
        name = f"rows{self.suffix}"
        if self.out.suffix or not self.axes:
            yield self.out if self.out.suffix else self.out / name, list(rows)
            return
        for value, some in groupby(rows, lambda row: row.key.labels[0]):
            yield self.out / f"{self.axes[0]}={_safe(value)}" / name, list(some)


def opened(out: Path, axes: Sequence[str], about: dict[str, Any], resume: bool) -> Store:
    """The store of a sweep, with or without parts of one that was interrupted.

    Raises InputError where there are parts that nobody asked to go on with, or that are of another sweep, and
    CannotEvaluate where Parquet cannot be written.
    """
    store = Store(out, suffix_of(out), tuple(axes), about)
    told = store.folder / ABOUT
    if told.exists():
        _compare(store, json.loads(told.read_text(encoding="utf-8")), resume)
    else:
        store.folder.mkdir(parents=True, exist_ok=True)
        told.write_text(json.dumps({"axes": list(axes), **about}, indent=1) + "\n", encoding="utf-8")
    return store


def _compare(store: Store, found: dict[str, Any], resume: bool) -> None:
    place = f"--out {store.out}:"
    if not resume:
        raise InputError([Fault(place, f"holds an unfinished sweep; go on with --resume, or remove {store.folder}")])
    now = json.loads(json.dumps({"axes": list(store.axes), **store.about}))
    if other := [name for name in now if now[name] != found.get(name)]:
        words = f"expected the sweep that was begun; got another {', '.join(other)}; remove {store.folder}"
        raise InputError([Fault("--resume:", words)])


def _safe(value: str) -> str:
    """A value as a folder's name: letters, digits, `-`, `_` and `.`; of another one its digest, too."""
    cut = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in value)[:80]
    return cut if cut == value else f"{cut}-{blake2b(value.encode(), digest_size=4).hexdigest()}"
