"""Blocks of a call beside those before, texts beside each other, and a session's figures beside its bill's."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.billed_logs import random_workload
from tests.analysis.random_bills import random_files
from tests.bill_sessions import list_prices
from tests.viewer_logs import replay_setup

from cachecost.analysis.bill.account import account_for
from cachecost.analysis.viewing.blocks import CHARGED, SentBlock, compare_blocks, first_text_difference, sent_blocks
from cachecost.analysis.viewing.listing import LoggedSessions, SessionListing, session_id
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, digest_of
from cachecost.prompts.compare import diff_texts
from cachecost.providers.usage import ZERO
from cachecost.views.viewer.call import session_object
from cachecost.views.viewer.sessions import sessions_object
from slow_cases import examples

SEEDS = st.integers(0, 10**6)
TEXTS = st.text(st.sampled_from("ab \n\\n.é"), max_size=40)
COLUMNS = ("cost_usd", "rewritten_usd")


@given(SEEDS)
@settings(max_examples=examples(150), deadline=None)
def test_columns_add_up_to_the_bill(seed: int) -> None:
    files = random_files(Random(seed))
    listing = SessionListing(account_for(files, list_prices()), LoggedSessions(replay_setup()))
    shown, total = sessions_object(listing), dict.fromkeys(COLUMNS, ZERO)
    for row in shown["sessions"]:
        answer = session_object(listing.open(row["id"]), "a session")
        for name in COLUMNS:
            summed = sum((Decimal(value) for value in answer["calls"][name] if value), ZERO)
            assert summed == Decimal(row[name]) == Decimal(answer[name])
            total[name] += summed
        usage = listing.open(row["id"]).summary.total.usage
        assert sum(answer["calls"]["read"]) == usage.read
        assert sum(answer["calls"]["write_1h"]) == usage.write_1h
        assert sum(answer["calls"]["write_5m"]) == usage.write_5m
        assert sum(answer["calls"]["input"]) == usage.input_tokens
    assert {name: Decimal(shown["total"][name]) for name in COLUMNS} == total


@given(SEEDS)
@settings(max_examples=examples(150), deadline=None)
def test_blocks_add_up_to_the_bill(seed: int) -> None:
    workload = random_workload(seed)
    simulation = workload.simulation()
    for call in workload.calls:
        assert call.billed
        made = simulation.simulate(call)
        blocks = sent_blocks(call, made, call.billed)
        assert all(one.tokens >= 0 for one in blocks)
        if len(made.passes) == 1:
            assert sum(one.tokens for one in blocks) == call.billed.total_input
        states = [one.state for one in blocks if one.state in CHARGED]
        assert states == sorted(states, key=CHARGED.index)
        sent = [block.digest for block in call.request.system.blocks]
        sent += [block.digest for message in call.request.thread.messages() for block in message.blocks]
        assert [one.digest for one in blocks if one.block] == sent


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_blocks_that_cannot_be_rendered_share_the_bill_by_size(seed: int) -> None:
    for call in random_workload(seed).calls:
        assert isinstance(call, Call)
        blocks = sent_blocks(call, None, call.billed)
        assert sum(one.tokens for one in blocks) == (call.billed.total_input if call.billed else 0)


def text_block(text: str, layer: Layer = Layer.MESSAGES, kind: str = "text", role: str = "user") -> SentBlock:
    made = Block(kind, role, digest_of(role, kind, text.encode()), len(text), {"type": kind, "text": text})
    return SentBlock(layer, made, 10, "read")


HIDDEN = SentBlock(Layer.TOOLS, None, 3, "hidden")
PROSE = "Read before you write; look at the tests first. "


@pytest.mark.parametrize(
    ("before", "now", "changes", "gone"),
    [
        ("abc", "abc", ["same 0", "same 1", "same 2"], []),
        ("abc", "abcd", ["same 0", "same 1", "same 2", "new"], []),
        ("abc", "ac", ["same 0", "same 2"], [1]),
        ("ac", "abc", ["same 0", "new", "same 1"], []),
        ("abc", "xbc", ["new", "same 1", "same 2"], [0]),
        ("", "ab", ["new", "new"], []),
        ("ab", "", [], [0, 1]),
        ("aba", "aab", ["same 0", "new", "same 1"], [2]),
    ],
)
def test_blocks_are_the_same_new_or_gone(before: str, now: str, changes: list[str], gone: list[int]) -> None:
    found = compare_blocks(*(list(map(text_block, texts)) for texts in (before, now)))
    assert [f"{one.change} {'' if one.before is None else one.before}".strip() for one in found.blocks] == changes
    assert list(found.gone) == gone


def test_another_version_of_a_block_changed() -> None:
    old, new = text_block(f"{PROSE * 9}10:00"), text_block(f"{PROSE * 9}10:05")
    found = compare_blocks([HIDDEN, old, text_block("a")], [HIDDEN, new, text_block("a")])
    assert [(one.change, one.before) for one in found.blocks] == [("same", None), ("changed", 1), ("same", 2)]
    assert found.first_changed == 1 and not found.gone


def test_what_is_in_the_place_of_a_system_block_is_its_counterpart() -> None:
    old, new = (text_block(text, Layer.SYSTEM, role="system") for text in ("You are a poet.", "Answer in JSON."))
    assert [(one.change, one.before) for one in compare_blocks([old], [new]).blocks] == [("changed", 0)]
    other = text_block("Answer in JSON.", Layer.MESSAGES, role="system")
    assert [one.change for one in compare_blocks([old], [other]).blocks] == ["new"]


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_every_block_of_the_call_before_is_matched_or_gone(before: list[str], now: list[str]) -> None:
    old, new = list(map(text_block, before)), list(map(text_block, now))
    found = compare_blocks(old, new)
    places = [one.before for one in found.blocks if one.before is not None]
    assert sorted([*places, *found.gone]) == list(range(len(old)))
    assert places == sorted(places)
    for one, block in zip(found.blocks, new, strict=True):
        if one.change == "same" and one.before is not None:
            assert old[one.before].digest == block.digest


@given(TEXTS, TEXTS)
def test_a_difference_is_the_first(old: str, new: str) -> None:
    blocks = [text_block(text).block for text in (old, new)]
    assert blocks[0] and blocks[1]
    found = first_text_difference(blocks[0], blocks[1], Layer.MESSAGES)
    assert found
    assert old[: found.at] == new[: found.at] and found.before == new[max(0, found.at - 80) : found.at]
    assert old.startswith(found.before + found.was + found.after, found.at - len(found.before))
    assert new.startswith(found.before + found.now + found.after, found.at - len(found.before))
    assert old == new or (found.was[:1] != found.now[:1])


def test_long_differences_are_cut() -> None:
    old, new = text_block("a" * 100 + "b" * 500).block, text_block("a" * 100 + "c").block
    assert old and new
    found = first_text_difference(old, new, Layer.MESSAGES)
    assert found and (found.at, found.before, found.was, found.now) == (100, "a" * 80, "b" * 80 + "…", "c")


@given(TEXTS, TEXTS)
def test_parts_make_both_texts(old: str, new: str) -> None:
    parts = diff_texts(old, new)
    assert "".join(text for kind, text in parts if kind != "gone") == new
    assert "".join(text for kind, text in parts if kind != "new") == old
    assert all(text for _, text in parts)
    assert all(one[0] != other[0] for one, other in pairwise(parts))


def test_words_differ_inside_a_line_that_changed() -> None:
    old, new = "first line\nthe time is 10:00 now\nlast\n", "first line\nthe time is 10:05 now\nlast\n"
    assert diff_texts(old, new) == [
        ("same", "first line\nthe time is 10:"),
        ("gone", "00"),
        ("new", "05"),
        ("same", " now\nlast\n"),
    ]
    assert diff_texts('{"a":"x\\ny b\\nz"}', '{"a":"x\\ny c\\nz"}')[1:3] == [("gone", "b"), ("new", "c")]


def test_texts_too_long_to_compare_are_shown_whole() -> None:
    old, new = "".join(f"{n}\n" for n in range(3_000)), "".join(f"x{n}\n" for n in range(3_000))
    assert diff_texts(old, new) == [("gone", old), ("new", new)]


@pytest.mark.parametrize("key", ["1e0816ef-0000-4000-8000-000000000001", "~e9b4684c3e6cc9a5", "s_1.2"])
def test_ids_that_fit_are_kept(key: str) -> None:
    assert session_id(key) == key


@pytest.mark.parametrize(
    "key", ["/home/ann/a.jsonl", "", "a b", "..", ".hidden", "é", "a" * 101, "a/b", "a?b", "\ud800"]
)
def test_other_ids_are_digests(key: str) -> None:
    made = session_id(key)
    assert len(made) == 12 and set(made) <= set("0123456789abcdef")
