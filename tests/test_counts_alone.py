"""A count is a function of its request alone: what stood before it in the log changes no count and no dollar."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import TokenCounter
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import make_counter
from cachecost.tokens.tokenizers import has_ctok

Body = dict[str, Any]
SOURCES = ["bytes", "tiktoken", *(["ctok"] if has_ctok() else [])]
MODELS = {
    "anthropic": ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-5"],
    "bedrock": ["anthropic.claude-sonnet-4-5-20250929-v1:0"],
    "openai": ["gpt-5", "gpt-5.6-sol"],
    "deepseek": ["deepseek-v4-pro"],
    "gemini": ["gemini-3.8-flash"],
    "vllm": ["vllm"],
}
DAY = date(2026, 10, 1)
APART = 100_000.0
"""Seconds: longer than any entry lives."""

SCHEMA = {"type": "json_schema", "schema": {"type": "object", "properties": {"answer": {"type": "string"}}}}
BREAKPOINT = {"type": "ephemeral"}


def tool(name: str, **more: Any) -> Body:
    return {"name": name, "description": f"Looks up a {name}.", "input_schema": {"type": "object"}, **more}


SEARCH = {"type": "web_search_20250305", "name": "web_search"}
TOOLS = [
    [],
    [tool("book")],
    [tool("book"), tool("film")],
    [SEARCH],
    [tool("book"), SEARCH],
    [tool("late", defer_loading=True)],
]
SYSTEMS = [
    None,
    "Be brief.",
    [{"type": "text", "text": "Be brief."}],
    [{"type": "text", "text": "Cite.", "cache_control": BREAKPOINT}],
]
USED = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "book", "input": {"q": "x"}}]}
PAIR = {
    "role": "assistant",
    "content": [*USED["content"], {"type": "tool_use", "id": "b", "name": "book", "input": {}}],
}


def result(name: str, content: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


FOUND = [{"type": "tool_reference", "tool_name": "late"}]
THREADS = [
    [{"role": "user", "content": "hi"}],
    [{"role": "user", "content": "hi"}, USED, {"role": "user", "content": [result("a", "x")]}],
    [{"role": "user", "content": "hi"}, PAIR, {"role": "user", "content": [result("a", "x"), result("b", "y")]}],
    [{"role": "user", "content": "hi"}, USED, {"role": "user", "content": [result("a", FOUND)]}],
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hel"}],
    [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "s" * 300}, *USED["content"]],
        },
        {"role": "user", "content": [result("a", "x")]},
    ],
]
BODIES = st.fixed_dictionaries(
    {"messages": st.sampled_from(THREADS)},
    optional={
        "tools": st.sampled_from(TOOLS),
        "system": st.sampled_from([one for one in SYSTEMS if one]),
        "thinking": st.sampled_from(
            [{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}, {"type": "disabled"}]
        ),
        "tool_choice": st.sampled_from(
            [
                {"type": "auto"},
                {"type": "any"},
                {"type": "tool", "name": "book"},
                {"type": "auto", "disable_parallel_tool_use": True},
            ]
        ),
        "output_config": st.sampled_from([{"format": SCHEMA}, {"effort": "low"}, {"format": SCHEMA, "effort": "high"}]),
        "speed": st.just("fast"),
        "cache_control": st.just(BREAKPOINT),
    },
)
RULES = st.sampled_from(
    [
        {},
        {"tool_choice_invalidation": "any_change"},
        {"tool_choice_invalidation": "never"},
        {"thinking_rendered_at": "tools"},
        {"structured_output_at": "tools"},
        {"schema_in_prompt": "at_the_head"},
        {"schema_in_prompt": "not_in_it"},
    ]
)


@cache
def counter(source: str, generation: str) -> TokenCounter:
    return make_counter(source, generation)


class CountedBy(ReplaySetup):
    """A setup whose `tokens` name one of these tests' counters."""

    def counter(self, generation: str) -> TokenCounter:
        return counter(self.tokens, generation)


def simulation(source: str, host: str, rules: Body) -> Simulation:
    book = RuleBook(assumptions_from(rules), DAY)
    return Simulation(CountedBy(book, PriceBook.load(None, DAY), host, source, may_lack_prices=True))


def figures_of_row(row: CallRow, with_dollars: bool) -> tuple[Any, ...]:
    """What a row says of a call's size, and of its price where nothing was read."""
    sizes = {layer: one.read + one.write_5m + one.write_1h + one.input for layer, one in row.by_layer.items()}
    return row.usage.total_input, sizes, row.error, (row.usage, row.cost) if with_dollars else None


class OneAfterAnother(RuleBasedStateMachine):
    """Calls so far apart that none reads: each costs in a long log what it costs in a log of its own."""

    @initialize(source=st.sampled_from(SOURCES), host=st.sampled_from(sorted(MODELS)), rules=RULES)
    def begin(self, source: str, host: str, rules: Body) -> None:
        self.made = lambda: simulation(source, host, rules)
        self.models = MODELS[host]
        self.long, self.intake, self.times = self.made(), Intake(keep_content=True), count(0)

    @rule(body=BODIES, model=st.integers(0, 9))
    def send(self, body: Body, model: int) -> None:
        sent = {"model": self.models[model % len(self.models)], "max_tokens": 9, **body}
        after_others = self.long.row(Call(self.intake.body(sent), next(self.times) * APART))
        alone = self.made().row(Call(Intake(keep_content=True).body(sent), 0.0))
        reads_nothing = not after_others.usage.read  # some servers keep entries for good
        assert figures_of_row(after_others, reads_nothing) == figures_of_row(alone, reads_nothing)


TestOneAfterAnother = OneAfterAnother.TestCase
TestOneAfterAnother.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)


def as_logged(*bodies: Body) -> list[int]:
    """Input tokens of each body in a log of them, all with default tokens."""
    made, intake = simulation("tiktoken", "anthropic", {}), Intake(keep_content=True)
    calls = (
        Call(intake.body({"model": "claude-sonnet-4-5", **one}), number * APART) for number, one in enumerate(bodies)
    )
    return [row.usage.total_input for row in made.rows(calls)]


def test_a_call_without_tools_is_as_long_before_as_after_one_with_tools() -> None:
    plain: Body = {"messages": THREADS[0]}
    with_tools: Body = {"messages": THREADS[0], "tools": TOOLS[1]}
    assert as_logged(with_tools, plain) == as_logged(plain, with_tools)[::-1]


WORKSPACES = ("one", "two")


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(SOURCES),
    st.lists(
        st.tuples(st.sampled_from(WORKSPACES), BODIES, st.integers(1, 400), st.booleans()), min_size=2, max_size=12
    ),
)
def test_logs_of_strangers_cost_the_same_apart_and_merged(source: str, sent: list[tuple[str, Body, int, bool]]) -> None:
    """Calls of another workspace, billed or not, between those of one change no count, no read and no dollar."""
    calls = list(_timed(sent))
    merged = _rows(source, calls)
    for workspace in WORKSPACES:
        own = [number for number, (call, _) in enumerate(calls) if call.workspace == workspace]
        apart = _rows(source, [calls[number] for number in own])
        together = [merged[number] for number in own]
        assert [(row.usage, row.cost, row.cause, row.error) for row in together] == [
            (row.usage, row.cost, row.cause, row.error) for row in apart
        ]


def _timed(sent: list[tuple[str, Body, int, bool]]) -> Iterator[tuple[Call, Usage | None]]:
    """The calls in time order, `wait` seconds apart, with the bill of each that has one."""
    now, intake = 0.0, Intake(keep_content=True)
    for workspace, body, wait, is_billed in sent:
        now += wait
        request = intake.body({"model": "claude-sonnet-4-5", "max_tokens": 9, **body})
        yield Call(request, now, workspace=workspace), Usage(input_tokens=1000 + 7 * wait) if is_billed else None


def _rows(source: str, calls: list[tuple[Call, Usage | None]]) -> list[CallRow]:
    made = simulation(source, "anthropic", {})
    for number, (call, bill) in enumerate(calls, 1):
        if bill:
            made.learn(number, call, bill)
    return list(made.rows(call for call, _ in calls))
