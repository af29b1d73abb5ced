"""The two earliest bills of a length answer what all of them would; lengths that are kept know every later bill."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from test_agreeing_lengths import BILLS, Bill, chain, learn, prompt

from cachecost.tokens.calibrated import NO_CALL, Bills, add_bill, find_other_bill

CALLS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), max_size=8)


@given(CALLS)
@example([(3, 0), (2, 1), (1, 2), (2, 3)])
def test_each_call_is_told_by_the_earliest_other_one(bills: list[tuple[int, int]]) -> None:
    kept: Bills[int] | None = None
    every: dict[int, int] = {}
    for call, tokens in bills:
        kept = add_bill(kept, call, tokens)
        every[call] = tokens
    for asking in range(NO_CALL, 8):
        others = [tokens for number, tokens in sorted(every.items()) if number != asking]
        assert find_other_bill(kept, asking) == next(iter(others), None)


@given(st.lists(st.integers(1, 900), min_size=8, max_size=8), BILLS, BILLS)
def test_lengths_asked_for_before_a_bill_are_found_anew_after_it(
    sizes: list[int], bills: list[Bill], later: list[Bill]
) -> None:
    nodes = chain(sizes)
    asked, _ = learn(nodes, bills)
    ends = [prompt(nodes, blocks, 0) for blocks in range(1, 9)]
    for one in ends:
        asked.all(one)
    fresh, _ = learn(nodes, bills)
    _, prompts = learn(nodes, later)
    for number, (one, (_, _, upto, after)) in enumerate(zip(prompts, later, strict=True), 20):
        for lengths in (asked, fresh):
            lengths.learn_prefix(number, one.end, upto + after)
    for one in (*ends, *prompts):
        twice, once = asked.all(one), fresh.all(one)
        assert [twice.of(node) for node in nodes] == [once.of(node) for node in nodes]
        assert (twice.total(one), twice.ratios) == (once.total(one), once.ratios)
