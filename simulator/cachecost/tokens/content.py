"""The countable parts of a block: its texts, and the facts of its structure that cost tokens of their own.

Claude does not see the JSON that is sent. A tool definition is rendered as `<function>…</function>` with its
keys sorted (else bills of 7 to 24 tools are off by a token a tool), a call as its name, parameter names and
values, a result as its text. What surrounds them is a constant for each *fact* (see `calibration.toml`):
one tool, one call, one parameter, one error, …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import dumps

from cachecost.prompts.blocks import THINKING, Block, compact
from cachecost.prompts.plain_blocks import packed_content
from cachecost.tokens.media import document, holds_file, image, search_result, unruled_file
from cachecost.tokens.parts import FILE, BlockParts, Content, guess, merge_parts, nonzero
from cachecost.tokens.prose import prose_of_texts
from cachecost.tokens.provider_tools import known_tool
from cachecost.tokens.server_tools import is_server_result, server_result

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
        return _provider_tool(content)
    shown = {"description": content.get("description"), "name": content.get("name")}
    function = {key: value for key, value in shown.items() if value is not None}
    function["parameters"] = content["input_schema"]
    return BlockParts((f"<function>{dumps(function, ensure_ascii=False, sort_keys=True)}</function>\n",))


def _provider_tool(content: Content) -> BlockParts:
    """A tool that the provider defines: its row is its whole size, without the overhead of other definitions."""
    type_ = str(content.get("type"))
    row = known_tool(type_)
    if row is None:
        return merge_parts((_as_json(content), BlockParts((), nonzero(mcp=int(type_ == "mcp_toolset")))))
    return BlockParts((), {"tool": 0, row: 1} | nonzero(guessed=int(row != type_)))


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
