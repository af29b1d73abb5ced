"""Conversations that branch: where a person goes back to, what stays the same, and what the branches cost."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.conversations.distributions import SyntheticForks, SyntheticInquiries, SyntheticSpec, Uniform, synthetic
from cachecost.conversations.model import Conversation, Human, ThreadRewrite
from cachecost.ledger.results import Ledger
from cachecost.prompts.blocks import Thread
from cachecost.scenario import from_mapping, load_conversations
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import scenario_setup
from cachecost.strategies.changes.base import GrowingThread
from cachecost.sweep.cells import varies_in_times_only

HERE = Path()
forks = st.builds(
    SyntheticForks,
    st.lists(st.integers(1, 6), max_size=3).map(tuple),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0, 1, 2, 99, Uniform(1, 3)]),
)
specs = st.builds(
    SyntheticSpec,
    seed=st.integers(0, 5),
    turns=st.integers(0, 6),
    calls=st.integers(1, 3),
    inquiries=st.none() | st.just(SyntheticInquiries(1.0)),
    forks=forks,
)


def returns(conversation: Conversation) -> list[ThreadRewrite]:
    return [event for event in conversation.events if isinstance(event, ThreadRewrite)]


def said(conversation: Conversation) -> list[tuple[Any, ...]]:
    """Every event but the returns."""
    rest = [event for event in conversation.events if not isinstance(event, ThreadRewrite)]
    return [(type(event), event.at, [block.digest for block in getattr(event, "blocks", ())]) for event in rest]


def threads(conversation: Conversation) -> list[Thread]:
    """The thread after each human message, in one tree."""
    grown, found = GrowingThread(), []
    for event in conversation.events:
        grown.add(event)
        if isinstance(event, Human):
            found.append(grown.thread)
    return found


@settings(max_examples=60, deadline=None)
@given(specs)
def test_forks_change_nothing_that_is_said(spec: SyntheticSpec) -> None:
    assert said(synthetic(spec)) == said(synthetic(replace(spec, forks=None)))


@settings(max_examples=60, deadline=None)
@given(specs)
def test_a_return_comes_right_before_a_human_message_and_shortens_the_branch(spec: SyntheticSpec) -> None:
    events, length = synthetic(spec).events, 0
    for before, event in zip((None, *events), events, strict=False):
        if isinstance(event, Human) and isinstance(before, ThreadRewrite):
            assert (before.why, before.messages, before.at) == ("fork", (), event.at)
        assert not isinstance(before, ThreadRewrite) or isinstance(event, Human)
        if isinstance(event, ThreadRewrite):
            assert 0 <= event.keep < length
        length = event.keep if isinstance(event, ThreadRewrite) else length + bool(getattr(event, "blocks", ()))


@settings(max_examples=40, deadline=None)
@given(specs, st.integers(1, 3))
def test_more_turns_extend_the_same_tree(spec: SyntheticSpec, more: int) -> None:
    short, long = synthetic(spec), synthetic(replace(spec, turns=spec.turns + more))
    assert said(long)[: len(short.events) - len(returns(short))] == said(short)
    assert [event.keep for event in returns(long)][: len(returns(short))] == [event.keep for event in returns(short)]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        (SyntheticForks(), []),
        (SyntheticForks(after=(2,)), [2]),
        (SyntheticForks(after=(2, 3)), [2, 2]),  # three continuations of the first answer
        (SyntheticForks(after=(3,), back=2), [2]),
        (SyntheticForks(after=(3,), back=3), [0]),  # all of it: another beginning
        (SyntheticForks(after=(3,), back=99), [0]),
        (SyntheticForks(after=(3,), back=0), [4]),  # going back means one turn at least
        (SyntheticForks(after=(3, 4), back=2), [2, 0]),  # on the second branch there are two turns
        (SyntheticForks(after=(5, 9)), []),  # no turn follows
        (SyntheticForks(rate=1.0), [0, 0, 0, 0]),
    ],
)
def test_how_many_messages_stay(told: SyntheticForks, kept: list[int]) -> None:
    assert [event.keep for event in returns(synthetic(SyntheticSpec(turns=5, calls=1, forks=told)))] == kept


def test_one_message_has_several_continuations() -> None:
    grown = threads(synthetic(SyntheticSpec(turns=4, calls=2, forks=SyntheticForks(after=(2, 3)))))
    first, *branches = grown
    places = [node.parent for node in branches]
    assert len({id(place) for place in places}) == 1 and places[0] is not None
    assert places[0].is_fork and places[0].length == 4 and places[0].up_to(1) is first


def test_a_share_of_turns_is_taken_back() -> None:
    found = returns(synthetic(SyntheticSpec(seed=1, turns=1000, calls=1, forks=SyntheticForks(rate=0.25))))
    assert 210 < len(found) < 290
    named = SyntheticForks(after=(500,), rate=0.25)
    more = returns(synthetic(SyntheticSpec(seed=1, turns=1000, calls=1, forks=named)))
    assert {event.at for event in more} >= {event.at for event in found} and len(more) <= len(found) + 1


def scenario(forks: dict[str, Any], turn_s: int) -> dict[str, Any]:
    """Turns of one call: 1,000 tokens asked, 500 answered, behind 3,000 of tools and system prompt."""
    sizes = {"human": 1000, "thinking": 0, "answer": 500}
    return {
        "format": 1,
        "name": "forks",
        "as_of": "2025-06-10",
        "model": "claude-sonnet-4",
        "tokens": "bytes",
        "conversation": {
            "synthetic": {"turns": 4, "calls": 1, "sizes": sizes, "pauses": {"turn": turn_s}, "forks": forks},
            "head": {"tools": {"tokens": 1200}, "system": {"tokens": 1800}},
        },
        "strategies": ["progressive", "rfc013-as-written"],
    }


def ledgers(forks: dict[str, Any], turn_s: int, more: dict[str, int] | None = None) -> list[Ledger]:
    mapping = scenario(forks, turn_s)
    for dotted, value in (more or {}).items():
        *way, key = dotted.split(".")
        reduce(dict.__getitem__, way, mapping)[key] = value
    parsed = from_mapping(mapping, HERE)
    conversations, bills = load_conversations(parsed, HERE)
    setup = scenario_setup(parsed, HERE, bills)
    return [replay_strategy(spec, conversations, setup) for spec in parsed.strategies]


def usage(ledger: Ledger) -> list[tuple[int, int, str]]:
    return [(row.usage.read, row.usage.write_5m, row.cause) for row in ledger.rows]


def test_a_branch_reads_what_the_message_before_it_wrote() -> None:
    """Going back two turns, the last question cached on the way is the first one: 3,000 + 1,000 tokens."""
    progressive, _ = ledgers({"after": [3], "back": 2}, turn_s=60)
    assert [row[:2] for row in usage(progressive)] == [(0, 4000), (4000, 1500), (5500, 1500), (4000, 1500)]


def test_a_branch_that_comes_too_late_reads_the_head_alone() -> None:
    """Turns of 200 s: the entry of the first question was last read 600 s before the branch, its head at each call."""
    progressive, written = ledgers({"after": [3], "back": 2}, turn_s=200)
    assert usage(progressive)[3][:2] == (3000, 2500)
    assert usage(written)[3][:2] == (3000, 2500)  # the branching breakpoint kept the second turn's place, not this one


def test_the_branching_breakpoint_saves_the_answer_before_it() -> None:
    """One turn back, the question two turns ago was read 200 s ago: only its answer of 500 tokens is new."""
    progressive, written = ledgers({"after": [3], "back": 1}, turn_s=200)
    assert (usage(progressive)[3][:2], usage(written)[3][:2]) == ((5500, 1500), (6000, 1000))


def test_the_branching_breakpoint_keeps_its_place_through_a_long_turn() -> None:
    """A turn of five calls, 80 s apart: what its first call read has expired at the sixth, unless a breakpoint read it.

    Behind 3,000 tokens stand a question (1,000), four calls of a tool (80 each) with results (900 each), an answer.
    """
    forks = {"after": [2], "back": 1}
    long = {
        "conversation.synthetic.calls": 5,
        "conversation.synthetic.turns": 3,
        "conversation.synthetic.pauses.loop": 80,
    }
    progressive, written = ledgers(forks, 60, long)
    turn = 1000 + 4 * (80 + 900) + 500
    assert usage(progressive)[10][:2] == (3000, turn + 1000)
    assert usage(written)[10][:2] == (3000 + turn, 1000)


@pytest.mark.parametrize(
    ("forks", "why"),
    [
        ({"after": [0]}, "forks.after"),
        ({"after": 2}, "forks.after"),
        ({"rate": 1.5}, "forks.rate"),
        ({"back": -1}, "forks.back"),
        ({"befor": [2]}, "forks.befor: unknown key"),
    ],
)
def test_what_forks_may_not_be(forks: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_mapping(scenario(forks, 60), HERE)


@pytest.mark.parametrize(
    ("forks", "alone"),
    [
        ({"after": [2]}, True),
        ({"after": [2], "back": [1, 2]}, False),
        ({"rate": 0.5}, False),
    ],
)
def test_whether_a_seed_varies_times_alone(forks: dict[str, Any], alone: bool) -> None:
    assert varies_in_times_only(from_mapping(scenario(forks, 60), HERE)) is alone
