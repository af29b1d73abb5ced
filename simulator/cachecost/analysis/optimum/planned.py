"""The calls that a strategy would make of conversations, as something to optimise: their marks do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import merge

from cachecost.conversations.model import Conversation
from cachecost.prompts.blocks import Thread
from cachecost.simulation import Call, planned
from cachecost.strategies.build import build
from cachecost.strategies.spec import StrategySpec
from cachecost.terms import Terms


def planned_calls(spec: StrategySpec | str, talks: Sequence[Conversation], terms: Terms) -> list[Call]:
    """The calls of all conversations in the order they start. Raises CannotEvaluate."""
    book, root = terms.book(), Thread()
    strategy = build(spec, model=terms.model, facts=lambda model: book.rules(terms.host, model))
    plans = [strategy.plan(replace(talk, root=root)) for talk in talks]
    return [planned(call) for call in merge(*plans, key=lambda call: call.start)]
