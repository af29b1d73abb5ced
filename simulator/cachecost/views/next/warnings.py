"""The sentence before an expensive message, a compaction, a resumed session or a model switch."""

from __future__ import annotations

from decimal import Decimal

from cachecost.analysis.next_message.compaction import CompactionPrice
from cachecost.analysis.next_message.message import NextMessage
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.formatting import count_text, dollars, duration, tokens


def rewritten_tokens(state: SessionState, message: NextMessage) -> int:
    """Tokens of the conversation that a message writes although they had been cached."""
    return max(0, min(state.cached_tokens, message.usage.total_input) - message.usage.read)


def expired_words(state: SessionState, now: float) -> str:
    until = state.warm_until
    return f"cache expired {duration(now - until)} ago" if until is not None and until <= now else "cache is gone"


def message_warning(state: SessionState, message: NextMessage, compaction: CompactionPrice | None, now: float) -> str:
    """Before a message: "cache expired 12 min ago: this message writes 127k tokens again, $0.79; /compact first: …"."""
    again = tokens(rewritten_tokens(state, message))
    return (
        f"{expired_words(state, now)}: this message writes {again} tokens again, {dollars(message.cost)}"
        f"{_compact_first(compaction)}"
    )


def resume_warning(state: SessionState, message: NextMessage, compaction: CompactionPrice | None, now: float) -> str:
    """Before the first message of a resumed session."""
    again = tokens(rewritten_tokens(state, message))
    return (
        f"{expired_words(state, now)}: the next message of this session writes {again} tokens again, "
        f"{dollars(message.cost)}{_compact_first(compaction)}"
    )


def compaction_warning(state: SessionState, compaction: CompactionPrice, now: float) -> str:
    """Before a compaction: what it costs, and after how many messages it has paid for itself."""
    why = "" if state.is_warm(now) else f"{expired_words(state, now)}: "
    cost = f"compacting {tokens(state.prompt_tokens)} tokens costs {dollars(compaction.summary.cost)}"
    enough = compaction.breaks_even_after
    if enough is None:
        return f"{why}{cost} and would never pay for itself"
    saved = f"each later message costs {dollars(compaction.saved)} less"
    return f"{why}{cost}; {saved}: break-even after {count_text(enough, 'message')}"


def switch_warning(model: str, message: NextMessage, here: NextMessage) -> str:
    """Before a switch to another model."""
    written = tokens(message.usage.write + message.usage.input_tokens)
    return (
        f"{model} reads nothing of this cache: the next message writes {written} tokens, {dollars(message.cost)} "
        f"(without the switch: {dollars(here.cost)})"
    )


def _compact_first(compaction: CompactionPrice | None) -> str:
    if compaction is None:
        return ""
    first, after, enough = compaction.summary.cost, compaction.message.cost, compaction.breaks_even_after
    if first is None or after is None or enough is None:
        return ""
    later = f", cheaper after {count_text(enough, 'message')}" if enough > 1 else ""
    return f"; /compact first: {dollars(first + after)}{later}"


def is_expensive(cost: Decimal | None, written: int, least_usd: Decimal, least_tokens: int) -> bool:
    """Whether to say anything: both thresholds are reached."""
    return cost is not None and cost >= least_usd and written >= least_tokens
