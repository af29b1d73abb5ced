"""Runs a sweep from a scenario to its table. Finished cells are skipped, and new ones are saved at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from math import prod
from pathlib import Path
from typing import Any

from cachecost.base import yaml_text
from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import CELLS
from cachecost.base.version import __version__
from cachecost.base.yaml_text import PlacedValue
from cachecost.conversations.input_files import input_path, shown_name
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, OwnRules, data_date
from cachecost.scenario import from_mapping, load
from cachecost.scenario.loading import NO_DEFAULTS, FileDefaults, Record, placed_of, with_defaults, without_command
from cachecost.sweep.cells import Drawing, Job, Task, varies_in_times_only
from cachecost.sweep.grid import NOT_IN_CELLS, RECORDING, Axis, CellOrder, axes_of, label, points_of, put_value
from cachecost.sweep.rows import NO_SEED, PartRange, Store
from cachecost.sweep.workers import Workers, compute_parts

SEEDS_A_TASK = 1_000
"""Where only times vary: a task's structure is made once for all of its seeds."""
SYNTHETIC = "conversation.synthetic"
TIMES = tuple(f"{SYNTHETIC}.{name}" for name in ("turns", "pauses", "seed"))
"""What may be swept of a synthetic conversation while another seed still leaves what is sent as it is."""
NO_DRAWS = Drawing()
Progress = Callable[[int], None]
"""Called with the number of cells done since the last call."""


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
    def places(self) -> CellOrder:
        return CellOrder(self.job.axes, self.seeds)

    def tasks(self, done: bytearray | None = None) -> Iterator[Task]:
        """What is left to do, in the order of the grid; `done` has a 1 for each cell that is not."""
        size = SEEDS_A_TASK if self.times_only else 1
        for number, point in enumerate(points_of(self.job.axes)):
            first = number * len(self.seeds)
            left = [seed for place, seed in enumerate(self.seeds, first) if not (done and done[place])]
            yield from (Task(point, tuple(left[at : at + size])) for at in range(0, len(left), size))

    def about(self) -> dict[str, Any]:
        """What cells depend on besides their keys, as digests and versions."""
        job, folder = self.job, Path(self.job.folder)
        named = [value for axis in job.axes if axis.path in (RECORDING, "prices") for value in axis.values]
        named += [job.scenario["conversation"].get("recording"), job.scenario.get("prices")]
        paths = {shown_name(name): input_path(name, folder) for name in sorted({str(name) for name in named if name})}
        digests = {}
        for name, path in paths.items():
            if path.is_file():
                with path.open("rb") as file:
                    digests[name] = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
        described = repr((sorted(job.scenario.items()), job.drawing, sorted((job.readings or {}).items()), job.own))
        return {
            "scenario": blake2b(described.encode(), digest_size=16).hexdigest(),
            "files": digests,
            "versions": {"cachecost": __version__, "rules": str(data_date()), "prices": PriceBook.load().versions},
        }


def load_sweep(
    path: Path,
    grid: Sequence[str],
    seeds: int = 0,
    sets: Sequence[str] = (),
    drawing: Drawing = NO_DRAWS,
    readings: dict[str, str] | None = None,
    own: OwnRules = NO_OWN_RULES,
    defaults: FileDefaults = NO_DEFAULTS,
    record: Record = without_command,
) -> Sweep:
    """The sweep of the scenario at `path`, whose command, if it has one, is run by `record`.

    Raises InputError with every fault: of the file, of each axis and value.
    """
    written = load(path, sets, defaults)
    if not written.strategies:
        raise InputError([written.fault(("strategies",), "expected a list: a sweep is over strategies")])
    scenario = record(path, written).scenario
    axes = axes_of(scenario.sweep, grid, path.parent)
    cells = prod(len(axis.values) for axis in axes) * max(seeds, 1)
    if cells > CELLS.value():
        raise InputError([Fault("--grid and --seeds:", str(CELLS.error(f"{cells:,}")))])
    if scenario is written:
        placed = with_defaults(yaml_text.read(path), defaults, path.parent)
        for text in sets:  # which `load` has found to be right
            dotted, _, value = text.partition("=")
            placed = put_value(placed, dotted, yaml_text.parse(value, dotted).value if value.strip() else None)
    else:
        placed = placed_of(scenario)
    placed = placed.without(*NOT_IN_CELLS)
    if faults := [fault for axis in axes for fault in _axis_faults(path.parent, placed, axis)]:
        raise InputError(faults)
    if not axes and not seeds:
        raise InputError(
            [Fault(str(path), "expected --grid a.b=V1,V2, --seeds N, or `sweep:` in the scenario; got none")]
        )
    job = Job(placed.value, str(path), str(path.parent.resolve()), tuple(axes), drawing, readings, own)
    wanted = tuple(range(1, seeds + 1)) if seeds else (NO_SEED,)
    # whether only times vary between seeds, going by the scenario: then a task takes many seeds at once
    swept = (axis.path for axis in axes if axis.path.startswith(SYNTHETIC))
    times_only = bool(seeds) and varies_in_times_only(scenario) and all(path.startswith(TIMES) for path in swept)
    return Sweep(scenario.name, scenario.question, job, wanted, times_only)


def _axis_faults(folder: Path, placed: PlacedValue, axis: Axis) -> list[Fault]:
    faults: list[Fault] = []
    if axis.path.partition(".")[0] in NOT_IN_CELLS:
        return [Fault(f"--grid {axis.path}:", "expected a key that changes the cost; this one is only reported")]
    for value in axis.values:
        place = f"--grid {axis.path}={label(value)}:"
        try:
            from_mapping(put_value(placed, axis.path, value).value, folder, place)
        except LookupError as error:
            return [Fault(f"--grid {axis.path}:", str(error.args[0]))]
        except InputError as error:
            faults += [Fault(place, fault.message) for fault in error.faults]
    return faults


def run_sweep(sweep: Sweep, workers: Workers, store: Store, progress: Progress) -> None:
    """Write the table of `store`. Cells that it has are not computed again; `progress` is called with cells done.

    Raises CannotEvaluate where no cluster answers.
    """
    workers.check()
    places = sweep.places
    parts, done = [], bytearray(len(places))
    for path, numbers in store.find_parts(places):
        parts.append(PartRange(min(numbers), max(numbers), path))
        for number in numbers:
            done[number] = 1
    progress(sum(done))
    count = sum(1 for _ in sweep.tasks(done))
    for part in compute_parts(sweep.job, sweep.tasks(done), count, workers, store):
        first, last = places(*part.first), places(*part.last)
        assert first is not None and last is not None
        parts.append(PartRange(first, last, part.path))
        progress(part.cells)
    store.finish(parts, places)
