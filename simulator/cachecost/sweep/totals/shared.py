"""Totals of many strategies, models, lifetimes and prices over the same conversations."""

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
from cachecost.replay.setup import ReplaySetup
from cachecost.strategies.agent import Agent
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.totals.plans import Plan, Plans, Unusual
from cachecost.sweep.totals.prompts import Reading, ground_of
from cachecost.sweep.totals.structure import Structure, structure_of
from cachecost.sweep.totals.walk import Totals, walked

MOST_CALLS = 50_000
"""Calls whose structure is kept, about a quarter of a kilobyte each; the structure used least recently goes first."""
MOST_READINGS = 8
"""Readings of the rules whose prompts are kept; the one used least recently goes first."""


class _Key(NamedTuple):
    """What a structure depends on; all but `model` are compared by identity, and kept by it."""

    plan: Plan
    reading: Reading
    prices: PriceBook
    model: str | None


class Shared:
    """What all comparisons of the same conversations share: plans, prompts and structures."""

    def __init__(self, talks: Sequence[Conversation]) -> None:
        self._talks = talks
        self._plans = Plans(talks)
        self._readings: list[Reading] = []
        self._structures: OrderedDict[_Key, Structure] = OrderedDict()

    def totals(self, spec: StrategySpec | str, terms: ReplaySetup) -> Totals | None:
        """The exact sums of `replay_strategy(spec, talks, terms)`; None where only that function can compute them."""
        agent = terms.build_strategy(spec)
        if not isinstance(agent, Agent) or agent.asking_on or terms.bills or terms.day is None:
            return None
        read = terms.for_strategy(agent).rules
        if read.switches.is_drawn or read.switches.ttl_in_key:
            return None
        try:
            for rules in terms.models(self._talks):
                terms.counter(rules.generation)
            with uncollected():
                plan = self._plans.of(agent)
                key = _Key(plan, self._reading(terms, read), terms.prices, agent.model)
                structure = self._structure(key)
        except (CannotEvaluate, Unusual):
            return None
        return walked(structure, agent.placement.ttl)

    def _reading(self, terms: ReplaySetup, book: RuleBook) -> Reading:
        ground = ground_of(terms, book)
        known = next((one for one in self._readings if one.ground == ground), None)
        if known is not None:
            self._readings.remove(known)
        self._readings.append(known or Reading(terms, book))
        del self._readings[:-MOST_READINGS]
        return self._readings[-1]

    def _structure(self, key: _Key) -> Structure:
        found = self._structures.pop(key, None) or self._made(key)
        self._structures[key] = found
        while len(self._structures) > 1 and sum(len(one.starts) for one in self._structures.values()) > MOST_CALLS:
            self._structures.popitem(last=False)
        return found

    def _made(self, key: _Key) -> Structure:
        tried = (key.reading.ground, key.model)
        if tried in key.plan.unusual:
            raise Unusual
        try:
            return structure_of(key.plan, key.reading, key.prices, key.model)
        except Unusual:
            key.plan.unusual.append(tried)
            raise


@contextmanager
def uncollected() -> Iterator[None]:
    """The garbage collector waits: what is made here is kept, and it would go through all of it again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
