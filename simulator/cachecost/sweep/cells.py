"""One task of a sweep: some seeds at one point of the grid -> rows. What points share is kept in the process.

What a seed varies: the times alone, or the whole of a synthetic conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from cachecost.base import yaml_text
from cachecost.base.errors import CannotEvaluate, Fault, InputError, nearest
from cachecost.base.structs import replace
from cachecost.base.yaml_text import PlacedValue, SourcePlace
from cachecost.conversations.distributions import Distribution, SyntheticSpec, parse_distribution
from cachecost.conversations.model import Conversation
from cachecost.prompts.render import TokenCounter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, OwnRules, data_date
from cachecost.scenario import ScenarioConversations, from_mapping, load_conversations
from cachecost.scenario.models import Scenario
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import plan_workload, scenario_setup
from cachecost.strategies.agent import Agent
from cachecost.strategies.registry import build
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.grid import NOT_IN_CELLS, Axis, Point
from cachecost.sweep.montecarlo import Draw, Retries, montecarlo, resample_pauses, retime
from cachecost.sweep.rows import NO_SEED, CellKey, SweepRow, error_row, ledger_row, usage_row
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
            own_retries = (name for name in self.values if name.startswith("retry_"))
            retries = Retries(**{name.removeprefix("retry_"): self.values[name] for name in own_retries})
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
            values[name] = _parse_draw(name, yaml_text.parse(value, "--draw").value)
        except ValueError as error:
            faults.append(Fault(f"--draw {text}:", str(error)))
        except InputError as error:
            faults += [Fault(f"--draw {text}:", fault.message) for fault in error.faults]
    if any(name.startswith("retry_") for name in values) and "retry_rate" not in values:
        faults.append(Fault("--draw retry_rate:", "expected a share from 0 to 1 with the other retry draws; got none"))
    if faults:
        raise InputError(faults)
    return Drawing(values)


def _parse_draw(name: str, value: Any) -> Distribution | float | bool:
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
_conversations: OrderedDict[str, tuple[ScenarioConversations, SharedTotals]] = OrderedDict()
"""Conversations, and what cells over them share."""
_counters: dict[str, dict[str, TokenCounter]] = {}
_prices: dict[date, PriceBook] = {}


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
        scenario = job.at(task.point)
        if task.seeds == (NO_SEED,):
            return list(_as_written(job, scenario, CellKey(labels, NO_SEED)))
        if not varies_in_times_only(scenario):
            seeded = [(_with_seed(scenario, job.drawing, seed), CellKey(labels, seed)) for seed in task.seeds]
            return [row for at_seed, key in seeded for row in _as_written(job, at_seed, key)]
        terms, conversations, _ = _replay_setup(job, scenario)
        synthetic = scenario.conversation.synthetic
        if synthetic is not None:
            draw = job.drawing.apply_to(synthetic_draw(synthetic))
        else:
            draw = job.drawing.apply_to(resample_pauses(plan_workload("none", conversations, terms).calls))
        columns = [_strategy_rows(spec, conversations, terms, draw, task.seeds, labels) for spec in scenario.strategies]
        return [row for rows in zip(*columns, strict=True) for row in rows]
    except InputError as error:
        fault = "; ".join(fault.message for fault in error.faults)
    except (CannotEvaluate, LookupError) as error:
        fault = str(error.args[0] if isinstance(error, LookupError) else error)
    return [error_row(CellKey(labels, seed), fault) for seed in task.seeds]


def _as_written(job: Job, scenario: Scenario, key: CellKey) -> Iterator[SweepRow]:
    terms, conversations, shared = _replay_setup(job, scenario)
    for spec in scenario.strategies:
        totals = shared.totals(spec, terms)
        if totals is None:
            yield ledger_row(key, replay_strategy(spec, conversations, terms, explains=False))
        else:
            yield usage_row(key, spec.name, *totals)


def _with_seed(scenario: Scenario, drawing: Drawing, seed: int) -> Scenario:
    """A scenario whose synthetic conversation, evictions and lags are drawn by `seed`. Raises CannotEvaluate."""
    synthetic = scenario.conversation.synthetic
    assert synthetic is not None
    draw = drawing.apply_to(synthetic_draw(synthetic))
    if draw.retries.rate:
        raise CannotEvaluate(
            "retries can be drawn only if times alone vary; here sizes, calls or side questions vary with the seed"
        )
    pauses = replace(synthetic.pauses, **{name: getattr(draw, name) for name in PAUSES})
    source = scenario.conversation.model_copy(update={"synthetic": replace(synthetic, seed=seed, pauses=pauses)})
    rules = {**scenario.rules, **draw.readings, "seed": seed}
    return scenario.model_copy(update={"conversation": source, "rules": rules})


def _strategy_rows(
    spec: StrategySpec,
    conversations: Sequence[Conversation],
    terms: ReplaySetup,
    draw: Draw,
    seeds: Sequence[int],
    labels: tuple[str, ...],
) -> list[SweepRow]:
    """The rows of a strategy, one a seed. What is sent is the same whenever it is sent, unless pings and the like look
    at the clock: then it is planned anew for the times of each seed, in the engine itself."""
    planned = build(spec)
    if isinstance(planned, Agent) and not planned.changes and terms.uses_breakpoints:
        found = montecarlo(plan_workload(spec, conversations, terms), draw, seeds)
        fault, errors, calls = next(iter(found.not_evaluated), ""), len(found.errors), found.calls
        return [
            usage_row(CellKey(labels, seed), spec.name, calls, errors, found.usage(number), found.costs[number], fault)
            for number, seed in enumerate(seeds)
        ]
    if draw.retries.billed and draw.retries.rate:
        raise CannotEvaluate(f"strategy '{spec.name}' depends on the clock, so billed retries cannot be drawn for it")
    rows = []
    for seed in seeds:
        seeded = terms.with_assumptions({**draw.readings, "seed": seed})
        ledger = replay_strategy(spec, retime(conversations, draw, seed), seeded, explains=False)
        rows.append(ledger_row(CellKey(labels, seed), ledger))
    return rows


def _replay_setup(job: Job, scenario: Scenario) -> tuple[ReplaySetup, Sequence[Conversation], SharedTotals]:
    """Equal conversations (made ones are on every model), token counts and prices are shared with earlier cells."""
    folder = Path(job.folder)
    key = f"{folder}\0{scenario.name}\0{scenario.conversation!r}"
    if key not in _conversations:
        loaded = load_conversations(scenario, folder)
        _conversations[key] = loaded, SharedTotals(loaded.conversations)
    _conversations.move_to_end(key)
    while len(_conversations) > MOST_TALKS:
        _conversations.popitem(last=False)
    (conversations, bills), shared = _conversations[key]
    day = scenario.as_of or data_date(scenario.host)
    if scenario.prices is None and day not in _prices:
        _prices[day] = PriceBook.load(None, day)
    prices = _prices[day] if scenario.prices is None else None
    terms = scenario_setup(scenario, folder, bills, job.readings or {}, job.own, prices)
    if scenario.conversation.recording is None:
        conversations = [replace(conversation, model=scenario.model) for conversation in conversations]
    counters = _counters.setdefault(terms.tokens, {})
    return replace(terms, counters=counters, may_lack_prices=True), conversations, shared
