"""Every change by the name a scenario gives it."""

from __future__ import annotations

from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.context import Compaction, Deduplicate, OutputCap, Prune, Reread, Truncate
from cachecost.strategies.changes.keepalive import Adapt, CallRetries, KeepAlive, PreWarm, RouteAsides, WarmBeforeFanOut
from cachecost.strategies.changes.messages import (
    Attachments,
    FinalAnswer,
    Reminder,
    Repairs,
    SessionResume,
    ToolAnswers,
    Unprompted,
)
from cachecost.strategies.changes.prefix import DateInSystem, SplitSystem, SwitchAt, TextTools
from cachecost.strategies.changes.subagents import FanOut, SubAgents

CHANGES: dict[str, type[AgentChange]] = {
    "adapt": Adapt,
    "attachments": Attachments,
    "compaction": Compaction,
    "date_in_system": DateInSystem,
    "deduplicate": Deduplicate,
    "fan_out": FanOut,
    "final_answer": FinalAnswer,
    "keep_alive": KeepAlive,
    "pre_warm": PreWarm,
    "prune": Prune,
    "reminder": Reminder,
    "repairs": Repairs,
    "reread": Reread,
    "retries": CallRetries,
    "route_asides": RouteAsides,
    "session_resume": SessionResume,
    "split_system": SplitSystem,
    "sub_agents": SubAgents,
    "switch": SwitchAt,
    "text_tools": TextTools,
    "tool_answers": ToolAnswers,
    "tool_output_cap": OutputCap,
    "truncate": Truncate,
    "unprompted": Unprompted,
    "warm_before_fan_out": WarmBeforeFanOut,
}
