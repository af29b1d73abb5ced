"""The text of a PDF's plain strings."""

import pytest
from files_of_images import pdf

from cachecost.tokens.pdf_text import drawn_text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (b"(Hello) Tj", "Hello"),
        (b"[(Hel) -20 (lo) -201 (world)] TJ", "Hello world"),
        (b"[(Hello) -200 (world)] TJ", "Helloworld"),
        (b"(One.) Tj 0 -14 Td (Two.) Tj T* (Three.) Tj", "One.\nTwo.\nThree."),
        (b"0 -14 Td 0 -14 Td (One) Tj", "One"),
        (rb"(a \(b\) c) Tj", "a (b) c"),
        (rb"(caf\351 \101\12x) Tj", "café A\nx"),
        (b"<00480065> Tj", ""),  # two bytes a character, in the font's own encoding
        (rb"(\001\002\003\004) Tj", ""),  # a font cut down to a subset
        (b"", ""),
    ],
)
def test_text_drawn(shown: bytes, text: str) -> None:
    assert drawn_text(pdf(1, shown)) == text
    assert drawn_text(pdf(1, shown, packed=True)) == text


@pytest.mark.parametrize(("odd", "is_text"), [(1, True), (2, False)])
def test_mostly_other_signs_are_no_text(odd: int, is_text: bool) -> None:
    """Nine tenths of letters and punctuation make a text; less do not."""
    assert bool(drawn_text(pdf(1, b"(" + b"a" * (10 - odd) + b"~" * odd + b") Tj"))) is is_text


def test_damage_gives_no_error() -> None:
    whole = pdf(2, b"(Ducks quack.) Tj")
    for cut in range(0, len(whole), 7):
        assert isinstance(drawn_text(whole[:cut] + b"\xff(\\" + whole[cut:]), str)
