"""The text of a block as a person reads it: a tool call as its name and input, a result as its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any

from cachecost.caches.alignment import text_of
from cachecost.prompts.blocks import Block, Layer

USES = ("tool_use", "server_tool_use", "mcp_tool_use")
PARTS = {"text": "text", "thinking": "thinking"}
"""The field that holds the text of a part, by its type."""


def readable_text(block: Block, layer: Layer = Layer.MESSAGES) -> str | None:
    """What a person reads of a block; its JSON where there is no text in it, None where its content is not known."""
    content = block.content
    if content is None:
        return None
    if layer is Layer.TOOLS:
        return _definition_text(content) or text_of(block)
    if block.kind in USES:
        return _use_text(content)
    if block.kind.endswith("tool_result"):
        return _result_text(content.get("content")) or text_of(block)
    text = content.get(PARTS.get(block.kind, ""))
    return text if isinstance(text, str) else text_of(block)


def compared_texts(old: Block, new: Block, layer: Layer) -> tuple[str, str] | None:
    """Both texts as a person reads them, or as JSON where only that differs; None where one is not known."""
    was, now = readable_text(old, layer), readable_text(new, layer)
    if was is None or now is None:
        return None
    is_hidden = was == now and old.digest != new.digest
    return (text_of(old), text_of(new)) if is_hidden else (was, now)


def _definition_text(content: Mapping[str, Any]) -> str:
    """The name, the description, and what else defines a tool."""
    rest = {name: value for name, value in content.items() if name not in ("name", "description")}
    words = [content.get("name"), content.get("description"), dumps(rest, ensure_ascii=False) if rest else ""]
    return "\n".join(word for word in words if isinstance(word, str) and word)


def _use_text(content: Mapping[str, Any]) -> str:
    """Such as "Bash command: ls"."""
    given = content.get("input")
    inputs = ", ".join(f"{name}: {_plain(value)}" for name, value in given.items()) if isinstance(given, dict) else ""
    return f"{content.get('name', '')} {inputs or _plain(given or '')}".strip()


def _plain(value: object) -> str:
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


def _result_text(content: object) -> str:
    """The text of a result; parts that are none by their kind."""
    return content if isinstance(content, str) else "\n".join(_part_texts(content))


def _part_texts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        text = part.get("text")
        yield text if isinstance(text, str) else f"[{part.get('type', 'part')}]"
