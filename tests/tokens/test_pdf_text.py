"""Pages, sizes and text of a PDF as pypdf reads them, and what stands in where it cannot."""

import logging
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any

import pytest
from files_of_images import base64, pdf, with_pages
from pypdf import PdfWriter
from pypdf.generic import RectangleObject

from cachecost.tokens import pdf as pdf_module
from cachecost.tokens.parts import BlockParts, parts_of
from cachecost.tokens.pdf import Pdf, read_pdf

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
    return found.text if found else ""


def rewritten(data: bytes, change: Callable[[PdfWriter], Any]) -> bytes:
    """The file after a change, whose objects come after those of before: as an editor saves it."""
    writer = PdfWriter(BytesIO(data), incremental=True)
    change(writer)
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


def test_a_font_with_an_encoding_of_its_own_is_read_by_its_table() -> None:
    data = with_a_font_of_its_own()
    assert text_in(data).split("\n") == SENTENCES
    document = {"type": "document", "source": base64(data, "application/pdf")}
    assert parts_of("document", document) == BlockParts((text_in(data),), {"612x792 page": 1, "document": 1})


A4, WIDE = (595, 842), (1600, 900)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (with_pages(A4), Pdf({A4: 1})),
        (with_pages(A4, A4, WIDE), Pdf({A4: 2, WIDE: 1})),
        (with_pages(A4, words="Ducks quack."), Pdf({A4: 1}, "Ducks quack.")),
        (with_pages(A4, words="x = y + [z] {k} | #1"), Pdf({A4: 1}, "x = y + [z] {k} | #1")),
        (rewritten(with_pages(A4, A4, words="Ducks."), lambda it: it.remove_page(0)), Pdf({A4: 1}, "Ducks.")),
        (rewritten(with_pages(A4), lambda it: it.add_blank_page(*WIDE)), Pdf({A4: 1, WIDE: 1})),
        (
            rewritten(with_pages(WIDE), lambda it: setattr(it.pages[0], "cropbox", RectangleObject((0, 0, *A4)))),
            Pdf({A4: 1}),
        ),
        (with_pages(A4, words="Ducks.") + b"<< /Type /Pages /Count 900 >>", Pdf({A4: 1}, "Ducks.")),
        (b"%PDF-1.7 << /Type /Pages /Count 9 >>\n" + with_pages(A4), Pdf({A4: 1})),
    ],
)
def test_the_library_decides_pages_sizes_and_text(data: bytes, expected: Pdf) -> None:
    found = read_pdf(data)
    assert found is not None and (dict(found.pages), found.text, found.unread) == (
        expected.pages,
        expected.text,
        expected.unread,
    )


@pytest.mark.parametrize(("password", "expected"), [("", "Ducks."), ("secret", "")])
def test_an_encrypted_file_is_read_where_it_needs_no_password(password: str, expected: str) -> None:
    writer = PdfWriter(clone_from=BytesIO(with_pages(A4, words="Ducks.")))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    found = read_pdf(file.getvalue())
    assert found is not None and (sum(found.pages.values()), found.text) == (1, expected)
    assert found.unread == (0 if expected else None)


def test_codes_of_a_font_are_no_text() -> None:
    data = with_pages(A4, words="\\001\\002\\003\\004\\005\\006\\007\\010")
    document = {"type": "document", "source": base64(data, "application/pdf")}
    facts = parts_of("document", document).facts
    assert parts_of("document", document).texts == () and 0 < facts["unseen"] <= 8


def test_what_the_library_cannot_read_is_counted_by_its_characters() -> None:
    data = pdf(1, b"(Ducks) Tj")
    document = {"type": "document", "source": base64(data, "application/pdf")}
    assert parts_of("document", document) == BlockParts((), {"612x792 page": 1, "document": 1, "unseen": 5})


def test_a_text_beyond_the_limit_is_counted_by_its_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    data = with_pages(A4, WIDE, words="Ducks quack.")
    monkeypatch.setattr(pdf_module, "MOST_SHOWN", 20)
    assert read_pdf(data) == Pdf({A4: 1, WIDE: 1}, "", 24)
    monkeypatch.setattr(pdf_module, "MOST_PAGES", 1)
    assert read_pdf(data) == Pdf({A4: 2}, "", 24), "the size of the first"


def test_a_damaged_file_gives_neither_an_error_nor_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    whole, level = with_a_font_of_its_own(), logging.getLogger("pypdf").level
    for cut in range(200, len(whole), len(whole) // 9):
        assert isinstance(text_in(whole[:cut]), str)
        assert isinstance(text_in(whole[:cut] + b"\xff" * 40 + whole[cut + 40 :]), str)
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("pypdf").level == level


@pytest.mark.parametrize("data", [b"", b"PDF", b"\x89PNG", b"%PDF-1.4", b"%PDF-1.4\n<< /Type /Catalog >>"])
def test_what_has_no_pages_is_no_pdf(data: bytes) -> None:
    assert read_pdf(data) is None
