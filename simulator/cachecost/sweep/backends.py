"""Where tasks are computed: processes of this machine (loky), or a dask cluster.

What a seed varies: the times alone, or the whole of a synthetic conversation.

One task of a sweep: some seeds at one point of the grid -> rows. What points share is kept in the process.

Runs a sweep from a scenario to its table. Finished cells are skipped, and new ones are saved at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cachecost.base import yaml_text
from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.extras import require
from cachecost.base.version import __version__
from cachecost.base.yaml_text import PlacedValue, SourcePlace
from cachecost.conversations.distributions import Distribution, SyntheticSpec, parse_distribution
from cachecost.conversations.input_files import input_path, shown_name
from cachecost.conversations.model import Conversation
from cachecost.prompts.render import TokenCounter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, OwnRules, data_date
from cachecost.scenario import ScenarioConversations, from_mapping, load, load_conversations
from cachecost.scenario.loading import NO_DEFAULTS, FileDefaults, Record, placed_of, with_defaults, without_command
from cachecost.scenario.models import Scenario
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import plan_workload, scenario_setup
from cachecost.strategies.agent import Agent
from cachecost.strategies.registry import build
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.lookback import processes, share_work
from cachecost.sweep.montecarlo import montecarlo, resample_pauses
from cachecost.sweep.montecarlo.draws import Draw, Retries, retime
from cachecost.sweep.rows import (
    NO_SEED,
    NOT_IN_CELLS,
    RECORDING,
    Axis,
    CellKey,
    CellOrder,
    PartFile,
    PartRange,
    Point,
    Store,
    SweepRow,
    axes_of,
    check_size,
    error_row,
    label,
    ledger_row,
    points_of,
    put_value,
    usage_row,
)
from cachecost.sweep.totals import SharedTotals

PAUSES = ("turn", "loop", "first_token")
SHARES = ("eviction", "lag_probability", "retry_rate")
OTHERS = ("lag_s", "retry_wait", "retry_billed")
NAMES = (*PAUSES, *SHARES, *OTHERS)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The requested draws by name: pauses as distributions, shares as numbers. Empty: the conversation's own."""

    values: dict[str, Any] = field(default_factory=dict)

    def apply_to(self, draw: Draw) -> Draw:
        """`draw` with the requested values."""
        own = {name: value for name, value in self.values.items() if name in {one.name for one in fields(Draw)}}
        retries = draw.retries
        if "retry_rate" in self.values:
            options = {
                name.removeprefix("retry_"): self.values[name] for name in self.values if name.startswith("retry_")
            }
            retries = Retries(**options)
        return replace(draw, **own, retries=retries)


def parse_draws(texts: tuple[str, ...]) -> Drawing:
    """`turn={mean: 120, sd: 300}`, `eviction=0.05` … as draws. Raises InputError with every fault."""
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            if not equals or name not in NAMES:
                raise ValueError(f"expected NAME=VALUE, NAME one of {', '.join(NAMES)}{nearest(name, NAMES)}")
            values[name] = _value(name, yaml_text.parse(value, "--draw").value)
        except ValueError as error:
            faults.append(Fault(f"--draw {text}:", str(error)))
        except InputError as error:
            faults += [Fault(f"--draw {text}:", fault.message) for fault in error.faults]
    if any(name.startswith("retry_") for name in values) and "retry_rate" not in values:
        faults.append(Fault("--draw retry_rate:", "expected a share from 0 to 1 with the other retry draws; got none"))
    if faults:
        raise InputError(faults)
    return Drawing(values)


def _value(name: str, value: Any) -> Distribution | float | bool:
    if name == "retry_billed":
        if isinstance(value, bool):
            return value
        raise ValueError(f"expected true or false; got {value!r}")
    if name in SHARES or name == "lag_s":
        most = 1 if name in SHARES else float("inf")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
            return float(value)
        raise ValueError(f"expected a number from 0{' to 1' if name in SHARES else ''}; got {value!r}")
    return parse_distribution(value)


def varies_in_times_only(scenario: Scenario) -> bool:
    """Whether another seed leaves what is sent as it is: so of a recording, and where all else is plain numbers."""
    spec = scenario.conversation.synthetic
    if spec is None:
        return True
    if spec.inquiries is not None or (spec.forks is not None and spec.forks.rate):
        return False
    numbers = [spec.calls, spec.tools, *(getattr(spec.sizes, size.name) for size in fields(spec.sizes))]
    numbers += [spec.forks.back] if spec.forks is not None else []
    return all(isinstance(number, int | float) for number in numbers)


def synthetic_draw(spec: SyntheticSpec) -> Draw:
    """The pauses of a synthetic conversation, to be drawn anew."""
    return Draw(turn=spec.pauses.turn, loop=spec.pauses.loop, first_token=spec.pauses.first_token)


MOST_TALKS = 4
"""Conversations that a process remembers; the one used least recently goes first."""
_conversations: OrderedDict[str, SharedConversations] = OrderedDict()
_counters: dict[str, dict[str, TokenCounter]] = {}
_prices: dict[date, PriceBook] = {}


class SharedConversations(NamedTuple):
    """Conversations, and what cells over them share."""

    conversations: ScenarioConversations
    shared: SharedTotals


@dataclass(frozen=True, slots=True)
class Job:
    """What all cells share: the scenario as plain values, the folder its paths start at, axes, draws and readings."""

    scenario: Mapping[str, Any]
    file: str
    folder: str
    axes: tuple[Axis, ...]
    drawing: Drawing = Drawing()
    readings: Mapping[str, str] | None = None
    own: OwnRules = NO_OWN_RULES

    def at(self, point: Point) -> Scenario:
        """The scenario at a point of the grid. Raises InputError, LookupError."""
        placed = PlacedValue(dict(self.scenario), {(): SourcePlace(self.file)}).without(*NOT_IN_CELLS)
        return from_mapping(point.apply_to(placed, self.axes).value, Path(self.folder), self.file)


class Task(NamedTuple):
    """Cells that are computed together: a point of the grid with some seeds; (NO_SEED,) is the scenario as written."""

    point: Point
    seeds: tuple[int, ...]


def evaluate_task(job: Job, task: Task) -> list[SweepRow]:
    """The rows of a task: of each seed one a strategy, or one with the cell's fault. A function of its arguments."""
    labels = task.point.labels(job.axes)
    try:
        return list(_rows(job, task, job.at(task.point), labels))
    except InputError as error:
        fault = "; ".join(fault.message for fault in error.faults)
    except (CannotEvaluate, LookupError) as error:
        fault = str(error.args[0] if isinstance(error, LookupError) else error)
    return [error_row(CellKey(labels, seed), fault) for seed in task.seeds]


def _rows(job: Job, task: Task, scenario: Scenario, labels: tuple[str, ...]) -> Iterator[SweepRow]:
    if task.seeds == (NO_SEED,):
        yield from _as_written(job, scenario, CellKey(labels, NO_SEED))
    elif varies_in_times_only(scenario):
        terms, conversations, _ = _replay_setup(job, scenario)
        draw = _draw(job, scenario, terms, conversations)
        columns = [_of_strategy(spec, conversations, terms, draw, task.seeds, labels) for spec in scenario.strategies]
        for rows in zip(*columns, strict=True):
            yield from rows
    else:
        for seed in task.seeds:
            yield from _as_written(job, _with_seed(scenario, job.drawing, seed), CellKey(labels, seed))


def _as_written(job: Job, scenario: Scenario, key: CellKey) -> Iterator[SweepRow]:
    terms, conversations, shared = _replay_setup(job, scenario)
    for spec in scenario.strategies:
        yield _row(key, spec, terms, conversations, shared)


def _row(
    key: CellKey, spec: StrategySpec, terms: ReplaySetup, conversations: Sequence[Conversation], shared: SharedTotals
) -> SweepRow:
    totals = shared.totals(spec, terms)
    if totals is None:
        return ledger_row(key, replay_strategy(spec, conversations, terms))
    return usage_row(key, spec.name, *totals)


def _with_seed(scenario: Scenario, drawing: Drawing, seed: int) -> Scenario:
    """A scenario whose synthetic conversation, evictions and lags are drawn by `seed`. Raises CannotEvaluate."""
    told = scenario.conversation.synthetic
    assert told is not None
    draw = drawing.apply_to(Draw(told.pauses.turn, told.pauses.loop, told.pauses.first_token))
    if draw.retries.rate:
        raise CannotEvaluate(
            "retries can be drawn only if times alone vary; here sizes, calls or side questions vary with the seed"
        )
    pauses = replace(told.pauses, **{name: getattr(draw, name) for name in PAUSES})
    source = scenario.conversation.model_copy(update={"synthetic": replace(told, seed=seed, pauses=pauses)})
    rules = {**scenario.rules, **draw.readings, "seed": seed}
    return scenario.model_copy(update={"conversation": source, "rules": rules})


def _draw(job: Job, scenario: Scenario, terms: ReplaySetup, conversations: Sequence[Conversation]) -> Draw:
    told = scenario.conversation.synthetic
    if told is not None:
        return job.drawing.apply_to(synthetic_draw(told))
    return job.drawing.apply_to(resample_pauses(plan_workload("none", conversations, terms).calls))


def _of_strategy(
    spec: StrategySpec,
    conversations: Sequence[Conversation],
    terms: ReplaySetup,
    draw: Draw,
    seeds: Sequence[int],
    labels: tuple[str, ...],
) -> list[SweepRow]:
    if not _is_timeless(spec) or not terms.uses_breakpoints:
        return [_replan_row(spec, conversations, terms, draw, CellKey(labels, seed)) for seed in seeds]
    found = montecarlo(plan_workload(spec, conversations, terms), draw, seeds)
    fault = next((error for error in found.not_evaluated), "")
    errors = len(found.errors)
    return [
        usage_row(
            CellKey(labels, seed), spec.name, found.calls, errors, found.usage(number), found.costs[number], fault
        )
        for number, seed in enumerate(seeds)
    ]


def _is_timeless(spec: StrategySpec) -> bool:
    """Whether what is sent is the same whenever it is sent: pings and the like look at the clock."""
    found = build(spec)
    return isinstance(found, Agent) and not found.changes


def _replan_row(
    spec: StrategySpec, conversations: Sequence[Conversation], terms: ReplaySetup, draw: Draw, key: CellKey
) -> SweepRow:
    """A strategy that plans anew for the times of one seed, in the engine itself."""
    if draw.retries.billed and draw.retries.rate:
        raise CannotEvaluate(f"strategy '{spec.name}' depends on the clock, so billed retries cannot be drawn for it")
    seeded = terms.with_assumptions({**draw.readings, "seed": key.seed})
    return ledger_row(key, replay_strategy(spec, retime(conversations, draw, key.seed), seeded))


def _replay_setup(job: Job, scenario: Scenario) -> tuple[ReplaySetup, Sequence[Conversation], SharedTotals]:
    """The setup and the conversations; these, token counts and prices are shared with earlier cells if equal."""
    folder = Path(job.folder)
    (conversations, bills), shared = _load_conversations(scenario, folder)
    terms = scenario_setup(scenario, folder, bills, job.readings or {}, job.own, _shipped_prices(scenario))
    if scenario.conversation.recording is None:
        conversations = [replace(conversation, model=scenario.model) for conversation in conversations]
    counters = _counters.setdefault(terms.tokens, {})
    return replace(terms, counters=counters, may_lack_prices=True), conversations, shared


def _load_conversations(scenario: Scenario, folder: Path) -> SharedConversations:
    """The conversations of a scenario; those that are made are the same on every model."""
    key = f"{folder}\0{scenario.name}\0{scenario.conversation!r}"
    if key not in _conversations:
        conversations = load_conversations(scenario, folder)
        _conversations[key] = SharedConversations(conversations, SharedTotals(conversations.conversations))
    _conversations.move_to_end(key)
    while len(_conversations) > MOST_TALKS:
        _conversations.popitem(last=False)
    return _conversations[key]


def _shipped_prices(scenario: Scenario) -> PriceBook | None:
    """The shipped prices of the scenario's day, read once; None where it has its own."""
    if scenario.prices is not None:
        return None
    day = scenario.as_of or data_date(scenario.host)
    if day not in _prices:
        _prices[day] = PriceBook.load(None, day)
    return _prices[day]


MOST_TASKS, MOST_CELLS, BUNDLES_A_WORKER = 32, 1_000, 4
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Workers:
    """Who computes: `jobs` processes of this machine (−1: one a core), or those of the dask cluster at `scheduler`.

    A cluster without a worker is waited for `wait_s` seconds.
    """

    backend: str = "loky"
    jobs: int = -1
    scheduler: str | None = None
    wait_s: float = 60.0

    def check(self) -> None:
        """Raises InputError for a cluster without an address, NotInstalled for a backend that is not."""
        if self.backend == "dask" and not self.scheduler:
            raise InputError([Fault("--backend dask:", "expected --scheduler ADDRESS with it; got none")])
        if self.backend == "loky" and self.scheduler:
            words = "expected --backend dask with it; got loky"
            raise InputError([Fault(f"--scheduler {self.scheduler}:", words)])
        if self.backend == "dask":
            require("--backend dask", "distributed")


def compute_parts(job: Job, tasks: Iterable[Task], count: int, workers: Workers, store: Store) -> Iterator[PartFile]:
    """The part files of `count` tasks, written to `store`, in the order they finish.

    Processes of this machine write their parts themselves; what a cluster answers is written here, because its
    machines may share no disk. Raises CannotEvaluate where no cluster answers, or a process was killed.
    """
    if workers.backend != "loky":
        yield from map(store.keep, _there(partial(compute_bundle, job), partial(split_tasks, tasks, count), workers))
        return
    jobs = max(1, min(processes(workers.jobs), count))
    yield from _here("sweep", partial(keep_bundle, job, store), split_tasks(tasks, count, jobs), jobs)


def keep_bundle(job: Job, store: Store, tasks: Sequence[Task]) -> PartFile:
    """Compute some tasks and write them to `store` as one part."""
    return store.keep(compute_bundle(job, tasks))


def compute_bundle(job: Job, tasks: Sequence[Task]) -> list[SweepRow]:
    """The rows of some tasks, one after the other."""
    return [row for task in tasks for row in evaluate_task(job, task)]


def split_tasks(tasks: Iterable[Task], count: int, workers: int) -> Iterator[Sequence[Task]]:
    """`count` tasks, neighbours in the grid together, as they share most; ever fewer, so that all workers end together.

    What is in a bundle is in memory at once, and is computed again if its worker dies.
    """
    some: list[Task] = []
    for task in tasks:
        some.append(task)
        cells = len(some) * len(task.seeds)
        if len(some) >= min(MOST_TASKS, count // (BUNDLES_A_WORKER * workers)) or cells >= MOST_CELLS:
            count -= len(some)
            yield some
            some = []
    if some:
        yield some


def share_items(
    name: str, split: Callable[[int], Iterator[Item]], work: Callable[[Item], Result], workers: Workers
) -> Iterator[Result]:
    """`work` of each item of what `split` makes for so many processes, in the order they finish.

    `name` is that of the command. Raises CannotEvaluate as `compute_parts` does.
    """
    if workers.backend != "loky":
        return _there(work, split, workers)
    jobs = processes(workers.jobs)
    return _here(name, work, split(jobs), jobs)


def _here(name: str, work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """`work` of each item in processes of this machine. Raises CannotEvaluate."""
    try:
        yield from share_work(work, items, jobs)
    except BrokenProcessPool:
        raise CannotEvaluate(f"a {name} process was killed, perhaps for lack of memory; try --jobs 1") from None


def _there(
    work: Callable[[Item], Result], split: Callable[[int], Iterator[Item]], workers: Workers
) -> Iterator[Result]:
    """`work` of each item on a cluster, of whose size the items are a function. Raises CannotEvaluate."""
    from cachecost.sweep.cluster import DaskCluster

    with DaskCluster(workers.scheduler or "", workers.wait_s) as cluster:
        yield from cluster.share(work, split(cluster.size))


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
        job = self.job
        described = repr((sorted(job.scenario.items()), job.drawing, sorted((job.readings or {}).items()), job.own))
        return {
            "scenario": blake2b(described.encode(), digest_size=16).hexdigest(),
            "files": _files(job),
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
    check_size(axes, seeds)
    as_written = with_defaults(yaml_text.read(path), defaults, path.parent)
    placed = _with_sets(as_written, sets) if scenario is written else placed_of(scenario)
    placed = placed.without(*NOT_IN_CELLS)
    if faults := [fault for axis in axes for fault in _axis_faults(path.parent, placed, axis)]:
        raise InputError(faults)
    if not axes and not seeds:
        raise InputError(
            [Fault(str(path), "expected --grid a.b=V1,V2, --seeds N, or `sweep:` in the scenario; got none")]
        )
    job = Job(placed.value, str(path), str(path.parent.resolve()), tuple(axes), drawing, readings, own)
    wanted = tuple(range(1, seeds + 1)) if seeds else (NO_SEED,)
    return Sweep(scenario.name, scenario.question, job, wanted, bool(seeds) and _times_only(scenario, axes))


def _with_sets(placed: PlacedValue, sets: Sequence[str]) -> PlacedValue:
    """The scenario under its `--set`s, which `load` has found to be right."""
    for text in sets:
        dotted, _, value = text.partition("=")
        placed = put_value(placed, dotted, yaml_text.parse(value, dotted).value if value.strip() else None)
    return placed


def _axis_faults(folder: Path, placed: PlacedValue, axis: Axis) -> list[Fault]:
    """What is wrong with each value of an axis by itself."""
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


def _times_only(scenario: Scenario, axes: Sequence[Axis]) -> bool:
    """Whether only times vary between seeds, going by the scenario: then a task takes many seeds at once."""
    others = (axis.path for axis in axes if axis.path.startswith(SYNTHETIC))
    return varies_in_times_only(scenario) and all(path.startswith(TIMES) for path in others)


def _files(job: Job) -> dict[str, str]:
    """Digests of the recordings and price files that cells read."""
    folder = Path(job.folder)
    named = [value for axis in job.axes if axis.path in (RECORDING, "prices") for value in axis.values]
    named += [job.scenario["conversation"].get("recording"), job.scenario.get("prices")]
    found = sorted({str(name) for name in named if name})
    paths = {shown_name(name): input_path(name, folder) for name in found}
    return {name: _digest(path) for name, path in paths.items() if path.is_file()}


def _digest(path: Path) -> str:
    from hashlib import file_digest

    with path.open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def run_sweep(sweep: Sweep, workers: Workers, store: Store, progress: Progress) -> None:
    """Write the table of `store`. Cells that it has are not computed again; `progress` is called with cells done.

    Raises CannotEvaluate where no cluster answers.
    """
    workers.check()
    places = sweep.places
    parts, done = _find_done(store, places)
    progress(sum(done))
    count = sum(1 for _ in sweep.tasks(done))
    for part in compute_parts(sweep.job, sweep.tasks(done), count, workers, store):
        parts.append(_part_range(part, places))
        progress(part.cells)
    store.finish(parts, places)


def _find_done(store: Store, places: CellOrder) -> tuple[list[PartRange], bytearray]:
    """The parts that are there already, and a 1 for each cell that they have."""
    parts, done = [], bytearray(len(places))
    for path, numbers in store.find_parts(places):
        parts.append(PartRange(min(numbers), max(numbers), path))
        for number in numbers:
            done[number] = 1
    return parts, done


def _part_range(part: PartFile, places: CellOrder) -> PartRange:
    first, last = places(*part.first), places(*part.last)
    assert first is not None
    assert last is not None
    return PartRange(first, last, part.path)
