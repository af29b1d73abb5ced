"""The breakpoints of frameworks and libraries, in the modes that users choose from."""

from __future__ import annotations

from cachecost.strategies.placements import (
    Automatic,
    FirstN,
    LastMessage,
    LastN,
    LastTool,
    SegmentEnd,
    SystemBlock,
)
from cachecost.strategies.presets.making import RECORDED, breakpoint_preset

LANGCHAIN = "langchain libs/partners/anthropic/langchain_anthropic/middleware/prompt_caching.py"
PYDANTIC_AI = "pydantic_ai_slim/pydantic_ai/models/anthropic.py"
LITELLM = "litellm/integrations/anthropic_cache_control_hook.py"
LLAMA = "llama_index/llms/anthropic/utils.py"
VERCEL = "vercel/ai packages/anthropic/src/get-cache-control.ts"
STRANDS = "strands-agents src/strands/models/bedrock.py"
DSPY = "dspy docs/docs/diving-deeper/react.md"
HEAD = (LastTool(), SystemBlock("last"))

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
