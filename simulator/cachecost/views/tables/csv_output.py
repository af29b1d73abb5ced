"""Any rows of a `--json` as a CSV file: for spreadsheets, the same figures under the same names."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from cachecost.base.atomic_files import open_whole
from cachecost.base.inert import inert_cell

Row = Mapping[str, Any]


def csv_text(rows: Iterable[Row]) -> str:
    """A header and a line a row. What is nested has its names joined by a point; nothing is an empty cell."""
    flat = [dict(_flat(row, "")) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writerow({name: inert_cell(name) for name in names})
    writer.writerows(flat)
    return text.getvalue()


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, whole or not at all. Raises CannotWrite."""
    with open_whole(path) as stream:
        stream.write(csv_text(rows).encode())


def _flat(row: Row, before: str) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif value is None:
            yield before + name, ""
        elif isinstance(value, str):
            yield before + name, inert_cell(value)
        else:
            yield before + name, inert_cell(json.dumps(value, ensure_ascii=False))
