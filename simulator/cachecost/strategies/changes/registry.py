"""Every change by the name a scenario gives it."""

from __future__ import annotations

from cachecost.strategies.changes import (
    adapting,
    attachments,
    compaction,
    fanout,
    finishing,
    keepalive,
    mishaps,
    pruning,
    reasking,
    reminders,
    results,
    routing,
    sessions,
    subagents,
    switching,
    system_parts,
    text_tools,
    truncation,
    warming,
)
from cachecost.strategies.changes.base import Change

MODULES = (
    *(switching, system_parts, text_tools, reminders, attachments),
    *(compaction, pruning, truncation, results),
    *(finishing, reasking, mishaps, sessions, subagents),
    *(keepalive, warming, fanout, routing, adapting),
)
"""What is sent otherwise; what leaves the context; how turns end and go wrong; when calls are made."""
CHANGES: dict[str, type[Change]] = {name: kind for module in MODULES for name, kind in module.CHANGES.items()}
