"""The cheapest legal plan that is found, the floor under it, and how far every built-in placement is from both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cachecost.analysis.optimum.assumptions import Reading, readings_of
from cachecost.analysis.optimum.exact import Slot, exact, is_small
from cachecost.analysis.optimum.extras import proposals
from cachecost.analysis.optimum.latency import Fit, Load, fit_of, load_of
from cachecost.analysis.optimum.lower_bound import Floor, bench_floor, cheapest
from cachecost.analysis.optimum.plan_evaluator import (
    Bench,
    Done,
    Marks,
    Sent,
    Step,
    marked,
    rendered_marks,
    simulation_of,
)
from cachecost.analysis.optimum.planner import Habits, Planner
from cachecost.analysis.optimum.presets import Tried, tried
from cachecost.analysis.optimum.search import improved
from cachecost.analysis.optimum.tree import Tree
from cachecost.analysis.optimum.ttls import Lifetimes
from cachecost.base.errors import CannotEvaluate
from cachecost.ledger.margin import margin
from cachecost.ledger.results import CallRow
from cachecost.replay.setup import Progress, ReplaySetup, no_progress
from cachecost.replay.simulation import AS_RECORDED, Call

HABITS = (Habits(), Habits(shares_first=False), Habits(writes_all=True), Habits(only="5m"), Habits(only="1h"))
MOST_PROPOSALS, MOST_CALLS_TIMES_PROPOSALS = 60, 60_000
COMPARED, MANY_CALLS = 3, 600
"""How many of the cheapest presets are run under other readings, too; of long recordings one."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """What `cachecost optimize` found. USD with answers, which no plan changes (`answers_usd`).

    `plan` is the cheapest legal plan, each call with its marks, pings and pre-warming calls where they start; `usd` is
    what the simulation says of it. `floor` is proved. `recorded_usd` is None where the calls had no marks of their own.
    `is_optimal`: nothing legal is cheaper. `depends_on`: switches under another reading of which a preset is cheaper.
    """

    plan: list[Step]
    usd: Decimal
    floor: Floor
    with_pings: bool
    is_optimal: bool
    presets: list[Tried]
    recorded_usd: Decimal | None
    readings: list[Reading]
    loads: dict[str, Load]
    fit: Fit | None
    band: float
    token_source: str
    answers_usd: Decimal
    first: str = AS_RECORDED
    """What the marks that the calls came with are called."""
    refused: list[CallRow] = field(default_factory=list)

    @property
    def floor_usd(self) -> Decimal:
        """The floor of what was allowed: with pings or without."""
        return self.floor.with_pings_usd if self.with_pings else self.floor.usd

    @property
    def best_preset(self) -> Tried:
        return best_of(self.presets)

    @property
    def extras(self) -> list[Step]:
        return [step for step in self.plan if step.sent.is_extra]

    @property
    def depends_on(self) -> list[str]:
        return list(dict.fromkeys(one.switch for one in self.readings if not one.is_cheaper))


def best_of(presets: Sequence[Tried]) -> Tried:
    """The cheapest preset without a refused call."""
    return min((one for one in presets if not one.refused), key=lambda one: one.usd)


def optimum_of(
    calls: Iterable[Call],
    terms: ReplaySetup,
    pings: bool = True,
    progress: Progress = no_progress,
    first: str = AS_RECORDED,
) -> Optimum:
    """The optimum of `calls` under `terms`; `first` names the strategy that they came from.

    Raises CannotEvaluate where no call can be evaluated.
    """
    given = list(calls)
    bench = Bench.of(given, terms)
    if not bench.sent:
        why = next((row.error for row in bench.refused if row.error), "there are no calls")
        raise CannotEvaluate(f"nothing to optimise: {why}")
    for sent in bench.sent:
        sent.rules.must_speak_marks("optimize")
    return _Finder(bench, given, pings, progress, first).optimum()


class _Finder:
    def __init__(self, bench: Bench, calls: list[Call], pings: bool, progress: Progress, first: str) -> None:
        self._bench = bench
        self._calls = calls
        self._pings = pings
        self._progress = progress
        self._first = first
        self._floor = bench_floor(bench)
        self._limit = self._floor.with_pings_usd if pings else self._floor.usd

    def optimum(self) -> Optimum:
        bench = self._bench
        presets = tried(bench, self._progress)
        plan, is_optimal = self._plan(presets)
        readings = self._readings(plan, presets)
        rows = simulated_rows(bench.terms, plan)
        recorded = self._recorded()
        done = {"plan": list(bench.run(plan)), "best preset": list(bench.run(best_of(presets).steps))}
        if recorded is not None:
            done[self._first] = list(bench.run(recorded))
        counters = [bench.terms.counter(name) for name in dict.fromkeys(one.rules.generation for one in bench.sent)]
        return Optimum(
            plan,
            sum((row.cost.total for row in rows), Decimal(0)),
            self._floor,
            self._pings,
            is_optimal and all(one.is_cheaper for one in readings),
            presets,
            _sum(done[self._first]) if recorded is not None else None,
            readings,
            {name: load_of(rows) for name, rows in done.items()},
            fit_of(done[self._first]) if recorded is not None else None,
            margin(rows, max(counter.band for counter in counters)),
            "; ".join(dict.fromkeys(counter.source for counter in counters)),
            sum((sent.output_usd for sent in bench.sent), Decimal(0)),
            self._first,
            bench.refused,
        )

    def _plan(self, presets: Sequence[Tried]) -> tuple[list[Step], bool]:
        """The cheapest plan, and whether it is proved that none is cheaper."""
        bench = self._bench
        best = best_of(presets)
        plan, usd = best.steps, best.usd
        for steps in self._built():
            cost = bench.cost(steps)
            plan, usd = (steps, cost) if cost < usd else (plan, usd)
        if self._pings:
            plan, usd = self._with_extras(plan, usd)
        if usd > self._limit:
            plan, better = improved(bench, plan, self._limit, self._progress)
            usd = min(usd, better)
        return self._proved(plan, usd)

    def _built(self) -> Iterable[list[Step]]:
        tree, least = Tree(self._bench.sent), cheapest(self._bench)
        for pings in (False, True) if self._pings else (False,):
            lifetimes = Lifetimes(least, pings)
            for habits in filter(self._are_taken, HABITS):
                yield Planner(self._bench, tree, lifetimes, habits).steps()
                self._progress("planning", len(self._bench.sent))

    def _are_taken(self, habits: Habits) -> bool:
        """Whether every call may ask for the one lifetime that they keep to, if there is one."""
        return habits.only is None or all(habits.only in sent.rules.accepted_ttls for sent in self._bench.sent)

    def _with_extras(self, plan: list[Step], usd: Decimal) -> tuple[list[Step], Decimal]:
        """Pings and pre-warming, each kept if the plan that knows of it is cheaper."""
        bench, tree = self._bench, Tree(self._bench.sent)
        lifetimes = Lifetimes(cheapest(bench), pings=True)
        most = min(MOST_PROPOSALS, max(4, MOST_CALLS_TIMES_PROPOSALS // len(bench.sent)))
        extras, fixed = list[Step](), dict[Sent, Marks]()
        for basis in (plan, Planner(bench, tree, lifetimes).steps()):
            for number, proposal in enumerate(proposals(bench, tree, basis)):
                if number >= most:
                    break
                more = {**fixed, **proposal.fixed}
                steps = Planner(bench, tree, lifetimes).steps([*extras, *proposal.extra], more)
                cost = bench.cost(steps)
                self._progress("pings", len(bench.sent))
                if cost < usd:
                    plan, usd, extras, fixed = steps, cost, [*extras, *proposal.extra], more
        return plan, usd

    def _proved(self, plan: list[Step], usd: Decimal) -> tuple[list[Step], bool]:
        if usd <= self._limit:
            return plan, usd == self._limit
        if self._pings or not is_small(self._bench):
            return plan, False
        found = exact(self._bench, [Slot(Step(sent, ())) for sent in self._bench.sent], usd)
        return found.steps or plan, found.is_finished

    def _readings(self, plan: list[Step], presets: Sequence[Tried]) -> list[Reading]:
        fair = sorted((one for one in presets if not one.refused), key=lambda one: one.usd)
        return readings_of(
            self._bench.terms,
            plan,
            [one.steps for one in fair[: COMPARED if len(plan) <= MANY_CALLS else 1]],
            self._progress,
        )

    def _recorded(self) -> list[Step] | None:
        """The calls with the marks they were sent with; None where none had any."""
        calls = {id(call.request.thread): call for call in self._calls}
        if not any(call.request.marks or call.request.automatic for call in calls.values()):
            return None
        return None if self._bench.refused else _as_sent(self._bench, self._calls)


def _as_sent(bench: Bench, calls: Sequence[Call]) -> list[Step]:
    pairs = zip(bench.sent, calls, strict=True)
    return [Step(sent, rendered_marks(sent, call.request)) for sent, call in pairs]


def _sum(done: Sequence[Done]) -> Decimal:
    return sum((one.usd for one in done), Decimal(0))


def simulated_rows(terms: ReplaySetup, plan: Sequence[Step]) -> list[CallRow]:
    """The calls of a plan as the simulation bills them. Raises ValueError where the API would refuse one of them."""
    simulation = simulation_of(terms)
    rows = [simulation.row(marked(step)) for step in plan]
    refused = next((row.error for row in rows if row.error), None)
    if refused is not None:
        raise ValueError(f"the plan has a call that is refused: {refused}")
    return rows
