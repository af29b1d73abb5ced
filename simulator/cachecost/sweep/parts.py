"""Parts: files of some cells, which stay until the table is whole. JSON Lines, as they are quick and small."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from cachecost.base.atomic_files import write_whole
from cachecost.sweep.rows import Key, Row

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Row)


class Part(NamedTuple):
    """A part, its first and last cell in the order of the grid that it was computed for, and how many they are."""

    path: Path
    first: Key
    last: Key
    cells: int


def write_part(path: Path, rows: Sequence[Row]) -> None:
    """The rows as a part at `path`, whole or not at all."""
    write_whole(path, _encoder.encode_lines(rows))


def read_part(path: Path) -> list[tuple[Key, list[Row]]]:
    """The cells of a part, with their rows."""
    rows = _decoder.decode_lines(path.read_bytes())
    return [(key, list(some)) for key, some in groupby(rows, attrgetter("key"))]
