"""Calls for the cache's sake (pings, warm-ups), forks, and calls that go elsewhere or fail: what is sent, and when."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from small_talks import MODEL, SIX_CALLS, asked, conversation, question, said, spelled, used, user

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, ThreadRewrite
from cachecost.ledger.results import Ledger
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.keepalive import (
    CallRetries,
    KeepAlive,
    PreWarm,
    RouteAsides,
    WarmBeforeFanOut,
    needs_output,
)
from cachecost.strategies.changes.subagents import FanOut
from cachecost.strategies.registry import build
from cachecost.strategies.spec import StrategySpec

OTHER = "claude-haiku-4-5"
DAY = date(2026, 6, 1)
PRICES = PriceBook.load(None, DAY)
TOOLS = Part((given_block("tool", "", "tool", 6_000),))
SYSTEM = Part((given_block("text", "system", "system", 6_000),))


def spec(*changes: AgentChange, preset: str = "progressive", **more: Any) -> StrategySpec:
    return StrategySpec.model_validate({"name": "x", "preset": preset, "changes": list(changes), **more})


def plan(session: Conversation, *changes: AgentChange, **more: Any) -> list[Call]:
    return list(build(spec(*changes, **more)).plan(session))


def ledger(session: Conversation, *changes: AgentChange, **more: Any) -> Ledger:
    return replay_strategy(
        spec(*changes, **more), session, ReplaySetup(RuleBook(as_of=DAY), PRICES, tokens="bytes", model=MODEL)
    )


def block(role: str, name: str, tokens: int, kind: str = "text") -> Block:
    return given_block(kind, role, name, tokens)


def turns(*starts: float, first_token_s: float | None = None) -> Conversation:
    """A question of 500 tokens at each start, answered with 1,500 by a call at the same time; 12,000 go before."""
    events: list[Event] = []
    for at in starts:
        reply = Reply(at, (block("assistant", f"a{at}", 1_500),), first_token_s)
        events += [Human(at, (block("user", f"q{at}", 500),)), reply]
    return Conversation("small", tuple(events), MODEL, TOOLS, SYSTEM)


def seen(calls: list[Call]) -> list[tuple[float, str]]:
    return [(call.start, call.purpose) for call in calls]


def starts(calls: list[Call], purpose: str) -> list[float]:
    return [call.start for call in calls if call.purpose == purpose]


# keep_alive


def test_pings_are_sent_while_nothing_else_is_and_after_the_last_call() -> None:
    calls = plan(turns(0, 700, 760), KeepAlive(times=2))
    assert seen(calls) == [
        (0, "main"),
        (295, "ping"),
        (590, "ping"),
        (700, "main"),
        (760, "main"),
        (760 + 295, "ping"),
        (760 + 590, "ping"),
    ]


@pytest.mark.parametrize(("pause", "pings"), [(295.0, 0), (295.5, 1), (590.0, 1), (590.5, 2), (885.5, 3), (1180.5, 3)])
def test_a_ping_is_sent_only_if_it_is_due_before_the_next_call(pause: float, pings: int) -> None:
    calls = plan(turns(0, pause), KeepAlive(times=3, stops_at_end=True))
    assert starts(calls, "ping") == [295.0 * n for n in range(1, pings + 1)]


@pytest.mark.parametrize(("until_s", "pings"), [(None, 4), (99.0, 0), (100.0, 1), (299.0, 2), (300.0, 3), (900.0, 4)])
def test_a_pause_has_its_last_ping(until_s: float | None, pings: int) -> None:
    assert len(starts(plan(turns(0), KeepAlive(every_s=100.0, times=4, until_s=until_s)), "ping")) == pings


def test_a_ping_is_the_last_main_request_again_without_output() -> None:
    _, main, ping = plan(turns(0, 10), KeepAlive(times=1))
    assert ping.request.thread is main.request.thread and ping.request.breakpoints == main.request.breakpoints
    assert ping.request.params == {"max_tokens": 0}
    assert (ping.output, ping.output_tokens, ping.turn) == ((), 0, 2)
    asks_one = plan(turns(0), KeepAlive(times=1, max_tokens=1))[-1]
    assert (asks_one.request.params, asks_one.output_tokens) == ({"max_tokens": 1}, 1)


@pytest.mark.parametrize(
    ("breakpoints", "whole", "messages"),
    [
        ([{"before_human": {}}], False, 11),
        ([{"before_human": {"k": 2}}], False, 9),
        ([{"before_human": {"k": 3}}], False, 7),
        ([{"before_human": {"k": 3}}], True, 11),
        ([{"at_message": {"number": 9}}], False, 9),
        ([{"at_message": {"number": 9}}, "automatic"], False, 11),
    ],
)
def test_a_ping_ends_with_the_last_breakpoint_or_is_whole(breakpoints: list[Any], whole: bool, messages: int) -> None:
    """Messages 10, 8 and 6 are the assistant's: from a breakpoint there it goes on to the user's next."""
    last = plan(conversation(*SIX_CALLS), KeepAlive(times=1, whole=whole), preset="base", breakpoints=breakpoints)[-1]
    assert (last.purpose, last.request.thread.length) == ("ping", messages)


def test_a_ping_for_breakpoints_in_the_head_sends_the_head_and_a_word() -> None:
    *_, one, two = plan(turns(0), KeepAlive(times=2), preset="system-only")
    assert [message.role for message in one.request.thread.messages()] == ["user"]
    assert one.request.thread is two.request.thread
    assert spelled(one.request) == spelled(plan(turns(0), preset="system-only")[0].request) != ""


def test_nothing_is_kept_alive_where_nothing_is_marked_or_in_a_batch() -> None:
    assert starts(plan(turns(0), KeepAlive(), preset="base", breakpoints=[]), "ping") == []
    assert starts(plan(replace(turns(0), is_batch=True), KeepAlive()), "ping") == []


@pytest.mark.parametrize(
    ("params", "sent", "output"),
    [
        ({}, 0, 0),
        ({"thinking": {"type": "adaptive"}}, 0, 0),
        ({"thinking": {"type": "disabled"}}, 0, 0),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, 4097, 1),
        ({"output_config": {"effort": "low"}}, 0, 0),
        ({"output_config": {"format": {"type": "json_schema"}}}, 1, 1),
        ({"tool_choice": {"type": "auto"}}, 0, 0),
        ({"tool_choice": {"type": "any"}}, 1, 1),
        ({"tool_choice": {"type": "tool", "name": "look"}}, 1, 1),
    ],
)
def test_where_the_api_refuses_no_output_it_is_one_token(params: dict[str, Any], sent: int, output: int) -> None:
    session = replace(turns(0), params={**params, "stream": True})
    ping = plan(session, KeepAlive(times=1))[-1]
    assert ping.request.params == {**params, "max_tokens": sent}
    assert (ping.output_tokens, needs_output(params)) == (output, bool(output))


def test_side_calls_do_not_keep_the_main_thread_warm() -> None:
    aside = Aside(200, Request(MODEL, Thread(), TOOLS, NOTHING), Reply(200, ()))
    session = turns(0)
    session = replace(session, events=(*session.events, aside))
    assert seen(plan(session, KeepAlive(times=1))) == [(0, "main"), (200, "aside"), (295, "ping")]


@pytest.mark.parametrize(("prefix", "ping_at"), [("own", 295.0), ("lost", 295.0), ("shared", 495.0)])
def test_sub_agents_are_not_kept_alive_but_forks_are(prefix: Any, ping_at: float) -> None:
    calls = plan(turns(0), FanOut(children=1, prefix=prefix, after_s=200.0, calls=1), KeepAlive(times=1))
    assert seen(calls) == [(0, "main"), (200, "main"), (ping_at, "ping")]
    assert calls[-1].request.system is SYSTEM


def test_a_thread_begun_anew_under_its_head_is_the_one_that_is_kept() -> None:
    summary = Message.of("user", (block("user", "summary", 100),))
    again: list[Event] = [ThreadRewrite(50, 0, (summary,), "compaction"), Reply(60, (said("so"),))]
    session = turns(0)
    calls = plan(replace(session, events=(*session.events, *again)), KeepAlive(times=1))
    assert seen(calls) == [(0, "main"), (60, "main"), (355, "ping")]
    assert calls[-1].request.thread is calls[1].request.thread


@pytest.mark.parametrize(
    ("pause", "every_s", "ttl", "reads"),
    [
        (299.0, 1e9, "5m", [12_500]),
        (300.0, 1e9, "5m", [0]),
        (300.0, 299.0, "5m", [12_500, 12_500]),
        (300.0, 300.0, "5m", [0]),
        (598.0, 299.0, "5m", [12_500, 12_500]),
        (599.0, 299.0, "5m", [12_500, 12_500, 12_500]),
        (700.0, 301.0, "5m", [0, 0, 12_500]),
        (3_599.0, 1e9, "1h", [12_500]),
        (3_600.0, 1e9, "1h", [0]),
        (3_600.0, 3_595.0, "1h", [12_500, 12_500]),
        (3_600.0, 295.0, "5m", [12_500] * 12 + [12_500]),
    ],
)
def test_what_is_read_after_a_pause(pause: float, every_s: float, ttl: str, reads: list[int]) -> None:
    rows = ledger(turns(0, pause), KeepAlive(every_s=every_s, times=12, stops_at_end=True), ttl=ttl).rows
    assert [row.usage.read for row in rows[1:]] == reads
    assert all(row.usage.output_tokens == 0 for row in rows if row.purpose == "ping")


def test_twelve_pings_cost_more_than_the_write_that_they_save_and_eleven_do_not() -> None:
    """A write at 1.25 in place of a read at 0.1 is 11.5 reads of the same prefix."""
    for pings, is_cheaper in ((11, True), (12, False)):
        session = turns(0, 295.0 * pings + 10)
        kept = ledger(session, KeepAlive(times=pings, stops_at_end=True)).cost.total
        assert (kept < ledger(session).cost.total) is is_cheaper


# pre_warm


def test_the_head_is_warmed_before_the_first_call() -> None:
    warm, first, _ = plan(turns(0, 10), PreWarm())
    assert [(warm.start, warm.purpose), (first.start, first.purpose)] == [(-5, "warm"), (0, "main")]
    assert spelled(warm.request) == "system.0"
    assert [message.blocks[0].tokens for message in warm.request.thread.messages()] == [1]
    assert (warm.request.params, warm.output_tokens) == ({"max_tokens": 0}, 0)


def test_a_warm_up_breakpoints_the_heads_end_where_the_first_call_has_no_breakpoint_there() -> None:
    made = {preset: plan(turns(0), PreWarm(), preset=preset)[0] for preset in ("automatic", "automatic@1h")}
    assert {name: spelled(call.request) for name, call in made.items()} == {
        "automatic": "system.0",
        "automatic@1h": "system.0@1h",
    }
    bare = replace(turns(0), system=NOTHING)
    assert spelled(plan(bare, PreWarm(), preset="automatic")[0].request) == "tools.0"
    assert seen(plan(replace(bare, tools=NOTHING), PreWarm(), preset="automatic")) == [(0, "main")]
    assert seen(plan(turns(0), PreWarm(), preset="base", breakpoints=[])) == [(0, "main")]


@pytest.mark.parametrize(
    ("change", "warm", "first"),
    [(PreWarm(), (0, 12_000, 1), 12_000), (PreWarm(first_message=True), (0, 12_500, 0), 12_500)],
)
def test_the_first_call_reads_what_was_warmed(change: PreWarm, warm: tuple[int, int, int], first: int) -> None:
    for preset in ("progressive", "automatic"):
        rows = ledger(turns(0), change, preset=preset).rows
        assert (rows[0].usage.read, rows[0].usage.write_5m, rows[0].usage.input_tokens) == warm
        assert (rows[1].usage.read, rows[1].usage.write_5m) == (first, 12_500 - first)


def test_a_warm_up_costs_a_read_more_in_all() -> None:
    warmed, cold = (ledger(turns(0), *changes).cost for changes in ([PreWarm(first_message=True)], []))
    assert warmed.total - cold.total == ledger(turns(0, 10)).rows[1].cost.read  # 12,500 tokens


@pytest.mark.parametrize(
    ("pause", "warm", "reads"),
    [
        (255.0, [], [12_500]),
        (256.0, [241.0], [12_500, 12_500]),
        (300.0, [285.0], [12_500, 12_500]),
        (314.0, [299.0], [12_500, 12_500]),
        (315.0, [300.0], [0, 12_500]),
        (3_600.0, [3_585.0], [0, 12_500]),
    ],
)
def test_when_a_person_types_the_last_prompt_is_warmed_again(pause: float, warm: list[float], reads: list[int]) -> None:
    change = PreWarm(after_pause_s=240.0)
    calls = plan(turns(0, pause), change)
    assert starts(calls, "warm") == [-5.0, *warm]
    assert [call.start for call in calls] == sorted(call.start for call in calls)
    assert [row.usage.read for row in ledger(turns(0, pause), change).rows[2:]] == reads


def test_a_warm_up_comes_before_side_calls_that_start_later() -> None:
    session = turns(0, 300)
    aside = Aside(290, Request(MODEL, Thread(), TOOLS, NOTHING), Reply(290, ()))
    calls = plan(
        replace(session, events=(*session.events[:2], aside, *session.events[2:])),
        PreWarm(after_pause_s=240.0),
    )
    assert seen(calls)[2:] == [(285, "warm"), (290, "aside"), (300, "main")]


def test_nobody_types_within_a_turn() -> None:
    events = (Human(0, (user("a"),)), Reply(0, (used("t"),)), Results(900, (said("b"),)), Reply(900, (said("c"),)))
    assert starts(plan(conversation(*events), PreWarm(after_pause_s=0.0)), "warm") == [-5.0]


# warm_before_fan_out, fan_out


def reads(*changes: AgentChange, **more: Any) -> list[int]:
    """What three children read that start 2 s after their parent, whose first token took 1 s."""
    return [row.usage.read for row in ledger(turns(0, first_token_s=1.0), *changes, **more).rows[1:4]]


def tokens(call: Call) -> list[list[int | None]]:
    return [[block.tokens for block in message.blocks] for message in call.request.thread.messages()]


def test_children_start_together_with_the_parents_prefix_or_without() -> None:
    shared, lost, own = (plan(turns(0), FanOut(prefix=prefix, calls=2)) for prefix in ("shared", "lost", "own"))
    for calls in (shared, lost, own):
        assert [call.start for call in calls] == [0, 2, 2, 2, 8, 8, 8]
    assert tokens(shared[1]) == tokens(lost[1]) == [[500], [1_500], [150]]
    assert tokens(own[1]) == [[150]]
    assert tokens(own[4]) == [[150], [80], [900]]
    assert {call.request.system for call in shared} == {SYSTEM}
    assert len({call.request.system.digest for call in lost}) == 4
    assert len({call.request.system.digest for call in own[1:]}) == 1 and own[1].request.system is not SYSTEM
    assert len({call.request.thread for call in shared[1:4]}) == 3


def test_a_child_waits_for_the_tools_of_the_answer_it_forks_from() -> None:
    session = conversation(*SIX_CALLS)
    child = plan(session, FanOut(children=1, after_s=0.5, calls=1))[1]
    assert [block.kind for block in child.request.thread.messages()[-1].blocks] == [
        "tool_result",
        "tool_result",
        "text",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1]),
        ({"turn": 2}, [7]),
        ({"every": 1}, [1, 7, 11]),
        ({"every": 2}, [1, 11]),
        ({"turn": 4}, []),
        ({"turn": 0}, []),
    ],
)
def test_in_which_turns_it_forks(options: dict[str, Any], expected: list[float]) -> None:
    calls = plan(conversation(*SIX_CALLS), FanOut(**options, children=1, calls=1, after_s=0.25))
    assert [call.start - 0.25 for call in calls if call.start % 1] == expected


def test_what_parallel_children_read() -> None:
    breakpoints = {"preset": "base", "breakpoints": ["last_tool", "last_system", "last_message"]}
    assert reads(FanOut(calls=1)) == [12_500] * 3
    assert reads(FanOut(calls=1, prefix="lost")) == reads(FanOut(calls=1, prefix="own")) == [0] * 3
    assert reads(FanOut(calls=1, prefix="lost"), **breakpoints) == [6_000] * 3
    assert reads(FanOut(calls=1, prefix="own"), **breakpoints) == [6_000] * 3
    assert reads(FanOut(calls=1, prefix="own"), WarmBeforeFanOut()) == [0, 7_500, 7_500]
    assert reads(FanOut(calls=1, prefix="lost"), WarmBeforeFanOut()) == [0] * 3


@pytest.mark.parametrize(("first_token_s", "ready"), [(None, 2.0), (0.75, 0.75), (5.0, 5.0)])
def test_the_others_wait_for_the_firsts_first_token(first_token_s: float | None, ready: float) -> None:
    conversations = [turns(0, 100, first_token_s=first_token_s), turns(0.5, 100)]
    calls = list(WarmBeforeFanOut().plan_calls(iter(sorted(_all(conversations), key=lambda call: call.start))))
    assert [call.start for call in calls] == [0, ready, 100, 100 + (first_token_s or 2.0)]


@pytest.mark.parametrize(("apart", "second"), [(0.0, 2.0), (0.5, 2.0), (0.6, 0.6)])
def test_what_counts_as_together(apart: float, second: float) -> None:
    calls = list(WarmBeforeFanOut().plan_calls(iter(_all([turns(0), turns(apart)]))))
    assert [call.start for call in calls] == [0, second]


def _all(conversations: list[Conversation]) -> list[Call]:
    return [call for session in conversations for call in plan(session)]


def test_calls_that_share_nothing_or_answer_each_other_do_not_wait() -> None:
    other = replace(turns(0), model=OTHER)
    bare = replace(turns(0), tools=NOTHING, system=NOTHING)
    elsewhere = replace(bare, events=(Human(0, (user("else"),)), Reply(0, ())))
    for conversations in ([turns(0), other], [bare, elsewhere], [replace(turns(0), is_batch=True)] * 2):
        assert [call.start for call in WarmBeforeFanOut().plan_calls(iter(_all(conversations)))] == [0, 0]
    assert [call.start for call in plan(turns(0, 0.25), WarmBeforeFanOut())] == [0, 0.25]


def test_what_goes_on_from_a_call_that_waited_waits_too() -> None:
    calls = plan(turns(0), FanOut(children=2, step_s=1.0), WarmBeforeFanOut(first_token_s=3.0))
    assert seen(calls) == [(0, "main"), (2, "main"), (3, "main"), (5, "main"), (7, "main")]
    assert [len(call.request.thread.messages()) for call in calls] == [1, 3, 5, 3, 5]


def test_a_warm_up_goes_first_with_what_all_share() -> None:
    calls = plan(turns(0), FanOut(calls=1), WarmBeforeFanOut(by="warm_up"))
    assert seen(calls) == [(0, "main"), (2, "warm"), (4, "main"), (4, "main"), (4, "main")]
    assert tokens(calls[1]) == [[500], [1_500], [1]] and spelled(calls[1].request) == "system.0 2.0"
    assert calls[1].output_tokens == 0
    rows = ledger(turns(0, first_token_s=1.0), FanOut(calls=1), WarmBeforeFanOut(by="warm_up")).rows
    assert [(row.usage.read, row.usage.write_5m) for row in rows[1:]] == [(12_500, 1_500), *[(14_000, 150)] * 3]
    own = plan(turns(0), FanOut(calls=1, prefix="own"), WarmBeforeFanOut(by="warm_up"))
    assert (tokens(own[1]), spelled(own[1].request)) == ([[1]], "system.0")


def test_a_warm_up_has_no_more_breakpoints_than_the_api_takes() -> None:
    """The children start so soon after their parent that all three are together; only they share a warm-up."""
    breakpoints = ["last_tool", "each_system", {"first_n": {"role": "user_wire", "n": 1}}]
    changes = [FanOut(calls=1, children=2, after_s=0.5), WarmBeforeFanOut(by="warm_up")]
    calls = plan(conversation(*SIX_CALLS), *changes, preset="base", breakpoints=breakpoints)
    assert spelled(calls[0].request) == "tools.1 system.0 system.1 1.0"
    assert spelled(calls[1].request) == "tools.1 system.0 system.1 2.2"


def test_questions_asked_at_once_read_each_other_when_one_goes_first() -> None:
    session = asked(question(1, 50, 1), question(2, 50, 1), question(3, 50, 1))
    more = {"inquiry": {"order": "parallel", "through": "structured_output"}}
    assert starts(plan(session, WarmBeforeFanOut(), **more), "inquiry") == [50, 52, 52]


# route_asides, retries


def with_aside(**params: Any) -> Conversation:
    session = turns(0, 20)
    request = Request(MODEL, Thread().then(Message.of("user", (user("a title?"),))), TOOLS, SYSTEM, params=params)
    return replace(
        session,
        events=(
            *session.events[:2],
            Aside(10, request, Reply(10, (said("t"),), None, 7)),
            *session.events[2:],
        ),
    )


def test_side_calls_go_to_another_model() -> None:
    thinking: dict[str, Any] = {"thinking": {"type": "adaptive"}, "speed": "fast", "output_config": {"effort": "low"}}
    calls = plan(with_aside(**thinking), RouteAsides(OTHER))
    assert [call.request.model for call in calls] == [MODEL, OTHER, MODEL]
    assert calls[1].request.params == {"thinking": {"type": "disabled"}}
    kept = plan(with_aside(**thinking), RouteAsides(OTHER, thinking="same"))[1].request
    assert kept.params == {"thinking": {"type": "adaptive"}} and kept.tools is TOOLS
    stays = plan(with_aside(**thinking), RouteAsides())[1].request
    assert (stays.model, stays.params) == (MODEL, {**thinking, "thinking": {"type": "disabled"}})


def test_side_calls_without_tools_have_no_breakpoint_there() -> None:
    breakpoints = ["last_tool", "last_system", "last_message"]
    session = with_aside(tool_choice={"type": "any"})
    routed, kept = (
        plan(session, RouteAsides(OTHER, tools=tools), preset="base", breakpoints=breakpoints)[1].request
        for tools in ("none", "same")
    )
    assert (routed.tools, routed.params, spelled(routed)) == (NOTHING, {}, "system.0 1.0")
    assert (kept.tools, spelled(kept)) == (TOOLS, "tools.0 system.0 1.0")


@pytest.mark.parametrize(("short", "models"), [(0, [MODEL] * 2), (1_499, [MODEL] * 2), (1_500, [OTHER] * 2)])
def test_short_calls_go_there_too(short: int, models: list[str]) -> None:
    assert [call.request.model for call in plan(turns(0, 10), RouteAsides(OTHER, short_tokens=short))] == models


def test_a_routed_call_has_a_cache_of_its_own() -> None:
    reads = [[row.usage.read for row in ledger(with_aside(), *change).rows] for change in ((), (RouteAsides(OTHER),))]
    assert reads == [[0, 12_000, 12_500], [0, 0, 12_500]]


@pytest.mark.parametrize(("rate", "late"), [(0.0, []), (0.25, [1]), (0.5, [0, 2]), (1.0, [0, 1, 2, 3])])
def test_a_share_of_calls_starts_later(rate: float, late: list[int]) -> None:
    calls = plan(turns(0, 100, 200, 300), CallRetries(rate=rate, wait_s=8.0))
    assert [call.start for call in calls] == [100 * n + (8 if n in late else 0) for n in range(4)]


@pytest.mark.parametrize(("wait_s", "read"), [(9.0, 14_500), (10.0, 0)])
def test_a_refused_call_costs_nothing_but_time(wait_s: float, read: int) -> None:
    """Of three calls a rate of 0.18 fails the third, which comes 290 s after the second."""
    rows = ledger(turns(-100, 0, 290), CallRetries(rate=0.18, wait_s=wait_s)).rows
    assert [row.start for row in rows] == [-100, 0, 290 + wait_s]
    assert rows[2].usage.read == read


def test_a_timeout_is_billed_and_the_next_attempt_reads_what_it_wrote() -> None:
    rows = ledger(turns(0), CallRetries(rate=1.0, fails="timeout", wait_s=20.0, output_tokens=40)).rows
    assert [(row.start, row.purpose) for row in rows] == [(0, "failed"), (20, "main")]
    assert [(row.usage.write_5m, row.usage.read, row.usage.output_tokens) for row in rows] == [
        (12_500, 0, 40),
        (0, 12_500, 1_500),
    ]
    slow = ledger(turns(0), CallRetries(rate=1.0, fails="timeout", wait_s=600.0)).rows
    assert [row.usage.read for row in slow] == [0, 0]


def test_what_goes_on_from_a_late_call_waits_for_it() -> None:
    calls = plan(turns(0, 10, 30), CallRetries(rate=0.5, wait_s=20.0))
    assert [call.start for call in calls] == [20, 22, 50]
    assert [call.request.thread.length for call in calls] == [1, 3, 5]


# all


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: KeepAlive(every_s=0.0), "every_s=0.0: expected more than 0 seconds"),
        (lambda: KeepAlive(times=-1), "times=-1: expected at least 0"),
        (lambda: PreWarm(before_s=0.0), "before_s=0.0: expected more than 0 seconds"),
        (lambda: PreWarm(typing_s=-1.0), "typing_s=-1.0: expected no less than 0 seconds"),
        (lambda: WarmBeforeFanOut(first_token_s=0.0), "first_token_s=0.0: expected more than 0 seconds"),
        (lambda: CallRetries(rate=1.5), "rate=1.5: expected a share from 0 to 1"),
    ],
)
def test_options_have_bounds(make: Any, why: str) -> None:
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == why


def test_ttls_by_breakpoint_are_a_line_of_a_scenario() -> None:
    breakpoints = [{"last_tool": {"ttl": "1h"}}, {"last_system": {"ttl": "1h"}}, "last_message"]
    calls = plan(turns(0, 300), preset="base", breakpoints=breakpoints)
    assert spelled(calls[1].request) == "tools.0@1h system.0@1h 3.0"
    rows = ledger(turns(0, 300, 3_900), preset="base", breakpoints=breakpoints).rows
    assert [(row.usage.read, row.usage.write_1h, row.usage.write_5m) for row in rows] == [
        (0, 12_000, 500),
        (12_000, 0, 2_500),
        (0, 12_000, 4_500),
    ]


def test_changes_compose_and_two_plans_are_the_same() -> None:
    changes = [FanOut(), WarmBeforeFanOut(by="warm_up"), PreWarm(), CallRetries(rate=0.3), KeepAlive(times=2)]
    once, again = (
        [
            (call.start, call.purpose, spelled(call.request), call.request.params)
            for call in plan(turns(0, 900), *changes)
        ]
        for _ in range(2)
    )
    assert once == again
    assert [call[0] for call in once] == sorted(call[0] for call in once)
