"""The placements that the seeds describe, and those that their authors planned for later."""

from __future__ import annotations

from cachecost.strategies.inquiry import InquiryOptions
from cachecost.strategies.placements import (
    Adaptive,
    Automatic,
    BeforeHuman,
    EveryKTokens,
    ForkPoint,
    LastMessage,
    LastN,
    LastTool,
    LongSegments,
    SegmentEnd,
    SystemBlock,
)
from cachecost.strategies.presets.making import BASE, DOCS, breakpoint_preset

PROGRESSIVE = "wqeqwqeq/langchain-adf-cli docs/prompt-caching.md"
RFC013 = "cccntu/llmproc RFC013"
LLMPROC = "cccntu/llmproc src/llmproc/providers/anthropic_utils.py"
JP = "dcdpr/jp crates/jp_llm/src/provider/anthropic.rs"
HEAD = (LastTool(), SystemBlock("last"))

SEEDS = (
    breakpoint_preset("none", "no breakpoints at all: every token at the input price, each time", DOCS, "2026-08-22"),
    breakpoint_preset(
        "automatic",
        "top-level cache_control: the last markable block (anthropic-automatic)",
        DOCS,
        "2026-08-22",
        Automatic(),
    ),
    breakpoint_preset(
        "base", "last tool, last system block, automatic tail", f"{DOCS}; LangChain's middleware", "2026-08-22", *BASE
    ),
    breakpoint_preset(
        "system-only", "every system block, messages never", PROGRESSIVE, "2026-01-31", SystemBlock("each")
    ),
    breakpoint_preset(
        "progressive",
        "every system block, and the last block of the last message",
        PROGRESSIVE,
        "2026-01-31",
        SystemBlock("each"),
        LastMessage(),
    ),
    breakpoint_preset(
        "rfc013-as-written",
        "last tool, system, last message, and the message before the latest human one",
        RFC013,
        "2025-03-28",
        *HEAD,
        LastMessage(),
        BeforeHuman(1, role="prompt"),
    ),
    breakpoint_preset(
        "rfc013-as-coded",
        "as written, but the first eligible block of a message, and the branch one human message earlier",
        f"{RFC013} (commit ad8060b)",
        "2025-03-28",
        *HEAD,
        LastMessage("first_eligible"),
        BeforeHuman(2, role="prompt", block="first_eligible"),
    ),
    breakpoint_preset(
        "rfc013-list-system",
        "as coded, with a system prompt in blocks that its caller marked all: refused (400) once there are over 4",
        f"{RFC013} (commit ad8060b)",
        "2025-03-28",
        LastTool(),
        SystemBlock("each"),
        LastMessage("first_eligible"),
        BeforeHuman(2, role="prompt", block="first_eligible"),
        slots=9,
    ),
    breakpoint_preset(
        "llmproc-0.7",
        "the first eligible block of the last 3 messages; tools and system never",
        f"{LLMPROC} (0.7.0 to 0.9.5)",
        "2025-06-10",
        LastN("any", 3, "first_eligible"),
    ),
    breakpoint_preset(
        "llmproc-0.7-intended",
        "system and the first eligible block of the last 3 messages, as its docstring says",
        f"{LLMPROC} (0.7.0 to 0.9.5)",
        "2025-06-10",
        SystemBlock("last"),
        LastN("any", 3, "first_eligible"),
    ),
    breakpoint_preset(
        "jp",
        "documents, system, last tool, automatic tail at 1h; questions through structured output, a breakpoint before "
        "the question",
        JP,
        "2026-08-22",
        SegmentEnd("documents"),
        SystemBlock("last"),
        LastTool(),
        Automatic(),
        ttl="1h",
        inquiry=InquiryOptions(through="structured_output", tool_choice="none", breakpoints="hint"),
    ),
)

PLANNED = (
    breakpoint_preset(
        "rfc013-system-split",
        "future work 1: the first (static) system block and the last (dynamic) one apart, last tool, last message",
        f"{RFC013}, future work",
        "2025-03-28",
        LastTool(),
        SystemBlock("first"),
        SystemBlock("last"),
        LastMessage(),
    ),
    breakpoint_preset(
        "rfc013-token-breakpoints",
        "future work 2: last tool, system, last message, and where the messages pass each 100,000 estimated tokens",
        f"{RFC013}, future work",
        "2025-03-28",
        *HEAD,
        LastMessage(),
        EveryKTokens(100_000),
    ),
    breakpoint_preset(
        "rfc013-fork-aware",
        "future work 3: last tool, system, last message, and the latest fork point",
        f"{RFC013}, future work",
        "2025-03-28",
        *HEAD,
        LastMessage(),
        ForkPoint(1),
    ),
    breakpoint_preset(
        "rfc013-adaptive",
        "future work 5: what stayed equal from the last request to this one (the learning rule is ours)",
        f"{RFC013}, future work",
        "2025-03-28",
        Adaptive(),
    ),
    breakpoint_preset(
        "rfc013-tree",
        "future work 6: system, last message, and the two latest messages with more than one continuation",
        f"{RFC013}, future work",
        "2025-03-28",
        SystemBlock("last"),
        LastMessage(),
        ForkPoint(2),
    ),
    breakpoint_preset(
        "rfc013-budget",
        "future work 7: ends of tools, system, earlier turns, last turn; parts under 1,024 estimated tokens go without",
        f"{RFC013}, future work",
        "2025-03-28",
        LongSegments(1024),
    ),
)
