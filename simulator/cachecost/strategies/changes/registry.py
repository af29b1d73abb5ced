"""Every change by the name a scenario gives it."""

from __future__ import annotations

from cachecost.strategies.changes import (
    adapting,
    attachments,
    compaction,
    fanout,
    final_answer,
    keepalive,
    pruning,
    reminders,
    rereading,
    results,
    routing,
    sessions,
    subagents,
    system_parts,
    tool_answers,
    truncation,
    warming,
)
from cachecost.strategies.changes import base as switching
from cachecost.strategies.changes import prefix_rewriting as text_tools
from cachecost.strategies.changes import texts as repairs
from cachecost.strategies.changes.base import AgentChange

MODULES = (
    *(switching, system_parts, text_tools, reminders, attachments),
    *(compaction, pruning, truncation, results, rereading),
    *(final_answer, tool_answers, repairs, sessions, subagents),
    *(keepalive, warming, fanout, routing, adapting),
)
"""What is sent otherwise; what leaves the context; how turns end and go wrong; when calls are made."""
CHANGES: dict[str, type[AgentChange]] = {name: kind for module in MODULES for name, kind in module.CHANGES.items()}
