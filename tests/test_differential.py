"""100,000 random calls with every feature: the engine and the naive model never differ (`make differential`).

Faster than the stateful test and blind to structure; the seed of a conversation reproduces it alone.
"""

from __future__ import annotations

import copy
import os
import random
from dataclasses import replace
from typing import Any

import pytest

from bodies import RULES
from cachecost.cache import PrefixCache
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Renderer
from cachecost.providers.rules import ModelRules
from cachecost.providers.switches import Switches
from naive import NaiveModel, blocks_of, later_passes
from test_cache_against_naive import AUTOMATIC, PARAMETERS, RESPONSES, Bytes, engine, markable_places, text

CALLS = int(os.environ.get("CACHECOST_CALLS", "100000"))
CALLS_EACH = 50
WAITS = (0, 0.5, 1, 2, 3, 60, 299, 300, 301, 3599, 3600)
TEXTS = ("a", "bb", "é", "long " * 8, "", "q")


class Both:
    """One conversation with random turns, sent to the engine and to the naive model."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rules = self._rules()
        self.intake, self.renderer, self.cache = Intake(), Renderer(Bytes()), PrefixCache()
        self.naive = NaiveModel()
        self.now = 1000.0
        self.body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        self.saved = [self.body]

    def _rules(self) -> ModelRules:
        pick = self.dice.choice
        switches = Switches(
            tool_choice_invalidation=pick(["rendered_class", "any_change", "never"]),
            thinking_rendered_at=pick(["messages", "tools"]),
            structured_output_at=pick(["system", "tools"]),
            shallow_marks=pick(["rewrite", "refresh", "ignore"]),
            ttl_in_key=pick([False, True]),
        )
        return replace(
            RULES,
            minimum_tokens=pick([0, 30, 200]),
            keeps_thinking=pick([False, True]),
            collapses_runs=pick([False, True]),
            lookback_positions=pick([1, 3, 20]),
            switches=switches,
        )

    def step(self) -> None:
        self.now += self.dice.choice(WAITS)
        if self.dice.random() < 0.1:
            self.body = copy.deepcopy(self.dice.choice(self.saved))
        if self.dice.random() < 0.25:
            name = self.dice.choice(sorted(PARAMETERS))
            self.body = {**self.body, name: copy.deepcopy(self.dice.choice(PARAMETERS[name]))}
        for _ in range(self.dice.choice((0, 1, 2))):
            self.body = {**self.body, "messages": [*self.body["messages"], self._message()]}
        self.saved.append(copy.deepcopy(self.body))
        self._send()

    def _message(self) -> dict[str, Any]:
        role = self.dice.choice(("user", "assistant", "user", "assistant", "system"))
        make = {"user": self._said, "assistant": self._answered, "system": self._text}[role]
        return {"role": role, "content": [make() for _ in range(self.dice.randint(1, 5))]}

    def _text(self) -> dict[str, Any]:
        return text(self.dice.choice(TEXTS))

    def _answered(self) -> dict[str, Any]:
        use = {"type": "tool_use", "id": self.dice.choice("uv"), "name": "f", "input": {"b": 1, "a": 2}}
        thought = {"type": "thinking", "thinking": self.dice.choice(TEXTS), "signature": "s"}
        return self.dice.choice([use, use, thought, self._text()])

    def _said(self) -> dict[str, Any]:
        inner = [[text("r")], [{"type": "image", "source": {}}], [{"type": "tool_reference", "tool_name": "late"}]]
        result = {"type": "tool_result", "tool_use_id": self.dice.choice("uv"), "content": self.dice.choice(inner)}
        paper = {"type": "document", "source": {}, "citations": {"enabled": self.dice.random() < 0.5}}
        return self.dice.choice([result, result, self._text(), paper])

    def _send(self) -> None:
        body = copy.deepcopy(self.body)
        body["cache_control"] = self.dice.choice(AUTOMATIC)
        body["messages"][-1]["content"] = blocks_of(body["messages"][-1]["content"])
        for place in markable_places(body)[-self.dice.randint(1, 30) :]:
            if self.dice.random() < 0.07:
                place["cache_control"] = {"type": "ephemeral", "ttl": self.dice.choice(("5m", "5m", "1h"))}
        self._compare(body, self.dice.choice((0.0, 0.5, 2.0)), self.dice.choice(RESPONSES))

    def _compare(self, body: dict[str, Any], first: float, response: list[dict[str, Any]]) -> None:
        expected = self.naive.call(body, self.rules, self.now, first)
        got = engine(self, body, first, response)
        if isinstance(expected, str):
            assert isinstance(got, str) and expected in got, (expected, got, body)
            return
        later = [
            self.naive.call(each, self.rules, self.now + number / 1000, first, checked=False)
            for number, each in enumerate(later_passes(body, response), 1)
        ]
        assert got == [expected, *later], body


def compare(calls: int) -> None:
    for seed in range(calls // CALLS_EACH):
        both = Both(seed)
        for number in range(CALLS_EACH):
            try:
                both.step()
            except AssertionError as difference:
                raise AssertionError(f"seed={seed}, call {number}: {difference}") from difference


def test_a_thousand_calls() -> None:
    compare(1000)


@pytest.mark.slow
def test_a_hundred_thousand_calls() -> None:
    compare(CALLS)
