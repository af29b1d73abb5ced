"""The ways to put a tool's questions to the assistant that the seeds compare."""

from __future__ import annotations

from typing import Any

from cachecost.strategies.agent import Agent
from cachecost.strategies.inquiry import InquiryOptions
from cachecost.strategies.placements import Placement
from cachecost.strategies.presets.making import BASE

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
