"""Usage and times in transcripts, read without the product, and a plain cache to replay them in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

MILLION = Decimal(10**6)


class Usage(NamedTuple):
    """A call: when it began (the line before its answer), and its tokens."""

    start: float
    uncached: int
    read: int
    written: int
    output: int

    @property
    def cached(self) -> int:
        return self.read + self.written


class Rates(NamedTuple):
    """USD per million tokens."""

    input: Decimal
    read: Decimal
    write_5m: Decimal
    write_1h: Decimal
    output: Decimal


OPUS_5_5 = Rates(Decimal(4), Decimal("0.2"), Decimal(5), Decimal(8), Decimal(20))
"""Anthropic's price list of 2026-11: claude-opus-5-5."""


def usages(path: Path) -> list[Usage]:
    """The calls of a transcript in which each answer is one line."""
    found, before = list[Usage](), 0.0
    for line in map(json.loads, path.read_text().splitlines()):
        at = datetime.fromisoformat(line["timestamp"]).timestamp()
        counts = line.get("message", {}).get("usage")
        if counts:
            names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
            found.append(Usage(before, *(counts[name] for name in names)))
        before = at
    return found


def cost_at_ttl(sessions: Iterable[Sequence[Usage]], rates: Rates, ttl_s: float) -> Decimal:
    """USD of sessions that each read all that they had cached unless it expired, at one TTL; other reads stay."""
    write = rates.write_1h if ttl_s > 300 else rates.write_5m
    total = Decimal(0)
    for calls in sessions:
        for number, call in enumerate(calls):
            before = calls[number - 1] if number else None
            read = call.read
            if before is not None:
                read = min(before.cached, call.cached) if call.start - before.start < ttl_s else 0
            total += read * rates.read + (call.cached - read) * write
            total += call.uncached * rates.input + call.output * rates.output
    return total / MILLION


def billed(sessions: Iterable[Sequence[Usage]], rates: Rates, write: Decimal) -> Decimal:
    """USD of sessions as billed, all writes at one price."""
    return (
        sum(
            (
                call.uncached * rates.input + call.read * rates.read + call.written * write + call.output * rates.output
                for calls in sessions
                for call in calls
            ),
            Decimal(0),
        )
        / MILLION
    )
