"""Names in a Claude Code transcript that its two readers share: of the conversation, and of its bill."""

from __future__ import annotations

SYNTHETIC = "<synthetic>"
"""The model of answers that the client generated."""
BOUNDARIES = {"compact_boundary": "compaction", "microcompact_boundary": "edit", "api_error": "error"}
"""The event that a system record of each subtype stands for."""
MAIN_KINDS = ("assistant", "user", "system")
"""Kinds of lines that matter for a conversation."""
MAIN, SIDE = "main", "side"
"""The chain of a session, and those of its sub-agents."""
THINKING = ("thinking", "redacted_thinking")
PRICED = ("service_tier", "speed", "inference_geo")
"""Fields of a usage that change the price."""


def kind_of(block: object) -> object:
    return block.get("type") if isinstance(block, dict) else "text"
