"""The named strategies: each a few lines of primitives, with who does it so and when that was read.

To add one, write the primitives it marks by, in order of priority, and the page or file that says so.
"""

from __future__ import annotations

from typing import Any

from cachecost.prompts.request import TTL
from cachecost.strategies.agent import Agent
from cachecost.strategies.inquiry import Asking
from cachecost.strategies.marks import (
    Automatic,
    BeforeHuman,
    LastMessage,
    LastTool,
    Placement,
    Primitive,
    SystemBlock,
)

DOCS = "platform.claude.com/docs/en/build-with-claude/prompt-caching"
PROGRESSIVE = "wqeqwqeq/langchain-adf-cli docs/prompt-caching.md"
RFC013 = "cccntu/llmproc RFC013"
JP = "dcdpr/jp crates/jp_llm/src/provider/anthropic.rs"
JP_INQUIRY = "dcdpr/jp crates/jp_cli/src/cmd/query/tool/inquiry.rs"
RFD_028, RFD_033, RFD_034 = ("dcdpr/jp RFD 028", "dcdpr/jp RFD 033", "dcdpr/jp RFD 034")

BASE = (LastTool(), SystemBlock("last"), Automatic())
"""The placement that all inquiry arms share, so that they differ in how they ask and in nothing else."""

CHEAPER_MODEL = "claude-haiku-4-5"


def _marking(
    name: str, what: str, source: str, date: str, *primitives: Primitive, ttl: TTL = "5m", asking: Asking | None = None
) -> Agent:
    placement = Placement(primitives, ttl)
    return Agent(name=name, what=what, source=source, date=date, placement=placement, asking=asking)


PLACEMENTS = (
    _marking("none", "no marks at all: every token at the input price, each time", DOCS, "2026-08-22"),
    _marking("automatic", "top-level cache_control: the last markable block", DOCS, "2026-08-22", Automatic()),
    _marking(
        "base", "last tool, last system block, automatic tail", f"{DOCS}; LangChain's middleware", "2026-08-22", *BASE
    ),
    _marking("system-only", "every system block, messages never", PROGRESSIVE, "2026-01-31", SystemBlock("each")),
    _marking(
        "progressive",
        "every system block, and the last block of the last message",
        PROGRESSIVE,
        "2026-01-31",
        SystemBlock("each"),
        LastMessage(),
    ),
    _marking(
        "claude-code",
        "the last two system blocks, and the last block of the last message",
        "Claude Code 2.1.197 and 2.1.330, as recorded",
        "2026-11-21",
        SystemBlock("last_two"),
        LastMessage(),
    ),
    _marking(
        "rfc013-as-written",
        "last tool, system, last message, and the message before the latest human one",
        RFC013,
        "2025-03-28",
        LastTool(),
        SystemBlock("last"),
        LastMessage(),
        BeforeHuman(1, role="prompt"),
    ),
    _marking(
        "rfc013-as-coded",
        "as written, but the first eligible block of a message, and the branch one human message earlier",
        f"{RFC013} (commit ad8060b)",
        "2025-03-28",
        LastTool(),
        SystemBlock("last"),
        LastMessage("first_eligible"),
        BeforeHuman(2, role="prompt", block="first_eligible"),
    ),
    _marking(
        "jp",
        "system, last tool, automatic tail at 1h; questions through structured output, marked before the question",
        JP,
        "2026-08-22",
        SystemBlock("last"),
        LastTool(),
        Automatic(),
        ttl="1h",
        asking=Asking(through="structured_output", tool_choice="none", marks="hint"),
    ),
)


def _arm(name: str, what: str, source: str, date: str, rules: dict[str, Any] | None = None, **options: Any) -> Agent:
    return Agent(
        name=name,
        what=what,
        source=source,
        date=date,
        placement=Placement(BASE),
        asking=Asking(**options),
        rules=rules or {},
    )


def _cheaper(name: str, what: str, source: str, date: str, **options: Any) -> Agent:
    shared: dict[str, Any] = {"through": "structured_output", "tool_choice": "none", "model": CHEAPER_MODEL}
    return _arm(name, what, source, date, **shared, **options)


ARMS = (
    _arm(
        "structured output, no tools",
        "questions through output_config.format, a schema each, no tools sent",
        RFD_028,
        "2026-03-04",
        through="structured_output",
        tools="none",
        schema="unique",
    ),
    _arm(
        "structured output, same tools",
        "questions through output_config.format, a schema each, the main thread's tools",
        f"{RFD_033}, alternatives",
        "2026-03-07",
        through="structured_output",
        schema="unique",
    ),
    _arm(
        "answer_inquiry, forced",
        "an always-present answer tool, forced by tool_choice; one answer in twenty is asked again",
        RFD_033,
        "2026-03-07",
        retry_rate=0.05,
    ),
    _arm(
        "answer_inquiry, as 033 describes itself",
        "the same, read as if tool_choice invalidated nothing",
        RFD_033,
        "2026-03-07",
        rules={"tool_choice_invalidation": "never"},
        retry_rate=0.05,
    ),
    _arm(
        "answer tool, auto",
        "the answer tool suggested by the question's words, not forced; one in ten is asked again (assumed)",
        f"{RFD_033}, without its tool_choice",
        "2026-03-07",
        tool_choice="auto",
        retry_rate=0.1,
    ),
    _arm(
        "a schema per question",
        "the answer tool carries each question's own schema, forced",
        f"{RFD_033}, alternatives",
        "2026-03-07",
        through="tool_per_question",
    ),
    _cheaper(
        "cheaper model, cold",
        "questions go to a cheaper model, without tools, and nothing is cached",
        RFD_034,
        "2026-03-07",
        tools="none",
        marks="none",
    ),
    _cheaper(
        "cheaper model, warm",
        "questions go to a cheaper model with the main thread's tools and marks, the moving one included",
        f"{RFD_034}, known limitations",
        "2026-03-13",
    ),
    _cheaper(
        "cheaper model, with cache hint",
        "the same, marked before the question instead of at its end",
        JP_INQUIRY,
        "2026-08-22",
        marks="hint",
    ),
)

PRESETS: dict[str, Agent] = {agent.name: agent for agent in (*PLACEMENTS, *ARMS)}
"""Every built-in strategy by name."""
