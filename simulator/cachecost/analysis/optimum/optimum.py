"""The cheapest legal plan that a heuristic search finds, its lower bound, how far each preset is from both, and whether
the plan still saves with other values of the assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice

from cachecost.analysis.optimum.exact import PlanSlot, exact, is_small, train_slots
from cachecost.analysis.optimum.extras import proposals
from cachecost.analysis.optimum.lower_bound import LowerBound, cheapest
from cachecost.analysis.optimum.online_rule import PresetResult, cheapest_first, cheapest_rule, try_presets
from cachecost.analysis.optimum.plan_evaluator import (
    AlikePrompts,
    BareCall,
    PlanEvaluator,
    PlanStep,
    StepResult,
    build_call,
    rendered_breakpoints,
    simulation_of,
)
from cachecost.analysis.optimum.plan_run import PlanRun, TriedPlan, improve_plan
from cachecost.analysis.optimum.planner import Choices, PlanCall, Planner, PlannerOptions, calls_in_order
from cachecost.analysis.optimum.tree import BlockTree, FutureUse
from cachecost.analysis.optimum.ttl_costs import TTLCosts
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import margin
from cachecost.ledger.rows import WARM_START, CallRow
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import AS_RECORDED, UnpreparedCall
from cachecost.simulation.setup import ReplaySetup, no_progress

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


def load_of(done: Sequence[StepResult]) -> PrefillLoad:
    """The load of a plan's calls; the rate includes additional calls."""
    real = [one for one in done if not one.step.sent.is_extra and one.usage.total_input]
    shares = sorted(one.usage.unread / one.usage.total_input for one in real)
    mean = sum(shares) / len(shares) if shares else 0.0
    p95 = shares[max(0, -(-len(shares) * 95 // 100) - 1)] if shares else 0.0
    calls = sorted((one.step.sent.start, one.usage.unread) for one in done)
    peak = inside = first = 0
    for start, tokens in calls:
        inside += tokens
        while calls[first][0] <= start - MINUTE_S:
            inside -= calls[first][1]
            first += 1
        peak = max(peak, inside)
    return PrefillLoad(mean, p95, sum(one.usage.unread for one in real), peak)


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
            found, known = list[Decimal](), dict[BareCall, BareCall]()
            for plan in self._plans:
                for sent in {step.sent for step in plan} - known.keys():
                    known[sent] = replace(sent, rules=terms.rules_for(sent.call))
                found.append(self._evaluator.cost(PlanStep(known[step.sent], step.breakpoints) for step in plan))
            return found
        if name in OF_PROMPTS and self._prompts.are_alike(terms):
            return self._in_force
        simulations = [(simulation_of(terms), plan) for plan in self._plans]
        return [sum((one.row(build_call(step)).cost.total for step in plan), ZERO) for one, plan in simulations]


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
    evaluator = PlanEvaluator.of(calls, terms)
    if not evaluator.sent:
        why = next((row.error for row in evaluator.refused if row.error), "there are no calls")
        raise CannotEvaluate(f"nothing to optimise: {why}")
    for sent in evaluator.sent:
        sent.rules.require_support("optimize")
    return _Finder(evaluator, pings, progress, first).optimum()


class _Finder:
    def __init__(self, evaluator: PlanEvaluator, pings: bool, progress: TriedPlan, first: str) -> None:
        self._evaluator = evaluator
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
        compared = cheapest_first(presets)[: COMPARED if len(plan) <= MANY_CALLS else 1]
        assumptions = compare_assumptions(evaluator, plan, [one.steps for one in compared], self._progress)
        rows = simulated_rows(evaluator.terms, plan)
        done = {"plan": list(evaluator.run(plan)), "best preset": list(evaluator.run(best_of(presets).steps))}
        recorded: list[StepResult] | None = None
        if not evaluator.refused and any(one.request.breakpoints or one.request.automatic for one in evaluator.calls):
            pairs = zip(evaluator.sent, evaluator.calls, strict=True)
            sent = [PlanStep(sent, rendered_breakpoints(sent, call.request)) for sent, call in pairs]
            recorded = done[self._first] = list(evaluator.run(sent))
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
            _sum(recorded) if recorded is not None else None,
            assumptions,
            {name: load_of(rows) for name, rows in done.items()},
            fit_of(recorded) if recorded is not None else None,
            margin(rows, max(counter.error_margin for counter in counters)),
            "; ".join(dict.fromkeys(counter.source for counter in counters)),
            sum((sent.output_usd for sent in evaluator.sent), ZERO),
            self._first,
            evaluator.refused,
        )

    def _plan(self, presets: Sequence[PresetResult]) -> tuple[list[PlanStep], bool]:
        evaluator, sent = self._evaluator, self._evaluator.sent
        best = best_of(presets)
        plan, usd = best.steps, best.usd
        future, least = FutureUse(self._tree), cheapest(evaluator)
        with_pings = (False, True) if self._pings else (False,)
        options = [one for one in HABITS if not one.only or all(one.only in call.rules.accepted_ttls for call in sent)]
        for pings in with_pings:
            ttls = TTLCosts(least, pings)
            planned = list[tuple[Decimal, int, Choices]]()
            for option in options:
                choices = Choices(future, ttls, option)
                planner = Planner(evaluator, choices)
                done = [planner.run_step(one) for one in sent]
                cost = _sum(done)
                self._progress("planned breakpoints", len(with_pings) * len(options))
                planned.append((cost, len(planned), choices))
                plan, usd = ([one.step for one in done], cost) if cost < usd else (plan, usd)
            if pings:
                plan, usd = self._with_extras([choices for *_, choices in sorted(planned)], presets, plan, usd)
        if usd > self._limit and len(sent) <= RULE_CALLS:
            rule = cheapest_rule(evaluator, presets, self._pings)
            plan, usd = (rule.steps, rule.usd) if rule.usd < usd else (plan, usd)
        if usd > self._limit:
            plan, better = improve_plan(evaluator, plan, self._limit, self._progress)
            usd = min(usd, better)
        if usd <= self._limit:
            return plan, usd == self._limit
        if not is_small(evaluator):
            return plan, False
        if self._pings:  # the times of keep-alives and pre-warming are not all tried, so that nothing is proved
            return exact(evaluator, train_slots(evaluator), usd, MOST_TRIES_WITH_PINGS).steps or plan, False
        found = exact(evaluator, [PlanSlot(PlanStep(one, ())) for one in sent], usd)
        return found.steps or plan, found.is_finished

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
        bases: list[tuple[Sequence[PlanCall], Choices | None]] = [(fixed[0], None)]
        for number in range(max(len(choices), len(fixed) - 1)):
            bases += [(sent, one) for one in choices[number : number + 1]]
            bases += [(steps, None) for steps in fixed[number + 1 : number + 2]]
        for calls, choice in bases[: max(LEAST_BASES, MOST_CALLS_TIMES_BASES // len(sent))]:
            run, extras = PlanRun(self._evaluator, calls, choice), list[PlanStep]()
            own = {} if choice else {step.sent: step.breakpoints for step in run.steps}
            for proposal in islice(proposals(self._evaluator, self._tree, run.steps), most):
                more, added = {**own, **proposal.fixed}, [*extras, *proposal.extra]
                changed = calls_in_order(sent, added, more)
                self._progress("keep-alives and pre-warming", LEAST_BASES * most)
                if run.cost_with(run.changes_to(changed)) < run.usd:
                    run, extras, own = PlanRun(self._evaluator, changed, choice), added, more
            plan, usd = (run.steps, run.usd) if run.usd < usd else (plan, usd)
        return plan, usd


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
