"""The breakpoints of frameworks and libraries, in the modes that users choose from.

The breakpoints of coding agents other than Claude Code. A recording wins over what its code or a thread
says.
"""

from __future__ import annotations

from cachecost.strategies.placements import (
    AtMessage,
    Automatic,
    BeforeHuman,
    FirstN,
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


LANGCHAIN = "langchain libs/partners/anthropic/langchain_anthropic/middleware/prompt_caching.py"
PYDANTIC_AI = "pydantic_ai_slim/pydantic_ai/models/anthropic.py"
LITELLM = "litellm/integrations/anthropic_cache_control_hook.py"
LLAMA = "llama_index/llms/anthropic/utils.py"
VERCEL = "vercel/ai packages/anthropic/src/get-cache-control.ts"
STRANDS = "strands-agents src/strands/models/bedrock.py"
DSPY = "dspy docs/docs/diving-deeper/react.md"

PYTHON = (
    breakpoint_preset(
        "langchain-middleware",
        "last system block, last tool, automatic tail (without the middleware LangChain breakpoints nothing)",
        f"langchain-anthropic 1.7.7, as recorded; {LANGCHAIN} (#35969)",
        RECORDED,
        *HEAD,
        Automatic(),
    ),
    breakpoint_preset(
        "langchain-middleware-1.0",
        "the last block of the last message, nothing else",
        f"{LANGCHAIN}, before #35969",
        "2026-02-01",
        LastMessage(),
    ),
    breakpoint_preset(
        "langchain-middleware-js",
        "as langchain-middleware, but nothing before there are 3 messages (the system prompt is not counted here)",
        "langchainjs, anthropicPromptCachingMiddleware (minMessagesToCache 3)",
        "2026-03-01",
        *HEAD,
        Automatic(),
        from_message=3,
    ),
    breakpoint_preset(
        "llama-index-cache-idx",
        "cache_idx -1: system and every message, a breakpoint each; refused (400) from the fifth on",
        LLAMA,
        RECORDED,
        SystemBlock("each"),
        FirstN("any", 9),
        slots=9,
    ),
    breakpoint_preset(
        "llama-index-cache-idx-2",
        "cache_idx 2: system and the first two messages; it never moves",
        LLAMA,
        RECORDED,
        SystemBlock("last"),
        FirstN("any", 2),
    ),
    breakpoint_preset(
        "pydantic-ai",
        "tool definitions at 1h, last instruction, last message; the oldest message breakpoints leave first",
        f"pydantic-ai 2.68.0 with tools, instructions and messages cached, as recorded; {PYDANTIC_AI}",
        RECORDED,
        LastTool(ttl="1h"),
        SystemBlock("last"),
        LastN("user_wire", 1),
        trim="oldest_message",
    ),
    breakpoint_preset(
        "pydantic-ai-auto",
        "anthropic_cache: automatic alone",
        f"pydantic-ai 2.68.0 with anthropic_cache, as recorded; {PYDANTIC_AI}",
        RECORDED,
        Automatic(),
    ),
    breakpoint_preset(
        "pydantic-ai-bedrock",
        "anthropic_cache where a host lacks automatic caching: the last block of the last message",
        PYDANTIC_AI,
        "2026-08-23",
        LastMessage(),
    ),
    breakpoint_preset(
        "pydantic-ai-instructions",
        "anthropic_cache_instructions: the last static instruction, taken to be the first system block",
        PYDANTIC_AI,
        "2026-08-23",
        SystemBlock("first"),
    ),
    breakpoint_preset(
        "litellm-injection",
        "injection points role system and index -1: system and the last message",
        f"litellm 1.106.2 with cache_control_injection_points, as recorded; {LITELLM}",
        RECORDED,
        SystemBlock("last"),
        LastMessage(),
    ),
    breakpoint_preset(
        "litellm-injection-user",
        "injection points role system and role user: system and the first three user messages, then no slot is left",
        LITELLM,
        RECORDED,
        SystemBlock("last"),
        FirstN("user_wire", 4),
    ),
    breakpoint_preset(
        "strands",
        "cache points: system, and the end of the last user message",
        f"strands-agents 1.62.0 with cache points, as recorded; {STRANDS}",
        RECORDED,
        SystemBlock("last"),
        LastN("user_wire", 1),
    ),
    breakpoint_preset(
        "strands-auto",
        "Bedrock's auto strategy: one breakpoint at the end of the last user message",
        STRANDS,
        "2026-05-01",
        LastN("user_wire", 1),
    ),
    breakpoint_preset(
        "strands-tools",
        "the auto strategy with cache_tools and cache_prompt: last tool, system, end of the last user message",
        STRANDS,
        "2026-05-01",
        *HEAD,
        LastN("user_wire", 1),
    ),
    breakpoint_preset(
        "crewai",
        "end of system and of the task prompt (the first user message): it never moves in the tool loop",
        "lib/crewai/src/crewai/llms/cache.py",
        "2026-08-01",
        SystemBlock("last"),
        FirstN("user_wire", 1),
    ),
    breakpoint_preset("dspy", "system alone, through LiteLLM's injection points", DSPY, RECORDED, SystemBlock("last")),
    breakpoint_preset(
        "dspy-react",
        "system and the last message, as the docs of ReActV2 have it",
        DSPY,
        RECORDED,
        SystemBlock("last"),
        LastMessage(),
    ),
    breakpoint_preset(
        "inspect-ai",
        "last tool, last system block, the second last block that can be marked, automatic tail",
        "inspect-ai 0.3.285, as recorded; src/inspect_ai/model/_providers/anthropic.py",
        RECORDED,
        *HEAD,
        LastMessage("second_last"),
        Automatic(),
    ),
    breakpoint_preset(
        "agno", "system alone, at 1h", "agno 3.1.10, as recorded", RECORDED, SystemBlock("last"), ttl="1h"
    ),
    breakpoint_preset(
        "llm-anthropic",
        "option cache: the last block of the last message; system is not marked (without the option: nothing)",
        "llm-anthropic 0.30 -o cache 1, as recorded; llm_anthropic.py",
        RECORDED,
        LastMessage(),
    ),
    breakpoint_preset(
        "chatlas",
        "system and the last block of the last turn",
        "chatlas/_provider_anthropic.py",
        RECORDED,
        SystemBlock("last"),
        LastMessage(),
    ),
)

OTHERS = (
    breakpoint_preset(
        "vercel-ai-sdk",
        "the caller places them, as does the cookbook: only on the last message (a fifth breakpoint is dropped)",
        f"{VERCEL}, cookbook",
        "2026-08-22",
        LastMessage(),
    ),
    breakpoint_preset(
        "vercel-ai-sdk-automatic",
        "cacheControl of the request: automatic alone",
        VERCEL,
        "2026-08-22",
        Automatic(),
    ),
    breakpoint_preset(
        "vercel-ai-gateway-auto",
        "the end of the static content: system, else the last tool",
        "vercel.com/docs/ai-gateway, automatic caching",
        RECORDED,
        SegmentEnd("head"),
    ),
    breakpoint_preset(
        "first-block",
        "Bifrost's auto_inject: the first block that can be cached, taken to be in system, else in the first message",
        "docs.getbifrost.ai",
        RECORDED,
        SystemBlock("first"),
        FirstN("any", 1, "first_eligible"),
        slots=1,
    ),
    breakpoint_preset(
        "trpc-auto",
        "one breakpoint: the last assistant message, else the last tool, else system",
        "trpc-agent-go examples/promptcache",
        RECORDED,
        LastN("assistant", 1),
        LastTool(),
        SystemBlock("last"),
        slots=1,
    ),
    breakpoint_preset(
        "openai-implicit",
        "OpenAI's implicit caching, simulated as automatic at Anthropic's rules and prices (not OpenAI's)",
        "OpenAI's docs, by workers#1202",
        RECORDED,
        Automatic(),
    ),
    breakpoint_preset(
        "openai-explicit",
        "explicit breakpoints after system and attachments, as jp sets them for GPT-5.6, at Anthropic's rules and "
        "prices (OpenAI's: 30m, no lookback limit)",
        "dcdpr/jp crates/jp_llm; OpenAI's docs, by workers#1202",
        "2026-08-22",
        SystemBlock("last"),
        SegmentEnd("documents"),
    ),
)

FRAMEWORKS = (*PYTHON, *OTHERS)
