"""The breakpoints of coding agents other than Claude Code. A recording wins over what its code or a thread
says.
"""

from __future__ import annotations

from cachecost.strategies.placements import (
    AtMessage,
    Automatic,
    BeforeHuman,
    LastMessage,
    LastN,
    LastTool,
    OldestOver,
    SegmentEnd,
    Sticky,
    SystemBlock,
    TurnBoundary,
)
from cachecost.strategies.presets.making import RECORDED, breakpoint_preset

ROO = "RooCodeInc/Roo-Code"
CONTINUE = "continuedev/continue packages/openai-adapters/src/apis/AnthropicCachingStrategies.ts"
ZED = "zed-industries/zed crates/anthropic/src/completion.rs"
QWEN = "QwenLM/qwen-code"
HEAD = (LastTool(), SystemBlock("last"))

EDITORS = (
    breakpoint_preset(
        "cline-legacy",
        "system, and the last block of the last two user messages, tool results included",
        "cline/cline apps/vscode/src/core/api/providers/anthropic.ts @791d238",
        "2026-05-01",
        SystemBlock("last"),
        LastN("user_wire", 2),
    ),
    breakpoint_preset(
        "cline-sdk",
        "the last text of the last human message: it stands still in a tool loop, and system is not marked",
        "Cline CLI 3.0.65, as recorded; cline/cline sdk/packages/llms/src/providers/ai-sdk.ts",
        RECORDED,
        LastN("human", 1, "last_text"),
    ),
    breakpoint_preset(
        "roo-code",
        "system, and the last block of the last two user messages",
        f"{ROO} src/api/providers/anthropic.ts",
        "2026-04-01",
        SystemBlock("last"),
        LastN("user_wire", 2),
    ),
    breakpoint_preset(
        "roo-code-vertex",
        "system, and the last text of the last two user messages (Vertex and OpenRouter)",
        f"{ROO} src/api/transform/caching",
        "2026-04-01",
        SystemBlock("last"),
        LastN("user_wire", 2, "last_text"),
    ),
    breakpoint_preset(
        "roo-bedrock-multipoint",
        "system, and up to 3 user messages with 1,024 estimated tokens between, kept from request to request (the "
        "system prompt is taken to be long enough)",
        f"{ROO} src/api/transform/cache-strategy/multi-point-strategy.ts",
        "2026-04-01",
        SystemBlock("last"),
        Sticky(1024, 3),
    ),
    breakpoint_preset(
        "continue-systemAndTools",
        "every system block, last tool, last text of the last two user messages (results count and get none): refused "
        "(400) with over 4",
        f"Continue CLI 1.5.47, as recorded; {CONTINUE}",
        RECORDED,
        SystemBlock("each"),
        LastTool(),
        LastN("user_wire", 2, "last_text"),
        slots=7,
    ),
    breakpoint_preset(
        "continue-optimized",
        "every system block, last tool, then the oldest messages with a text of over 500 estimated tokens: it freezes",
        CONTINUE,
        "2026-06-01",
        SystemBlock("each"),
        LastTool(),
        OldestOver(500),
    ),
    breakpoint_preset(
        "continue-systemOnly",
        "every system block, at most 4 (Continue's `none` is none)",
        CONTINUE,
        "2026-06-01",
        SystemBlock("each"),
    ),
    breakpoint_preset(
        "zed",
        "system (or the last tool) at 1h; the tail and the last two turn boundaries at 5m",
        ZED,
        RECORDED,
        SegmentEnd("head", ttl="1h"),
        LastMessage(),
        TurnBoundary(2),
    ),
    breakpoint_preset(
        "zed-auto",
        "last tool and system at 1h, automatic tail at 5m",
        f"{ZED}, an earlier version",
        RECORDED,
        LastTool(ttl="1h"),
        SystemBlock("last", ttl="1h"),
        Automatic(),
    ),
)

TERMINALS = (
    breakpoint_preset(
        "aider",
        "the ends of its examples (message 6) and repo map (message 8), and the message before the latest human one; "
        "elsewhere those are just numbers",
        "aider-chat 0.86.2 --cache-prompts, as recorded; aider/coders/chat_chunks.py",
        RECORDED,
        AtMessage(6),
        AtMessage(8),
        BeforeHuman(1, "prompt"),
    ),
    breakpoint_preset(
        "openhands",
        "the first (static) system block, and the last block of the last user or tool message",
        "software-agent-sdk openhands-sdk/openhands/sdk/llm/llm.py",
        "2026-08-01",
        SystemBlock("first"),
        LastN("user_wire", 1),
    ),
    breakpoint_preset(
        "goose",
        "last tool, system, and the last block of the last two user messages",
        "goose crates/goose/src/providers/formats/anthropic.rs",
        RECORDED,
        *HEAD,
        LastN("user_wire", 2),
    ),
    breakpoint_preset(
        "goose-bedrock",
        "system and the last message",
        "goose#8915, goose#8921",
        RECORDED,
        SystemBlock("last"),
        LastMessage(),
    ),
    breakpoint_preset(
        "opencode",
        "the first two system blocks and the last two messages that are no system messages",
        "opencode-ai 1.18.33, as recorded; packages/opencode/src/provider/transform.ts",
        RECORDED,
        SystemBlock("first_two"),
        LastN("not_system", 2),
    ),
    breakpoint_preset(
        "crush",
        "last tool, last system block, and the last two messages",
        "crush internal/agent/agent.go",
        "2026-08-01",
        *HEAD,
        LastN("any", 2),
    ),
    breakpoint_preset(
        "pi",
        "last tool, system blocks, and the last block of the last user message (before 2026-04 without the tool)",
        "pi-coding-agent 0.73.1, as recorded; packages/ai/src/providers/anthropic.ts",
        RECORDED,
        LastN("user_wire", 1),
        SystemBlock("each"),
        LastTool(),
    ),
    breakpoint_preset(
        "qwen-code",
        "last tool, every system block, and the last block of the last message",
        f"{QWEN} 0.24.4, as recorded",
        RECORDED,
        LastTool(),
        LastMessage(),
        SystemBlock("each"),
    ),
    breakpoint_preset(
        "qwen-code-0.15",
        "last tool, system, and the last text of the last message: nothing in a tool loop",
        f"{QWEN} 0.15.10, as recorded",
        RECORDED,
        *HEAD,
        LastMessage("last_text"),
    ),
    breakpoint_preset(
        "gptme",
        "system, and the last block of the last two user messages, tool results included",
        "gptme 0.35.1, as recorded",
        RECORDED,
        SystemBlock("last"),
        LastN("user_wire", 2),
    ),
    breakpoint_preset(
        "mini-swe-agent",
        "the last block of the last message; system is not marked",
        "mini-swe-agent 2.4.6, as recorded",
        RECORDED,
        LastMessage(),
    ),
    breakpoint_preset(
        "amplifier",
        "last system block, last tool, last block of the last message",
        "gszep/amplifier-module-provider-claude docs/ARCHITECTURE.md",
        "2026-01-21",
        *HEAD,
        LastMessage(),
    ),
)

CODING = (*EDITORS, *TERMINALS)
