"""What presets are made with."""

from __future__ import annotations

from typing import Literal

from cachecost.prompts.request import TTL
from cachecost.strategies.agent import Agent
from cachecost.strategies.inquiry import InquiryOptions
from cachecost.strategies.placements import MAXIMUM_BREAKPOINTS, Automatic, LastTool, Placement, Primitive, SystemBlock

DOCS = "platform.claude.com/docs/en/build-with-claude/prompt-caching"
RECORDED = "2026-11-21"
"""The day on which clients were recorded against a stand-in for the API (three turns, one tool)."""

BASE = (LastTool(), SystemBlock("last"), Automatic())
"""The placement that all inquiry arms share, so that they differ in how they ask and in nothing else."""


def breakpoint_preset(
    name: str,
    what: str,
    source: str,
    date: str,
    *primitives: Primitive,
    ttl: TTL = "5m",
    slots: int = MAXIMUM_BREAKPOINTS,
    trim: Literal["priority", "oldest_message"] = "priority",
    from_message: int = 0,
    inquiry: InquiryOptions | None = None,
) -> Agent:
    """An agent that breakpoints by these primitives, in order of priority."""
    placement = Placement(primitives, ttl, slots, trim, from_message)
    return Agent(name=name, what=what, source=source, date=date, placement=placement, inquiry=inquiry)
