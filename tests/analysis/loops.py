"""A healthy tool loop as bodies, into which a test plants one fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from datetime import date
from decimal import Decimal
from typing import Any

from cachecost.analysis.explain.explaining import explain
from cachecost.caches.breakpoints import PrefixCache
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Explanation
from cachecost.prompts.intake import Intake
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook, terms_of
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload
from naive import NaiveModel

Body = dict[str, Any]
Plant = Callable[[list["Sending"]], None]
EPHEMERAL = {"type": "ephemeral"}
DAY = date(2026, 11, 21)
PRICES = PriceBook.load(None, DAY)


class Sending:
    """A body and when it is sent."""

    def __init__(self, body: Body, start: float) -> None:
        self.body = body
        self.start = start
        self.first_token_s = 0.5
        self.workspace = ""


def words(name: str, count: int) -> str:
    return " ".join(f"{name}-{number}" for number in range(count))


def healthy(calls: int = 10, model: str = "claude-sonnet-4-5", topic: str = "one") -> list[Sending]:
    """Calls 20 s apart, the last message marked each time, tools and system prompt marked at the start."""
    tools = [
        {"name": f"tool_{n}", "description": words(f"tool {n}", 150), "input_schema": {"type": "object"}}
        for n in range(4)
    ]
    tools[-1]["cache_control"] = EPHEMERAL
    system = [
        {"type": "text", "text": words("rule", 400)},
        {"type": "text", "text": words("folder", 40), "cache_control": EPHEMERAL},
    ]
    messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": words(f"question {topic}", 60)}]}]
    sendings = []
    for number in range(calls):
        body = deepcopy({"model": model, "max_tokens": 100, "tools": tools, "system": system, "messages": messages})
        body["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL
        sendings.append(Sending(body, 1000.0 + 20 * number))
        use = {"type": "tool_use", "id": f"t{number}", "name": "tool_1", "input": {"path": f"{topic}/{number}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": words(f"line {topic} {number}", 80)}
        said = {"type": "text", "text": words(f"I look {number}", 10)}
        messages += [{"role": "assistant", "content": [said, use]}, {"role": "user", "content": [result]}]
    return sendings


def calls_of(sendings: Iterable[Sending]) -> list[Call]:
    intake = Intake(keep_content=True)
    ordered = sorted(sendings, key=lambda one: one.start)
    return [
        Call(
            intake.body(json.loads(json.dumps(one.body))),
            one.start,
            DAY,
            first_token_s=one.first_token_s,
            workspace=one.workspace,
            output_tokens=20,
        )
        for one in ordered
    ]


def workload(sendings: Iterable[Sending], rules: dict[str, object] | None = None) -> Workload:
    return workload_of(calls_of(sendings), rules)


def workload_of(calls: Sequence[Call], rules: dict[str, object] | None = None) -> Workload:
    book = RuleBook(assumptions_from(rules or {}), DAY)
    return Workload("loop", calls, ReplaySetup(book, PRICES, tokens="bytes"))


def explained(sendings: Iterable[Sending], rules: dict[str, object] | None = None) -> Explanation:
    return explain(workload(sendings, rules))


def cost_of(sendings: Iterable[Sending]) -> Any:
    traffic = workload(sendings)
    return sum(row.cost.total for row in traffic.simulation().rows(traffic.calls))


def naive_cost(sendings: Iterable[Sending]) -> Decimal:
    """USD of the calls by the plain rulebook (naive.py), with 20 tokens of output each as in `calls_of`."""
    model, book, total = NaiveModel(), RuleBook(as_of=DAY), Decimal()
    for one in sorted(sendings, key=lambda one: one.start):
        rules = book.rules("anthropic", one.body["model"], DAY)
        usage = Usage(*model.call(deepcopy(one.body), rules, one.start, one.first_token_s, one.workspace), 20)
        quote = PRICES.quote("anthropic", rules.model, DAY, terms_of(one.body, False))
        total += quote.of(usage.total_input).total_cost(usage)
    return total


def simulation(cache: PrefixCache | None = None, rules: dict[str, object] | None = None) -> Simulation:
    return workload([], rules).simulation(cache)
