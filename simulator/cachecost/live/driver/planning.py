"""The calls that a scenario's strategies will send, priced. Nothing is sent here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import Call, date_call
from cachecost.ledger.rows import NOT_EVALUATED, CallRow
from cachecost.live.driver.budget import CallPricing, from_count, unbounded_reason
from cachecost.live.driver.filling import FillerContent, faults_in, nonce_of, with_nonce
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import body_of
from cachecost.prompts.request import Request
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import ZERO
from cachecost.scenario import Scenario, load_conversations
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.spec import StrategySpec

HOST = "anthropic"
CALIBRATED, DEFAULT_TOKENS = "calibrated", "tiktoken"
BATCH = "Batch calls are sent one by one, at the price of ordinary calls."


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Options of a run. `pace` scales pauses; `output` is the most output tokens of a call."""

    output: int = 16
    pace: float = 1.0
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveCall:
    """One call to be sent: `offset` is seconds after the first call of its strategy, pauses scaled.

    `row` is the prediction at these offsets, `worst` its upper bound in USD by the plan's token counts;
    `refused` is why the API would refuse it (None: it is sent).
    """

    label: str
    offset: float
    request: Request
    body: Mapping[str, Any]
    row: CallRow
    worst: Decimal
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedStrategy:
    """A strategy's calls in the order they start, with notes for the user."""

    name: str
    steps: tuple[LiveCall, ...]
    notes: tuple[str, ...]
    rules: Mapping[str, Any]

    @property
    def groups(self) -> Iterator[list[LiveCall]]:
        """Calls that start at once."""
        for _, steps in groupby(self.steps, key=lambda step: step.offset):
            yield list(steps)

    @property
    def predicted_usd(self) -> Decimal:
        return sum((step.row.cost.total for step in self.steps), ZERO)

    @property
    def worst_usd(self) -> Decimal:
        return sum((step.worst for step in self.steps if not step.refused), ZERO)

    @property
    def seconds(self) -> float:
        return self.steps[-1].offset if self.steps else 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """All strategies of a scenario, ready to be sent under the run's id; planned `at` seconds since the epoch."""

    scenario: Scenario
    run: str
    at: float
    terms: ReplaySetup
    strategies: tuple[PlannedStrategy, ...]

    @property
    def digest(self) -> str:
        """A digest of everything to be sent; it changes with the scenario, the options and the planner."""
        digest = blake2b(digest_size=16, person=b"live plan")
        for step in self.steps:
            digest.update(json.dumps([step.label, step.body]).encode())
        return digest.hexdigest()

    @property
    def steps(self) -> list[LiveCall]:
        return [step for planned in self.strategies for step in planned.steps]

    @property
    def faults(self) -> list[str]:
        """Why the API would refuse a call, or its cost has no upper bound; one for each strategy."""
        found = []
        for planned in self.strategies:
            sent = [step for step in planned.steps if not step.refused]
            whys = ((step, why) for step in sent for why in (*faults_in(step.body), unbounded_reason(step.body)) if why)
            found += [f"{step.label}: {why}" for step, why in [*whys][:1]]
        return found


def plan(
    scenario: Scenario, folder: Path, run: str, now: float, options: LiveOptions, prices: Path | None = None
) -> Plan:
    """What `cachecost live` would send from `now` on. Raises CannotEvaluate, InputError."""
    if scenario.host != HOST:
        raise CannotEvaluate(f"live supports only Anthropic's API; the scenario's host is {scenario.host}")
    own = prices or (folder / scenario.prices if scenario.prices else None)
    counter = DEFAULT_TOKENS if scenario.tokens in (None, CALIBRATED) else str(scenario.tokens)
    rules = RuleBook(assumptions_from(scenario.rules), day_of(now))
    terms = ReplaySetup(rules, PriceBook.load(own), HOST, counter, scenario.model)
    conversations = load_conversations(scenario, folder).conversations
    planner = _Planner(terms, run, now, options)
    planned = [
        planner.plan_strategy(spec, conversations)
        for spec in scenario.strategies
        if not options.only or spec.name in options.only
    ]
    return Plan(scenario, run, now, terms, tuple(planned))


@dataclass(frozen=True, slots=True)
class _Planner:
    terms: ReplaySetup
    run: str
    now: float
    options: LiveOptions

    def plan_strategy(self, spec: StrategySpec | str, conversations: list[Any]) -> PlannedStrategy:
        """The calls of one strategy. They share a message tree and a nonce."""
        terms = self.terms
        strategy = terms.build_strategy(spec)
        generation = terms.rules.rules(HOST, terms.model or "").generation
        material, intake = FillerContent(terms.counter(generation)), Intake(keep_content=True)
        simulation = Simulation(terms.for_strategy(strategy), strategy.name)
        calls = list(plan_calls(strategy, conversations))
        nonce = nonce_of(self.run, strategy.name)
        steps = []
        for number, call in enumerate(calls, 1):
            request, thinking = call.request, call.request.params.get("thinking") or {}
            if request.params.get("max_tokens") != 0:  # a call that only warms the cache keeps 0
                budget = int(thinking.get("budget_tokens") or 0) if thinking.get("type") == "enabled" else 0
                request = replace(request, params={**request.params, "max_tokens": budget + self.options.output})
            body = with_nonce(body_of(material.fill_request(request)), nonce)
            request = intake.body(body)
            offset = (call.start - calls[0].start) * self.options.pace
            steps.append(self._step(f"{strategy.name}/{number}", offset, request, call, simulation))
        found = [note for conversation in conversations for note in strategy.notes(conversation)]
        batch = [BATCH] if any(call.is_batch for call in calls) else []
        notes = tuple(dict.fromkeys([*found, *material.notes, *batch]))
        return PlannedStrategy(strategy.name, tuple(steps), notes, getattr(strategy, "rules", {}))

    def _step(self, label: str, offset: float, request: Request, call: Call, simulation: Simulation) -> LiveCall:
        start, body = self.now + offset, body_of(request)
        output = int(body["max_tokens"])
        planned = Call(
            request,
            start,
            output_tokens=output,
            purpose=call.purpose,
            turn=call.turn,
            inquiry=call.inquiry,
            is_simulated=True,
        )
        row = simulation.row(date_call(planned))
        if row.error_type == NOT_EVALUATED:
            raise CannotEvaluate(f"{label}: {row.error}")
        worst = ZERO
        if not row.error:
            tokens = from_count(row.usage.total_input)
            worst = CallPricing(self.terms.prices, HOST).worst(body, tokens, day_of(start))
        return LiveCall(label, offset, request, body, row, worst, row.error)
