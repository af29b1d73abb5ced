"""A simulated API for probes: what a sender gets under any reading of the rules, on a clock that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.live.driver.budget import AnsweredCall, CallFailed, OverBudget
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import sent_breakpoints
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from tools.probes import PricedProbe, ProbeFinding, plan, select_probes, verify

DAY = date(2026, 11, 22)
START = datetime(2026, 11, 22, 9, tzinfo=UTC).timestamp()
SECONDS = 1.5
FIRST_TOKEN_S = 0.75
PRICES = PriceBook()


class FakeClock:
    """Time goes on by what is slept, and by what calls take."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.time += seconds
        await asyncio.sleep(0)


class Altered(RuleBook):
    """The shipped rules with some of them otherwise than shipped: what the probes do not know."""

    def __init__(self, assumptions: Mapping[str, object], changes: Mapping[str, Any]) -> None:
        super().__init__(assumptions_from(assumptions))
        self._changes = changes

    def rules(self, host: str, model: str, day: date | None = None) -> ModelRules:
        return replace(super().rules(host, model, day), **self._changes)


@dataclass
class SimulatedSender:
    """The Sender of an API that is Intake + Simulation.

    `refuses` says why a body is a 400; `faults` are raised instead of the calls of these numbers (from 1).
    """

    clock: FakeClock
    rules: RuleBook
    tokens: str = "bytes"
    refuses: Callable[[Mapping[str, Any]], bool] = lambda body: False
    faults: Mapping[int, Exception] = field(default_factory=dict)
    seconds: float = SECONDS
    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    dollars: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        self._intake = Intake(keep_content=True)
        self._setup = ReplaySetup(self.rules, PRICES, tokens=self.tokens)
        self._simulation = Simulation(self._setup)
        self._renderers: dict[str, Renderer] = {}

    async def send(self, body: Mapping[str, Any]) -> AnsweredCall:
        self.bodies.append(body)
        if fault := self.faults.get(len(self.bodies)):
            raise fault
        if self.refuses(body):
            raise CallFailed("refused", 400, "invalid_request_error")
        start = self.clock.now()
        call = Call(self._intake.body(body), start, DAY, first_token_s=FIRST_TOKEN_S, output_tokens=body["max_tokens"])
        row = self._simulation.row(call)
        if row.error:
            raise CallFailed(row.error, 400, row.error_type or "")
        self.dollars += row.cost.total
        await self.clock.sleep(self.seconds)
        return AnsweredCall(row.usage, start, FIRST_TOKEN_S)

    async def count(self, body: Mapping[str, Any]) -> int:
        request = self._intake.body(body)
        rules = self.rules.rules("anthropic", request.model, DAY)
        if rules.generation not in self._renderers:
            self._renderers[rules.generation] = Renderer(self._setup.counter(rules.generation))
        prompt = self._renderers[rules.generation].render(request, sent_breakpoints(request).breakpoints, rules)
        return prompt.total_tokens


@dataclass
class Tried:
    """What a run found, and what it took."""

    findings: Sequence[ProbeFinding]
    planned: Sequence[PricedProbe]
    sender: SimulatedSender
    said: list[str]
    waited_s: float

    def __getitem__(self, probe: str) -> ProbeFinding:
        return next(finding for finding in self.findings if finding.probe == probe)


def tried(
    *names: str,
    model: str = "claude-sonnet-4-6",
    tokens: str = "bytes",
    assumptions: Mapping[str, object] | None = None,
    refuses: Callable[[Mapping[str, Any]], bool] = lambda body: False,
    faults: Mapping[int, Exception] | None = None,
    keep: Callable[[ProbeFinding], None] = lambda finding: None,
    seconds: float = SECONDS,
    **changes: Any,
) -> Tried:
    """Run probes against an API under `assumptions` and `changes` of the rules; the plan knows the shipped ones
    only.
    """
    clock = FakeClock()
    sender = SimulatedSender(clock, Altered(assumptions or {}, changes), tokens, refuses, faults or {}, seconds)
    planned = plan(model, PRICES, RuleBook(), select_probes(names), day=DAY)
    said: list[str] = []
    findings = asyncio.run(verify(sender, model, clock, planned, "5f1d", say=said.append, keep=keep))
    calling_s = seconds * sum(len(finding.calls) for finding in findings)
    result = Tried(findings, planned, sender, said, clock.now() - START - calling_s)
    kept_to_the_plan(result)
    return result


def kept_to_the_plan(run: Tried) -> None:
    """No probe took more than it had told: calls, tokens, dollars, waiting."""
    for finding, priced in zip(run.findings, run.planned, strict=False):
        assert finding.dollars <= priced.dollars
        assert len(finding.calls) <= priced.calls
        assert sum(taken.usage.total_input for taken in finding.calls) <= priced.input_tokens
        assert sum(taken.usage.output_tokens for taken in finding.calls) <= priced.output_tokens
    assert sum(finding.dollars for finding in run.findings) == run.sender.dollars
    assert run.waited_s <= sum(priced.wait_s for priced in run.planned) + 0.001


def fault_over_budget() -> OverBudget:
    return OverBudget("the next call could cost $0.02; $0.01 is left")
