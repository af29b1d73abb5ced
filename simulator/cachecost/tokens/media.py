"""The countable parts of images, documents and search results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.tokens.images import unknown
from cachecost.tokens.parts import FILE, GUESSED, BlockParts, Content, Reader, guess, merge_parts, nonzero
from cachecost.tokens.pdf import Pdf, read_pdf
from cachecost.tokens.pixels import decode_base64, image_size
from cachecost.tokens.sizes import image_fact, page_fact

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
    cited = _sentences(inside) if _cites(content) else 0
    return merge_parts((named, inside, BlockParts((), nonzero(document=1, sentence=cited))))


def search_result(content: Content, parts_of: Reader) -> BlockParts:
    """A search result of the client: source, title and text. Its overhead is unknown."""
    found = merge_parts(_blocks(content.get("content"), parts_of))
    cited = _sentences(found) if _cites(content) else 0
    named = guess(*(str(content.get(key) or "") for key in ("source", "title")))
    return merge_parts((named, found, BlockParts((), nonzero(document=1, sentence=cited))))


def _source(content: Content) -> Content:
    source = content.get("source")
    return source if isinstance(source, Mapping) else {}


def _cites(content: Content) -> bool:
    citations = content.get("citations")
    return isinstance(citations, Mapping) and citations.get("enabled") is True


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
        yield BlockParts((read.decode("utf-8", "replace"),)) if is_text and read else _pages(read)


def _blocks(value: Any, parts_of: Reader) -> Iterator[BlockParts]:
    if isinstance(value, str):
        yield BlockParts((value,))
    elif isinstance(value, list):
        yield from (parts_of(str(item.get("type")), item) for item in value if isinstance(item, Mapping))


def _pages(data: bytes) -> BlockParts:
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
