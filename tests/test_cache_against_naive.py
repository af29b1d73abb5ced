"""The engine against the rulebook written plainly (`naive.py`): whatever is sent, no difference."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cachecost.caches.breakpoints import PrefixCache
from cachecost.prompts.blocks import Block
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import pass_times, passes
from cachecost.prompts.render import NOTHING_HIDDEN, Hidden, Renderer
from cachecost.prompts.request import Request, answer_blocks, refusal, sent_breakpoints
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rules import ModelRules
from naive import NaiveModel
from naive_wire import blocks_of, inside

TEXTS = st.sampled_from(["a", "bb", "é", "long " * 8, ""])
IDS = st.sampled_from(["t1", "t2"])
TTLS = st.sampled_from(["5m", "1h"])
AUTOMATIC = [None, None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]
WAITS = st.sampled_from([0, 0.5, 1, 2, 3, 299, 300, 301, 3599, 3600])


@dataclass
class Bytes:
    """Rule 19, written here again so that the test does not lean on the counter it tests."""

    name: str = "bytes"
    source: str = "bytes"
    error_margin: float = 0.0

    def shared(self, one: Block, other: Block) -> int:
        return 0

    def block(self, block: Block) -> int:
        return block.size

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


ASSISTANT_BLOCK = st.one_of(
    TEXTS.map(text),
    st.builds(lambda value: {"type": "thinking", "thinking": value, "signature": "s"}, TEXTS),
    st.builds(lambda name: {"type": "tool_use", "id": name, "name": "f", "input": {"b": 1, "a": 2}}, IDS),
)
RESULT = st.builds(
    lambda name, content: {"type": "tool_result", "tool_use_id": name, "content": content},
    IDS,
    st.one_of(
        st.sampled_from(["raw", [text("r")], [text("s"), text("u")]]),
        st.just([{"type": "image", "source": {"type": "url", "url": "x"}}]),
        st.just([{"type": "tool_reference", "tool_name": "late"}]),
    ),
)
DOCUMENT = st.builds(
    lambda on: {"type": "document", "source": {"type": "text", "data": "d"}, "citations": {"enabled": on}},
    st.booleans(),
)
USER_BLOCK = st.one_of(TEXTS.map(text), RESULT, RESULT, DOCUMENT)
USE = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
SERVED = {"type": "web_search_tool_result", "tool_use_id": "s", "content": "found"}
RESPONSES = [[], [], [text("no tools")], [USE, SERVED, text("a")], [USE, SERVED, SERVED, USE, SERVED, text("b")]]
MESSAGES = st.lists(
    st.one_of(
        st.builds(
            lambda blocks: {"role": "assistant", "content": blocks}, st.lists(ASSISTANT_BLOCK, min_size=1, max_size=4)
        ),
        st.builds(lambda blocks: {"role": "user", "content": blocks}, st.lists(USER_BLOCK, min_size=1, max_size=6)),
        st.builds(lambda value: {"role": "user", "content": value}, TEXTS),
        st.builds(lambda value: {"role": "system", "content": value}, TEXTS),
    ),
    min_size=1,
    max_size=4,
)
F = {"name": "f", "input_schema": {}}
LATE = {"name": "late", "input_schema": {}, "defer_loading": True}
WEB = {"type": "web_search_20250305", "name": "web_search"}
PARAMETERS: dict[str, Any] = {
    "tool_choice": [
        None,
        {"type": "auto"},
        {"type": "none"},
        {"type": "any"},
        {"type": "tool", "name": "f"},
        {"type": "auto", "disable_parallel_tool_use": True},
        {"type": "auto", "disable_parallel_tool_use": False},
    ],
    "thinking": [
        None,
        {"type": "disabled"},
        {"type": "enabled", "budget_tokens": 1024},
        {"type": "adaptive"},
        {"type": "adaptive", "display": "omitted"},
    ],
    "output_config": [None, {"effort": "high"}, {"effort": "low"}, {"format": {"type": "json_schema", "schema": {}}}],
    "speed": [None, "standard", "fast"],
    "max_tokens": [0, 1, 4096],
    "container": [None, {"id": "c"}, {"skills": []}, {"skills": [{"skill_id": "a"}]}, {"skills": [{"skill_id": "b"}]}],
    "tools": [None, [], [F], [F, {"name": "g"}], [LATE, F], [WEB, F], [F, LATE, WEB]],
    "system": [None, "be brief", [text("be brief")], [text("be brief"), text("now")]],
}


def rules_strategy() -> st.SearchStrategy[ModelRules]:
    assumptions = st.builds(
        Assumptions,
        tool_choice_invalidation=st.sampled_from(["rendered_class", "any_change", "never"]),
        thinking_rendered_at=st.sampled_from(["messages", "tools"]),
        structured_output_at=st.sampled_from(["system", "tools"]),
        shallow_breakpoints=st.sampled_from(["rewrite", "refresh", "ignore"]),
        ttl_in_key=st.booleans(),
    )
    return st.builds(
        lambda minimum, keeps, thinking, forced, collapses, positions, chosen: ModelRules(
            host="anthropic",
            model="m",
            generation="claude-3",
            minimum_tokens=minimum,
            keeps_thinking=keeps,
            default_thinking=thinking,
            accepts_forced_choice=forced,
            default_effort="high",
            context_window=10**9,
            collapses_runs=collapses,
            scope="workspace",
            lookback_positions=positions,
            assumptions=chosen,
        ),
        st.sampled_from([0, 30, 200]),
        st.booleans(),
        st.sampled_from(["disabled", "adaptive"]),
        st.booleans(),
        st.booleans(),
        st.sampled_from([1, 3, 20]),
        assumptions,
    )


class EngineAgainstNaive(RuleBasedStateMachine):
    """Conversations grow, fork, change parameters and wait; every request goes to both."""

    @initialize(rules=rules_strategy())
    def start(self, rules: ModelRules) -> None:
        self.rules = rules
        self.intake = Intake()
        self.renderer = Renderer(Bytes())
        self.cache = PrefixCache()
        self.naive = NaiveModel()
        self.now = 1000.0
        self.body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        self.saved = [copy.deepcopy(self.body)]

    @rule(messages=MESSAGES)
    def grow(self, messages: list[dict[str, Any]]) -> None:
        self.body["messages"] = self.body["messages"] + copy.deepcopy(messages)
        self.saved.append(copy.deepcopy(self.body))

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        self.body = copy.deepcopy(data.draw(st.sampled_from(self.saved)))

    @rule(name=st.sampled_from(sorted(PARAMETERS)), data=st.data())
    def change(self, name: str, data: st.DataObject) -> None:
        value = data.draw(st.sampled_from(PARAMETERS[name]))
        self.body = {**self.body, name: copy.deepcopy(value)}

    @rule(seconds=WAITS)
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data(), first_token=st.sampled_from([0.0, 0.5, 2.0]))
    def send(self, data: st.DataObject, first_token: float) -> None:
        body = copy.deepcopy(self.body)
        body["cache_control"] = data.draw(
            st.sampled_from([None, None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
        )
        if data.draw(st.booleans()):
            body["messages"][-1]["content"] = blocks_of(body["messages"][-1]["content"])
        places = list(breakpoint_places(body))
        for number in data.draw(st.lists(st.integers(0, 30), max_size=5, unique=True)):
            if number < len(places):
                places[-1 - number]["cache_control"] = {"type": "ephemeral", "ttl": data.draw(TTLS)}
        self.both(body, first_token, data.draw(st.sampled_from(RESPONSES)))

    def both(self, body: dict[str, Any], first_token: float, response: list[dict[str, Any]]) -> None:
        expected = self.naive.loop(body, response, self.rules, self.now, first_token, "")
        got = engine(self, body, first_token, response)
        if isinstance(expected, str):
            assert isinstance(got, str) and expected in got, (expected, got)
        else:
            assert got == expected, body


def breakpoint_places(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Every block object a breakpoint could be put on, legal or not; strings are left alone."""
    places = list(body.get("tools") or [])
    places += body["system"] if isinstance(body.get("system"), list) else []
    for message in body["messages"]:
        places += message["content"] if isinstance(message["content"], list) else []
    return places


def inner_places(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Every block object within one, however deep."""
    found = [place for sub in inside(block) for place in (sub, *inner_places(sub))]
    return [place for place in found if place.get("type") != "tool_reference"]


def engine(machine: Any, body: dict[str, Any], first_token: float, response: list[dict[str, Any]]) -> object:
    request = machine.intake.body(body)
    sent = sent_breakpoints(request)
    why = refusal(request, sent, machine.rules)
    if why:
        return why
    made = passes(request, answer_blocks(response, request.deferred))
    times = pass_times(machine.now, first_token, len(made))
    return [one_pass(machine, each, *moment) for each, moment in zip(made, times, strict=True)]


def one_pass(machine: Any, request: Request, start: float, first_token: float) -> tuple[int, ...]:
    prompt = machine.renderer.render(request, sent_breakpoints(request).breakpoints, machine.rules)
    outcome = machine.cache.call(prompt, machine.rules, start, first_token)
    assert outcome.usage.total_input == prompt.total_tokens
    return outcome.uncached, outcome.read, outcome.write_5m, outcome.write_1h


EngineAgainstNaive.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestEngineAgainstNaive = EngineAgainstNaive.TestCase
