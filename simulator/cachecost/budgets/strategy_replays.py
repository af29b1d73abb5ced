"""Replays each strategy once, with everything that limits need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Human
from cachecost.ledger.margin import margin
from cachecost.ledger.results import CallRow, Ledger
from cachecost.prompts.blocks import Thread
from cachecost.prompts.request import Request
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
        return Ledger(self.strategy, rows, [], self._token_source, margin(rows, self.traffic.setup.error_margin))

    @property
    def _token_source(self) -> str:
        """Where the lengths come from: the tokenizers of this strategy's calls."""
        known = dict.fromkeys(one.rules.generation for one in self.simulated if one.rules)
        counted = "; ".join(dict.fromkeys(self.traffic.setup.counter(generation).source for generation in known))
        return f"the recording's bills, then {counted}" if self.traffic.setup.bills else counted

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
    """Replays of each strategy of a scenario as written, and of the recorded calls if a budget names them, or with
    `and_recorded` if there are any.

    Raises InputError, CannotEvaluate.
    """
    said_turns = _turns(scenario, folder)
    for traffic in (*scenario_workloads(scenario, folder), *_recorded_workload(scenario, folder, and_recorded)):
        turns = _turns_sent(traffic) if traffic.strategy == AS_RECORDED else said_turns
        simulation = traffic.simulation()
        simulated = []
        for number, call in enumerate(traffic.calls, 1):
            simulated.append(simulation.simulate(call))
            progress(traffic.strategy, number)
        yield ReplayedStrategy(traffic, simulated, turns)


def _turns(scenario: Scenario, folder: Path) -> int:
    """Human turns of the conversations; 0 if no budget needs them."""
    if all(budget.max_cost_per_turn_usd is None for budget in scenario.budget):
        return 0
    conversations = load_conversations(scenario, folder).conversations
    return sum(isinstance(event, Human) for conversation in conversations for event in conversation.events)


def _turns_sent(traffic: Workload) -> int:
    """Human messages that recorded calls answer; one that is sent in several calls is one turn."""
    return len({(call.workspace, human) for call in traffic.calls if (human := call.request.thread.human)})


def _recorded_workload(scenario: Scenario, folder: Path, and_recorded: bool) -> Iterator[Workload]:
    """The calls just as they were sent, if a budget names them beside the strategies, or all are asked for."""
    is_named = any(budget.strategy == AS_RECORDED for budget in scenario.budget)
    if not scenario.strategies or not (is_named or and_recorded):
        return
    bills = load_conversations(scenario, folder).bills
    if bills or is_named:
        yield workload_as_recorded(scenario, folder, bills)
