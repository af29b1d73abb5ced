"""Whether calls are rendered alike under other assumptions: the same lengths, and the same calls share the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.cache_keys import CacheKeys, cache_keys_of
from cachecost.prompts.counting import Hidden
from cachecost.providers.rules import ModelRules
from cachecost.simulation.setup import ReplaySetup

Head = tuple[CacheKeys, Hidden]
"""What assumptions change of a prompt: the cache keys of its layers, and its hidden tokens."""


class AlikePrompts:
    """The calls of an evaluator, and those whose bills it knows, under its own assumptions and under others."""

    def __init__(self, evaluator: PlanEvaluator, calls: Sequence[Call]) -> None:
        self._evaluator = evaluator
        self._calls = list({_content(call): call for call in chain(evaluator.terms.bills, calls)}.values())
        self._rules: list[ModelRules | None] = list(map(self._rules_of(evaluator.terms), self._calls))
        self._heads: list[Head] | None = None

    def have_equal_rules(self, terms: ReplaySetup) -> bool:
        """Whether the assumptions change no other rule of any call."""
        others = map(self._rules_of(terms), self._calls)
        checked: dict[tuple[int, int], bool] = {}
        for rules, other in zip(self._rules, others, strict=True):
            key = id(rules), id(other)
            if key not in checked:
                checked[key] = _are_equal(rules, other)
            if not checked[key]:
                return False
        return True

    def are_alike(self, terms: ReplaySetup) -> bool:
        """Whether each call has the same hidden tokens, and two calls share a cache key exactly where they did."""
        if not self.have_equal_rules(terms) or any(one and one.keyed_by is not None for one in self._rules):
            return False
        if self._heads is None:
            self._heads = list(self._find_heads(self._rules))
        others = list(self._find_heads(list(map(self._rules_of(terms), self._calls))))
        if [hidden for _, hidden in self._heads] != [hidden for _, hidden in others]:
            return False
        return all(_is_one_to_one(self._keys_to(self._heads, end), self._keys_to(others, end)) for end in (1, 2, 3))

    @staticmethod
    def _keys_to(heads: Sequence[Head], end: int) -> list[tuple[str, ...]]:
        return [keys[:end] for keys, _ in heads]

    def _find_heads(self, rules: Sequence[ModelRules | None]) -> Iterator[Head]:
        """Of the calls that can be rendered: whether one can follows from no assumption."""
        prompts = self._evaluator.preparer.prompts
        for call, of_call in zip(self._calls, rules, strict=True):
            if of_call is None or call.has_failed or call.why_unknown:
                continue
            request = prompts.prepare_request(call.request, of_call).told.request
            try:
                hidden = prompts.renderer(of_call.generation).counter.hidden(request, of_call)
            except CannotEvaluate:
                continue
            yield cache_keys_of(request, of_call), hidden

    def _rules_of(self, terms: ReplaySetup) -> Callable[[Call], ModelRules | None]:
        def find(call: Call) -> ModelRules | None:
            try:
                return terms.rules_for(call)
            except CannotEvaluate:
                return None

        return find


def _content(call: Call) -> tuple[object, ...]:
    """What prompts depend on besides rules and breakpoints, by identity; the same of a call and of its bill."""
    request = call.request
    parts = request.thread, request.tools, request.system, request.params, request.message_thread
    return *map(id, parts), request.model, call.host, call.day, call.workspace, call.has_failed, bool(call.why_unknown)


def _are_equal(rules: ModelRules | None, other: ModelRules | None) -> bool:
    if rules is None or other is None:
        return rules is other
    return replace(other, assumptions=rules.assumptions) == rules


def _is_one_to_one(ones: Sequence[object], others: Sequence[object]) -> bool:
    """Whether two of `ones` are equal exactly where those of `others` are."""
    pairs = set(zip(ones, others, strict=True))
    return len(pairs) == len(set(ones)) == len(set(others))
