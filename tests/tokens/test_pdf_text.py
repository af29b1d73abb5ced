"""The text of a PDF: its plain strings, and what pypdf reads of the others."""

import logging
from dataclasses import replace
from functools import cache
from io import BytesIO

import pytest
from files_of_images import base64, pdf

from cachecost.tokens import pdf_text
from cachecost.tokens.content import BlockParts, parts_of
from cachecost.tokens.pdf import read_pdf
from cachecost.tokens.pdf_text import MOST_PAGES, drawn_text, text_of

SENTENCES = [f"Duck number {n} quacks at the moon, and nobody on the pond is asleep." for n in range(12)]


@cache
def with_a_font_of_its_own() -> bytes:
    """A page whose font is cut down to what it draws: two bytes a character, and a table of what they are."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"pdf.fonttype": 42}):
        figure = Figure(figsize=(8.5, 11))
        figure.text(0.1, 0.9, "\n".join(SENTENCES), va="top")
        file = BytesIO()
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
    return file.getvalue()


def text_in(data: bytes) -> str:
    found = read_pdf(data)
    return text_of(data, found)[0] if found else ""


def test_a_font_with_an_encoding_of_its_own_is_read_by_its_table() -> None:
    """Its strings alone seem to be twice as many characters, and no text."""
    data = with_a_font_of_its_own()
    found = read_pdf(data)
    assert found is not None and found.characters is not None
    assert drawn_text(data) == ""
    assert found.characters > 1.5 * len(text_in(data))
    assert text_in(data).split("\n") == SENTENCES
    document = {"type": "document", "source": base64(data, "application/pdf")}
    assert parts_of("document", document) == BlockParts((text_in(data),), {"612x792 page": 1, "document": 1})


def test_what_is_no_text_to_either_is_counted_by_its_characters() -> None:
    data = pdf(1, rb"(\001\002\003\004) Tj")
    document = {"type": "document", "source": base64(data, "application/pdf")}
    assert parts_of("document", document) == BlockParts((), {"612x792 page": 1, "document": 1, "unseen": 4})


def test_plain_strings_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: bytes) -> str:
        raise AssertionError(data)

    monkeypatch.setattr(pdf_text, "_library_text", fail)
    assert text_in(pdf(1, b"(Ducks quack at the moon.) Tj <0048> Tj")) == "Ducks quack at the moon."
    with pytest.raises(AssertionError):
        text_in(pdf(1, b"(Ducks) Tj <00480048> Tj"))


def test_a_long_file_is_not_read_by_the_library() -> None:
    data = with_a_font_of_its_own()
    found = read_pdf(data)
    assert found is not None
    assert text_of(data, replace(found, pages=MOST_PAGES))[1] == 0
    assert text_of(data, replace(found, pages=MOST_PAGES + 1)) == ("", found.characters)


@pytest.mark.parametrize(("plain", "unread", "left"), [(36, 4, 4), (35, 5, 5)])
def test_characters_that_are_not_read_count_beside_the_text(plain: int, unread: int, left: int) -> None:
    """Of plain strings and others: nine tenths are enough, and where pypdf reads no more they are all there is."""
    data = pdf(1, b"(" + b"a" * plain + b") Tj <" + b"0048" * unread + b"> Tj")
    found = read_pdf(data)
    assert found is not None
    assert text_of(data, found) == ("a" * plain, left)


def test_a_damaged_file_gives_neither_an_error_nor_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    whole, level = with_a_font_of_its_own(), logging.getLogger("pypdf").level
    for cut in range(200, len(whole), len(whole) // 9):
        assert isinstance(text_in(whole[:cut]), str)
        assert isinstance(text_in(whole[:cut] + b"\xff" * 40 + whole[cut + 40 :]), str)
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("pypdf").level == level


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
