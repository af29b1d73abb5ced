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


@pytest.mark.parametrize(("head", "of_head", "more"), [(900, 702, 98), (500, 400, 80), (100, 98, 78)])
def test_the_longer_part_of_a_prompt_is_taken_to_be_counted_wrong(head: int, of_head: int, more: int) -> None:
    """800 of 1,000 counted tokens are billed: what is the head's, and what 100 more tokens of messages are then."""
    start = Prefix(None, Layer.MESSAGES, None, head)

    def prompt(name: str, counted: int) -> Prompt:
        end = start.then(given_block("text", "user", name, 0), Layer.MESSAGES, counted - head)
        return Prompt(end, start, (), 0, head, end.tokens, ("", "", ""))

    lengths = BilledLengths()
    lengths.learn(1, prompt("one", 1000), Usage(800))
    for counted, billed in ((1000, 800), (1100, 800 + more)):
        other = prompt(f"other {counted}", counted)
        sizes = lengths.without(2, other)
        assert (sizes.total(other), sizes.of(start)) == (billed, of_head)
