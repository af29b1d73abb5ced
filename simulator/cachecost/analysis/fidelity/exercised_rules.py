"""The rules that one judged call exercises, and those of them that its bill refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachecost.analysis.fidelity.recording_check import TOLERANCE
from cachecost.caches.breakpoints import Outcome
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage

BY_CAUSE = {
    "tools_changed": "2 tools",
    "system_changed": "2 system",
    "tool_choice_changed": "2 tool_choice",
    "thinking_changed": "2 thinking",
    "effort_changed": "2 effort",
    "output_format_changed": "2 format",
    "images_changed": "2 images",
    "speed_changed": "2 speed",
    "model_changed": "2 model",
    "ttl_expired": "12 expired",
    "concurrent_write": "11",
}


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call, its first pass's prompt and outcome, its cause, and its predicted and billed usage."""

    request: Request
    rules: ModelRules
    prompt: Prompt
    outcome: Outcome
    cause: str
    passes: int
    timed: bool
    predicted: Usage
    billed: Usage


def find_exercised_rules(facts: CallFacts) -> tuple[str, ...]:
    """The rules that this call is evidence for or against."""
    return tuple(sorted({*_of_request(facts), *_of_outcome(facts), *_of_bill(facts)}))


def find_broken_rules(facts: CallFacts) -> tuple[str, ...]:
    """Rules whose own figure is wrong although the right prefix was hit: the split, the tail, the minimum."""
    written = facts.billed.write > 0 or facts.billed.read > 0
    checks = {
        "4": facts.passes > 1 or abs(facts.predicted.input_tokens - facts.billed.input_tokens) <= TOLERANCE,
        "8 below": not written,
        "8 reached": written,
        "15 split": bool(facts.billed.write_1h) == bool(facts.predicted.write_1h)
        and bool(facts.billed.write_5m) == bool(facts.predicted.write_5m),
        "15 one TTL": (facts.billed.write_1h > 0) == (facts.predicted.write_1h > 0) or not facts.billed.write,
    }
    return tuple(rule for rule in find_exercised_rules(facts) if not checks.get(rule, True))


def _of_request(facts: CallFacts) -> Iterator[str]:
    human = facts.request.thread.human
    if human is not None and human.parent is not None and human.parent.has_thinking:
        yield "3 kept" if facts.rules.keeps_thinking else "3 stripped"
    if facts.request.automatic:
        yield "5"
    if facts.passes > 1:
        yield "10 server tools"
    if facts.prompt.breakpoints:
        yield "8 reached" if facts.outcome.breakpoints else "8 below"


def _of_outcome(facts: CallFacts) -> Iterator[str]:
    if facts.cause in BY_CAUSE:
        yield BY_CAUSE[facts.cause]
    hit = facts.outcome.hit
    if hit is None:
        yield "10 nothing else"
        return
    yield "1"
    yield "9 breakpoint" if any(breakpoint.prefix is hit for breakpoint in facts.prompt.breakpoints) else "9 lookback"
    if facts.timed:
        yield "12 alive"


def _of_bill(facts: CallFacts) -> Iterator[str]:
    if facts.outcome.breakpoints and facts.outcome.breakpoints[-1].prefix is facts.prompt.end:
        yield "4"
    ttls = {breakpoint.ttl for breakpoint in facts.outcome.breakpoints}
    if facts.billed.write:
        yield "15 split" if len(ttls) == 2 else "15 one TTL"
