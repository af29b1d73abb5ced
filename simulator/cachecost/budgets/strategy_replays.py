"""Replays of each strategy, once, with everything that limits need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Human
from cachecost.ledger.findings import margin
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Thread
from cachecost.prompts.render import TokenCounter
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.scenario import Scenario, load_conversations
from cachecost.simulation.engine import AS_RECORDED, SimulatedCall
from cachecost.simulation.setup import Progress, no_progress
from cachecost.simulation.workload import Workload, scenario_workloads, workload_as_recorded


@dataclass(frozen=True)
class ReplayedStrategy:
    """The calls of one strategy, and what the simulation made of each. `turns` are the human turns they serve."""

    traffic: Workload
    simulated: Sequence[SimulatedCall]
    turns: int

    @property
    def strategy(self) -> str:
        return self.traffic.strategy

    @property
    def calls(self) -> Sequence[Call]:
        return self.traffic.calls

    @property
    def rows(self) -> list[CallRow]:
        return self.ledger.rows

    @cached_property
    def ledger(self) -> Ledger:
        rows = [one.row for one in self.simulated]
        source = "; ".join(dict.fromkeys(counter.source for counter in self._counters))
        if self.traffic.setup.bills:
            source = f"the recording's bills, then {source}"
        return Ledger(self.strategy, rows, [], source, margin(rows, self.traffic.setup.error_margin))

    @cached_property
    def _counters(self) -> list[TokenCounter]:
        known = dict.fromkeys(one.rules.generation for one in self.simulated if one.rules)
        return list(map(self.traffic.setup.counter, known))

    @property
    def counter(self) -> TokenCounter | None:
        """The tokenizer of the first call whose model is known."""
        return next(iter(self._counters), None)

    @property
    def rules_without_lookback(self) -> ModelRules | None:
        """The rules of the first call whose cache has no breakpoints that look back; None: all have."""
        return next((one.rules for one in self.simulated if one.rules and not one.rules.uses_breakpoints), None)

    def request(self, call: int) -> Request:
        """The request of a call, by its number from 1."""
        return self.calls[call - 1].request

    def conversation(self, call: int) -> tuple[str, Thread]:
        """What the calls of one conversation have in common: their workspace and their first message."""
        one = self.calls[call - 1]
        return one.workspace, one.request.thread.beginning


def replay_strategies(
    scenario: Scenario, folder: Path, progress: Progress = no_progress, and_recorded: bool = False
) -> Iterator[ReplayedStrategy]:
    """Replays of each strategy as written, and of the recorded calls if a budget names them, or with `and_recorded` if
    there are any. Raises InputError, CannotEvaluate."""
    human_turns = 0
    if any(budget.max_cost_per_turn_usd is not None for budget in scenario.budget):
        events = (event for one in load_conversations(scenario, folder).conversations for event in one.events)
        human_turns = sum(isinstance(event, Human) for event in events)
    workloads = list(scenario_workloads(scenario, folder))
    is_named = any(budget.strategy == AS_RECORDED for budget in scenario.budget)
    if scenario.strategies and (is_named or and_recorded):
        bills = load_conversations(scenario, folder).bills
        if bills or is_named:
            workloads.append(workload_as_recorded(scenario, folder, bills))
    for traffic in workloads:
        turns = human_turns
        if traffic.strategy == AS_RECORDED:  # human messages that calls answer; one that is sent in several is one turn
            humans = ((call.workspace, call.request.thread.human) for call in traffic.calls)
            turns = len({(workspace, human) for workspace, human in humans if human})
        simulation = traffic.simulation()
        simulated = []
        for number, call in enumerate(traffic.calls, 1):
            simulated.append(simulation.simulate(call))
            progress(traffic.strategy, number)
        yield ReplayedStrategy(traffic, simulated, turns)
