"""Sub-agents: which runs leave the main thread, what stays of them, and what theirs begins with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from itertools import pairwise

import pytest
from small_talks import MODEL, conversation, fingerprint, head, question, said, user

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import Block, Message, Part, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.subagents import SubAgents
from cachecost.strategies.spec import StrategySpec

OTHER = "claude-haiku-4-5"


def turn(number: int, loops: int = 3, result: int = 1_000) -> list[Event]:
    at = 100.0 * number
    events: list[Event] = [Human(at, (given_block("text", "user", f"q{number}", 20),))]
    for n in range(loops):
        events.append(Reply(at + 5 * n + 1, (given_block("tool_use", "assistant", f"u{number}.{n}", 30),)))
        events.append(Results(at + 5 * n + 6, (given_block("tool_result", "user", f"r{number}.{n}", result),)))
    return [*events, Reply(at + 5 * loops + 1, (given_block("text", "assistant", f"a{number}", 40),))]


def conversations(
    change: AgentChange, events: Iterable[Event], params: dict[str, object] | None = None
) -> list[Conversation]:
    return Agent(name="a", changes=(change,)).apply_changes(conversation(*events, params=params))


def calls_of(conversation: Conversation) -> list[Call]:
    return list(Agent(name="a").plan(conversation))


def told(blocks: Iterable[Block]) -> str:
    return " ".join(f"{block.kind}:{block.tokens}" for block in blocks)


def shape(call: Call) -> list[str]:
    return [told(message.blocks) for message in call.request.thread.messages()]


def test_the_main_thread_keeps_a_call_and_a_summary() -> None:
    main, sub = conversations(SubAgents(), turn(0))
    calls, its = calls_of(main), calls_of(sub)
    assert [shape(call) for call in calls] == [["text:20"], ["text:20", "tool_use:300", "tool_result:500"]]
    assert [told(call.output) for call in calls] == ["tool_use:300", "text:40"]
    assert shape(its[-1]) == ["text:300", *["tool_use:30", "tool_result:1000"] * 3]
    assert told(its[-1].output) == "text:500"
    assert [call.start for call in calls] == [1, 20]
    assert [call.start for call in its] == [3, 8, 13, 18]


def test_no_call_starts_before_the_one_it_waits_for() -> None:
    events = [replace_start(event) for event in turn(0)]
    main, sub = conversations(SubAgents(), events)
    first, last = calls_of(main)
    assert [first.start, *(call.start for call in calls_of(sub)), last.start] == [1, 9, 14, 19, 24, 26]


def replace_start(event: Event) -> Event:
    """Its first call took 8 seconds to its first token."""
    return Reply(1, event.blocks, 8.0) if isinstance(event, Reply) and event.at == 1 else event


@pytest.mark.parametrize(("least", "rate", "subs"), [(3, 1.0, 4), (4, 1.0, 0), (3, 0.5, 2), (3, 0.0, 0)])
def test_a_share_of_the_runs_that_are_long_enough(least: int, rate: float, subs: int) -> None:
    events = [event for n in range(4) for event in turn(n)]
    found = conversations(SubAgents(least_calls=least, rate=rate), events)
    assert len(found) == 1 + subs
    assert [conversation.name for conversation in found[1:]] == [f"small, sub-agent {n}" for n in range(1, subs + 1)]


@pytest.mark.parametrize(
    "events",
    [
        turn(0)[:-1],
        [*turn(0)[:4], ThreadRewrite(8, 1, (), "edit"), *turn(0)[4:]],
        [*turn(0)[:4], Switch(8, OTHER, *head(), {}), *turn(0)[4:]],
        turn(0)[1:],
        [*turn(0)[:-1], Reply(17, (given_block("tool_use", "assistant", "no result", 30),)), *turn(1, 0)],
    ],
)
def test_what_is_no_whole_run_stays(events: list[Event]) -> None:
    found = conversations(SubAgents(tool_tokens=0), events)
    assert len(found) == 1
    plain = [fingerprint(call) for call in Agent(name="a").plan(conversation(*events))]
    assert [fingerprint(call) for call in calls_of(found[0])] == plain


def test_heads_of_its_own_or_the_parents() -> None:
    main, sub = conversations(SubAgents(), turn(0))
    assert told(main.tools.blocks) == "tool:100 tool:100 tool:200"
    assert (sub.tools is main.tools, told(sub.system.blocks)) == (True, "text:2000")
    main, sub = conversations(SubAgents(system_tokens=None, own_tools_tokens=70, tool_tokens=0), turn(0))
    assert (told(main.tools.blocks), told(sub.tools.blocks)) == ("tool:100 tool:100", "tool:70")
    assert sub.system is main.system
    both = conversations(SubAgents(own_tools_tokens=0), [*turn(0), *turn(1)])
    assert both[1].tools is both[2].tools
    assert both[1].tools.blocks == ()


def test_a_fork_that_inherits_begins_with_the_parents_thread_and_head() -> None:
    events = [*turn(0, 1), *turn(1)]
    main, sub = conversations(SubAgents(fork="inherits", own_tools_tokens=9), events)
    assert (sub.tools, sub.system) == (main.tools, main.system)
    parent, child = calls_of(main)[2], calls_of(sub)[0]
    assert shape(child) == [*shape(parent), "tool_use:300", "tool_result:20"]
    assert child.request.thread.parent is not None
    assert child.request.thread.parent.parent is parent.request.thread


def test_another_model_leaves_out_what_it_may_not_know() -> None:
    params = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "max_tokens": 9}
    main, sub = conversations(SubAgents(model=OTHER), turn(0), params)
    assert (sub.model, sub.is_chosen, sub.params) == (OTHER, True, {"max_tokens": 9})
    assert (main.model, main.is_chosen, main.params) == (MODEL, False, params)
    agent = Agent(name="a", changes=(SubAgents(model=OTHER),), model="claude-sonnet-4-6")
    models = [call.request.model for call in agent.plan(conversation(*turn(0)))]
    assert sorted(models) == [OTHER] * 4 + ["claude-sonnet-4-6"] * 2


def test_questions_go_with_the_run_and_switches_before_it_count() -> None:
    more = Part((given_block("text", "system", "other", 77),))
    first = Switch(50, OTHER, head()[0], more, {})
    run = turn(1)
    main, sub = conversations(SubAgents(system_tokens=None), [*turn(0, 1), first, *run[:2], question(1, 103), *run[2:]])
    assert (len(main.inquiries), len(sub.inquiries)) == (0, 1)
    assert (sub.model, told(sub.system.blocks)) == (OTHER, "text:77")


def test_going_back_into_a_run_brings_it_back() -> None:
    main, _ = conversations(
        SubAgents(), [*turn(0), ThreadRewrite(90, 3, (), "fork"), Reply(91, (said("else"),)), *turn(2, 0)]
    )
    calls = calls_of(main)
    assert shape(calls[2]) == ["text:20", "tool_use:30", "tool_result:1000"]
    main, _ = conversations(SubAgents(), [*turn(0), ThreadRewrite(90, 7, (), "fork"), Reply(91, (said("else"),))])
    assert shape(calls_of(main)[-1]) == ["text:20", "tool_use:300", "tool_result:500"]


def test_side_calls_of_a_run_stay_beside_the_main_thread_in_time() -> None:
    asks = Message.of("user", (user("title?"),))
    plain = conversation(*turn(0))
    side = Aside(7, Request(MODEL, plain.root.then(asks), Part(), Part()), Reply(7, (said("t"),)))
    main, sub = conversations(SubAgents(), [*turn(0)[:3], side, *turn(0)[3:]])
    assert [call.start for call in calls_of(main)] == [1, 7, 20]
    assert len(calls_of(sub)) == 4


def cost(change: AgentChange | None, result: int) -> float:
    spec = StrategySpec.model_validate({"name": "x", "preset": "progressive", "changes": [change] if change else []})
    terms = ReplaySetup(
        RuleBook(as_of=date(2026, 6, 1)), PriceBook.load(None, date(2026, 6, 1)), tokens="bytes", model=MODEL
    )
    system = Part((given_block("text", "system", "s", 9_000),))
    events = tuple(event for n in range(5) for event in turn(n, 6, result))
    conversation = Conversation("x", events, MODEL, Part((given_block("tool", "", "t", 4_000),)), system)
    rows = replay_strategy(spec, conversation, terms).rows
    assert all(one.start <= other.start for one, other in pairwise(rows))
    return float(sum(row.cost.total for row in rows))


def test_a_summary_pays_where_results_are_long_and_not_where_they_are_short() -> None:
    assert cost(SubAgents(), 8_000) < cost(None, 8_000)
    assert cost(SubAgents(), 50) > cost(None, 50)


def test_a_fork_that_inherits_reads_what_its_parent_wrote() -> None:
    inherits, fresh = (cost(SubAgents(fork=how, system_tokens=9_000), 50) for how in ("inherits", "fresh"))
    assert inherits < fresh
