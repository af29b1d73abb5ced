"""What changes assume and say so: shorter replies under another effort, and cleared results that are read again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from small_talks import SIX_CALLS, conversation, result, said, thought, used, user

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Event, Human, Reply, Results, ThreadRewrite
from cachecost.prompts.blocks import Block, Message, given_block
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.context import Compaction, Prune, Reread
from cachecost.strategies.changes.prefix import SwitchAt


def planned(*changes: AgentChange, events: Sequence[Event] = SIX_CALLS) -> list[Call]:
    return list(Agent(name="a", changes=changes).plan(conversation(*events, params={"thinking": {"type": "adaptive"}})))


def kinds(call: Call) -> list[str]:
    """What a call says."""
    return ["thinking" if block.is_thinking else block.kind for block in call.output]


def sized(kind: str, name: str, tokens: int) -> Block:
    return given_block(kind, "assistant", name, tokens)


# --- replies under other settings


@pytest.mark.parametrize(
    ("share", "tokens"),
    [(1.0, [300, 80, 250]), (0.5, [150, 40, 125]), (2.0, [600, 160, 500]), (0.001, [1, 1, 1]), (0, [1, 1, 1])],
)
def test_output_shrinks_and_grows_block_by_block_in_the_other_turns_alone(share: float, tokens: list[int]) -> None:
    reply = Reply(2, (sized("thinking", "t", 300), sized("tool_use", "u", 80), sized("text", "a", 250)))
    events = (Human(0, (user("one"),)), Reply(1, (said("yes"),)), Human(1.5, (user("two"),)), reply)
    first, second = planned(SwitchAt(effort="low", output_share=share), events=events)
    assert [block.digest for block in first.output] == [said("yes").digest]
    assert [block.tokens for block in second.output] == tokens


def test_shorter_replies_stay_shorter_in_the_thread_and_are_counted_anew() -> None:
    events = (
        Human(0, (user("one"),)),
        Reply(1, (sized("text", "long", 400),), output_tokens=431),
        Human(2, (user("two"),)),
        Reply(3, (said("bye"),), output_tokens=7),
    )
    change = SwitchAt(turn=1, every=1, effort="low", output_share=0.25)
    first, second = planned(change, events=events)
    assert (first.output_tokens, second.output_tokens) == (None, 7)
    assert [block.tokens for message in second.request.thread.messages() for block in message.blocks][1] == 100


def test_a_recorded_rewrite_goes_on_to_mean_the_shorter_reply() -> None:
    long = Message.of("assistant", (sized("text", "long", 400),))
    events = (
        Human(0, (user("one"),)),
        Reply(1, long.blocks),
        ThreadRewrite(2, 1, (long,), "edit"),
        Human(3, (user("two"),)),
        Reply(4, (said("bye"),)),
    )
    last = planned(SwitchAt(turn=1, effort="low", output_share=0.5), events=events)[-1]
    assert last.request.thread.messages()[1].blocks[0].tokens == 200


def test_without_thinking_replies_have_none() -> None:
    plain = [kinds(call) for call in planned()]
    off = [kinds(call) for call in planned(SwitchAt(thinking="off"))]
    assert plain[0] == off[0] == ["thinking", "tool_use", "tool_use"]
    assert plain[3] == ["thinking", "tool_use"]
    assert off[3] == ["tool_use"]


def test_a_reply_that_only_thinks_keeps_what_it_has() -> None:
    events = (Human(0, (user("one"),)), Reply(1, (thought("hm"),)))
    assert [kinds(call) for call in planned(SwitchAt(turn=1, thinking="off"), events=events)] == [["thinking"]]


def test_a_share_below_nothing_is_none() -> None:
    with pytest.raises(ValueError, match=r"^output_share=-0.1: expected no less than 0$"):
        SwitchAt(output_share=-0.1)


# --- results that are missed


def looks(turns: int) -> list[Event]:
    """Turns of one tool call each, a minute apart; results are r0, r1 … of 500 tokens."""
    events: list[Event] = []
    for turn in range(turns):
        block = given_block("tool_result", "user", f"r{turn}", 500)
        at = 60.0 * turn
        events += [Human(at, (user(f"q{turn}"),)), Reply(at + 1, (used(f"c{turn}"),))]
        events += [Results(at + 2, (block,)), Reply(at + 3, (said(f"a{turn}"),))]
    return events


def read_again(calls: Sequence[Call], tokens: int = 100) -> list[int]:
    """The numbers of the calls that only call a tool once more."""
    found = enumerate(calls)
    return [
        number
        for number, call in found
        if [(block.kind, block.tokens) for block in call.output] == [("tool_use", tokens)]
    ]


@pytest.mark.parametrize(("rate", "extra"), [(0, 0), (0.2, 1), (0.5, 2), (1, 4)])
def test_cleared_results_are_read_again_at_a_rate_one_call_each(rate: float, extra: int) -> None:
    """Four of five results are cleared; each is missed once, however often its placeholder is sent."""
    clears = Prune(keep_results=1)
    without = planned(clears, events=looks(6))
    calls = planned(clears, Reread(rate), events=looks(6))
    assert len(calls) == len(without) + extra
    assert len(read_again(calls)) == extra


def test_what_is_read_again_is_as_long_as_it_was_and_stands_before_the_reply() -> None:
    calls = planned(Prune(keep_results=0), Reread(1.0), events=looks(2))
    assert read_again(calls) == [2]
    again, answer = calls[2], calls[3]
    assert again.start == 61
    assert answer.start == 63
    sent = [[block.tokens for block in message.blocks] for message in answer.request.thread.messages()]
    assert [500] in sent
    assert sent.index([500]) == len(sent) - 1


def test_it_goes_with_the_next_cut() -> None:
    last = planned(Prune(keep_results=0), Reread(1.0), events=looks(4))[-1]
    sizes = [block.tokens for message in last.request.thread.messages() for block in message.blocks]
    assert sizes.count(500) == 2  # the last turn's own, and the one before it, read again


def test_results_that_were_summed_up_are_missed_as_well() -> None:
    sums = Compaction(keep_first=0, keep_last=0, every_turns=3)
    without, calls = planned(sums, events=looks(5)), planned(sums, Reread(1.0), events=looks(5))
    assert len(calls) == len(without) + 3


def test_a_fork_leaves_results_on_purpose() -> None:
    events = [*looks(2), ThreadRewrite(130, 1, (), "fork"), Reply(131, (said("so"),))]
    assert len(planned(Reread(1.0), events=events)) == 5
    cut = [*looks(2), ThreadRewrite(130, 1, (), "edit"), Reply(131, (said("so"),))]
    assert len(planned(Reread(1.0), events=cut)) == 7


def test_nothing_is_missed_where_nothing_is_cut() -> None:
    assert len(planned(Reread(1.0))) == len(planned())
    assert result("a").kind == "tool_result"
