"""Blocks of unknown types: kept unchanged, counted as JSON, and reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn
from cachecost.prompts.blocks import Block, Part, Thread

KNOWN = frozenset(
    {"text", "image", "document", "search_result", "tool", "tool_use", "server_tool_use", "mcp_tool_use"}
    | {"tool_reference", "container_upload", "thinking", "redacted_thinking", "compaction", "item_reference"}
)
RESULT = "tool_result"
"""The end of all result types: of tools, server tools and MCP servers."""


@dataclass(slots=True)
class UnknownBlocks:
    """Counts unknown blocks in a stream of calls; a block that calls share counts once."""

    found: Counter[str] = field(default_factory=Counter)
    _seen: set[Thread | Part] = field(default_factory=set)

    def add_all(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        """Yield the calls unchanged, and count their unknown blocks."""
        for call in calls:
            for blocks in self._new(call):
                for block in blocks:
                    if not is_known(block.kind):
                        self.found[block.kind] += 1
            yield call

    def report(self, warn: Warn) -> None:
        """Warn of each type, with its number of blocks."""
        for kind, times in sorted(self.found.items()):
            warn(f"{count_text(times, 'block')} of unknown type {kind!r}: kept unchanged, counted as JSON")

    def _new(self, call: RecordedCall) -> Iterator[tuple[Block, ...]]:
        request, seen = call.request, self._seen
        for part in (request.tools, request.system):
            if part not in seen:
                seen.add(part)
                yield part.blocks
        node: Thread | None = request.thread
        while node is not None and node.message is not None and node not in seen:
            seen.add(node)
            yield node.message.blocks
            node = node.parent


def is_known(kind: str) -> bool:
    """Whether the Messages API, or a translation to it, has blocks of this type."""
    return kind in KNOWN or kind.endswith(RESULT)
