"""Strategies that are compared apart, since they send less of the conversation or assume other rules: in words."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.analysis.comparison.strategy_line import StrategyLine
from cachecost.analysis.comparison.summary import Summary
from cachecost.base.formatting import all_of, count_text, quote, tokens
from cachecost.ledger.conversation_shares import QUESTIONS, SMALL, LessInput

APART = "†"
"""After the name of a strategy that is compared apart."""


def shown_name(line: StrategyLine) -> str:
    """The name as tables have it."""
    return f"{line.name} {APART}" if line.is_apart else line.name


def apart_sentences(summary: Summary) -> list[str]:
    """Why strategies are compared apart, and which are not though they see less: a sentence each."""
    kept = [line for line in summary.lines if not line.is_apart and (line.less is not None or line.assumes)]
    sentences = [f"{APART} compared apart, never the cheapest: {_reasons(summary.apart)}"] if summary.apart else []
    if kept:
        sentences.append(f"compared all the same, as the scenario says: {_reasons(kept)}")
    return sentences


def _reasons(lines: Sequence[StrategyLine]) -> str:
    """ "“a” (sends less: …); “b” and “c” (assume …)"."""
    names: dict[str, list[str]] = {}
    for line in lines:
        names.setdefault(reason(line), []).append(quote(line.name))
    return "; ".join(f"{all_of(who)} ({why})" if why else all_of(who) for why, who in names.items())


def reason(line: StrategyLine) -> str:
    """Why a strategy is not like the others; "" where only the scenario says so."""
    less = "" if line.less is None else _left_out(line.less)
    return "; ".join(part for part in (less, f"assumes {line.assumes}" if line.assumes else "") if part)


def _left_out(less: LessInput) -> str:
    return "; ".join(part for part in (_measured(less), less.words) if part)


def _measured(less: LessInput) -> str:
    """ "41 questions send a mean of 48k of 218k tokens of conversation, 16 of them under 1,000"; "" if unknown."""
    calls = count_text(less.calls, QUESTIONS) if less.what == QUESTIONS else f"{less.calls:,} calls"
    if less.unasked:
        return f"{less.unasked:,} of {calls} are not asked"
    if not less.calls:
        return ""
    mean = f"{calls} send a mean of {tokens(less.tokens)} of {tokens(less.compared_tokens)} tokens of conversation"
    return f"{mean}, {less.small:,} of them under {SMALL:,}" if less.small else mean
