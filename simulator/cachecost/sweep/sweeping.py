"""A sweep from a scenario to its table: what is done already is left out, what is computed is kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from cachecost import __version__
from cachecost.faults import Fault, InputError
from cachecost.inputs import yaml_text
from cachecost.inputs.yaml_text import Placed
from cachecost.providers.own_rules import NO_OWN_RULES, OwnRules
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import data_date
from cachecost.scenario import from_mapping, load
from cachecost.scenario.models import Scenario
from cachecost.sweep.backends import Workers, computed
from cachecost.sweep.cells import Job, Task
from cachecost.sweep.grid import NOT_IN_CELLS, RECORDING, Axis, Point, axes_of, label, points_of, put
from cachecost.sweep.rows import NO_SEED, Key, Row
from cachecost.sweep.store import Store
from cachecost.sweep.varying import Drawing, varies_in_times_only

SEEDS_A_TASK = 1_000
"""Where only times vary: a task's structure is made once for all of its seeds."""
SYNTHETIC = "conversation.synthetic"
TIMES = tuple(f"{SYNTHETIC}.{name}" for name in ("turns", "pauses", "seed"))
"""What may be swept of a synthetic conversation while another seed still leaves what is sent as it is."""
NO_DRAWS = Drawing()
Progress = Callable[[int], None]
"""Told of how many cells were done since it was told last."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A scenario, its axes and seeds: what `--grid`, `--seeds`, `--set` and `--draw` come to."""

    name: str
    question: str
    job: Job
    seeds: tuple[int, ...]
    times_only: bool

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(axis.path for axis in self.job.axes)

    @property
    def points(self) -> list[Point]:
        return list(points_of(self.job.axes))

    @property
    def cells(self) -> int:
        return len(self.points) * len(self.seeds)

    def tasks(self, done: Iterable[Key]) -> list[Task]:
        """What is left to do, in the order of the grid."""
        known = set(done)
        size = SEEDS_A_TASK if self.times_only else 1
        tasks = []
        for point in self.points:
            labels = point.labels(self.job.axes)
            left = [seed for seed in self.seeds if Key(labels, seed) not in known]
            tasks += [Task(point, tuple(left[first : first + size])) for first in range(0, len(left), size)]
        return tasks

    def in_order(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of this sweep in the order of the grid, whoever computed them when; others are left out."""
        places = {point.labels(self.job.axes): number for number, point in enumerate(self.points)}
        seeds = set(self.seeds)
        own = [row for row in rows if row.key.labels in places and row.key.seed in seeds]
        return sorted(own, key=lambda row: (places[row.key.labels], row.key.seed))

    def about(self) -> dict[str, Any]:
        """What cells depend on besides their keys, as digests and versions."""
        job = self.job
        told = repr((sorted(job.scenario.items()), job.drawing, sorted((job.readings or {}).items()), job.own))
        return {
            "scenario": blake2b(told.encode(), digest_size=16).hexdigest(),
            "files": _files(job),
            "versions": {"cachecost": __version__, "rules": str(data_date()), "prices": PriceBook.load().versions},
        }


def sweep_of(
    path: Path,
    grid: Sequence[str],
    seeds: int = 0,
    sets: Sequence[str] = (),
    drawing: Drawing = NO_DRAWS,
    readings: dict[str, str] | None = None,
    own: OwnRules = NO_OWN_RULES,
) -> Sweep:
    """The sweep of the scenario at `path`. Raises InputError with every fault: of the file, of each axis and value."""
    scenario = load(path, sets)
    axes = axes_of(scenario.sweep, grid, path.parent)
    placed = _with_sets(yaml_text.read(path), sets).without(*NOT_IN_CELLS)
    if faults := [fault for axis in axes for fault in _axis_faults(path.parent, placed, axis)]:
        raise InputError(faults)
    if not axes and not seeds:
        raise InputError([Fault(str(path), "expected --grid a.b=V1,V2, --seeds N, or a sweep of its own; got none")])
    job = Job(placed.value, str(path), str(path.parent.resolve()), tuple(axes), drawing, readings, own)
    wanted = tuple(range(1, seeds + 1)) if seeds else (NO_SEED,)
    return Sweep(scenario.name, scenario.question, job, wanted, bool(seeds) and _times_only(scenario, axes))


def _with_sets(placed: Placed, sets: Sequence[str]) -> Placed:
    """The scenario under its `--set`s, which `load` has found to be right."""
    for text in sets:
        dotted, _, value = text.partition("=")
        placed = put(placed, dotted, yaml_text.parse(value, dotted).value if value.strip() else None)
    return placed


def _axis_faults(folder: Path, placed: Placed, axis: Axis) -> list[Fault]:
    """What is wrong with each value of an axis by itself."""
    faults: list[Fault] = []
    if axis.path.partition(".")[0] in NOT_IN_CELLS:
        return [Fault(f"--grid {axis.path}:", "expected what a strategy's cost depends on; this is only reported")]
    for value in axis.values:
        place = f"--grid {axis.path}={label(value)}:"
        try:
            from_mapping(put(placed, axis.path, value).value, folder, place)
        except LookupError as error:
            return [Fault(f"--grid {axis.path}:", str(error.args[0]))]
        except InputError as error:
            faults += [Fault(place, fault.message) for fault in error.faults]
    return faults


def _times_only(scenario: Scenario, axes: Sequence[Axis]) -> bool:
    """Whether cells vary in times only, as far as the scenario tells: then a task takes many seeds at once."""
    others = (axis.path for axis in axes if axis.path.startswith(SYNTHETIC))
    return varies_in_times_only(scenario) and all(path.startswith(TIMES) for path in others)


def _files(job: Job) -> dict[str, str]:
    """Digests of the recordings and price files that cells read."""
    folder = Path(job.folder)
    named = [value for axis in job.axes if axis.path in (RECORDING, "prices") for value in axis.values]
    named += [job.scenario["conversation"].get("recording"), job.scenario.get("prices")]
    found = sorted({str(name) for name in named if name})
    return {name: _digest(folder / name) for name in found if (folder / name).is_file()}


def _digest(path: Path) -> str:
    from hashlib import file_digest

    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def swept(sweep: Sweep, workers: Workers, store: Store | None, progress: Progress) -> list[Row]:
    """All rows, in the order of the grid. What `store` has is not computed again; `progress` is told of cells done."""
    workers.check()
    rows = sweep.in_order(store.kept()) if store else []
    progress(_cells(rows))
    for new in computed(sweep.job, sweep.tasks(row.key for row in rows), workers):
        if store:
            store.keep(new)
        rows += new
        progress(_cells(new))
    rows = sweep.in_order(rows)
    if store:
        store.finish(rows)
    return rows


def _cells(rows: Sequence[Row]) -> int:
    return sum(1 for _ in groupby(rows, lambda row: row.key))
