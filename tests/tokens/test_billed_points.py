"""Lengths between billed ones: exact where a bill gives them, also where the blocks between count for nothing."""

from __future__ import annotations

import pytest

from cachecost.prompts.blocks import Layer, Prefix, given_block
from cachecost.prompts.render import Prompt
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import NO_CALL, BilledLengths, BilledSizes, Ratios

POINTS = [(100, 1, 90), (100, 3, 96), (300, 5, 296)]
"""Counted tokens, blocks, billed tokens. Two bills end where the same is counted: after an empty block."""


@pytest.mark.parametrize(
    ("place", "billed"),
    [
        ((50, 1), 45),
        ((100, 1), 90),
        ((100, 2), 90),  # between the two, no bill says more than the first
        ((100, 3), 96),  # the second is exact
        ((200, 4), 196),
        ((300, 5), 296),
        ((300, -1), 296),
        ((400, 6), 366),  # beyond the last, by the ratio of other bills: still in the head
        ((600, 7), 626),  # and of the messages after it
    ],
)
def test_a_length_is_exact_at_a_bill_and_linear_between_two(place: tuple[int, int], billed: int) -> None:
    sizes = BilledSizes(BilledLengths(), NO_CALL, list(POINTS), len(POINTS), 500, Ratios(0.7, 1.9))
    assert sizes._length(place) == billed


@pytest.mark.parametrize(
    ("bills", "of_head", "total"),
    [
        ([], 900, 1050),
        ([(1000, 800)], 720, 840),  # one bill: all is off by one factor
        ([(1000, 800), (1100, 900)], 700, 850),  # off by 200 tokens each: those of the head
        ([(1000, 800), (1100, 880), (1200, 960)], 720, 840),  # by a fifth each
    ],
)
def test_what_bills_of_one_head_are_off_by_is_the_heads_or_a_factor(
    bills: list[tuple[int, int]], of_head: int, total: int
) -> None:
    """Prompts of (counted, billed) tokens, of which the first 900 counted are the same; another counts 1,050."""
    start = Prefix(None, Layer.MESSAGES, None, 900)

    def prompt(name: str, counted: int) -> Prompt:
        end = start.then(given_block("text", "user", name, 0), Layer.MESSAGES, counted - 900)
        return Prompt(end, start, (), 0, 900, end.tokens, ("", "", ""))

    lengths, other = BilledLengths(), prompt("other", 1050)
    for number, (counted, billed) in enumerate(bills):
        lengths.learn(number, prompt(f"{number}", counted), Usage(billed))
    sizes = lengths.without(9, other)
    assert (sizes.total(other), sizes.of(start)) == (total, of_head)
