"""How much of a PDF is read by the library: what a small file has it do again and again counts each time."""

import zlib
from io import BytesIO

import pytest
from pypdf import PageObject, PdfReader

from cachecost.tokens.pdf import has_more_pages, read_pdf, shows_more

SHOWN = b"BT /F 12 Tf <01020304> Tj ET"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
ROOT, TREE = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count 1 >>"
PAGE = b"<< /Type /Page /Parent 2 0 R /Contents %s /Resources << /Font << /F 4 0 R >> %s >> >>"


def pdf_of(*objects: bytes) -> bytes:
    """A file of these objects, the first being its root."""
    made, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(made))
    return made + head + table + end


def stream(body: bytes, head: bytes = b"") -> bytes:
    packed = zlib.compress(body)
    return b"<< /Filter /FlateDecode /Length %d %s >>\nstream\n%s\nendstream" % (len(packed), head, packed)


def pages(number: int) -> bytes:
    """Pages that share one content, of which the file admits one."""
    kids = b" ".join(b"%d 0 R" % (5 + at) for at in range(number))
    return pdf_of(ROOT, TREE % kids, stream(SHOWN), FONT, *[PAGE % (b"3 0 R", b"")] * number)


def kids_of_kids(depth: int) -> bytes:
    """A tree whose nodes each stand twice in the one above: two to the power of its depth pages."""
    nodes = [TREE % (b"%d 0 R %d 0 R" % (at, at)) for at in range(5, 5 + depth)]
    return pdf_of(ROOT, nodes[0], stream(SHOWN), FONT, *nodes[1:], PAGE % (b"3 0 R", b""), FONT)


def forms(depth: int, draw: bytes = b"/X Do /X Do ", last: bytes = SHOWN) -> bytes:
    """A page that draws a form, which draws the next one twice …"""
    head = b"/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /X %d 0 R >> >>"
    drawn = [stream(draw, head % (7 + at)) for at in range(depth)]
    page = PAGE % (b"3 0 R", b"/XObject << /X 6 0 R >>")
    return pdf_of(ROOT, TREE % b"5 0 R", stream(SHOWN + b" /X Do"), FONT, page, *drawn, stream(last, head % 6))


def fonts(number: int, last: bytes = b"ffff") -> bytes:
    """A page with fonts whose table is a line that stands for all characters up to `last`."""
    table = stream(b"1 beginbfrange\n<0000> <%s> <0041>\nendbfrange" % last)
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /ToUnicode 3 0 R >>"
    names = b" ".join(b"/F%d 4 0 R" % at for at in range(number))
    return pdf_of(ROOT, TREE % b"5 0 R", table, font, PAGE.replace(b"/F 4 0 R", names) % (b"6 0 R", b""), stream(SHOWN))


def again(times: int) -> bytes:
    """A page that shows one content again and again."""
    return pdf_of(ROOT, TREE % b"5 0 R", stream(SHOWN), FONT, PAGE % (b"[" + b"3 0 R " * times + b"]", b""))


@pytest.mark.parametrize(
    ("data", "is_long"),
    [
        (pages(20), False),
        (pages(21), True),
        (pages(100), True),
        (kids_of_kids(4), False),  # 16 pages, of which pypdf reads each
        (kids_of_kids(5), True),
        (kids_of_kids(60), True),
        (again(50), False),
        (again(2000), True),
        (forms(6), False),
        (forms(12), True),
        (forms(60), True),
        (forms(6, draw=b"/#58 Do " * 8), True),  # an X, escaped
        (forms(1, last=b"/X Do"), True),  # a form within itself
        (fonts(1, last=b"00ff"), False),
        (fonts(1), True),
        (fonts(200, last=b"00ff"), True),
    ],
)
def test_what_is_gone_through_again_and_again_counts_each_time(data: bytes, is_long: bool) -> None:
    reader = PdfReader(BytesIO(data))
    assert (has_more_pages(reader, 20) or shows_more(reader, 50_000)) is is_long


@pytest.mark.parametrize(("data", "is_read"), [(forms(2), True), (forms(60), False), (pages(5000), False)])
def test_the_library_reads_no_page_of_a_file_that_is_too_long(
    data: bytes, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[PageObject] = []
    monkeypatch.setattr(PageObject, "extract_text", lambda page: read.append(page) or "")
    assert read_pdf(data) is not None
    assert bool(read) is is_read


def test_a_dictionary_without_an_end_is_looked_through_once() -> None:
    """Each of its page trees had all that follows looked through: hours for a file of some megabytes."""
    assert read_pdf(b"%PDF-1.7\n<<" + b"/Type /Pages /Count 2 " * 100_000) is None
