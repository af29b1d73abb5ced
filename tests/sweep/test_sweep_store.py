"""What a sweep keeps: parts, written whole; one table in the end, the same bytes whoever computed it in what order."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from random import Random
from subprocess import DEVNULL, PIPE, Popen

import pytest
from sweep_bench import ALONE, SCENARIO, rows_of, scenario_at, table

from cachecost.base.errors import InputError
from cachecost.base.extras import NotInstalled
from cachecost.sweep import rows as tables
from cachecost.sweep import workers
from cachecost.sweep.cells import Job, Task, evaluate_task
from cachecost.sweep.rows import (
    CellKey,
    SweepRow,
    error_row,
    exclusive_store,
    has_pyarrow,
    open_store,
    read_table,
    write_table,
)
from cachecost.sweep.runs import Sweep, load_sweep, run_sweep

GRID = ["conversation.synthetic.turns=1,2,3", "model=claude-opus-4-6,claude-sonnet-4-6"]
ROWS = [
    SweepRow(
        CellKey(("a, b", '{"x": 1}'), 3), "one", 5, 1, 2, 3, 4, 5, 6, Decimal("0.000000012345"), None, "naïve\nfault"
    ),
    SweepRow(CellKey(("", "best effort"), 0), "one", 1, cost_usd=Decimal("0.5"), cost_if_missed_usd=Decimal("1.25")),
    SweepRow(CellKey(("", "0.5"), 0), "unpriced", 1, cost_usd=None),
    error_row(CellKey(("", "0.50"), 0), "x"),
]
needs_pyarrow = pytest.mark.skipif(not has_pyarrow(), reason="pyarrow is an extra")
SUFFIXES = [".csv", pytest.param(".parquet", marks=needs_pyarrow)]


def sweep_at(folder: Path, text: str = SCENARIO) -> Sweep:
    return load_sweep(scenario_at(folder, text), GRID, 2)


class Stopped:
    """Counts tasks as they are computed, and interrupts after some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.done: list[Task] = []
        self.after = after
        monkeypatch.setattr(workers, "evaluate_task", self)

    def __call__(self, job: Job, task: Task) -> list[SweepRow]:
        if len(self.done) == self.after:
            raise KeyboardInterrupt
        self.done.append(task)
        return evaluate_task(job, task)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_come_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    write_table(path, ["first", "second"], ROWS)
    assert list(read_table(path, ["first", "second"])) == ROWS
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("after", [0, 1, 4, 5])
def test_an_interrupted_sweep_goes_on_and_computes_no_cell_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, after: int
) -> None:
    sweep = sweep_at(tmp_path)
    whole = table(sweep, tmp_path / f"whole{suffix}")
    out = tmp_path / f"out{suffix}"
    first = Stopped(monkeypatch, after)
    with pytest.raises(KeyboardInterrupt):
        table(sweep, out)
    assert not out.exists()
    second = Stopped(monkeypatch, 100)
    assert table(sweep, out) == whole
    assert len(first.done) == after
    assert sorted(map(repr, [*first.done, *second.done])) == sorted(map(repr, sweep.tasks()))
    assert not (tmp_path / f"out{suffix}.parts").exists()


def test_seeds_that_are_missing_are_made_up_for(tmp_path: Path) -> None:
    sweep = sweep_at(tmp_path)
    done = bytearray(len(sweep.places))
    done[0] = 1
    assert [task.seeds for task in sweep.tasks(done)] == [(2,), *[(1, 2)] * 5]


def test_any_order_gives_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = sweep_at(tmp_path)
    in_order = table(sweep, tmp_path / "a.csv")

    def shuffled(tasks: Iterable[Task], count: int, workers: int) -> list[list[Task]]:
        mixed = list(tasks)
        Random(1).shuffle(mixed)
        return [[task] for task in mixed]

    monkeypatch.setattr(workers, "split_tasks", shuffled)
    assert table(sweep, tmp_path / "b.csv") == in_order


def test_a_folder_is_partitioned_by_the_first_axis(tmp_path: Path) -> None:
    sweep = sweep_at(tmp_path)
    out = tmp_path / "out"
    store = open_store(out, sweep.axes, sweep.about(), False)
    run_sweep(sweep, ALONE, store, lambda done: None)
    found = sorted(out.rglob("rows.*"))
    assert [path.parent.name for path in found] == [f"conversation.synthetic.turns={turns}" for turns in (1, 2, 3)]
    assert [row for path in found for row in read_table(path, sweep.axes)] == rows_of(sweep)
    assert list(store.rows(sweep.job.axes)) == rows_of(sweep)
    assert not (out / ".parts").exists()


def test_parts_that_nobody_asked_to_go_on_with_are_not_touched(tmp_path: Path) -> None:
    sweep = sweep_at(tmp_path)
    out = tmp_path / "out.csv"
    open_store(out, sweep.axes, sweep.about(), False)
    with pytest.raises(InputError) as caught:
        open_store(out, sweep.axes, sweep.about(), False)
    folder = tmp_path / "out.csv.parts"
    assert str(caught.value) == f"--out {out}: holds an unfinished sweep; continue it with --resume, or remove {folder}"


def test_parts_of_another_sweep_are_not_mixed_in(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    before = sweep_at(tmp_path)
    open_store(out, before.axes, before.about(), False)
    after = sweep_at(tmp_path, SCENARIO.replace("6_000", "7_000"))
    with pytest.raises(
        InputError, match=r"--resume: expected the sweep that was started; got another scenario; remove"
    ):
        open_store(out, after.axes, after.about(), True)


def test_a_changed_recording_is_another_sweep(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    text = SCENARIO.replace(
        "synthetic: {turns: 3, calls: 3, pauses: {turn: {mean: 300, sd: 300}}}", "recording: log.jsonl"
    )
    told = []
    for number in (1, 2):
        log.write_text("x" * number)
        path = scenario_at(tmp_path, text)
        told.append(load_sweep(path, ["conversation.turns=1,2"]).about())
    assert told[0]["files"] != told[1]["files"]
    assert told[0]["scenario"] == told[1]["scenario"]


def test_without_pyarrow_a_folder_holds_csv_and_parquet_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "has_pyarrow", lambda: False)
    assert tables.suffix_of(tmp_path / "folder") == ".csv"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotInstalled, match=r"--out f.parquet needs the extra 'traces': .*\[traces\]', or write a .csv"):
        tables.suffix_of(Path("f.parquet"))
    with pytest.raises(InputError, match=r"--out f.txt: expected F.parquet, F.csv or a folder"):
        tables.suffix_of(Path("f.txt"))


def test_a_second_sweep_to_the_same_place_says_so(tmp_path: Path) -> None:
    """One that ended in the meantime took its folder along."""
    out = tmp_path / "out.csv"
    sweep = sweep_at(tmp_path)
    for _ in range(2):
        with exclusive_store(out, sweep.axes, sweep.about(), False) as store:
            with pytest.raises(InputError, match=rf"^--out {out}: another sweep is writing it; wait for its end"):
                exclusive_store(out, sweep.axes, sweep.about(), True).__enter__()
            run_sweep(sweep, ALONE, store, lambda cells: None)
        assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.csv"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"out.csv: cannot be written: Not a directory$"):
        exclusive_store(tmp_path / "file" / "out.csv", (), {}, False).__enter__()


@pytest.mark.slow
def test_sweeps_that_begin_together_succeed_or_say_so(tmp_path: Path) -> None:
    path = scenario_at(tmp_path, SCENARIO)
    code = "from cachecost.cli import main; main()"
    words = ["sweep", path.name, "--grid", GRID[1], "--backend", "loky", "--jobs", "1", "--out", "out.csv"]
    command = [sys.executable, "-c", code, *words]
    running = [Popen(command, cwd=tmp_path, stdout=DEVNULL, stderr=PIPE, text=True) for _ in range(2)]
    ended = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
    assert {code for _, code in ended} <= {0, 2} and 0 in {code for _, code in ended}
    assert all(code == 0 or "another sweep is writing it" in said for said, code in ended), ended
    assert not list(tmp_path.glob("out.csv.*"))
