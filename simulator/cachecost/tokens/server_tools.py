"""The countable parts of server tool results: all texts in the result.

Measured: the results of code execution (six on Sonnet 4.6, to the token) and of web fetch (26 on seven models; within
two tokens without thinking). Those of a web search are encrypted: a constant for each result, and tokens per character
of what is sealed, fitted on the bills of searches by tokenizer generation (`tools/calibrate/searches.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.tokens.parts import GUESSED, BlockParts, Content, Reader, merge_parts

RESULT = "_tool_result"
SEALED = "encrypted_"
"""How the names of encrypted parts begin."""
UNSHOWN = frozenset({"type", "tool_use_id", "file_id", "retrieved_at", "media_type", "file_type", "encrypted_index"})
"""Strings of a result that Claude is not shown (the time of a fetch: no bill depends on it)."""
BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
KNOWN = ("bash_code_execution", "code_execution", "text_editor_code_execution", "web_fetch", "tool_search", "mcp")
"""Tools whose results hold all that is shown; those of any other are a guess."""


def is_server_result(kind: str) -> bool:
    """Whether a server tool returned this block, not the client (`tool_result`)."""
    return kind.endswith(RESULT)


def server_result(kind: str, content: Content, parts_of: Reader) -> BlockParts:
    """The texts of a result, and the length of its encrypted parts."""
    unknown = () if kind.removesuffix(RESULT) in KNOWN else (BlockParts((), {GUESSED: 1}),)
    return merge_parts((*_visible_parts(content.get("content"), parts_of), *unknown))


def _visible_parts(value: Any, parts_of: Reader) -> Iterator[BlockParts]:
    if isinstance(value, str):
        yield BlockParts((value,))
    elif isinstance(value, list):
        for item in value:
            yield from _visible_parts(item, parts_of)
    elif isinstance(value, Mapping):
        yield from _of_object(value, parts_of)


def _of_object(value: Content, parts_of: Reader) -> Iterator[BlockParts]:
    kind = str(value.get("type"))
    if kind in BLOCKS:
        yield parts_of(kind, value)
        return
    if kind == "web_search_result":
        yield BlockParts((), {"found": 1})
    for key, inner in value.items():
        if key in UNSHOWN:
            continue
        yield from _encrypted_parts(inner) if key.startswith(SEALED) else _visible_parts(inner, parts_of)


def _encrypted_parts(value: Any) -> Iterator[BlockParts]:
    if isinstance(value, str) and value:
        yield BlockParts((), {"sealed": len(value), GUESSED: 1})
