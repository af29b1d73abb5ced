"""From what a scenario or a caller names to a strategy that can plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cachecost.strategies.agent import Agent
from cachecost.strategies.model_facts import Facts
from cachecost.strategies.plan import Strategy
from cachecost.strategies.registry import find_strategy

if TYPE_CHECKING:
    from cachecost.strategies.spec import StrategySpec


def build(spec: StrategySpec | str, *, model: str | None = None, facts: Facts | None = None) -> Strategy:
    """The strategy that a name or a scenario's entry describes, ready to plan.

    `model` is used where the entry names none (it wins over the recording's); `facts` tells of a model, by its
    id, what window it has, whether it accepts a forced tool choice and on which host it runs. Raises UnknownStrategy,
    ValueError for options that do not go together, and CannotEvaluate where a strategy is another one on each host
    and nothing is known of this one.
    """
    found = find_strategy(spec) if isinstance(spec, str) else spec.resolve()
    if not isinstance(found, Agent):
        return found
    agent = replace(found, model=found.model or model, facts=found.facts or facts)
    return agent.for_host_of(agent.model) if agent.model and agent.facts else agent
