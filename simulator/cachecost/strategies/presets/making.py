"""What presets are made with.

The online policy: what the optimum teaches, told from the past alone.

Placements that users described in threads: proposals, and habits to be seen failing.

Claude Code's breakpoints, by version and setting. Recordings win over what issue threads say.

The ways to put a tool's questions to the assistant that the seeds compare.

The placements that the seeds describe, and those that their authors planned for later.

`best-per-provider`: questions are asked in another way on each host, as `best_per_provider.toml` says.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.prompts.request import TTL
from cachecost.strategies.agent import Agent, InquiryOptions
from cachecost.strategies.changes.adapting import Adapt
from cachecost.strategies.model_facts import HostFacts
from cachecost.strategies.placements import (
    MAXIMUM_BREAKPOINTS,
    Adaptive,
    Automatic,
    BeforeHuman,
    EveryKTokens,
    EveryKTurns,
    ForkPoint,
    Freeze,
    Hint,
    Lag,
    LastMessage,
    LastN,
    LastTool,
    LongSegments,
    Placement,
    Primitive,
    SegmentEnd,
    SystemBlock,
)

LEARNED = (
    Agent(
        name="adaptive",
        what="head and end marked for 5m or 1h by the pauses seen so far; ends that nothing goes on from not at all",
        source="cachecost optimize: what the optimum does, from the past alone",
        date="2026-11-22",
        changes=(Adapt(),),
    ),
)


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


HEAD = (LastTool(), SystemBlock("last"))

PATTERNS = (
    breakpoint_preset(
        "system-and-n",
        "system, last tool and the last two messages (librefang's system_and_N with N = 2)",
        "librefang#5021",
        RECORDED,
        *HEAD,
        LastN("any", 2),
    ),
    breakpoint_preset(
        "lagging-tail",
        "last tool, system, tail, and a breakpoint 20 blocks behind the tail",
        "tidebreak#1270",
        RECORDED,
        *HEAD,
        LastMessage(),
        Lag(20),
    ),
    breakpoint_preset(
        "decimation",
        "the last two messages, and the two latest of every 15th human message",
        "oh-my-pi#11665",
        RECORDED,
        LastN("any", 2),
        EveryKTurns(15, 2),
    ),
    breakpoint_preset(
        "freeze-at-4",
        "the first user message and every 10th tool result until 4 breakpoints stand: a habit to avoid",
        "g3#77",
        RECORDED,
        Freeze(10, 4),
    ),
)


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


JP_INQUIRY = "dcdpr/jp crates/jp_cli/src/cmd/query/tool/inquiry.rs"
RFD_028, RFD_033, RFD_034 = ("dcdpr/jp RFD 028", "dcdpr/jp RFD 033", "dcdpr/jp RFD 034")
CHEAPER_MODEL = "claude-haiku-4-5"


def _arm(name: str, what: str, source: str, date: str, rules: dict[str, Any] | None = None, **options: Any) -> Agent:
    return Agent(
        name=name,
        what=what,
        source=source,
        date=date,
        placement=Placement(BASE),
        inquiry=InquiryOptions(**options),
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
        "answer_inquiry, forced, breakpoint before the question",
        "the same, its breakpoint at the end of the message before the question instead of at the question's",
        f"{RFD_033}; the breakpoint as in {JP_INQUIRY}",
        "2026-08-22",
        breakpoints="hint",
        retry_rate=0.05,
    ),
    _arm(
        "answer_inquiry, as 033 describes itself",
        "the tool forced, read as if tool_choice invalidated nothing",
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
        "answer tool, soft force",
        "the tool not forced, but a system block says that it must be called; one answer in twenty is asked again",
        f"{RFD_033}, risks: the fallback of create_request",
        "2026-03-07",
        tool_choice="soft",
        retry_rate=0.05,
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
        breakpoints="none",
    ),
    _cheaper(
        "cheaper model, warm",
        "questions go to a cheaper model with the main thread's tools and breakpoints, the moving one included",
        f"{RFD_034}, known limitations",
        "2026-03-13",
    ),
    _cheaper(
        "cheaper model, with cache hint",
        "the same, its breakpoint before the question instead of at its end",
        JP_INQUIRY,
        "2026-08-22",
        breakpoints="hint",
    ),
)


PROGRESSIVE = "wqeqwqeq/langchain-adf-cli docs/prompt-caching.md"
RFC013 = "cccntu/llmproc RFC013"
LLMPROC = "cccntu/llmproc src/llmproc/providers/anthropic_utils.py"
JP = "dcdpr/jp crates/jp_llm/src/provider/anthropic.rs"

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


TABLE = Path(__file__).with_name("best_per_provider.toml")


@value
class Best:
    """What costs the least on a host; `matching` "" is any kind of it."""

    host: str
    matching: str
    strategy: str
    why: str


@cache
def best_table() -> tuple[Best, ...]:
    """The rows, in their order: the first that fits decides."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["row"]
    return tuple(Best(row["host"], row.get("matching", ""), row["strategy"], row["why"]) for row in rows)


def find_best(rules: HostFacts) -> Best:
    """The row of a host and its kind of matching. Raises CannotEvaluate for a host that has none."""
    fitting = (row for row in best_table() if row.host == rules.host and row.matching in ("", rules.matching))
    if found := next(fitting, None):
        return found
    raise CannotEvaluate(f"best-per-provider has no row for host {rules.host}")


def inquiry_by_host(rules: HostFacts) -> tuple[InquiryOptions, str]:
    """How questions are asked there, and a sentence that says why."""
    best = find_best(rules)
    inquiry = next(arm.inquiry for arm in ARMS if arm.name == best.strategy)
    assert inquiry is not None
    return inquiry, f"On {rules.host} it asks as “{best.strategy}” does: {best.why}."


PER_PROVIDER = (
    Agent(
        name="best-per-provider",
        what="questions are asked as costs the least on each host: by a schema, a forced tool or a suggested one",
        source=f"{RFD_033}, alternatives",
        date="2026-03-07",
        placement=Placement((LastTool(), SystemBlock("last"), LastMessage())),
        inquiry_by_host=inquiry_by_host,
    ),
)
"""Its breakpoints are those that each host takes: the last tool, the last system block, the last message."""
