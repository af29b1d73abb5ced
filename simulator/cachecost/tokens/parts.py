"""The countable parts of a block: its texts, and the facts of its structure that cost tokens of their own.

Claude does not see the JSON that is sent. A tool definition is rendered as `<function>…</function>` with its
keys sorted (else bills of 7 to 24 tools are off by a token a tool), a call as its name, parameter names and
values, a result as its text. What surrounds them is a constant for each *fact* (see `calibration.toml`):
one tool, one call, one parameter, one error, … An image, a page and a provider's tool (`provider_tools.toml`) also
count by their size or type.
"""

from __future__ import annotations

import re
import tomllib
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from json import dumps
from typing import Any

from cachecost.prompts.blocks import THINKING, Block, compact, is_server_result
from cachecost.prompts.render import CannotCount
from cachecost.prompts.request import cites_sources
from cachecost.tokens.calibration import CLAUDE, calibration, prose_of_texts
from cachecost.tokens.images import INSTEAD, image_size, image_tokens, page_tokens, unknown
from cachecost.tokens.pdf import Pdf, read_pdf

Content = Mapping[str, Any]
NO_FACTS: Mapping[str, int] = {}
GUESSED = "guessed"
"""The fact that the tokens of a block are a guess, without recording or documentation."""
FILE = "file"
"""The fact of a file that no rule counts: video, sound, a document of an unknown format."""
UNRULED = "a file whose tokens no rule gives"


@dataclass(frozen=True, slots=True)
class BlockParts:
    """The texts of a block, and the number of each fact in its content:

    `parameter`, `error`, `reference` (a tool it names), `cited` (a citation in an answer), `sentence` (of a document
    to be cited), `found` (a search result), `sealed` (characters of its encrypted content), `unseen` (bytes of
    text that only a signature or a file holds), `mcp` (a server that the provider calls), `guessed`, `file`;
    `330x291 image` (pixels), `612x792 page` (points), and a provider's tool by its type.
    """

    texts: tuple[str, ...] = ()
    facts: Mapping[str, int] = field(default_factory=lambda: NO_FACTS)


def nonzero(**facts: int) -> dict[str, int]:
    """`facts` without the zeros."""
    return {name: number for name, number in facts.items() if number}


def guess(*texts: str) -> BlockParts:
    """Parts whose tokens are a guess."""
    return BlockParts(texts, {GUESSED: 1})


def merge_parts(parts: Iterable[BlockParts]) -> BlockParts:
    """All `parts` as those of one block."""
    texts: list[str] = []
    facts: dict[str, int] = {}
    for part in parts:
        texts += part.texts
        for name, number in part.facts.items():
            facts[name] = facts.get(name, 0) + number
    return BlockParts(tuple(texts), facts)


SIZED = re.compile(r"(\d{1,9})x(\d{1,9}) (image|page)", re.ASCII)


def image_fact(width: int, height: int) -> str:
    """The fact for an image of this size in pixels."""
    return f"{width}x{height} image"


def constant_of(fact: str) -> str:
    """The structure constant of a fact, without its size: "image" for "330x291 image"."""
    sized = SIZED.fullmatch(fact)
    return sized[3] if sized else fact


def size_tokens(fact: str, generation: str) -> int:
    """Tokens of a fact by formula or table, without its constant; 0 where neither applies. Raises CannotEvaluate."""
    sized = SIZED.fullmatch(fact)
    if fact == FILE:
        raise CannotCount(f"{UNRULED}. {INSTEAD}")
    if sized is None:
        return provider_tool_tokens(fact, generation)
    width, height = max(1, int(sized[1])), max(1, int(sized[2]))
    if sized[3] == "image":
        return image_tokens(width, height, generation)
    if not generation.startswith(CLAUDE):
        raise CannotCount(f"{fact} of a PDF: no rule gives its tokens in {generation}. {INSTEAD}")
    return page_tokens(width, height)


RESULT = "_tool_result"
SEALED = "encrypted_"
"""How the names of encrypted parts begin."""
UNSHOWN = frozenset({"type", "tool_use_id", "file_id", "retrieved_at", "media_type", "file_type", "encrypted_index"})
"""Strings of a result that Claude is not shown (the time of a fetch: no bill depends on it)."""
BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
KNOWN = ("bash_code_execution", "code_execution", "text_editor_code_execution", "web_fetch", "tool_search", "mcp")
"""Tools whose results hold all that is shown; those of any other are a guess."""


def _visible_parts(value: Any) -> Iterator[BlockParts]:
    if isinstance(value, str):
        yield BlockParts((value,))
    elif isinstance(value, list):
        for item in value:
            yield from _visible_parts(item)
    elif isinstance(value, Mapping) and str(value.get("type")) in BLOCKS:
        yield parts_of(str(value.get("type")), value)
    elif isinstance(value, Mapping):
        if value.get("type") == "web_search_result":
            yield BlockParts((), {"found": 1})
        for key, inner in value.items():
            if key.startswith(SEALED) and isinstance(inner, str) and inner:
                yield BlockParts((), {"sealed": len(inner), GUESSED: 1})
            elif key not in UNSHOWN and not key.startswith(SEALED):
                yield from _visible_parts(inner)


DATED = re.compile(r"_\d{8}$")
OWN_TOOL = "Define it as a tool of your own, or use --tokens bytes"
GENERATIONS = ("claude-3", "claude-4.7", "claude-4.8")
"""Oldest first."""


def known_tool(type_: str) -> str | None:
    """The row that counts a tool of this type: its own, else the latest of its family that is not newer, else the
    oldest; None for an unknown family."""
    rows = _tool_rows()
    if type_ in rows:
        return type_
    family = sorted(name for name in rows if DATED.search(type_) and DATED.sub("", name) == DATED.sub("", type_))
    older = [name for name in family if name < type_]
    return older[-1] if older else next(iter(family), None)


def provider_tool_tokens(type_: str, generation: str) -> int:
    """Tokens of the definition of a listed tool; 0 for any other name.

    Raises CannotCount for another provider's generation.
    """
    row = _tool_rows().get(type_)
    if row is None:
        return 0
    if not generation.startswith(CLAUDE):
        raise CannotCount(f"{type_}: a tool that Anthropic defines, which {generation} has no count for. {OWN_TOOL}")
    if generation in row:
        return int(row[generation])
    before = GENERATIONS[: GENERATIONS.index(generation)] if generation in GENERATIONS else ()
    stated = [name for name in before if name in row] or [name for name in GENERATIONS if name in row][:1]
    grown = calibration(generation).ratio["tools"] / calibration(stated[-1]).ratio["tools"]
    return round(int(row[stated[-1]]) * grown)


@cache
def _tool_rows() -> Mapping[str, Any]:
    tools: Mapping[str, Any] = tomllib.loads(
        files("cachecost.tokens").joinpath("provider_tools.toml").read_text(encoding="utf-8")
    )["tools"]
    return tools


def decode_base64(data: object) -> bytes:
    """The bytes of base64 `data`; cut at the first damaged place, empty if it is not base64."""
    if not isinstance(data, str):
        return b""
    try:
        return b64decode(data[: len(data) // 4 * 4])
    except (Error, ValueError):
        return b""


SENTENCE = re.compile(r"[.!?…](?=\s|\Z)|[。！？]|\S\Z")
"""Ends of sentences: a document to be cited is shown sentence by sentence, each with its number."""
SENTENCE_CHARS = 150
"""Of a sentence in a PDF, whose text is not read."""
FILES = frozenset({"video", "audio", "input_audio", "input_video", "video_url", "audio_url", "cached_content"})
"""Kinds of blocks that are files without a rule, wherever their bytes are, or name what Gemini keeps."""
ENCODED = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/_=\r\n-]{1024,}")
"""The bytes of a file: so many characters without a space are no text."""
TEXTS = re.compile(r"text/.+|application/(?:txt|csv|html|md|json|xml)")
"""Media types of documents that are text, Converse's formats among them."""


UNRULED_FILE = BlockParts((), {FILE: 1})


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


def document(content: Content) -> BlockParts:
    """A document: its title and context, its text, or the pages of a PDF.

    A PDF costs the image of each page and the text on it (measured on a page with one word); of text that cannot be
    read only the number of characters is known. A PDF by URL or file id is a guess: neither its pages nor its text are
    known.
    """
    named = BlockParts(tuple(str(content[key]) for key in ("title", "context") if content.get(key)))
    source = _source(content)
    kind, data, media_type = source.get("type"), source.get("data"), str(source.get("media_type"))
    if kind == "text":
        inside = BlockParts((str(data or ""),))
    elif kind == "content":
        inside = merge_parts(_content_parts(source.get("content")))
    elif media_type.startswith(("video/", "audio/")):
        inside = UNRULED_FILE
    else:
        read = decode_base64(data) if kind == "base64" else b""
        is_text = bool(read) and TEXTS.fullmatch(media_type) is not None
        pdf, assumed = None if is_text else read_pdf(read), unknown()
        pdf = pdf or Pdf({assumed.page: assumed.pages}, "", None)
        pages = {f"{width}x{height} page": number for (width, height), number in pdf.pages.items()}
        if is_text:
            inside = BlockParts((read.decode("utf-8", "replace"),))
        elif pdf.unread is None:
            characters = sum(pages.values()) * assumed.characters
            inside = BlockParts((), {**pages, "unseen": characters, GUESSED: 1})
        else:
            inside = BlockParts((pdf.text,) if pdf.text else (), pages | nonzero(unseen=pdf.unread))
    return _document_parts(content, named, inside)


def search_result(content: Content) -> BlockParts:
    """A search result of the client: source, title and text. Its overhead is unknown."""
    named = guess(*(str(content.get(key) or "") for key in ("source", "title")))
    return _document_parts(content, named, merge_parts(_content_parts(content.get("content"))))


def _document_parts(content: Content, named: BlockParts, inside: BlockParts) -> BlockParts:
    cited = 0
    if cites_sources(content):
        cited = sum(max(1, len(SENTENCE.findall(text))) for text in inside.texts if text.strip())
        cited -= -inside.facts.get("unseen", 0) // SENTENCE_CHARS
    return merge_parts((named, inside, BlockParts((), nonzero(document=1, sentence=cited))))


def _source(content: Content) -> Content:
    source = content.get("source")
    return source if isinstance(source, Mapping) else {}


def _content_parts(value: Any) -> Iterator[BlockParts]:
    if isinstance(value, str):
        yield BlockParts((value,))
    elif isinstance(value, list):
        yield from (parts_of(str(item.get("type")), item) for item in value if isinstance(item, Mapping))


__all__ = [
    *("NO_FACTS", "BlockParts", "Content", "facts_of", "hidden_content", "parts_of", "parts_within", "prose_of"),
    "well_formed",
]
SIGNATURE_OVERHEAD = 200
"""A thinking signature is 174 to 207 bytes longer than the reasoning in it, where all of that is shown."""
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
SEARCHES = frozenset({"web_search_call", "x_search_call", "file_search_call", "code_interpreter_call"})
"""Server tools of the Responses API: what they found is billed to the call, and not in its items."""


def parts_of(kind: str, content: Content) -> BlockParts:
    """The countable parts of `content`, a block of `kind`. Never fails: an unknown kind counts as its JSON."""
    if kind in _READERS:
        return _READERS[kind](content)
    if not is_server_result(kind):
        return _as_json(content)
    unsure = () if kind.removesuffix(RESULT) in KNOWN else (guess(),)
    return merge_parts((*_visible_parts(content.get("content")), *unsure))


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
    if block.kind in FILES:
        return {FILE: 1}
    return {"server_result": 1} if is_server_result(block.kind) else {}


def hidden_content(block: Block) -> str:
    """What of a block is billed and in no request: a search on the provider's side. "" for all others."""
    name = block.kind.removesuffix("_call").replace("_", " ")
    return f"a {name} on the provider's side" if block.kind in SEARCHES else ""


def well_formed(text: str) -> str:
    """`text` with lone surrogates replaced, so that every tokenizer takes it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _text(content: Content) -> BlockParts:
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


def _as_json(content: Content) -> BlockParts:
    """A block of an unknown kind. A file in it is no text, and has no size that anything states."""
    if holds_file(str(content.get("type")), content):
        return UNRULED_FILE
    return guess(compact(content).decode("utf-8", "replace"))


_READERS: Mapping[str, Callable[[Content], BlockParts]] = {
    "text": _text,
    "image": image,
    "document": document,
    "search_result": search_result,
    "tool": _tool,
    "tool_use": _call,
    "server_tool_use": _call,
    "mcp_tool_use": _call,
    "tool_result": _result,
    "tool_reference": lambda content: BlockParts((str(content.get("tool_name") or ""),), {"reference": 1}),
    # a tool found by a search: its definition is not billed with it (six recorded results)
    "container_upload": lambda content: BlockParts(),
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    # the summary of what came before; its overhead is unknown
    "compaction": lambda content: guess(str(content.get("content") or "")),
}
