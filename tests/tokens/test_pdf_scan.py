"""What the bytes of a PDF tell where no library reads it: on files made here, whole and damaged."""

import zlib

import pytest
from files_of_images import pdf
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.tokens.pdf import LETTER, ScannedPdf, scan_pdf


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("pages", "box", "size"),
    [
        (1, "[0 0 612 792]", (612, 792)),
        (9, "[ 0 0 595.276 841.89 ]", (595, 842)),
        (2, "[-10 -20 90 180]", (100, 200)),
        (3, "[0 0 0 0]", LETTER),
        (3, "[0 0 . 1.2.3]", LETTER),
        (3, "7 0 R", LETTER),
    ],
)
def test_pages_and_their_size(pages: int, box: str, size: tuple[int, int], packed: bool) -> None:
    assert scan_pdf(pdf(pages, b"", box, packed)) == ScannedPdf(pages, size, 0)


def test_without_a_page_tree_the_pages_are_counted() -> None:
    assert scan_pdf(pdf(4, b"", tree=False)) == ScannedPdf(4, (612, 792), 0)
    assert scan_pdf(pdf(4, b"", tree=False, packed=True)) == ScannedPdf(4, (612, 792), 0)


def test_a_page_tree_of_several_levels_counts_each_page_once() -> None:
    levels = b"<< /Type /Pages /Count 12 >>\n<< /Count 7 /Type/Pages >>\n<</Type /Pages /Count 5>>\n"
    assert scan_pdf(b"%PDF-1.4\n" + b"<< /Type /Page >>" * 13 + levels) == ScannedPdf(12, (612, 792), 0)


@pytest.mark.parametrize(
    ("shown", "characters"),
    [
        (b"", 0),
        (b"(Hello) Tj", 5),
        (b"() Tj", 0),
        (b"[(Hel)-20(lo)] TJ", 5),
        (b"[(Hello)-200(world)] TJ", 10),
        (b"[(Hello)-201(world)] TJ", 11),
        (b"[(Hello)-333.3(world)] TJ", 11),
        (b"[(Hello)333(world)] TJ", 10),
        (rb"(a\(b\)\\) Tj", 5),
        (rb"(\101\12x\n) Tj", 4),
        (b"<00480065> Tj", 2),
        (b"<0048 0065\n006c> Tj", 3),
        (b"/Span <</MCID 0>> BDC (x) Tj EMC", 1),
        (b"(unclosed", 0),
        (b"(one) Tj\n(two) Tj", 6),
    ],
)
def test_characters_drawn(shown: bytes, characters: int) -> None:
    assert scan_pdf(pdf(1, shown)) == ScannedPdf(1, (612, 792), characters)


@pytest.mark.parametrize(
    "head", [b"/Subtype /Image", b"/Length1 20", b"/Subtype /Type1C", b"/Type /XRef", b"/Type /ObjStm"]
)
def test_only_pages_draw_text(head: bytes) -> None:
    stream = b"5 0 obj\n<< %s >>\nstream\n" + zlib.compress(b" BT (no text) ET ") + b"\nendstream\n"
    assert scan_pdf(pdf(1, b"(x) Tj") + stream % head) == ScannedPdf(1, (612, 792), 1)
    assert scan_pdf(pdf(1, b"(x) Tj") + stream % b"/Subtype /Form") == ScannedPdf(1, (612, 792), 8)


def test_a_stream_that_is_not_deflated_is_read_as_it_is() -> None:
    plain = b"5 0 obj\n<< /Length 16 >>\nstream\nBT (plain) Tj ET\nendstream\n"
    assert scan_pdf(pdf(1, b"") + plain) == ScannedPdf(1, (612, 792), 5)


def test_an_encrypted_file_tells_only_its_pages() -> None:
    assert scan_pdf(pdf(2, b"(x) Tj") + b"<< /Encrypt 3 0 R >>") == ScannedPdf(2, (612, 792), None)


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.tokens.pdf.MOST_INFLATED", 1000)
    small = scan_pdf(pdf(1, b"(x) Tj " * 10_000))
    assert small is not None
    assert small.characters is not None
    assert 100 < small.characters < 150, "of 10,000"


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"%PDF-1.4\n<< /Type /Catalog >>"])
def test_without_pages_nothing_is_found(data: bytes) -> None:
    assert scan_pdf(data) is None


@settings(max_examples=60)
@given(st.integers(0, 400), st.binary(max_size=40))
def test_damage_never_fails(cut: int, noise: bytes) -> None:
    whole = pdf(3, b"[(Hello)-300(world)] TJ", packed=True)
    told = scan_pdf(whole[:cut] + noise + whole[cut:])
    assert told is None or told.pages > 0
    told = scan_pdf(whole[:cut])
    assert told is None or (0 < told.pages <= 4 and told.size == (612, 792))
