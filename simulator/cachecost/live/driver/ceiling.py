"""Bounds on the input tokens of a body, and bodies that have none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COUNT_SHARE = 0.05
COUNT_TOKENS = 200
"""Margin over count_tokens, which is documented as an estimate: 5% and 200 tokens."""
HIDDEN_TOKENS = 3_000
"""Tokens that the API adds itself. The tool prompt is the largest part, below 1,000 tokens on every model."""
BLOCK_TOKENS = 60
"""Tokens around a block; a tool's are the most."""
MOST_TOKEN_BYTES = 6
"""Bytes of text per token, at most: prose and code have 3 to 5. Fewer tokens than that are not believed."""
CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "computer_", "memory_")
"""Tools that the client runs. Others run in the API, possibly many times in one call, at separate prices."""
UNMEASURED = frozenset({"image", "document"})
"""Blocks whose size in bytes says nothing about their tokens."""
TEXTS = frozenset({"text", "content", "description", "thinking"})
"""Names of the strings in a prompt that a person or a model wrote."""


@dataclass(frozen=True, slots=True)
class TokenBounds:
    """The fewest and the most input tokens that a call can be billed; `source` is what the fewest come from."""

    least: int
    most: int
    source: str


def bounds_of_count(counted: int, body: Mapping[str, Any]) -> TokenBounds | None:
    """The bounds when count_tokens says `counted`; None if `body` has so much text that this cannot be true."""
    if counted < max(1, _least_tokens(body)):
        return None
    return TokenBounds(counted, from_count(counted), "counted before sending")


def bounds_of_bytes(body: Mapping[str, Any]) -> TokenBounds | None:
    """The bounds by size alone; None where the size does not limit the tokens."""
    most = from_bytes(body)
    return None if most is None else TokenBounds(max(1, _least_tokens(body)), most, "the least for so much text")


def _least_tokens(body: Mapping[str, Any]) -> int:
    blocks = _objects({name: body.get(name) for name in ("tools", "system", "messages")})
    texts = [text for block in blocks for name, text in block.items() if name in TEXTS and isinstance(text, str)]
    if isinstance(system := body.get("system"), str):
        texts.append(system)
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // MOST_TOKEN_BYTES


def from_count(counted: int) -> int:
    """The most tokens that can be billed when count_tokens says `counted`."""
    return counted + int(counted * COUNT_SHARE) + COUNT_TOKENS


def from_bytes(body: Mapping[str, Any]) -> int | None:
    """The most tokens that `body` can have, at one per byte. None where its bytes do not limit them."""
    blocks = list(_objects({name: body.get(name) for name in ("tools", "system", "messages")}))
    if any(block.get("type") in UNMEASURED for block in blocks):
        return None
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return len(text) + BLOCK_TOKENS * len(blocks) + HIDDEN_TOKENS


def unbounded_reason(body: Mapping[str, Any]) -> str | None:
    """Why this call's cost has no upper bound; None if it has one."""
    for tool in body.get("tools") or ():
        kind = str(tool.get("type") or "custom")
        if not kind.startswith(CLIENT_TOOLS):
            return f"the tool '{tool.get('name')}' ({kind}) runs in the API, so its cost has no upper bound"
    if body.get("mcp_servers"):
        return "the API calls MCP servers, so the cost has no upper bound"
    edits = (body.get("context_management") or {}).get("edits") or ()
    if any(str(edit.get("type")).startswith("compact") for edit in edits):
        return "compaction by the API is billed separately, so the cost has no upper bound"
    if int(body["max_tokens"]) < 0:
        return "max_tokens is below 0"
    return None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)
