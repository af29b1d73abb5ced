"""Answers that come back in a later prompt: as billed, or written by the client, or without what was thought."""

from __future__ import annotations

from typing import Any

import pytest
from trees import Tree, rules

from cachecost.caches.fixed_blocks import FixedBlockCache
from cachecost.caches.reporting import PromptHistory
from cachecost.prompts.render import CountedSizes

UNREASONED = {"keeps_unreasoned_answers": True}
KEEPS = {"keeps_answers": True}


class Billed(CountedSizes):
    """Every length is known."""

    def doubt(self, tokens: int) -> int:
        return 0


def read_after_answer(stated: dict[str, Any], billed: int | None, *answer: str) -> int:
    """What is read of a prompt of 1,000 tokens, its answer, and 100 more, after the prompt alone."""
    tree, grid, known = Tree(), FixedBlockCache(), rules(**stated)
    first = tree.prompt("ask:1000")
    grid.call(first, known, 0)
    if billed is not None:
        grid.note_answer(first, known, billed)
    return grid.call(tree.prompt("ask:1000", *answer, "more:100"), known, 10).read


@pytest.mark.parametrize("stated", [KEEPS, UNREASONED])
@pytest.mark.parametrize(
    ("billed", "read"),
    [
        (26, 1000),  # a client that appends the result of a tool to the assistant's own message
        (285, 1000),  # 5% longer at most
        (286, 1300),
        (300, 1300),
        (332, 1300),
        (333, 1000),  # reasoned: reasoning is billed in steps of 64 tokens, and does not come back
        (364, 1000),
    ],
)
def test_an_answer_is_read_if_it_is_as_long_as_billed(stated: dict[str, Any], billed: int, read: int) -> None:
    assert read_after_answer(stated, billed, ">answer:300") == read


@pytest.mark.parametrize(("stated", "read"), [(KEEPS, 1300), (UNREASONED, 1000), ({}, 1000)])
def test_an_answer_whose_length_is_not_known_counts_where_all_are_kept(stated: dict[str, Any], read: int) -> None:
    assert read_after_answer(stated, None, ">answer:300") == read


def test_a_host_that_keeps_no_answers_reads_none_that_came_back_as_billed() -> None:
    assert read_after_answer({"opener_tokens": 3}, 300, ">answer:300") == 1000


def test_of_consecutive_messages_of_the_assistant_the_first_ones_can_be_the_answer() -> None:
    assert read_after_answer(UNREASONED, 30, ">answer:30", ">written by the client:200") == 1030
    assert read_after_answer(UNREASONED, 230, ">answer:30", ">its second block:200") == 1230
    assert read_after_answer(UNREASONED, 30, ">written by the client:200", ">answer:30") == 1000


def test_each_of_two_answers_to_one_prompt_is_known_by_its_length() -> None:
    tree, history = Tree(), PromptHistory()
    ask = tree.end("ask:1000")
    for tokens in (50, 400):
        history.add_call(ask)
        history.note_answer(ask, tokens)
    long, short, third = (tree.end("ask:1000", f">{name}") for name in ("a:400", "b:50", "c:50"))
    assert [history.add_call(end).answer for end in (long, short, third)] == [long, short, None]


@pytest.mark.parametrize(
    ("size", "opener", "read"), [(1024, 0, 1024), (1026, 3, 896), (1027, 3, 1024), (1035, 12, 896)]
)
def test_what_opens_an_answer_is_not_shared_by_a_longer_prompt(size: int, opener: int, read: int) -> None:
    tree, known = Tree(), rules(step_tokens=128, opener_tokens=opener)
    grid, counted = FixedBlockCache(), FixedBlockCache()
    for end in ((f"ask:{size}",), (f"ask:{size}", "more:100")):
        found = grid.call(tree.prompt(*end), known, len(end), sizes=Billed()).read
        own = counted.call(tree.prompt(*end), known, len(end)).read
    assert (found, own) == (read, 1024), "our own count of a prompt has no opener"
    again = grid.call(tree.prompt(f"ask:{size}"), known, 9, sizes=Billed()).read
    assert again == 1024, "the same prompt shares all of it"
