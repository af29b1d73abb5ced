"""Totals of many strategies, models, TTLs and prices over the same conversations."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.model import Conversation
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.strategies.agent import Agent
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.totals.walk import (
    AgentPlan,
    CallTable,
    NotShared,
    PlanStore,
    PromptStore,
    Totals,
    build_call_table,
    compute_totals,
    prompt_setup,
)

MOST_CALLS = 50_000
"""Calls whose structure is kept, about a quarter of a kilobyte each; the structure used least recently goes first."""
MOST_READINGS = 8
"""Readings of the rules whose prompts are kept; the one used least recently goes first."""


class _Key(NamedTuple):
    """What a structure depends on; all but `model` are compared by identity, and kept by it."""

    plan: AgentPlan
    prompts: PromptStore
    prices: PriceBook
    model: str | None


class SharedTotals:
    """What all comparisons of the same conversations share: plans, prompts and structures."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._plans = PlanStore(conversations)
        self._prompt_stores: list[PromptStore] = []
        self._tables: OrderedDict[_Key, CallTable] = OrderedDict()

    def totals(self, spec: StrategySpec | str, terms: ReplaySetup) -> Totals | None:
        """The exact sums of `replay_strategy` under the same terms; None where only that function can compute them."""
        agent = terms.build_strategy(spec)
        if not isinstance(agent, Agent) or agent.inquiry_by_host or terms.bills or terms.day is None:
            return None
        read = terms.for_strategy(agent).rules
        if read.assumptions.is_drawn or read.assumptions.ttl_in_key:
            return None
        try:
            for rules in terms.models(self._conversations):
                terms.counter(rules.generation)
            with pause_gc():
                plan = self._plans.of(agent)
                key = _Key(plan, self._prompts(terms, read), terms.prices, agent.model)
                table = self._table(key)
        except (CannotEvaluate, NotShared):
            return None
        return compute_totals(table, agent.placement.ttl)

    def _prompts(self, terms: ReplaySetup, book: RuleBook) -> PromptStore:
        setup = prompt_setup(terms, book)
        known = next((one for one in self._prompt_stores if one.setup == setup), None)
        if known is not None:
            self._prompt_stores.remove(known)
        self._prompt_stores.append(known or PromptStore(terms, book))
        del self._prompt_stores[:-MOST_READINGS]
        return self._prompt_stores[-1]

    def _table(self, key: _Key) -> CallTable:
        found = self._tables.pop(key, None) or self._build(key)
        self._tables[key] = found
        while len(self._tables) > 1 and sum(len(one.starts) for one in self._tables.values()) > MOST_CALLS:
            self._tables.popitem(last=False)
        return found

    def _build(self, key: _Key) -> CallTable:
        tried = (key.prompts.setup, key.model)
        if tried in key.plan.unusual:
            raise NotShared
        try:
            return build_call_table(key.plan, key.prompts, key.prices, key.model)
        except NotShared:
            key.plan.unusual.append(tried)
            raise


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause the garbage collector: nothing made here is garbage, and it would scan all of it again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
