"""The countable parts of a block: its texts, and the facts of its structure that cost tokens of their own.

Claude does not see the JSON that is sent. A tool definition is rendered as `<function>…</function>` with its
keys sorted (else bills of 7 to 24 tools are off by a token a tool), a call as its name, parameter names and
values, a result as its text. What surrounds them is a constant for each *fact* (see `calibration.toml`):
one tool, one call, one parameter, one error, …

The size in pixels of an image, from the head of its file. Damaged data has no size; nothing is decoded.

What the bytes of a PDF tell where pypdf cannot read it: pages, the size of the first, characters drawn.

How much pypdf goes through to read the text of a PDF: a few hundred bytes may have it draw one thing without end.

The pages of a PDF, their sizes and the text on them: as pypdf reads them, else as far as its bytes show.

The countable parts of images, documents and search results.
"""

from __future__ import annotations

import logging
import re
import zlib
from base64 import b64decode
from binascii import Error
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from json import dumps
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

from cachecost.prompts.blocks import THINKING, Block, compact
from cachecost.prompts.exact_json import packed_content
from cachecost.prompts.request import cites_sources
from cachecost.tokens.calibration import prose_of_texts
from cachecost.tokens.images import unknown
from cachecost.tokens.margins import (
    FILE,
    GUESSED,
    BlockParts,
    Content,
    Reader,
    guess,
    image_fact,
    is_server_result,
    merge_parts,
    nonzero,
    page_fact,
    server_result,
)
from cachecost.tokens.measured import known_tool

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader


Size = tuple[int, int]
NOT_FRAMES = (0xC4, 0xC8, 0xCC)
"""JPEG markers among those of frames (0xC0 to 0xCF) that are none: they hold no size."""
ALONE = (0x01, *range(0xD0, 0xD9))
"""JPEG markers that no length follows."""


def decode_base64(data: object) -> bytes:
    """The bytes of base64 `data`; cut at the first damaged place, empty if it is not base64."""
    if not isinstance(data, str):
        return b""
    try:
        return b64decode(data[: len(data) // 4 * 4])
    except (Error, ValueError):
        return b""


def image_size(data: bytes) -> Size | None:
    """(width, height) of a PNG, JPEG, GIF or WebP file; None if `data` is none of these or has no size."""
    for head, read in READERS.items():
        if data.startswith(head):
            width, height = read(data) or (0, 0)
            return (width, height) if width and height else None
    return None


def _png(data: bytes) -> Size:
    return _big(data, 16, 4), _big(data, 20, 4)


def _gif(data: bytes) -> Size:
    return _little(data, 6, 2), _little(data, 8, 2)


def _jpeg(data: bytes) -> Size | None:
    """From the first frame header; the segments before it are skipped by their lengths."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in NOT_FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        at += _step(data, at, marker)
    return None


def _step(data: bytes, at: int, marker: int) -> int:
    if marker == 0xFF:  # padding before a marker
        return 1
    return 2 if marker in ALONE else 2 + max(2, _big(data, at + 2, 2))


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if data[8:12] != b"WEBP" or len(data) < 30:
        return None
    if kind == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if kind == b"VP8L":
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return (_little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF) if kind == b"VP8 " else None


def _big(data: bytes, at: int, length: int) -> int:
    """A big-endian number; 0 past the end of the file."""
    return int.from_bytes(data[at : at + length], "big") if at + length <= len(data) else 0


def _little(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little") if at + length <= len(data) else 0


READERS: Mapping[bytes, Callable[[bytes], Size | None]] = {
    b"\x89PNG\r\n\x1a\n": _png,
    b"\xff\xd8": _jpeg,
    b"GIF8": _gif,
    b"RIFF": _webp,
}


LETTER = (612, 792)
"""The size assumed for a page without one, in points (1/72 inch)."""
MOST_INFLATED = 64_000_000
"""Bytes that the streams of a file may inflate to; what is beyond is not looked at."""
SHORTEST_SPACE = 200
"""A step back by more than this between two strings (thousandths of the font's size, or points) is a space."""
HEX_DIGITS = 4
"""Of a character in a hexadecimal string: what writes those uses fonts of two bytes a character."""
PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
PAGE_TREE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
DICTIONARY = re.compile(rb"<<[^<>]*>>")
"""One without others in it."""
COUNT = re.compile(rb"/Count\s+(\d{1,6})")
BOX = re.compile(rb"/MediaBox\s*\[\s*(-?\d[\d.]*)\s+(-?\d[\d.]*)\s+(-?\d[\d.]*)\s+(-?\d[\d.]*)\s*\]")
STREAM = re.compile(rb"(?<!end)stream\r?\n")
LONGEST_HEAD = 2_000
"""Bytes before a stream in which its dictionary begins."""
NO_TEXT = re.compile(rb"/Image|/Length1|/Type1C|/CIDFontType0C|/OpenType|/ObjStm|/XRef")
"""In the dictionary of a stream that is no page: an image, a font, a table."""
TEXT = re.compile(rb"(?:^|\s)BT\s")
STRING = re.compile(rb"\(((?:[^\\()]|\\.)*)\)|<([0-9A-Fa-f\s]+)>|-(\d{1,9})", re.DOTALL)
ESCAPE = re.compile(rb"\\(?:[0-7]{1,3}|.)", re.DOTALL)


class ScannedPdf(NamedTuple):
    """Pages, their size in points (of the first page that states it), characters drawn (None: unreadable)."""

    pages: int
    size: tuple[int, int]
    characters: int | None


def scan_pdf(data: bytes) -> ScannedPdf | None:
    """What is found of a PDF in `data`; None if its pages are not."""
    streams = list(_streams(data))
    described = [data, *(body for head, body in streams if b"/ObjStm" in head)]
    shown = (body for head, body in streams if not NO_TEXT.search(head))
    characters = None if b"/Encrypt" in data else sum(map(_characters, shown))
    nodes = (node[0] for text in described for node in DICTIONARY.finditer(text) if PAGE_TREE.search(node[0]))
    counts = [int(count) for node in nodes for count in COUNT.findall(node)]
    pages = max(counts, default=0) or sum(len(PAGE.findall(text)) for text in described)
    return ScannedPdf(pages, _size(described), characters) if pages else None


def _streams(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(dictionary, content) of each stream; the content inflated where possible."""
    left = MOST_INFLATED
    for start in STREAM.finditer(data):
        end = data.find(b"endstream", start.end())
        head = data[max(0, start.start() - LONGEST_HEAD) : start.start()]
        body = _inflate(data[start.end() : end if end >= 0 else len(data)], left)
        left -= len(body)
        yield head[head.rfind(b"obj") + 1 :], body
        if left <= 0:
            return


def _inflate(raw: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(raw, most)
    except zlib.error:
        return raw[:most]


def _size(described: Sequence[bytes]) -> tuple[int, int]:
    boxes = (box for text in described for box in BOX.findall(text))
    for left, bottom, right, top in boxes:
        width, height = _distance(left, right), _distance(bottom, top)
        if width and height:
            return width, height
    return LETTER


def _distance(one: bytes, other: bytes) -> int:
    try:
        return round(abs(float(other) - float(one)))
    except ValueError:
        return 0


def _characters(stream: bytes) -> int:
    """Characters of the strings in a content stream (with text, BT), and the spaces between them."""
    return sum(map(_drawn_length, STRING.finditer(stream))) if TEXT.search(stream) else 0


def _drawn_length(found: re.Match[bytes]) -> int:
    text, digits, step = found.groups()
    if step:
        return int(int(step) > SHORTEST_SPACE)
    return len(b"".join(digits.split())) // HEX_DIGITS if digits else len(ESCAPE.sub(b"x", text))


DRAWN = re.compile(rb"/([^\s/\[\]<>(){}%]+)\s+Do\b")
"""A form or an image that a content stream draws, by its name."""
CHARACTERS = re.compile(rb"<([0-9A-Fa-f]{1,6})>\s*<([0-9A-Fa-f]{1,6})>\s*[<\[]")
"""A range of characters in the table of a font: the first, the last, and what they are."""


def has_more_pages(reader: PdfReader, most: int) -> bool:
    """Whether a file has more pages than that. Of the page tree no more nodes are looked at than such a file has; one
    that stands at several places counts for each."""
    number = 0
    todo: list[Any] = [reader.root_object["/Pages"]]
    while todo and number <= 2 * most:
        number += 1
        kids = todo.pop().get_object().get("/Kids")
        todo += kids.get_object() if kids else ()
    return number > 2 * most or len(reader.pages) > most


def shows_more(reader: PdfReader, most: int) -> bool:
    """Whether the pages show more bytes than that. Stops where it is known."""
    drawn, left = _DrawnBytes(most), most
    for page in reader.pages:
        content = page.get_contents()
        data = b"" if content is None else content.get_data()
        left -= drawn.of(data, page.get_inherited("/Resources"))
        if left < 0:
            return True
    return False


class _DrawnBytes:
    """Bytes that are gone through for a content stream. One that draws itself counts as more than `most`."""

    def __init__(self, most: int) -> None:
        self._without_end = most + 1
        self._forms: dict[int, int] = {}

    def of(self, content: bytes, resources: Any) -> int:
        """Bytes of a content stream, of the fonts at hand, and of what it draws. An unknown name may be any form."""
        if len(content) >= self._without_end:
            return len(content)
        within = resources.get_object() if resources else {}
        forms = {name[1:].encode(): self._form(one) for name, one in _in(within, "/XObject")}
        most = max(forms.values(), default=0)
        drawn = sum(forms.get(name, most) for name in DRAWN.findall(content))
        return len(content) + sum(_table_bytes(font) for _, font in _in(within, "/Font")) + drawn

    def _form(self, form: Any) -> int:
        if form.get("/Subtype") != "/Form":
            return 0
        if id(form) not in self._forms:
            self._forms[id(form)] = self._without_end
            self._forms[id(form)] = self.of(form.get_data(), form.get("/Resources"))
        return self._forms[id(form)]


def _in(resources: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """The names of a kind of resources, and what each stands for."""
    found = resources.get(kind)
    return ((name, one.get_object()) for name, one in (found.get_object() if found else {}).items())


def _table_bytes(font: Any) -> int:
    """Bytes of the table that says what a font's characters are, and one more for each of a range."""
    table = font.get("/ToUnicode")
    found: Any = table.get_object() if table else None
    data = found.get_data() if hasattr(found, "get_data") else b""
    return len(data) + sum(max(0, int(last, 16) - int(first, 16)) for first, last in CHARACTERS.findall(data))


MOST_PAGES = 600
"""As many as the Claude API takes of a PDF."""
MOST_SHOWN = 5_000_000
"""Bytes of what the pages of a file show whose text is read."""
MOST_ODD = 0.1
"""The share of characters that are none from which a text is none: a font's own codes."""


@dataclass(frozen=True, slots=True)
class Pdf:
    """How many pages of each size in points, their text, and the characters that are drawn and not read (None: it is
    not known how many)."""

    pages: Mapping[Size, int]
    text: str = ""
    unread: int | None = 0


def read_pdf(data: bytes) -> Pdf | None:
    """The PDF in `data`; None if it is not a PDF or its pages cannot be found."""
    if b"%PDF-" not in data[:1024]:
        return None
    read = _read_by_library(data)
    if read is not None and read.unread is not None:
        return read
    scanned = scan_pdf(data)
    pages = read.pages if read else {scanned.size: scanned.pages} if scanned else {}
    return Pdf(pages, "", scanned.characters if scanned else None) if pages else None


def _read_by_library(data: bytes) -> Pdf | None:
    """What pypdf reads, `unread` being None for a text that is too long; None for a file that it cannot read."""
    from pypdf import PdfReader

    with _silent("pypdf"):
        try:
            reader = PdfReader(BytesIO(data))
            if (reader.is_encrypted and not reader.decrypt("")) or has_more_pages(reader, MOST_PAGES):
                return None
            sizes = Counter(map(_pdf_size, reader.pages))
            if not sizes or shows_more(reader, MOST_SHOWN):
                return Pdf(sizes, "", None) if sizes else None
            text = "\n".join(page.extract_text() for page in reader.pages).strip()
        except Exception:  # a damaged file makes any part of it fail, in any way
            return None
    return Pdf(sizes, text) if _is_text(text) else Pdf(sizes, "", len(text))


def _pdf_size(page: PageObject) -> Size:
    """The size of what is shown of a page; that of a letter where it states none."""
    box = page.get_inherited("/CropBox") or page.get_inherited("/MediaBox")
    left, bottom, right, top = map(float, box.get_object()) if box else (0.0, 0.0, 0.0, 0.0)
    size = round(abs(right - left)), round(abs(top - bottom))
    return size if all(size) else LETTER


def _is_text(text: str) -> bool:
    """Whether hardly any character is a control code, of private use or unknown."""
    odd = sum(sign == "\N{REPLACEMENT CHARACTER}" or (category(sign)[0] == "C" and not sign.isspace()) for sign in text)
    return odd <= MOST_ODD * len(text)


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Without the warnings that a library logs."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


SENTENCE = re.compile(r"[.!?…](?=\s|\Z)|[。！？]|\S\Z")
"""Ends of sentences: a document to be cited is shown sentence by sentence, each with its number."""
SENTENCE_CHARS = 150
"""Of a sentence in a PDF, whose text is not read."""


FILES = frozenset({"video", "audio", "input_audio", "input_video", "video_url", "audio_url"})
"""Kinds of blocks that are files without a rule, wherever their bytes are."""
ENCODED = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/_=\r\n-]{1024,}")
"""The bytes of a file: so many characters without a space are no text."""
TEXTS = re.compile(r"text/.+|application/(?:txt|csv|html|md|json|xml)")
"""Media types of documents that are text, Converse's formats among them."""


def unruled_file() -> BlockParts:
    """A file that no rule counts: its size is a guess."""
    return BlockParts((), {FILE: 1, GUESSED: 1})


def holds_file(kind: str, content: Content) -> bool:
    """Whether a block of an unknown kind, or a document, is or holds a file that no rule counts."""
    if kind == "document":
        return str(_source(content).get("media_type")).startswith(("video/", "audio/"))
    return kind in FILES or (kind not in COUNTED and _has_bytes(content))


COUNTED = frozenset({"text", "image", "search_result"})


def _has_bytes(value: Any) -> bool:
    if isinstance(value, str):
        return ENCODED.fullmatch(value) is not None
    if isinstance(value, Mapping) and value.get("type") == "base64":
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(map(_has_bytes, inner))


def image(content: Content) -> BlockParts:
    """An image by its pixels; a guess for one sent by URL or file id, or damaged."""
    size = image_size(decode_base64(_source(content).get("data")))
    if size is None:
        return BlockParts((), {image_fact(*unknown().image): 1, GUESSED: 1})
    return BlockParts((), {image_fact(*size): 1})


def document(content: Content, parts_of: Reader) -> BlockParts:
    """A document: its title and context, its text, or the pages of a PDF.

    A PDF costs the image of each page and the text on it (measured on a page with one word); of text that cannot be
    read only the number of characters is known. A PDF by URL or file id is a guess: neither its pages nor its text are
    known.
    """
    inside = merge_parts(_inside(_source(content), parts_of))
    named = BlockParts(tuple(str(content[key]) for key in ("title", "context") if content.get(key)))
    cited = _sentences(inside) if cites_sources(content) else 0
    return merge_parts((named, inside, BlockParts((), nonzero(document=1, sentence=cited))))


def search_result(content: Content, parts_of: Reader) -> BlockParts:
    """A search result of the client: source, title and text. Its overhead is unknown."""
    found = merge_parts(_blocks(content.get("content"), parts_of))
    cited = _sentences(found) if cites_sources(content) else 0
    named = guess(*(str(content.get(key) or "") for key in ("source", "title")))
    return merge_parts((named, found, BlockParts((), nonzero(document=1, sentence=cited))))


def _source(content: Content) -> Content:
    source = content.get("source")
    return source if isinstance(source, Mapping) else {}


def _inside(source: Content, parts_of: Reader) -> Iterator[BlockParts]:
    kind, data = source.get("type"), source.get("data")
    if kind == "text":
        yield BlockParts((str(data or ""),))
    elif kind == "content":
        yield from _blocks(source.get("content"), parts_of)
    elif str(source.get("media_type")).startswith(("video/", "audio/")):
        yield unruled_file()
    else:
        read = decode_base64(data) if kind == "base64" else b""
        is_text = TEXTS.fullmatch(str(source.get("media_type"))) is not None
        yield BlockParts((read.decode("utf-8", "replace"),)) if is_text and read else _media_pages(read)


def _blocks(value: Any, parts_of: Reader) -> Iterator[BlockParts]:
    if isinstance(value, str):
        yield BlockParts((value,))
    elif isinstance(value, list):
        yield from (parts_of(str(item.get("type")), item) for item in value if isinstance(item, Mapping))


def _media_pages(data: bytes) -> BlockParts:
    pdf, assumed = read_pdf(data), unknown()
    if pdf is None:
        pdf = Pdf({assumed.page: assumed.pages}, "", None)
    pages = {page_fact(*size): number for size, number in pdf.pages.items()}
    if pdf.unread is None:
        return BlockParts((), {**pages, "unseen": sum(pages.values()) * assumed.characters, GUESSED: 1})
    return BlockParts((pdf.text,) if pdf.text else (), pages | nonzero(unseen=pdf.unread))


def _sentences(parts: BlockParts) -> int:
    """Sentences of a document's text, estimated by length where the text is not read."""
    read = sum(max(1, len(SENTENCE.findall(text))) for text in parts.texts if text.strip())
    return read + -(-parts.facts.get("unseen", 0) // SENTENCE_CHARS)


__all__ = [
    *("NO_FACTS", "BlockParts", "Content", "facts_of", "hidden_content", "parts_of", "parts_within", "prose_of"),
    "well_formed",
]

SIGNATURE_OVERHEAD = 200
"""A thinking signature is 174 to 207 bytes longer than the reasoning in it, where all of that is shown."""
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
SEARCHES = frozenset({"web_search_call", "x_search_call", "file_search_call", "code_interpreter_call"})
"""Server tools of the Responses API: what they found is billed to the call, and not in its items."""
HOLDERS = ("document", "tool_result")
"""Known kinds that may hold a file that no rule counts."""


def parts_of(kind: str, content: Content) -> BlockParts:
    """The countable parts of `content`, a block of `kind`. Never fails: an unknown kind counts as its JSON."""
    if kind in _READERS:
        return _READERS[kind](content)
    return server_result(kind, content, parts_of) if is_server_result(kind) else _as_json(content)


def prose_of(kind: str, parts: BlockParts) -> str:
    """The content kinds of a block, which select its tokenizer ratio (see `prose_of_texts`)."""
    return "tools" if kind == "tool" or parts.facts.get("tool") else prose_of_texts(parts.texts)


def parts_within(block: Block, content: Content) -> BlockParts:
    """The countable parts of a block with `content`, including the deferred tools that it loads."""
    own = parts_of(block.kind, content)
    if not block.brought:
        return own
    brought = [merge_parts((parts_of("tool", tool), BlockParts((), {"tool": 1}))) for tool in block.brought]
    return merge_parts((own, *brought))


def facts_of(block: Block) -> dict[str, int]:
    """The facts that follow from kind and role alone: how many tools, calls, results … the block is."""
    if block.role == "system" and block.kind == "text":
        return {"system": 1}
    if block.kind in THINKING:
        return {"thinking": 1}
    if block.kind in CALLS:
        return {"tool_use": 1}
    if block.kind in ("tool", "tool_result", "container_upload"):
        return {block.kind: 1}
    return {"server_result": 1} if is_server_result(block.kind) else {}


def hidden_content(block: Block) -> str:
    """What of a block is billed and not to be counted: a search of the provider's, whose results no request shows, or
    a file that no rule counts. "" for all others. Texts, calls and thinking are not parsed."""
    if block.kind in SEARCHES:
        return f"a {block.kind.removesuffix('_call').replace('_', ' ')} on the provider's side"
    if FILE not in block.counts:
        counted = is_server_result(block.kind) or (block.kind in _READERS and block.kind not in HOLDERS)
        content = None if counted or packed_content(block) is not None else block.content
        inner = (content or {}).get("content") if block.kind == "tool_result" else [content]
        items = [one for one in inner if isinstance(one, Mapping)] if isinstance(inner, list) else []
        if not any(holds_file(str(one.get("type")), one) for one in items):
            return ""
    return "a file whose tokens no rule gives"


def well_formed(text: str) -> str:
    """`text` with lone surrogates replaced, so that every tokenizer takes it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _text(content: Content) -> BlockParts:
    """A text; each citation in an answer that is sent again has an overhead."""
    citations = content.get("citations")
    return BlockParts(
        (str(content.get("text") or ""),), nonzero(cited=len(citations) if isinstance(citations, list) else 0)
    )


def _tool(content: Content) -> BlockParts:
    if "input_schema" not in content:
        type_ = str(content.get("type"))
        row = known_tool(type_)
        if row is None:
            return merge_parts((_as_json(content), BlockParts((), nonzero(mcp=int(type_ == "mcp_toolset")))))
        return BlockParts((), {"tool": 0, row: 1} | nonzero(guessed=int(row != type_)))
    shown = {"description": content.get("description"), "name": content.get("name")}
    function = {key: value for key, value in shown.items() if value is not None}
    function["parameters"] = content["input_schema"]
    return BlockParts((f"<function>{dumps(function, ensure_ascii=False, sort_keys=True)}</function>\n",))


def _call(content: Content) -> BlockParts:
    given = content.get("input")
    arguments = given if isinstance(given, Mapping) else {"": given}
    texts = [str(content.get("name") or "")]
    for key, value in arguments.items():
        texts += [str(key), value if isinstance(value, str) else dumps(value, ensure_ascii=False)]
    return BlockParts(tuple(texts), nonzero(parameter=len(arguments)))


def _result(content: Content) -> BlockParts:
    inner = content.get("content") or ""
    items = inner if isinstance(inner, list) else [{"type": "text", "text": inner}]
    parts = [parts_of(str(item.get("type")), item) for item in items if isinstance(item, Mapping)]
    return merge_parts((*parts, BlockParts((), nonzero(error=int(content.get("is_error") is True)))))


def _thinking(content: Content) -> BlockParts:
    """The full reasoning is billed, which the signature holds; the text may be a summary or missing."""
    text = str(content.get("thinking") or "")
    sealed = str(content.get("signature") or content.get("data") or "")
    held = len(sealed) * 3 // 4 - SIGNATURE_OVERHEAD
    return BlockParts((text,), nonzero(unseen=max(0, held - len(text.encode("utf-8", "replace")))))


def _reference(content: Content) -> BlockParts:
    """A tool found by a search: its name. The definition is not billed with it (six recorded results)."""
    return BlockParts((str(content.get("tool_name") or ""),), {"reference": 1})


def _compaction(content: Content) -> BlockParts:
    """The summary of what came before; its overhead is unknown."""
    return guess(str(content.get("content") or ""))


def _as_json(content: Content) -> BlockParts:
    """A block of an unknown kind. A file in it is no text, and has no size that anything states."""
    if holds_file(str(content.get("type")), content):
        return unruled_file()
    return guess(compact(content).decode("utf-8", "replace"))


_READERS: Mapping[str, Callable[[Content], BlockParts]] = {
    "text": _text,
    "image": image,
    "document": lambda content: document(content, parts_of),
    "search_result": lambda content: search_result(content, parts_of),
    "tool": _tool,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "tool_result": _result,
    "tool_reference": _reference,
    "container_upload": lambda content: BlockParts(),
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "compaction": _compaction,
}
