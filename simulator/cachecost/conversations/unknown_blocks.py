"""Blocks of types that nobody told us of: kept as they are, counted as JSON, and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.checked import Warn
from cachecost.prompts.blocks import Block, Part, Thread

KNOWN = frozenset(
    {"text", "image", "document", "search_result", "tool", "tool_use", "server_tool_use", "mcp_tool_use"}
    | {"tool_reference", "container_upload", "thinking", "redacted_thinking", "compaction", "item_reference"}
)
RESULT = "tool_result"
"""What the types of all results end with: of tools, of server tools, of MCP servers."""


@dataclass(slots=True)
class UnknownBlocks:
    """Counts them while calls pass by; a block that calls share counts once."""

    found: Counter[str] = field(default_factory=Counter)
    _seen: set[Thread | Part] = field(default_factory=set)

    def watching(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        """The calls as they come."""
        for call in calls:
            for blocks in self._new(call):
                self.found.update(block.kind for block in blocks if not is_known(block.kind))
            yield call

    def tell(self, warn: Warn) -> None:
        """Name each type and how often it was met."""
        for kind, times in sorted(self.found.items()):
            warn(f"{times:,} blocks of the unknown type {kind!r}: kept as they are, counted as JSON")

    def _new(self, call: RecordedCall) -> Iterator[tuple[Block, ...]]:
        for part in {call.request.tools, call.request.system} - self._seen:
            yield part.blocks
        self._seen.update((call.request.tools, call.request.system))
        for node in call.request.thread.back():
            if node in self._seen:
                break
            self._seen.add(node)
            assert node.message is not None
            yield node.message.blocks


def is_known(kind: str) -> bool:
    """Whether the API, or a translation into its words, has blocks of this type."""
    return kind in KNOWN or kind.endswith(RESULT)
