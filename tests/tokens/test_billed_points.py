"""Lengths between billed ones: exact where a bill gives them, also where the blocks between count for nothing."""

from __future__ import annotations

import pytest

from cachecost.tokens.calibrated import NO_CALL, BilledLengths, BilledSizes

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
        ((400, 6), 446),  # beyond the last, by the ratio of other bills
    ],
)
def test_a_length_is_exact_at_a_bill_and_linear_between_two(place: tuple[int, int], billed: int) -> None:
    sizes = BilledSizes(BilledLengths(), NO_CALL, list(POINTS), len(POINTS), 1.5)
    assert sizes._length(place) == billed
