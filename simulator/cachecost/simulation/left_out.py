"""Calls whose cache an analysis does not support: left out of a workload, and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.providers.hosts import host_of
from cachecost.providers.rules import LOOKBACK_CACHES, ModelRules
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload


class LeftOut(Counter[tuple[str, str]]):
    """The number of calls that were left out, by model and host."""

    def notes(self, command: str) -> Iterator[str]:
        """A line for each model and host; `command` is what does not support its cache ("explain")."""
        for (model, host), calls in self.items():
            yield (
                f"left out: {count_text(calls, 'call')} of {model} on {host}: {command} supports {LOOKBACK_CACHES}; "
                "figures are of the other calls, and replay prices these"
            )


class SupportedCalls(NamedTuple):
    """A workload of calls with breakpoint caches, and the calls that are not among them."""

    workload: Workload
    left_out: LeftOut


def supported_calls(workload: Workload, command: str) -> SupportedCalls:
    """The workload without the calls, and their bills, of caches that `command` does not support.

    Calls without rules stay: a replay says why it cannot evaluate them. All keep their number in the log.
    Raises CannotEvaluate for the first call of such a cache where no other call can be evaluated.
    """
    rules, left_out = _RulesByModel(workload.setup), LeftOut()
    kept: list[Call] = []
    for number, call in enumerate(workload.calls, 1):
        if rules.is_supported(call):
            kept.append(replace(call, number=call.number or number))
        else:
            left_out[call.request.model, host_of(call.host, workload.setup.host, call.request.model)] += 1
    if not left_out:
        return SupportedCalls(workload, left_out)
    if not rules.has_supported:
        workload.require_breakpoints(command)
    bills = [bill for bill in workload.setup.bills if rules.is_supported(bill)]
    return SupportedCalls(workload.of_calls(kept, bills), left_out)


class _RulesByModel:
    """The rules of calls, looked up once for each host, model and day."""

    def __init__(self, setup: ReplaySetup) -> None:
        self._setup = setup
        self._known: dict[tuple[str | None, str, date | None], ModelRules | None] = {}

    @property
    def has_supported(self) -> bool:
        """Whether some call has a breakpoint cache."""
        return any(rules.uses_breakpoints for rules in self._known.values() if rules)

    def is_supported(self, call: Call) -> bool:
        """Whether the call's cache is not known to be another one."""
        key = call.host, call.request.model, call.day
        if key not in self._known:
            self._known[key] = self._rules(call)
        rules = self._known[key]
        return rules is None or rules.uses_breakpoints

    def _rules(self, call: Call) -> ModelRules | None:
        try:
            return self._setup.rules_for(call)
        except CannotEvaluate:
            return None
