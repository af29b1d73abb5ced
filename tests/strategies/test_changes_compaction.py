"""Compaction between turns: when it happens, what is left, what the summary's call sends and costs."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from small_talks import MODEL

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.ledger.results import Ledger
from cachecost.prompts.blocks import Block, Message, Part, given_block
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.context import Compaction
from cachecost.strategies.spec import StrategySpec

OTHER = "claude-haiku-4-5"
TOOLS = Part((given_block("tool", "", "tool", 100),))
SYSTEM = Part((given_block("text", "system", "system", 100),))
PAUSE = 100.0
PARAMS = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "tool_choice": {"type": "auto"}}


class Facts:
    context_window = 10_000


def block(kind: str, role: str, name: str, tokens: int) -> Block:
    return given_block(kind, role, name, tokens)


def turn(number: int) -> list[Event]:
    """200 tokens in four messages: 10, 20 + 30, 100, 40."""
    at = PAUSE * number
    return [
        Human(at, (block("text", "user", f"q{number}", 10),)),
        Reply(
            at + 1, (block("thinking", "assistant", f"t{number}", 20), block("tool_use", "assistant", f"u{number}", 30))
        ),
        Results(at + 2, (block("tool_result", "user", f"r{number}", 100),)),
        Reply(at + 3, (block("text", "assistant", f"a{number}", 40),), first_token_s=2.0),
    ]


def conversation(number: int, *more: Event) -> Conversation:
    events = [event for n in range(number) for event in turn(n)]
    return Conversation("small", (*events, *more), MODEL, TOOLS, SYSTEM, params=PARAMS)


def plan(change: Compaction, told: Conversation | int) -> list[Call]:
    agent = Agent(name="a", changes=(change,), facts=lambda _: Facts())
    return list(agent.plan(told if isinstance(told, Conversation) else conversation(told)))


def sizes(call: Call) -> list[list[int | None]]:
    return [[one.tokens for one in message.blocks] for message in call.request.thread.messages()]


def firsts(calls: list[Call]) -> list[int]:
    """Messages of the first main call of each turn."""
    return [len(call.request.thread.messages()) for call in calls if call.purpose == "main"][::2]


def asides(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.purpose == "aside"]


TURN = [[10], [20, 30], [100], [40]]
SUMMARY = [[10], [2_000]]


@pytest.mark.parametrize(
    ("window", "at", "compacted_before"),
    [(2_133, 0.75, 7), (2_134, 0.75, 8), (1_599, 1.0, 7), (1_600, 1.0, 8), (800, 0.75, 6)],
)
def test_it_happens_where_the_context_passes_its_share_of_the_window(
    window: int, at: float, compacted_before: int
) -> None:
    """After n turns head and thread are 200 + 200 n tokens; exactly the share is not yet past it."""
    lengths = firsts(plan(Compaction("range", at=at, window_tokens=window, keep_last=1), 9))
    assert next(n for n in range(1, 9) if lengths[n] <= lengths[n - 1]) == compacted_before


@pytest.mark.parametrize(("least", "shrunk"), [(0, 4), (4, 5), (5, 6), (6, 7), (9, None)])
def test_a_short_conversation_is_left_alone(least: int, shrunk: int | None) -> None:
    lengths = firsts(plan(Compaction("range", at=0.0, min_turns=least, window_tokens=1, keep_last=3 - (least == 0)), 9))
    found = next((n for n, (a, b) in enumerate(pairwise(lengths), 1) if b <= a), None)
    assert found == shrunk


def test_the_window_is_the_models_and_unknown_nothing_happens() -> None:
    assert firsts(plan(Compaction("range", keep_last=1), 60))[-1] < 4 * 40
    nobody = Agent(name="a", changes=(Compaction("range", keep_last=1),))
    assert firsts(list(nobody.plan(conversation(60))))[-1] == 4 * 59 + 1


def test_every_so_many_turns_whatever_their_size() -> None:
    calls = plan(Compaction(every_turns=3, keep_first=0, keep_last=0, rolling=False), 9)
    assert firsts(calls) == [1, 5, 9, 3, 7, 11, 3, 7, 11]
    assert [call.turn for call in asides(calls)] == [3, 6]


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("summary", [*TURN, *SUMMARY, *TURN, [10]]),
        ("range", [*TURN, *TURN, [10]]),
        ("keep_first", [*TURN, [10]]),
        ("keep_last", [*TURN, [10]]),
        ("strip", [*TURN, *[[10], [12], [12], [40]] * 2, *TURN, [10]]),
        ("strip_reasoning", [*TURN, *[[10], [30], [100], [40]] * 2, *TURN, [10]]),
        ("strip_tools", [*TURN, *[[10], [20, 12], [12], [40]] * 2, *TURN, [10]]),
    ],
)
def test_what_is_left_of_four_turns(kind: str, left: list[list[int]]) -> None:
    calls = plan(Compaction(kind, every_turns=4, keep_last=1), 5)  # type: ignore[arg-type]
    assert sizes(calls[-2]) == left
    assert len(asides(calls)) == (kind == "summary")
    first = calls[0].request.thread.messages()[0].digest
    assert (calls[-2].request.thread.messages()[0].digest == first) == (kind != "keep_last")


@pytest.mark.parametrize(("clears", "use", "found"), [("both", 12, 12), ("requests", 12, 100), ("responses", 30, 12)])
def test_hints_say_what_of_a_call_is_stripped(clears: str, use: int, found: int) -> None:
    change = Compaction("strip_tools", every_turns=1, keep_first=0, keep_last=0, clears=clears)  # type: ignore[arg-type]
    assert sizes(plan(change, 2)[-2]) == [[10], [20, use], [found], [40], [10]]


def test_each_turn_is_summed_up_once_or_with_the_summary_before() -> None:
    rolling = plan(Compaction(every_turns=3, keep_last=1), 7)
    assert sizes(rolling[-2]) == [*TURN, *SUMMARY, *SUMMARY, *TURN, [10]]
    whole = plan(Compaction(every_turns=3, keep_last=1, rolling=False), 7)
    assert sizes(whole[-2]) == [*TURN, *SUMMARY, *TURN, [10]]


def test_an_empty_range_makes_no_call() -> None:
    calls = plan(Compaction(every_turns=1, keep_first=2, keep_last=3), 6)
    assert firsts(calls) == [1, 5, 9, 13, 17, 21]
    assert not asides(calls)


def test_at_the_front_the_kept_first_turns_come_after_the_summary() -> None:
    calls = plan(Compaction(every_turns=4, keep_last=1, summary_at="front"), 5)
    assert sizes(calls[-2]) == [*SUMMARY, *TURN, *TURN, [10]]


@pytest.mark.parametrize("rolling", [True, False])
def test_again_at_the_front_the_same_first_turns_are_kept(rolling: bool) -> None:
    calls = plan(Compaction(every_turns=3, keep_last=1, summary_at="front", rolling=rolling), 7)
    summaries = [*SUMMARY, *SUMMARY] if rolling else SUMMARY
    assert sizes(calls[-2]) == [*summaries, *TURN, *TURN, [10]]
    kept = calls[-2].request.thread.messages()[len(summaries)]
    assert kept.digest == calls[0].request.thread.messages()[0].digest
    first = calls[-4].request.thread.messages()[0] is calls[-2].request.thread.messages()[0]
    assert first or not rolling


def test_a_summarys_call_is_the_thread_so_far_and_an_instruction_under_the_same_head() -> None:
    calls = plan(Compaction(every_turns=2, keep_first=0, keep_last=0), 3)
    call, before = asides(calls)[0], calls[3]
    messages = call.request.thread.messages()
    assert sizes(call) == [*TURN, *TURN, [500]]
    assert messages[:7] == before.request.thread.messages()
    assert (call.request.tools, call.request.system, call.request.params) == (TOOLS, SYSTEM, PARAMS)
    assert [one.tokens for one in call.output] == [2_000]
    assert call.output[0].digest == calls[5].request.thread.messages()[1].blocks[0].digest


def test_another_model_and_another_head_share_nothing() -> None:
    change = Compaction(every_turns=2, keep_first=0, keep_last=0, model=OTHER, system_tokens=70)
    request = asides(plan(change, 3))[0].request
    assert (request.model, request.tools.blocks, request.params) == (OTHER, (), {})
    assert [one.tokens for one in request.system.blocks] == [70]


@pytest.mark.parametrize(
    ("when", "wait", "summary_at", "main_at"),
    [
        ("turn_end", 10.0, 115.0, 201.0),
        ("turn_end", 94.0, 199.0, 201.0),
        ("turn_end", 96.0, 200.0, 201.0),
        ("turn_start", 10.0, 200.0, 210.0),
        ("turn_start", 0.5, 200.0, 201.0),
    ],
)
def test_when_a_summary_is_made(when: str, wait: float, summary_at: float, main_at: float) -> None:
    """The second turn's last call starts at 103, its first token is there at 105, the next message at 200."""
    change = Compaction(every_turns=2, keep_first=0, keep_last=0, when=when, wait_s=wait)  # type: ignore[arg-type]
    calls = plan(change, 3)
    assert [call.start for call in calls[3:6]] == [103.0, summary_at, main_at]


def test_a_switch_before_changes_what_the_summary_is_asked_under() -> None:
    other = Part((given_block("text", "system", "other", 100),))
    events = (*conversation(1).events, Switch(90, OTHER, TOOLS, other, {}), *turn(1), *turn(2))
    told = Conversation("small", events, MODEL, TOOLS, SYSTEM, params=PARAMS)
    request = asides(plan(Compaction(every_turns=2, keep_first=0, keep_last=0), told))[0].request
    assert (request.model, request.system, request.params) == (OTHER, other, {})


def test_a_fork_back_into_what_was_summed_up_has_its_messages_again() -> None:
    fork = ThreadRewrite(450, 6, (), "fork")
    later = [Human(460, (block("text", "user", "else", 11),)), Reply(461, ())]
    calls = plan(Compaction(every_turns=4, keep_first=0, keep_last=0), conversation(5, fork, *later))
    assert sizes(calls[-1]) == [*TURN, [10], [20, 30], [11]]


def test_a_recorded_compaction_is_one_message_of_which_a_turn_starts() -> None:
    new = ThreadRewrite(150, 0, (Message.of("user", (block("text", "user", "recorded", 60),)),), "compaction")
    told = Conversation("small", (*conversation(2).events, new, *turn(2), *turn(3)), MODEL, TOOLS, SYSTEM)
    calls = plan(Compaction("range", every_turns=3, keep_first=1, keep_last=0), told)
    assert sizes(calls[-2]) == [[60], [10]]


def ledger(change: Compaction, told: Conversation) -> Ledger:
    spec = StrategySpec.model_validate({"name": "x", "preset": "progressive", "changes": [change]})
    day = date(2026, 6, 1)
    return replay_strategy(
        spec, told, ReplaySetup(RuleBook(as_of=day), PriceBook.load(None, day), tokens="bytes", model=MODEL)
    )


def big(number: int, pause: float = 100.0) -> Conversation:
    head = Part((given_block("tool", "", "tool", 6_000),)), Part((given_block("text", "system", "system", 6_000),))
    events: list[Event] = []
    for n in range(number):
        events += [
            Human(pause * n, (block("text", "user", f"q{n}", 500),)),
            Reply(pause * n + 1, (block("text", "assistant", f"a{n}", 1_500),)),
        ]
    return Conversation("big", tuple(events), MODEL, *head)


def test_a_summary_under_the_same_head_reads_what_the_main_thread_wrote() -> None:
    """OpenHands#7588: the call that sums up missed the cache until it was built like a turn."""
    change = Compaction(every_turns=4, keep_first=0, keep_last=0)
    shared = next(row for row in ledger(change, big(5)).rows if row.purpose == "aside")
    apart = next(
        row
        for row in ledger(Compaction(every_turns=4, keep_first=0, keep_last=0, system_tokens=6_000), big(5)).rows
        if row.purpose == "aside"
    )
    assert shared.usage.read == 12_000 + 3 * 2_000 + 500
    assert apart.usage.read == 0
    assert apart.cost.total > shared.cost.total


def test_after_a_long_pause_a_summary_at_the_turns_end_is_cheaper_than_with_the_next_message() -> None:
    told = big(9, pause=3_600.0)
    ends, starts = (
        ledger(Compaction(every_turns=4, keep_first=0, keep_last=0, when=when), told)
        for when in ("turn_end", "turn_start")
    )
    assert sum(row.cost.total for row in ends.rows) < sum(row.cost.total for row in starts.rows)


def test_a_summary_in_front_has_the_stable_turns_written_again() -> None:
    """anthropics/claude-code#94197."""
    written = []
    for where in ("in_place", "front"):
        change = Compaction(every_turns=3, keep_first=2, keep_last=0, rolling=False, summary_at=where)
        rows = [row for row in ledger(change, big(13, pause=20.0)).rows if row.purpose == "main"]
        written.append(sum(row.usage.write_5m for row in rows))
    assert written[1] - written[0] == 4 * 2_500  # a turn and a question, at each of four compactions


@pytest.mark.parametrize(
    ("options", "why"),
    [({"at": 1.5}, "at=1.5"), ({"wait_s": -1.0}, "wait_s=-1.0"), ({"keep_last": -1}, "keep_last=-1")],
)
def test_options_have_bounds(options: dict[str, float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Compaction(**options)  # type: ignore[arg-type]
