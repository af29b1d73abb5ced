"""Synthetic conversations: the same from the same seed, longer ones extend shorter ones, numbers as specified."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapes import blocks_of, event_shapes, whole

from cachecost.base.structs import replace
from cachecost.conversations.distributions import (
    START,
    Choice,
    LogNormal,
    SyntheticInquiries,
    SyntheticPauses,
    SyntheticSizes,
    SyntheticSpec,
    Uniform,
    synthetic,
)
from cachecost.conversations.model import Conversation, Human, Inquiry, Reply, Results

distributions = st.one_of(
    st.integers(0, 5),
    st.builds(lambda low, more: Uniform(low, low + more), st.integers(0, 3), st.integers(0, 4)),
    st.builds(LogNormal, st.floats(0.5, 5), st.floats(0, 5)),
    st.just(Choice((1, 2, 7), (5, 2, 1))),
)
specs = st.builds(
    SyntheticSpec,
    seed=st.integers(-5, 5),
    turns=st.integers(0, 4),
    calls=distributions,
    tools=distributions,
    sizes=st.builds(
        SyntheticSizes, distributions, distributions, distributions, distributions, distributions, distributions
    ),
    pauses=st.builds(SyntheticPauses, distributions, distributions, st.none() | distributions),
    inquiries=st.none() | st.builds(SyntheticInquiries, st.floats(0, 1), distributions, distributions, distributions),
)


def digests(conversation: Conversation) -> list[bytes]:
    return [block.digest for block in blocks_of(conversation)]


@settings(max_examples=60, deadline=None)
@given(specs, st.integers(1, 3))
def test_more_turns_extend_the_same_conversation(spec: SyntheticSpec, more: int) -> None:
    short, long = synthetic(spec), synthetic(replace(spec, turns=spec.turns + more))
    assert event_shapes(long)[: len(short.events)] == event_shapes(short)
    assert digests(long)[: len(digests(short))] == digests(short)
    assert sum(isinstance(event, Human) for event in long.events) == spec.turns + more


@settings(max_examples=40, deadline=None)
@given(specs)
def test_inquiries_change_nothing_else(spec: SyntheticSpec) -> None:
    quiet = synthetic(replace(spec, inquiries=None))
    asking = synthetic(replace(spec, inquiries=SyntheticInquiries(rate=1.0, batch=2)))
    rest = [event for event in asking.events if not isinstance(event, Inquiry)]
    assert whole(replace(asking, events=tuple(rest))) == whole(quiet)
    tool_replies = sum(isinstance(event, Results) for event in rest)
    assert len(asking.inquiries) == 2 * tool_replies
    assert Counter(one.batch for one in asking.inquiries) == {n + 1: 2 for n in range(tool_replies)}


@settings(max_examples=40, deadline=None)
@given(specs)
def test_events_keep_their_order_in_time_and_kind(spec: SyntheticSpec) -> None:
    events = synthetic(spec).events
    assert [event.at for event in events] == sorted(event.at for event in events)
    follows: dict[type, set[type]] = {
        Human: {Reply},
        Reply: {Results, Inquiry, Human},
        Inquiry: {Inquiry, Results},
        Results: {Reply},
    }
    for before, after in pairwise(events):
        assert type(after) in follows[type(before)]


def test_the_plain_case_is_as_specified() -> None:
    spec = SyntheticSpec(turns=2, calls=3, tools=2, head_tools=(1469,), head_system=(1700, 100))
    conversation = synthetic(spec)
    kinds = [[(block.kind, block.tokens) for block in getattr(event, "blocks", ())] for event in conversation.events]
    reply = [("thinking", 300), ("tool_use", 80), ("tool_use", 80)]
    results = [("tool_result", 900)] * 2
    turn = [[("text", 60)], reply, results, reply, results, [("thinking", 300), ("text", 250)]]
    assert kinds == turn * 2
    times = [event.at - START for event in conversation.events]
    assert times == [0, 0, 6, 6, 12, 12, 132, 132, 138, 138, 144, 144]
    assert [block.tokens for block in conversation.tools.blocks] == [1469]
    assert [block.tokens for block in conversation.system.blocks] == [1700, 100]
    assert len(set(digests(conversation))) == len(digests(conversation))


def test_other_seeds_and_other_sizes_are_other_texts() -> None:
    base = SyntheticSpec(turns=2)
    one = set(digests(synthetic(base)))
    assert not one & set(digests(synthetic(replace(base, seed=1))))
    bigger = synthetic(replace(base, sizes=SyntheticSizes(tool_result=901)))
    changed = [block for block in blocks_of(bigger) if block.digest not in one]
    assert changed and all(block.kind == "tool_result" for block in changed)


def test_a_share_of_replies_is_followed_by_inquiries() -> None:
    spec = SyntheticSpec(seed=3, turns=500, inquiries=SyntheticInquiries(rate=0.25, batch=Uniform(1, 3)))
    conversation = synthetic(spec)
    batches = Counter(one.batch for one in conversation.inquiries)
    assert 420 < len(batches) < 580  # of 2,000 replies with tools
    assert set(batches.values()) == {1, 2, 3}
    inquiry = conversation.inquiries[0]
    place = conversation.events.index(inquiry)
    before = conversation.events[place - 1]
    assert inquiry.at == before.at + 3.0


def test_the_same_in_every_process_and_under_every_hash_seed() -> None:
    code = (
        "from cachecost.conversations.distributions import *\n"
        "from cachecost.conversations.distributions import *\n"
        "sizes = SyntheticSizes(tool_result=LogNormal(900, 700), human=Uniform(10, 90))\n"
        "spec = SyntheticSpec(33, 3, Choice((1, 4), (1, 2)), Uniform(1, 3), sizes, inquiries=SyntheticInquiries(0.5))\n"
        "for event in synthetic(spec).events:\n"
        "    for block in getattr(event, 'blocks', ()):\n"
        "        print(event.at, block.kind, block.tokens, block.digest.hex())\n"
    )
    outs = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    ]
    assert outs[0] == outs[1]
    assert sha256(outs[0]).hexdigest()[:16] == "240d6c7b93d5e34a"


def test_twenty_thousand_calls_take_no_time() -> None:
    start = time.process_time()
    assert len(synthetic(SyntheticSpec(turns=4000)).replies) == 20_000
    assert time.process_time() - start < 4  # 0.8 s on the machine it was written on


@pytest.mark.parametrize("turns", [0, 1])
def test_few_turns(turns: int) -> None:
    assert len(synthetic(SyntheticSpec(turns=turns, calls=1)).events) == 2 * turns
