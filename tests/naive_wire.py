"""Bodies as they go over the wire, for the naive model: what a block is, what it says, which breakpoint it has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Item:
    """One block or one salt of the flattened prompt."""

    identity: str
    size: int
    kind: str
    is_block: bool
    ttl: str | None = None
    layer: str = ""
    role: str = ""
    place: tuple[int, ...] = ()
    """Where it stands in the request as sent: 0 tools, 1 system, 2 messages; then numbers."""
    is_web: bool = False


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def bare(block: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(kept.get("content"), list):
        kept["content"] = [bare(sub) for sub in kept["content"]]
    source = kept.get("source")
    if isinstance(source, dict) and isinstance(source.get("content"), list):
        kept["source"] = {**source, "content": [bare(sub) for sub in source["content"]]}
    return kept


def ttl_of(block: dict[str, Any]) -> str | None:
    breakpoint = block.get("cache_control")
    return (breakpoint.get("ttl") or "5m") if breakpoint else None


def inside(block: dict[str, Any]) -> list[dict[str, Any]]:
    """The sub-blocks of a block's content and of its source."""
    source = block.get("source")
    lists = (block.get("content"), source.get("content") if isinstance(source, dict) else None)
    return [sub for one in lists if isinstance(one, list) for sub in one]


def lifted(block: dict[str, Any]) -> str | None:
    """The breakpoint of a block: its own, or one on the last sub-block of a tool result or a document."""
    subs = inside(block) if block.get("type") in ("tool_result", "document") else []
    return ttl_of(block) or (ttl_of(subs[-1]) if subs else None)


def blocks_of(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def is_web(tool: dict[str, Any]) -> bool:
    return str(tool.get("type", "")).startswith(("web_search_", "web_fetch_"))


def breakpoint_places(item: Item) -> bool:
    return item.is_block and item.kind != "thinking" and not item.identity.endswith('|{"type":"text","text":""}')
