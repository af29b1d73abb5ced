"""Tokens of images: the documentation's own examples, both sides of each edge, and what the formula promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.errors import CannotEvaluate
from cachecost.tokens.images import Tier, fit_image, image_tokens, page_tokens, tier_of, unknown

STANDARD, HIGH = Tier(1568, 1568), Tier(2576, 4784)


@pytest.mark.parametrize(
    ("size", "standard", "high"),
    [
        ((200, 200), ((200, 200), 64), ((200, 200), 64)),
        ((1000, 1000), ((1000, 1000), 1296), ((1000, 1000), 1296)),
        ((1092, 1092), ((1092, 1092), 1521), ((1092, 1092), 1521)),
        ((1920, 1080), ((1456, 819), 1560), ((1920, 1080), 2691)),
        # The documentation's table says 1269x952; its algorithm gives 1270, and the same tokens.
        ((2000, 1500), ((1270, 952), 1564), ((2000, 1500), 3888)),
        ((3840, 2160), ((1456, 819), 1560), ((2576, 1449), 4784)),
        ((1075, 1520), ((924, 1307), 1551), ((1075, 1520), 2145)),
        ((330, 291), ((330, 291), 132), ((330, 291), 132)),
    ],
)
def test_documented_examples(
    size: tuple[int, int], standard: tuple[tuple[int, int], int], high: tuple[tuple[int, int], int]
) -> None:
    assert (fit_image(*size, STANDARD), image_tokens(*size, "claude-3")) == standard
    for generation in ("claude-4.7", "claude-4.8"):
        assert (fit_image(*size, HIGH), image_tokens(*size, generation)) == high


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1, 1), (1, 1)),
        ((1568, 784), (1568, 784)),  # 56 × 28 patches: exactly the limit
        ((1568, 785), (1567, 784)),  # a pixel more begins another row of patches
        ((1540, 784), (1540, 784)),
        ((1540, 785), (1539, 784)),
        ((1569, 28), (1568, 28)),  # the last patch, filled up, is beyond the edge
        ((28, 1569), (28, 1568)),
        ((100_000, 1), (1568, 1)),  # no side is less than a pixel
    ],
)
def test_edges_of_the_standard_tier(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert fit_image(*size, STANDARD) == expected


@pytest.mark.parametrize(("height", "short"), [(101, 50), (103, 52), (105, 52), (107, 54)])
def test_the_short_side_is_rounded_half_to_even(height: int, short: int) -> None:
    assert fit_image(3136, height, STANDARD) == (1568, short), f"half of {height}"


sides = st.integers(1, 20_000)


@given(sides, sides)
def test_an_image_is_made_as_small_as_needed_and_no_smaller(width: int, height: int) -> None:
    for tier in (STANDARD, HIGH):
        small = fit_image(width, height, tier)
        assert fit_image(*small, tier) == small, "what fits stays as it is"
        assert -(-max(small) // 28) * 28 <= tier.edge
        assert -(-small[0] // 28) * -(-small[1] // 28) <= tier.tokens
        if small != (width, height):
            longer = max(small) + 1
            other = max(round(longer / (max(width, height) / min(width, height))), 1)
            fits = -(-longer // 28) * 28 <= tier.edge and -(-longer // 28) * -(-other // 28) <= tier.tokens
            assert not fits, "one pixel more would not fit"


@given(sides, sides)
def test_turning_an_image_costs_nothing(width: int, height: int) -> None:
    assert image_tokens(width, height, "claude-3") == image_tokens(height, width, "claude-3")
    assert image_tokens(width, height, "claude-3") <= image_tokens(width, height, "claude-4.8") <= 4784


@pytest.mark.parametrize(
    ("page", "tokens"), [((612, 792), 1496), ((595, 842), 1551), ((792, 612), 1496), ((1, 1), 1521)]
)
def test_a_page_is_as_large_as_the_standard_tier_allows(page: tuple[int, int], tokens: int) -> None:
    assert page_tokens(*page) == tokens


def test_a_generation_without_a_tier() -> None:
    with pytest.raises(CannotEvaluate) as told:
        tier_of("claude-4.9")
    assert str(told.value) == (
        "tokenizer generation 'claude-4.9' has no image tier: expected one of claude-3, claude-4.7, claude-4.8 "
        "(did you mean 'claude-4.8'?)"
    )


def test_what_is_unknown_is_stated() -> None:
    told = unknown()
    assert (told.image, told.pages, told.page, told.characters) == ((364, 364), 1, (612, 792), 2500)
