"""Made-up results for the tests of views: every figure is invented, none comes from a replay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from cachecost.base.structs import replace
from cachecost.ledger.results import Assumption, Comparison, Ledger, PublishedFigure, RunResult
from cachecost.ledger.rows import CallRow, Cost, LayerTokens
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import Usage

DAY = datetime(2026, 3, 6, 21, 0, tzinfo=UTC).timestamp()
REFUSED = "invalid_request_error"
PRICES = {"read": "0.5", "write_5m": "6.25", "write_1h": "10", "input": "5", "output": "25"}
"""USD per 10**6 tokens."""

ARMS = {
    "progressive": 0.02,
    "structured output, no tools": 1.0,
    "structured output, same tools": 0.8,
    "answer_inquiry, forced": 0.5,
    "answer_inquiry, forced, as it describes itself": 0.6,
    "answer tool, auto": 0.06,
    "a schema for every question, same tools kept": 0.9,
    "cheaper model, cold": 0.35,
    "cheaper model, warm": 0.04,
    "cheaper model, warm and with the cache hint of RFD 034": 0.03,
}
"""Ten arms with long names, and the share of the prompt that a question writes again."""


def cost_of(usage: Usage) -> Cost:
    million = Decimal(10**6)
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens}
    counts = {name: tokens.get(name, getattr(usage, name, 0)) for name in PRICES}
    return Cost(**{name: counts[name] * Decimal(price) / million for name, price in PRICES.items()})


def row(strategy: str, call: int, usage: Usage, **fields: Any) -> CallRow:
    """A call whose tokens are a third tools, a sixth system, the rest messages."""
    cost = cost_of(usage)
    dollars = cost.total - cost.output
    tools, system = dollars / 4, dollars / 8
    made = CallRow(
        call=call,
        start=DAY + 20 * call,
        timestamp=datetime.fromtimestamp(DAY + 20 * call, UTC).isoformat(),
        strategy=strategy,
        model="claude-opus-4-6",
        usage=usage,
        cost=cost,
        cause="cold_start" if call == 1 else "hit",
        by_layer={Layer.MESSAGES: LayerTokens(usage.read, usage.write_5m, usage.write_1h, usage.input_tokens)},
        cost_by_layer={Layer.TOOLS: tools, Layer.SYSTEM: system, Layer.MESSAGES: dollars - tools - system},
    )
    return replace(made, **fields)


def refused(strategy: str, call: int, reason: str, **fields: Any) -> CallRow:
    return row(
        strategy, call, Usage(), error=reason, error_type=REFUSED, cause=None, cost_by_layer={}, by_layer={}, **fields
    )


def ledger(strategy: str, share: float = 0.5, calls: int = 60, *, hour: bool = False, asks: int = 5) -> Ledger:
    """`calls` calls of a growing prompt; every `asks`-th is a question that writes `share` of it again."""
    rows = []
    for call in range(1, calls + 1):
        prompt = 27_000 + 450 * call
        asked = asks and call % asks == 0
        again = 27_450 if call == 1 else int(prompt * share) if asked else 450
        writes = {"write_1h" if hour else "write_5m": again}
        usage = Usage(input_tokens=3, read=prompt - again, output_tokens=120 + 7 * (call % 9), **writes)
        extra = {"purpose": "inquiry", "inquiry": call // asks, "cause": "tool_choice_changed"} if asked else {}
        rows.append(row(strategy, call, usage, turn=1 + call // 10, **extra))
    return Ledger(strategy, rows, token_source="tiktoken, calibrated", error_margin=0.031)


def comparison(ledgers: Sequence[Ledger], variant: str = "", first: str | None = None, **fields: Any) -> Comparison:
    name = ledgers[0].strategy if first is None and ledgers else first or ""
    made = Comparison(variant, "anthropic", "claude-opus-4-6", date(2026, 3, 7), {}, list(ledgers), name)
    return replace(made, **fields)


def result(*comparisons: Comparison, **fields: Any) -> RunResult:
    made = RunResult(
        scenario="answer-inquiry",
        question="What does a question to the assistant cost, asked in one way or another?",
        about="a made-up session · 60 calls, 12 of them questions · claude-opus-4-6 · prices and rules of 2026-03-07",
        verdict="A question asked through the answer tool (auto) costs a twelfth of one through structured output.",
        comparisons=list(comparisons),
        assumptions=[
            Assumption("No cache entry is evicted early, so hits are an upper bound."),
            Assumption("retry rate", "not measured", "RFD 033", 0.05, True, "“a” is the cheapest up to 0.31."),
        ],
        versions={"cachecost": "0.1.0", "rules": "2026-11-20", "tiktoken": "0.14.0"},
    )
    return replace(made, **fields)


@cache
def ten_arms() -> RunResult:
    """Ten strategies, two further readings, notes, a partly and a wholly refused arm, two claims."""
    ledgers = [ledger(name, share) for name, share in ARMS.items()]
    ledgers[3] = replace(ledgers[3], notes=["A forced choice cannot go with manual thinking: both salts change."])
    ledgers[4] = replace(ledgers[4], notes=["A forced choice cannot go with manual thinking: both salts change."])
    reason = "Thinking may not be enabled when tool_choice forces tool use."
    ledgers[6] = partly_refused(ledgers[6], reason, every=10)
    ledgers.append(wholly_refused("answer tool, any, manual thinking", reason))
    later = [ledger(name, share / 2) for name, share in ARMS.items()]
    turned = [ledger(name, 1 - share) for name, share in ARMS.items()]
    first = "structured output, no tools"
    return result(
        comparison(ledgers, first=first),
        comparison(later, "rules and prices of 2026-11-20", first, as_of=date(2026, 11, 20)),
        comparison(turned, "any change of tool_choice", first, rules={"tool_choice_invalidation": "any_change"}),
        published_figures=[
            PublishedFigure(
                "RFD 033", "a wasted write costs about $0.55", Decimal("0.54625"), "95,000 × (6.25 − 0.5) / 10⁶"
            ),
            PublishedFigure("RFD 033", "three inquiries cost $1.65", Decimal("1.63875"), "3 × $0.54625"),
        ],
    )


@cache
def small() -> RunResult:
    """Three strategies, one of them writing for an hour, no question asked."""
    return result(
        comparison(
            [
                ledger("none", 1.0, 12, asks=2),
                ledger("four-breakpoints", 0.2, 12, asks=0),
                ledger("automatic, 1h", 0.1, 12, asks=0, hour=True),
            ]
        )
    )


def partly_refused(whole: Ledger, reason: str, every: int) -> Ledger:
    rows = [
        refused(whole.strategy, old.call, reason, inquiry=old.inquiry) if old.call % every == 0 else old
        for old in whole.rows
    ]
    return replace(whole, rows=rows)


def wholly_refused(name: str, reason: str, calls: int = 60) -> Ledger:
    return Ledger(
        name, [refused(name, call, reason) for call in range(1, calls + 1)], [], "tiktoken, calibrated", 0.031
    )
