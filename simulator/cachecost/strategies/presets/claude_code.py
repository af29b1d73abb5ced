"""Claude Code's breakpoints, by version and setting. Recordings win over what issue threads say."""

from __future__ import annotations

from cachecost.strategies.placements import Hint, LastMessage, LastN, SystemBlock
from cachecost.strategies.presets.making import RECORDED, breakpoint_preset

CLAUDE_CODE = (
    breakpoint_preset(
        "claude-code",
        "the last two system blocks, and the last block of the last message, a system message included",
        "Claude Code 2.1.330, as recorded (plain, Sonnet, ToolSearch)",
        RECORDED,
        SystemBlock("last_two"),
        LastMessage(),
    ),
    breakpoint_preset(
        "claude-code-1h",
        "the same at 1h: ENABLE_PROMPT_CACHING_1H, or the main thread of a subscription",
        "Claude Code 2.1.330 with ENABLE_PROMPT_CACHING_1H=1, as recorded",
        RECORDED,
        SystemBlock("last_two"),
        LastMessage(),
        ttl="1h",
    ),
    breakpoint_preset(
        "claude-code-mixed-ttl",
        "the same with system at 1h and messages at 5m",
        "Claude Code 2.1.330 with CLAUDE_CODE_PROMPT_CACHE_TTL=1h and CLAUDE_CODE_MESSAGES_PROMPT_CACHE_TTL=5m, "
        "as recorded",
        RECORDED,
        SystemBlock("last_two", ttl="1h"),
        LastMessage(),
    ),
    breakpoint_preset(
        "claude-code-2.1.148",
        "the last two system blocks, and the last two messages of any role",
        "Claude Code 2.1.148, by oh-my-pi#1299",
        RECORDED,
        SystemBlock("last_two"),
        LastN("any", 2),
    ),
    breakpoint_preset(
        "claude-code-2.1.197",
        "the last two system blocks, and the last message that is no system message",
        "Claude Code 2.1.197, as recorded",
        RECORDED,
        SystemBlock("last_two"),
        LastN("not_system", 1),
    ),
    breakpoint_preset(
        "claude-code-2.1.203",
        "the last two system blocks, and the last two user messages (system messages do not count)",
        "Claude Code 2.1.203, by dario#683",
        RECORDED,
        SystemBlock("last_two"),
        LastN("user_wire", 2),
    ),
    breakpoint_preset(
        "claude-code-fork",
        "a fork that leaves nothing behind: the tail breakpoint stands one message earlier",
        "a port of an earlier Claude Code, by clawcodex#74",
        RECORDED,
        SystemBlock("last_two"),
        Hint(1),
    ),
    breakpoint_preset(
        "claude-agent-sdk",
        "as claude-code: the SDK starts the CLI and has no say in where breakpoints go",
        "claude-agent-sdk-python src/claude_agent_sdk/types.py",
        RECORDED,
        SystemBlock("last_two"),
        LastMessage(),
    ),
)
