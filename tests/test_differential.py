"""100,000 random calls with every feature: the engine and the naive model never differ (`make differential`).

Faster than the stateful test and blind to structure; the seed of a conversation reproduces it alone. A third of the
conversations is with made-up rules, the others with those of a host of Claude's way of caching, on a day; a quarter is
counted in tokens, hidden ones included, the others in bytes.
"""

from __future__ import annotations

import copy
import os
import random
from datetime import timedelta
from typing import Any

import pytest

from bodies import RULES, Bytes
from cachecost.base.structs import replace
from cachecost.caches.hosts import SimulatedHosts
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import HostPrompts
from cachecost.prompts.render import AS_COUNTED, Hidden, TokenCounter
from cachecost.prompts.request import answer_blocks, block_of, bringing, refusal
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.hosts import catalogue
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.tokens.factory import make_counter
from naive import NaiveModel
from naive_wire import blocks_of
from test_cache_against_naive import AUTOMATIC, PARAMETERS, RESPONSES, breakpoint_places, inner_places, text

CALLS = int(os.environ.get("CACHECOST_CALLS", "100000"))
CALLS_EACH = 50
WAITS = (0, 0.5, 1, 2, 3, 60, 299, 300, 301, 3599, 3600)
TEXTS = ("a", "bb", "é", "long " * 8, "", "q")
DEEP = {"type": "document", "source": {"type": "content", "content": [text("p"), text("")]}}
HOSTS = ("anthropic", "bedrock", "google-cloud", "foundry", "openrouter", "qwen", "minimax")
EXPLICIT = {"qwen": "qwen3.8-max-explicit", "minimax": "MiniMax-M2.7-explicit"}
"""Models of other makers with Claude's way of caching."""


class Tokens:
    """How long things are by a counter of tokens, for the naive model."""

    def __init__(self, counter: TokenCounter, rules: ModelRules) -> None:
        self.counter, self.rules, self.intake = counter, rules, Intake(keep_content=True)

    def block(self, role: str, block: dict[str, Any], brought: list[dict[str, Any]]) -> int:
        tools = {tool["name"]: block_of("", tool) for tool in brought}
        return self.counter.block(bringing(block_of(role, block), block, tools))

    def hidden(self, body: dict[str, Any]) -> Hidden:
        return self.counter.hidden(self.intake.body(body), self.rules)


TAKES_ALL: dict[str, Any] = {
    "accepts_system_messages": True,
    "accepted_efforts": None,
    "accepted_thinking": None,
    "efforts_without_thinking": None,
    "accepts_fast": True,
    "accepts_inference_geo": True,
    "prewarming_excludes": (),
    "format_excludes": (),
}
"""Most conversations are with a model that refuses no parameter: they go on."""


class Both:
    """One conversation with random turns, sent to the engine and to the naive model."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rules = self._rules()
        in_tokens = self.rules.keyed_by is None and self.dice.random() < 0.25
        counter = make_counter("tiktoken", self.rules.generation) if in_tokens else Bytes()
        self.intake, self.hosts = Intake(keep_content=True), SimulatedHosts()
        self.prompts = HostPrompts(lambda generation: counter)
        self.naive = NaiveModel(Tokens(counter, self.rules) if in_tokens else None)
        self.now = 1000.0
        self.body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        self.saved = [self.body]

    def _rules(self) -> ModelRules:
        return replace(
            self._made_up() if self.dice.random() < 0.3 else self._of_a_host(),
            minimum_tokens=self.dice.choice([0, 30, 200]),
            context_window=10**9,
            **({} if self.dice.random() < 0.2 else TAKES_ALL),
        )

    def _assumptions(self) -> dict[str, Any]:
        pick = self.dice.choice
        return {
            "tool_choice_invalidation": pick(["rendered_class", "any_change", "never"]),
            "thinking_rendered_at": pick(["messages", "tools"]),
            "structured_output_at": pick(["system", "tools"]),
            "shallow_breakpoints": pick(["rewrite", "refresh", "ignore"]),
            "ttl_in_key": pick([False, True]),
        }

    def _made_up(self) -> ModelRules:
        pick = self.dice.choice
        return replace(
            RULES,
            keeps_thinking=pick([False, True]),
            default_thinking=pick(["disabled", "adaptive"]),
            collapses_runs=pick([False, True]),
            lookback_positions=pick([1, 3, 20]),
            assumptions=Assumptions(**self._assumptions()),
        )

    def _of_a_host(self) -> ModelRules:
        """Those of a model and a day of its life; half of them under other readings."""
        book = catalogue(host := self.dice.choice(HOSTS))
        claude = [name for name in sorted(book.models) if name.startswith("claude-")]
        model = book.model(EXPLICIT.get(host) or self.dice.choice(claude))
        day = model.released + timedelta(self.dice.randint(0, (book.data_date - model.released).days))
        assumptions = Assumptions(**self._assumptions()) if self.dice.random() < 0.5 else Assumptions()
        found = RuleBook(assumptions).rules(host, model.id, day)
        return found if found.matching == "breakpoint" else self._of_a_host()  # Bedrock had no cache at first

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
        image = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}
        reference = {"type": "tool_reference", "tool_name": "late"}
        inner = ["raw", [text("r")], [image], [reference], [text("s"), text("")], [text("s"), DEEP]]
        result = {"type": "tool_result", "tool_use_id": self.dice.choice("uv"), "content": self.dice.choice(inner)}
        paper = {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "d"},
            "citations": {"enabled": self.dice.random() < 0.5},
        }
        return copy.deepcopy(self.dice.choice([result, result, self._text(), paper]))

    def _send(self) -> None:
        body = copy.deepcopy(self.body)
        body["cache_control"] = self.dice.choice(AUTOMATIC)
        body["messages"][-1]["content"] = blocks_of(body["messages"][-1]["content"])
        places = breakpoint_places(body)[-self.dice.randint(1, 30) :]
        deep = [inner for place in places for inner in inner_places(place)] if self.dice.random() < 0.05 else []
        for place in [*places, *deep]:
            if self.dice.random() < 0.07:
                place["cache_control"] = {"type": "ephemeral", "ttl": self.dice.choice(("5m", "5m", "1h"))}
        served = RESPONSES if self.rules.keyed_by is None else RESPONSES[:1]
        self._compare(
            body, self.dice.choice((0.0, 0.5, 2.0)), self.dice.choice(served), self.dice.choice(("", "", "w"))
        )

    def _compare(self, body: dict[str, Any], first: float, response: list[dict[str, Any]], workspace: str) -> None:
        expected = self.naive.loop(body, response, self.rules, self.now, first, workspace)
        got = self._engine(body, first, response, workspace)
        if isinstance(expected, str):
            assert isinstance(got, str) and expected in got, (expected, got, body)
        else:
            assert got == expected, body

    def _engine(self, body: dict[str, Any], first: float, response: list[dict[str, Any]], workspace: str) -> object:
        request = self.intake.body(body)
        sent = self.prompts.prepare_request(request, self.rules)
        if why := refusal(sent.told.request, sent.breakpoints, self.rules):
            return why
        answer = answer_blocks(response, request.deferred)
        prompts = self.prompts.render_prompts(sent, answer, self.rules, workspace)
        sizes = [AS_COUNTED] * len(prompts)
        outcomes = self.hosts.inspect(request, prompts, self.rules, workspace, (self.now, first), sizes).outcomes
        assert [one.total for one in outcomes] == [prompt.total_tokens for prompt in prompts]
        return [(one.uncached, one.read, one.write_5m, one.write_1h) for one in outcomes]


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


@pytest.mark.long
def test_a_hundred_thousand_calls() -> None:
    compare(CALLS)
