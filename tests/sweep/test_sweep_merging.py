"""Parts become one table in the order of the grid, whoever wrote them in what order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.sweep import rows as part_files
from cachecost.sweep.grid import Axis, CellOrder
from cachecost.sweep.rows import (
    Cell,
    CellKey,
    PartRange,
    SweepRow,
    merge_parts,
    read_part,
    read_table,
    write_part,
    write_table,
)

AXES = (Axis("a", ("x", "y", "z")), Axis("b", (1, 2)))
SEEDS = (1, 2, 3)
PLACES = CellOrder(AXES, SEEDS)
KEYS = [CellKey((a, str(b)), seed) for a in "xyz" for b in (1, 2) for seed in SEEDS]
ROWS = {
    number: [SweepRow(key, name, number, cost_usd=Decimal(number)) for name in "pq"] for number, key in enumerate(KEYS)
}
STRANGER = SweepRow(CellKey(("x", "3"), 1), "p")


def test_places_are_those_of_the_product_and_of_others_there_is_none() -> None:
    assert [PLACES(*key) for key in KEYS] == list(range(len(PLACES))) == list(range(18))
    assert PLACES(("x", "3"), 1) is None
    assert PLACES(("x", "1"), 4) is None
    assert [CellOrder((), (0,))((), 0), len(CellOrder((), (0,)))] == [0, 1]


@given(
    st.lists(st.lists(st.sampled_from(range(18)), min_size=1, unique=True), max_size=6),
    st.permutations(range(18)),
    st.integers(1, 18),
)
def test_parts_of_any_cells_in_any_order_make_the_table(others: list[list[int]], order: list[int], size: int) -> None:
    """All cells once, in parts of an order that was another grid's, and some again; one row is of no cell here."""
    parts = [*(order[first : first + size] for first in range(0, 18, size)), *others]
    with TemporaryDirectory() as folder:
        stretches = []
        for part in parts:
            path = write_part(Path(folder), [STRANGER, *(row for number in part for row in ROWS[number])])
            stretches.append(PartRange(min(part), max(part), path))
        assert list(merge_parts(dict.fromkeys(stretches), PLACES)) == [
            row for number in range(18) for row in ROWS[number]
        ]


def test_a_part_is_read_when_its_first_cell_is_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """So those that follow each other are in memory one at a time."""
    opened: list[str] = []

    def cells(path: Path, places: CellOrder) -> list[Cell]:
        opened.append(path.name)
        first = int(path.name)
        return [Cell(number, path, ROWS[number]) for number in (first, first + 1)]

    monkeypatch.setattr(part_files, "read_cells", cells)
    stretches = [PartRange(first, first + 1, Path(str(first))) for first in (4, 0, 2)]
    seen = [(row.calls, len(opened)) for row in merge_parts(stretches, PLACES)]
    assert seen == [(number, number // 2 + 1) for number in range(6) for _ in "pq"]


@pytest.mark.parametrize("rows", [0, 3, 4, 5, 9])
def test_groups_of_a_parquet_file_are_not_those_of_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("cachecost.sweep.rows.ROWS_A_GROUP", 4)
    monkeypatch.setattr("cachecost.sweep.rows.ROWS_A_BATCH", 2)
    some = [row for both in ROWS.values() for row in both][:rows]

    def dripping() -> Iterator[SweepRow]:
        yield from some

    write_table(tmp_path / "a.parquet", ("a", "b"), some)
    write_table(tmp_path / "b.parquet", ("a", "b"), dripping())
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == -(-rows // 4)
    assert list(read_table(tmp_path / "a.parquet", ("a", "b"))) == some


def test_a_part_has_its_rows_to_the_last_digit(tmp_path: Path) -> None:
    odd = SweepRow(CellKey(('é\r\n, "b', ""), 3), "p", 1 << 60, cost_usd=Decimal("0.000000012345678901"), fault="a\rb")
    path = write_part(tmp_path, [*ROWS[0], odd])
    assert read_part(path) == [(KEYS[0], ROWS[0]), (odd.key, [odd])]
