"""Of billed lengths that contradict one another those count that agree, and no block weighs less than nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import BilledLengths, BilledPath, OwnBill, Point

Bill = tuple[int, int, int, int]
"""Blocks that the prompt has, blocks up to the breakpoint, tokens up to there, tokens after it."""
TOKENS = st.one_of(st.integers(0, 20), st.sampled_from((0, 990, 1000, 1001, 5000)))
BILLS = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8), TOKENS, TOKENS), min_size=1, max_size=8)


def chain(sizes: list[int]) -> list[Prefix]:
    """The prefixes of one conversation, each a block of an estimated size longer than the one before it."""
    nodes = [Prefix(None, Layer.TOOLS, None, 0)]
    for number, size in enumerate(sizes):
        nodes.append(nodes[-1].cache_key(b"%d" % number, Layer.MESSAGES, size))
    return nodes


def prompt(nodes: list[Prefix], blocks: int, cached: int) -> Prompt:
    breakpoints = (BreakpointPrefix(nodes[min(cached, blocks)], "5m"),) if cached else ()
    return Prompt(nodes[blocks], nodes[1], breakpoints, 0, 0, nodes[blocks].tokens + 3, ("", "", ""))


def learn(nodes: list[Prefix], bills: list[Bill]) -> tuple[BilledLengths, list[Prompt]]:
    lengths, prompts = BilledLengths(), []
    for call, (blocks, cached, upto, after) in enumerate(bills, 1):
        prompts.append(prompt(nodes, blocks, cached))
        lengths.learn(call, prompts[-1], Usage(after, write_5m=upto) if cached else Usage(upto + after))
    return lengths, prompts


@given(st.lists(st.integers(1, 900), min_size=8, max_size=8), BILLS)
@example([100] * 8, [(8, 8, 5000, 0), (4, 4, 1000, 0), (8, 2, 20, 1)])
@example([100] * 8, [(8, 8, 1000, 3), (4, 4, 5000, 3)])
def test_no_block_weighs_less_than_nothing_whatever_bills_say(sizes: list[int], bills: list[Bill]) -> None:
    nodes = chain(sizes)
    lengths, prompts = learn(nodes, bills)
    for call, one in enumerate([*prompts, prompt(nodes, 8, 0), prompt(nodes, 3, 0)], 1):
        for known in (lengths.all(one), lengths.without(call, one)):
            along = [known.of(node) for node in nodes[: nodes.index(one.end) + 1]]
            assert all(before <= after for before, after in pairwise([0, *along, known.total(one)]))
            assert [known.at(node.tokens) for node in nodes[: len(along)]] == along


@given(st.lists(st.integers(1, 900), min_size=8, max_size=8), BILLS)
def test_the_first_bill_of_a_prompt_is_met(sizes: list[int], bills: list[Bill]) -> None:
    nodes = chain(sizes)
    lengths, prompts = learn(nodes, bills)
    first = {one.end: (one, bill) for one, bill in reversed(list(zip(prompts, bills, strict=True)))}
    for one, (_, _, upto, after) in first.values():
        assert lengths.all(one).total(one) == upto + after


@given(st.lists(st.integers(1, 900), min_size=8, max_size=8), st.lists(TOKENS, min_size=8, max_size=8))
def test_bills_that_contradict_none_are_all_met(sizes: list[int], added: list[int]) -> None:
    nodes, lengths = chain(sizes), BilledLengths()
    sums = [sum(added[: number + 1]) for number in range(8)]
    for call, tokens in enumerate(sums, 1):
        lengths.learn_prefix(call, nodes[call], tokens)
    known = lengths.all(prompt(nodes, 8, 0))
    assert [known.of(node) for node in nodes[1:]] == sums
    assert [known.told(node) for node in nodes[1:]] == sums


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=9), st.integers(0, 9), st.integers(0, 12))
def test_going_on_is_the_same_as_all_at_once(steps: list[tuple[int, int]], cut: int, total: int) -> None:
    points: list[Point] = []
    for step, billed in steps:
        points.append((points[-1][0] + step if points else step, len(points) + 1, billed))
    whole, parts = BilledPath.start().then(points), BilledPath.start().then(points[:cut]).then(points[cut:])
    for own in (None, OwnBill(total), OwnBill(total, points[cut][:2] if cut < len(points) else None)):
        assert list(whole.agreeing(own)) == list(parts.agreeing(own))


POINTS: list[Point] = [(10, 1, 100), (20, 2, 200), (30, 3, 900), (40, 4, 300), (50, 5, 400)]


@pytest.mark.parametrize(
    ("billed", "own", "lengths"),
    [
        ((100, 200, 900, 300, 400), None, (100, 200, 300, 400)),  # 900 alone contradicts two others
        ((100, 200, 900, 950, 400), None, (100, 200, 400)),  # the last one counts
        ((100, 200, 3, 300, 400), None, (100, 200, 300, 400)),  # one that is far too low
        ((100, 200, 300, 400, 500), OwnBill(500), (100, 200, 300, 400, 500)),
        ((100, 200, 300, 400, 500), OwnBill(499), (100, 200, 300, 400, 499)),  # the own bill says less
        ((100, 200, 300, 400, 500), OwnBill(250), (100, 200, 250)),
        ((100, 800, 150, 160, 900), OwnBill(900, (20, 2)), (100, 800, 900)),  # what the own bill cached counts
        ((100, 800, 150, 160, 900), OwnBill(900), (100, 150, 160, 900)),
        ((100, 800, 150, 160, 700), OwnBill(700, (20, 2)), (100, 150, 160, 700)),  # not if it is more than the whole
        ((100, 100, 100, 100, 100), None, (100, 100, 100, 100, 100)),  # a block may weigh nothing
    ],
)
def test_as_many_count_as_agree(billed: tuple[int, ...], own: OwnBill | None, lengths: tuple[int, ...]) -> None:
    points = [(tokens, depth, length) for (tokens, depth, _), length in zip(POINTS, billed, strict=True)]
    assert tuple(point[2] for point in BilledPath.start().then(points).agreeing(own)) == (0, *lengths)


def test_a_prompt_ends_no_earlier_than_what_its_bill_cached() -> None:
    """Its estimated end of three tokens is more than the two that the bill has after the breakpoint."""
    nodes = chain([100] * 8)
    lengths, [one] = learn(nodes, [(5, 4, 1000, 2)])
    known = lengths.all(one)
    assert (known.of(nodes[4]), known.of(nodes[5]), known.total(one)) == (1000, 1000, 1002)
