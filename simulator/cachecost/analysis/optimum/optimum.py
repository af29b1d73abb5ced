"""The cheapest legal plan that a heuristic search finds, its lower bound, and how far each preset is from both.

Whether a plan's savings depend on an assumption: the plan is run again with every other value that matters to it.

Prefill: unread tokens delay the first token and count against the input rate limit; reads do neither.

Local search: small changes to a plan, kept if the simulation is cheaper, within a limit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path

from cachecost.analysis.optimum.extras import PlanSlot, exact, is_small, proposals, train_slots
from cachecost.analysis.optimum.lower_bound import LowerBound, cheapest
from cachecost.analysis.optimum.online_rule import cheapest_rule
from cachecost.analysis.optimum.plan_evaluator import (
    AlikePrompts,
    BareCall,
    Breakpoints,
    PlanEvaluator,
    PlanStep,
    StepResult,
    accepts_breakpoints,
    build_call,
    rendered_breakpoints,
    simulation_of,
)
from cachecost.analysis.optimum.planner import Choices, PlannedCall, Planner, PlannerOptions, PlanRun, calls_in_order
from cachecost.analysis.optimum.presets import PresetResult, cheapest_first, try_presets
from cachecost.analysis.optimum.tree import BlockTree, FutureUse, TTLCosts
from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import margin
from cachecost.ledger.rows import WARM_START, CallRow
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import BreakpointPrefix
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import PER_TOKEN, ZERO
from cachecost.simulation.engine import AS_RECORDED, UnpreparedCall
from cachecost.simulation.setup import ReplaySetup, no_progress

Plan = Sequence[PlanStep]
OF_PROMPTS = frozenset({"tool_choice_invalidation", "thinking_rendered_at", "structured_output_at", "lookback_runs"})
"""Assumptions on prompts and on rules besides: with alike prompts and equal rules they change nothing."""
OF_CACHE = frozenset({"shallow_breakpoints", "ttl_in_key"})
"""Assumptions on what the cache does with prompts: these stay as they are rendered."""


@dataclass(frozen=True, slots=True)
class AssumptionResult:
    """A plan and the best compared preset, with another value of an assumption. USD."""

    switch: str
    value: str
    plan_usd: Decimal
    preset_usd: Decimal

    @property
    def is_cheaper(self) -> bool:
        """Whether the plan still costs no more than the best of the presets."""
        return self.plan_usd <= self.preset_usd


def compare_assumptions(
    evaluator: PlanEvaluator, plan: Plan, presets: Sequence[Plan], progress: Callable[[str, int], None]
) -> list[AssumptionResult]:
    """The plan and the presets with each other value of the assumptions, except those that are numbers."""
    found, others = [], other_assumptions(evaluator.terms)
    costs = PlanCosts(evaluator, [plan, *presets])
    for name, value in others:
        usd, *beside = costs.under(name, value)
        found.append(AssumptionResult(name, value, usd, min(beside, default=usd)))
        progress("assumptions", len(others))
    return found


def other_assumptions(terms: ReplaySetup) -> list[tuple[str, str]]:
    """(assumption, value) of every value that is not in force."""
    in_force = terms.rules.assumptions
    assumptions = in_force.on(terms.host)
    return [
        (row.name, reading.value)
        for row in assumption_rows(terms.host)
        if row.number is None and row.name != WARM_START
        for reading in row.readings
        if reading.value != str(getattr(assumptions, row.name)).lower()
    ]


class PlanCosts:
    """What plans of the same calls cost under other assumptions. USD, answers included."""

    def __init__(self, evaluator: PlanEvaluator, plans: Sequence[Plan]) -> None:
        self._evaluator = evaluator
        self._plans = plans
        self._in_force = [evaluator.cost(plan) for plan in plans]
        sent = dict.fromkeys(step.sent for plan in plans for step in plan)
        self._prompts = AlikePrompts(evaluator, [one.call for one in sent])

    def under(self, name: str, value: str) -> list[Decimal]:
        """What each plan costs with this value of an assumption."""
        terms = self._evaluator.terms.with_assumptions({name: value})
        if name in OF_CACHE and self._prompts.have_equal_rules(terms):
            return list(self._with_rules(terms))
        if name in OF_PROMPTS and self._prompts.are_alike(terms):
            return self._in_force
        return [_simulated_usd(terms, plan) for plan in self._plans]

    def _with_rules(self, terms: ReplaySetup) -> Iterator[Decimal]:
        """The plans under the rules of these terms, as they are rendered."""
        known: dict[BareCall, BareCall] = {}
        for plan in self._plans:
            for sent in {step.sent for step in plan} - known.keys():
                known[sent] = replace(sent, rules=terms.rules_for(sent.call))
            yield self._evaluator.cost(PlanStep(known[step.sent], step.breakpoints) for step in plan)


def _simulated_usd(terms: ReplaySetup, plan: Plan) -> Decimal:
    simulation = simulation_of(terms)
    return sum((simulation.row(build_call(step)).cost.total for step in plan), ZERO)


MINUTE_S = 60.0
FEWEST, LEAST_R2 = 8, 0.2
"""With fewer timed calls or a worse fit the data do not support a statement in seconds."""


@dataclass(frozen=True, slots=True)
class PrefillLoad:
    """Prefill of a plan: unread tokens as a share of the prompt (mean and 95th percentile over calls).

    `peak_per_minute` is the most input tokens in any 60 s that count against a rate limit: written and uncached ones.
    """

    mean_share: float
    p95_share: float
    unread_tokens: int
    peak_per_minute: int


@dataclass(frozen=True, slots=True)
class LatencyFit:
    """Seconds to the first token = `base_s` + `per_token_s` x unread tokens, by least squares over `calls` calls."""

    base_s: float
    per_token_s: float
    r2: float
    calls: int

    @property
    def is_supported(self) -> bool:
        """Whether the recording's times support the fit: enough calls, a rising line, and a sufficient R²."""
        return self.calls >= FEWEST and self.per_token_s > 0 and self.r2 >= LEAST_R2


@dataclass(frozen=True, slots=True)
class PrefillTime:
    """A published pair of times to the first token: a prompt of `tokens` sent anew, and read but for its last `after`.

    `source` says who measured it, on which model and when.
    """

    what: str
    tokens: int
    after: int
    unread_s: float
    read_s: float
    source: str

    @property
    def saving(self) -> float:
        """The share of the time that reading saved."""
        return 1 - self.read_s / self.unread_s


@dataclass(frozen=True, slots=True)
class PrefillModel:
    """Seconds to the first token = `base_s` + `per_unread_s` x unread tokens + `per_read_s` x read tokens.

    `worst_s` is the largest distance of a published time from it.
    """

    base_s: float
    per_unread_s: float
    per_read_s: float
    worst_s: float

    def seconds(self, unread: int, read: int = 0) -> float:
        return self.base_s + self.per_unread_s * unread + self.per_read_s * read

    def saving(self, tokens: int) -> float:
        """The share of the time that is saved where all `tokens` of a prompt are read."""
        return 1 - self.seconds(0, tokens) / self.seconds(tokens)


@cache
def published_times() -> tuple[PrefillTime, ...]:
    """The published times, shortest prompt first (prefill_times.toml)."""
    data = tomllib.loads(Path(__file__).with_name("prefill_times.toml").read_text(encoding="utf-8"))
    titles = {name: f"{source['title']} ({source['date']})" for name, source in data["sources"].items()}
    return tuple(PrefillTime(**{**row, "source": titles[row["source"]]}) for row in data["measured"])


@cache
def published_prefill() -> PrefillModel:
    """The least-squares fit to the published times, for prompts whose own times are not recorded."""
    import numpy as np

    times = published_times()
    points = [(1.0, time.tokens, 0, time.unread_s) for time in times]
    points += [(1.0, time.after, time.tokens - time.after, time.read_s) for time in times]
    *columns, seconds = np.array(points, dtype=float).T
    terms = np.column_stack(columns)
    base, per_unread, per_read = np.linalg.lstsq(terms, seconds, rcond=None)[0]
    worst = np.abs(terms @ [base, per_unread, per_read] - seconds).max()
    return PrefillModel(float(base), float(per_unread), float(per_read), float(worst))


def load_of(done: Sequence[StepResult]) -> PrefillLoad:
    """The load of a plan's calls; the rate includes additional calls."""
    real = [one for one in done if not one.step.sent.is_extra and one.usage.total_input]
    shares = sorted(one.usage.unread / one.usage.total_input for one in real)
    mean = sum(shares) / len(shares) if shares else 0.0
    p95 = shares[max(0, -(-len(shares) * 95 // 100) - 1)] if shares else 0.0
    return PrefillLoad(mean, p95, sum(one.usage.unread for one in real), _peak(done))


def fit_of(done: Sequence[StepResult]) -> LatencyFit | None:
    """The fit of recorded times to unread tokens; None if fewer than two calls have a time."""
    points = [
        (one.usage.unread, one.step.sent.call.first_token_s) for one in done if one.step.sent.call.first_token_s > 0
    ]
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    base = mean_y - slope * mean_x
    total = sum((y - mean_y) ** 2 for _, y in points)
    missed = sum((y - base - slope * x) ** 2 for x, y in points)
    return LatencyFit(base, slope, 1 - missed / total if total else 0.0, len(points))


def _peak(done: Sequence[StepResult]) -> int:
    """The largest sum in any window of a minute that starts with a call."""
    calls = sorted((one.step.sent.start, one.usage.unread) for one in done)
    most = inside = first = 0
    for start, tokens in calls:
        inside += tokens
        while calls[first][0] <= start - MINUTE_S:
            inside -= calls[first][1]
            first += 1
        most = max(most, inside)
    return most


LEAST, MOST, CALLS = 40, 600, 150_000
TriedPlan = Callable[[str, int], None]
"""Called for each plan that was tried: what was tried, and how many such plans there are at most."""


def rounds(calls: int) -> int:
    """How many changed plans to try: at most 600, fewer for long recordings."""
    return max(LEAST, min(MOST, CALLS // max(1, calls)))


def improve_plan(
    evaluator: PlanEvaluator, steps: Sequence[PlanStep], lower_bound: Decimal, progress: TriedPlan
) -> tuple[list[PlanStep], Decimal]:
    """The plan after all changes that helped, and its USD. Stops at the lower bound."""
    run = PlanRun(evaluator, steps)
    left = most = rounds(len(steps))
    found = True
    while found and left and run.usd > lower_bound:
        found = False
        for number, changed in plan_changes(run):
            left -= 1
            tried = run.cost_with({float(number): changed})
            progress("improvements", most)
            if tried < run.usd:
                run, found = (
                    PlanRun(
                        evaluator,
                        [*run.steps[:number], *([] if changed is None else [changed]), *run.steps[number + 1 :]],
                    ),
                    True,
                )
                break
            if not left:
                break
    return run.steps, run.usd


def plan_changes(run: PlanRun) -> Iterator[tuple[int, PlanStep | None]]:
    """Changed steps by their numbers, those first that paid most for what they did not read; None: not made."""
    order = sorted(range(len(run.done)), key=lambda number: -_unread_usd(run.done[number]))
    for number in order:
        step = run.done[number].step
        if step.sent.is_extra:
            yield number, None
        for breakpoints in _other_breakpoints(step):
            yield number, PlanStep(step.sent, breakpoints)


def _unread_usd(done: StepResult) -> Decimal:
    return done.usd - done.step.sent.output_usd - done.usage.read * done.step.sent.prices.read.scaleb(PER_TOKEN)


def _other_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    """One breakpoint fewer, another TTL up to or from one, one a block further up, or one more at the end."""
    breakpoints, accepted = step.breakpoints, step.sent.rules.accepted_ttls
    for number in range(len(breakpoints)):
        yield (*breakpoints[:number], *breakpoints[number + 1 :])
    for number, breakpoint in enumerate(breakpoints):
        if breakpoint.ttl == "5m" and "1h" in accepted:
            yield tuple(BreakpointPrefix(one.prefix, "1h") if n <= number else one for n, one in enumerate(breakpoints))
        if breakpoint.ttl == "1h" and "5m" in accepted:
            yield tuple(BreakpointPrefix(one.prefix, "5m") if n >= number else one for n, one in enumerate(breakpoints))
    yield from _move_breakpoints(step)


def _move_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    breakpoints = step.breakpoints
    end = _up(step.sent.prompt.end)
    if (
        end is not None
        and len(breakpoints) < step.sent.rules.maximum_breakpoints
        and all(one.prefix is not end for one in breakpoints)
    ):
        yield (*breakpoints, BreakpointPrefix(end, "5m" if "5m" in step.sent.rules.accepted_ttls else "1h"))
    for number, breakpoint in enumerate(breakpoints):
        above = _up(breakpoint.prefix.parent)
        if above is not None and all(one.prefix is not above for one in breakpoints):
            yield (*breakpoints[:number], BreakpointPrefix(above, breakpoint.ttl), *breakpoints[number + 1 :])


def _up(node: Prefix | None) -> Prefix | None:
    while node is not None and not accepts_breakpoints(node):
        node = node.parent
    return node


HABITS = (
    PlannerOptions(),
    PlannerOptions(shares_first=False),
    PlannerOptions(writes_all=True),
    PlannerOptions(only="5m"),
    PlannerOptions(only="1h"),
)
MOST_PROPOSALS, MOST_CALLS_TIMES_PROPOSALS = 60, 60_000
LEAST_BASES, MOST_CALLS_TIMES_BASES = 2, 1_500
"""To how many plans keep-alives are added: to all of up to 150 calls, fewer of longer recordings."""
MOST_TRIES_WITH_PINGS = 20_000
RULE_CALLS = 16
"""Up to so many calls the cheapest rule that knows only the past is looked for as well, as a plan to start from."""
COMPARED, MANY_CALLS = 3, 600
"""How many of the cheapest presets are also run with other assumptions; of long recordings one."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """What `cachecost optimize` found. USD with answers, which no plan changes (`answers_usd`).

    `plan` is the cheapest legal plan that was found: each call with its breakpoints, and keep-alive and pre-warming
    calls in order of start; `usd` is its simulated cost. `lower_bound` is proven. `recorded_usd` is None if the calls
    had no breakpoints. `is_optimal`: it is proved that no legal plan is cheaper, which with keep-alives only a plan at
    the lower bound is. `depends_on`: assumptions with a value under which a preset is cheaper.
    """

    plan: list[PlanStep]
    usd: Decimal
    lower_bound: LowerBound
    with_pings: bool
    is_optimal: bool
    presets: list[PresetResult]
    recorded_usd: Decimal | None
    assumptions: list[AssumptionResult]
    loads: dict[str, PrefillLoad]
    fit: LatencyFit | None
    error_margin: float
    token_source: str
    answers_usd: Decimal
    first: str = AS_RECORDED
    """The name of the strategy that the calls came from."""
    refused: list[UnpreparedCall] = field(default_factory=list)

    @property
    def lower_bound_usd(self) -> Decimal:
        """The lower bound of what was allowed: with or without additional calls."""
        return self.lower_bound.with_pings_usd if self.with_pings else self.lower_bound.usd

    @property
    def best_preset(self) -> PresetResult:
        return best_of(self.presets)

    @property
    def extras(self) -> list[PlanStep]:
        return [step for step in self.plan if step.sent.is_extra]

    @property
    def depends_on(self) -> list[str]:
        return list(dict.fromkeys(one.switch for one in self.assumptions if not one.is_cheaper))


def best_of(presets: Sequence[PresetResult]) -> PresetResult:
    """The cheapest preset without a refused call."""
    return cheapest_first(presets)[0]


def optimum_of(
    calls: Iterable[Call],
    terms: ReplaySetup,
    pings: bool = True,
    progress: TriedPlan = no_progress,
    first: str = AS_RECORDED,
) -> Optimum:
    """The optimum of `calls` under `terms`; `first` names the strategy that they came from.

    `progress` is called for each plan that was tried, with what was tried and how many such plans there are at most.
    Raises CannotEvaluate where no call can be evaluated.
    """
    given: list[Call] = []
    evaluator = PlanEvaluator.of(_noted(calls, given), terms)
    if not evaluator.sent:
        why = next((row.error for row in evaluator.refused if row.error), "there are no calls")
        raise CannotEvaluate(f"nothing to optimise: {why}")
    for sent in evaluator.sent:
        sent.rules.require_breakpoints("optimize")
    return _Finder(evaluator, given, pings, progress, first).optimum()


def _noted(calls: Iterable[Call], given: list[Call]) -> Iterator[Call]:
    """The calls, which are added to `given`: they may come one by one, with progress."""
    for call in calls:
        given.append(call)
        yield call


class _Finder:
    def __init__(
        self, evaluator: PlanEvaluator, calls: list[Call], pings: bool, progress: TriedPlan, first: str
    ) -> None:
        self._evaluator = evaluator
        self._calls = calls
        self._pings = pings
        self._progress = progress
        self._first = first
        self._lower_bound = LowerBound(evaluator)
        self._tree = BlockTree(evaluator.sent)
        self._limit = self._lower_bound.with_pings_usd if pings else self._lower_bound.usd

    def optimum(self) -> Optimum:
        evaluator = self._evaluator
        presets = try_presets(evaluator, self._progress, COMPARED)
        plan, is_optimal = self._plan(presets)
        assumptions = self._compared_assumptions(plan, presets)
        rows = simulated_rows(evaluator.terms, plan)
        recorded = self._recorded_plan()
        done = {"plan": list(evaluator.run(plan)), "best preset": list(evaluator.run(best_of(presets).steps))}
        if recorded is not None:
            done[self._first] = list(evaluator.run(recorded))
        counters = [
            evaluator.terms.counter(name) for name in dict.fromkeys(one.rules.generation for one in evaluator.sent)
        ]
        return Optimum(
            plan,
            sum((row.cost.total for row in rows), ZERO),
            self._lower_bound,
            self._pings,
            is_optimal and all(one.is_cheaper for one in assumptions),
            presets,
            _sum(done[self._first]) if recorded is not None else None,
            assumptions,
            {name: load_of(rows) for name, rows in done.items()},
            fit_of(done[self._first]) if recorded is not None else None,
            margin(rows, max(counter.error_margin for counter in counters)),
            "; ".join(dict.fromkeys(counter.source for counter in counters)),
            sum((sent.output_usd for sent in evaluator.sent), ZERO),
            self._first,
            evaluator.refused,
        )

    def _plan(self, presets: Sequence[PresetResult]) -> tuple[list[PlanStep], bool]:
        """The cheapest plan, and whether it is provably optimal."""
        evaluator = self._evaluator
        best = best_of(presets)
        plan, usd = best.steps, best.usd
        future, least = FutureUse(self._tree), cheapest(evaluator)
        ways, taken = (False, True) if self._pings else (False,), list(filter(self._are_taken, HABITS))
        for pings in ways:
            ttls = TTLCosts(least, pings)
            planned = list[tuple[Decimal, int, Choices]]()
            for choices in (Choices(future, ttls, habits) for habits in taken):
                steps, cost = self._planned(choices)
                self._progress("planned breakpoints", len(ways) * len(taken))
                planned.append((cost, len(planned), choices))
                plan, usd = (steps, cost) if cost < usd else (plan, usd)
            if pings:
                plan, usd = self._with_extras([choices for *_, choices in sorted(planned)], presets, plan, usd)
        if usd > self._limit and len(evaluator.sent) <= RULE_CALLS:
            rule = cheapest_rule(evaluator, presets, self._pings)
            plan, usd = (rule.steps, rule.usd) if rule.usd < usd else (plan, usd)
        if usd > self._limit:
            plan, better = improve_plan(evaluator, plan, self._limit, self._progress)
            usd = min(usd, better)
        if usd <= self._limit:
            return plan, usd == self._limit
        if not is_small(self._evaluator):
            return plan, False
        if self._pings:  # the times of keep-alives and pre-warming are not all tried, so that nothing is proved
            return exact(self._evaluator, train_slots(self._evaluator), usd, MOST_TRIES_WITH_PINGS).steps or plan, False
        found = exact(self._evaluator, [PlanSlot(PlanStep(sent, ())) for sent in self._evaluator.sent], usd)
        return found.steps or plan, found.is_finished

    def _planned(self, choices: Choices) -> tuple[list[PlanStep], Decimal]:
        """The plan that follows these choices, and its cost."""
        planner = Planner(self._evaluator, choices)
        done = [planner.run_step(sent) for sent in self._evaluator.sent]
        return [one.step for one in done], _sum(done)

    def _are_taken(self, habits: PlannerOptions) -> bool:
        """Whether every call accepts the only TTL of these options, if there is one."""
        return habits.only is None or all(habits.only in sent.rules.accepted_ttls for sent in self._evaluator.sent)

    def _with_extras(
        self, choices: Sequence[Choices], presets: Sequence[PresetResult], plan: list[PlanStep], usd: Decimal
    ) -> tuple[list[PlanStep], Decimal]:
        """The cheapest plan with keep-alives and pre-warming calls; `plan` where they do not pay off.

        They are added to several plans, each as long as that plan becomes cheaper: a plan of short TTLs is often more
        expensive than one of long TTLs until its last pause is bridged. Where choices are open, a call's breakpoints
        follow from what the keep-alives before it left.
        """
        sent = self._evaluator.sent
        most = min(MOST_PROPOSALS, max(4, MOST_CALLS_TIMES_PROPOSALS // len(sent)))
        fixed = [plan, *(one.steps for one in cheapest_first(presets)[:COMPARED])]
        bases: list[tuple[Sequence[PlannedCall], Choices | None]] = [(fixed[0], None)]
        for number in range(max(len(choices), len(fixed) - 1)):
            bases += [(sent, one) for one in choices[number : number + 1]]
            bases += [(steps, None) for steps in fixed[number + 1 : number + 2]]
        for calls, choice in bases[: max(LEAST_BASES, MOST_CALLS_TIMES_BASES // len(sent))]:
            run = self._extended(PlanRun(self._evaluator, calls, choice), most)
            plan, usd = (run.steps, run.usd) if run.usd < usd else (plan, usd)
        return plan, usd

    def _extended(self, run: PlanRun, most: int) -> PlanRun:
        """The run with each proposed call that makes it cheaper."""
        choices, extras = run.choices, list[PlanStep]()
        fixed = {} if choices else {step.sent: step.breakpoints for step in run.steps}
        for proposal in islice(proposals(self._evaluator, self._tree, run.steps), most):
            more, added = {**fixed, **proposal.fixed}, [*extras, *proposal.extra]
            calls = calls_in_order(self._evaluator.sent, added, more)
            self._progress("keep-alives and pre-warming", LEAST_BASES * most)
            if run.cost_with(run.changes_to(calls)) < run.usd:
                run, extras, fixed = PlanRun(self._evaluator, calls, choices), added, more
        return run

    def _compared_assumptions(self, plan: list[PlanStep], presets: Sequence[PresetResult]) -> list[AssumptionResult]:
        compared = cheapest_first(presets)[: COMPARED if len(plan) <= MANY_CALLS else 1]
        return compare_assumptions(self._evaluator, plan, [one.steps for one in compared], self._progress)

    def _recorded_plan(self) -> list[PlanStep] | None:
        calls = {id(call.request.thread): call for call in self._calls}
        if not any(call.request.breakpoints or call.request.automatic for call in calls.values()):
            return None
        return None if self._evaluator.refused else _as_sent(self._evaluator, self._calls)


def _as_sent(evaluator: PlanEvaluator, calls: Sequence[Call]) -> list[PlanStep]:
    pairs = zip(evaluator.sent, calls, strict=True)
    return [PlanStep(sent, rendered_breakpoints(sent, call.request)) for sent, call in pairs]


def _sum(done: Sequence[StepResult]) -> Decimal:
    return sum((one.usd for one in done), ZERO)


def simulated_rows(terms: ReplaySetup, plan: Sequence[PlanStep]) -> list[CallRow]:
    """The rows of a plan as simulated. Raises ValueError if the API would refuse one of its calls."""
    simulation = simulation_of(terms)
    rows = [simulation.row(build_call(step)) for step in plan]
    refused = next((row.error for row in rows if row.error), None)
    if refused is not None:
        raise ValueError(f"the plan has a call that is refused: {refused}")
    return rows
