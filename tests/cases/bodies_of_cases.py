"""Rows of request logs with the bills that a host would have sent, for siblings of recorded cases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]
BEGIN = datetime(2026, 11, 10, 9, 0, 0, 250_000, tzinfo=UTC)


def text(words: str, count: int, **more: Any) -> Row:
    return {"type": "text", "text": " ".join(f"{words}{number}" for number in range(count)), **more}


def breakpoint(ttl: str = "5m") -> Row:
    return {"cache_control": {"type": "ephemeral", "ttl": ttl}}


def usage(read: int, write_5m: int = 0, write_1h: int = 0, uncached: int = 12) -> Row:
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write_5m + write_1h,
        "cache_creation": {"ephemeral_5m_input_tokens": write_5m, "ephemeral_1h_input_tokens": write_1h},
        "output_tokens": 20,
    }


def row(seconds: float | None, body: Row, bill: Row | None = None, **more: Any) -> Row:
    stamp = {} if seconds is None else {"timestamp": (BEGIN + timedelta(seconds=seconds)).isoformat()}
    return {**stamp, "request": body, **({"usage": bill} if bill else {}), **more}


def question(number: int, system: str = "rule", ttl: str = "5m") -> Row:
    """A call of its own with a system prompt that others send, too."""
    return {
        "model": "claude-opus-4-8",
        "max_tokens": 90,
        "system": [text(system, 1_000, **breakpoint(ttl))],
        "messages": [{"role": "user", "content": [text(f"question {number} ", 4)]}],
    }


def chat(turn: int, ttl: str = "5m") -> Row:
    """The `turn`-th call (from 1) of a conversation, with breakpoints on the system prompt and the last message."""
    messages: list[Row] = []
    for number in range(1, turn + 1):
        messages.append({"role": "user", "content": [text(f"question {number} ", 120)]})
        messages.append({"role": "assistant", "content": [text(f"answer {number} ", 60)]})
    messages.pop()
    messages[-1]["content"][0] |= breakpoint(ttl)
    return question(0, ttl=ttl) | {"messages": messages}
