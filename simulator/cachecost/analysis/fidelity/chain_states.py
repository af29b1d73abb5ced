"""The cache state that the bills of a chain imply: after each step, what is cached, with which TTL and since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cachecost.analysis.fidelity.recording_check import TOLERANCE
from cachecost.conversations.transcript_steps import TranscriptStep
from cachecost.providers.usage import Usage


class TimeRange(NamedTuple):
    """The earliest and the latest second at which a request can have begun."""

    earliest: float
    latest: float


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """The longest cached prefix with a TTL, as implied by a bill."""

    tokens: int
    ttl: str
    touched: TimeRange | None


@dataclass(frozen=True, slots=True)
class ChainState:
    """What is known after a step: entries, longest first; whether thinking came since a person spoke; its growth."""

    step: TranscriptStep
    entries: tuple[ChainEntry, ...]
    thought: bool
    growth: int


def states_of(steps: Iterable[TranscriptStep]) -> dict[int, ChainState]:
    """The state after each step, by its number."""
    states: dict[int, ChainState] = {}
    for step in steps:
        states[step.number] = _state(step, states[step.before] if step.before else None)
    return states


def _state(step: TranscriptStep, before: ChainState | None) -> ChainState:
    thought = bool(before and before.thought and "human" not in step.between)
    cached = step.usage.read + step.usage.write
    earlier = before.step.usage.read + before.step.usage.write if before else cached
    return ChainState(step, _entries(step, before), thought or step.thinking, max(0, cached - earlier))


def _entries(step: TranscriptStep, before: ChainState | None) -> tuple[ChainEntry, ...]:
    """What is cached after this bill, by TTL: reads refresh an entry, writes create one."""
    if step.summed:
        return ()
    usage, now = step.usage, request_time(step, before)
    ends = {entry.ttl: entry.tokens for entry in (before.entries if before else ()) if entry.tokens <= usage.read}
    if usage.read:
        ends[_ttl_read(usage, before)] = usage.read
    if usage.write_1h:
        ends["1h"] = usage.read + usage.write_1h
    if usage.write_5m:
        ends["5m"] = usage.read + usage.write
    entries = (ChainEntry(tokens, ttl, now) for ttl, tokens in ends.items())
    return tuple(sorted(entries, key=lambda entry: (-entry.tokens, entry.ttl)))


def _ttl_read(usage: Usage, before: ChainState | None) -> str:
    """The TTL of what was read: that of the shortest entry that is long enough, else that of what is written."""
    reaching = [entry for entry in (before.entries if before else ()) if entry.tokens >= usage.read - TOLERANCE]
    if reaching:
        return reaching[-1].ttl
    longest = before.entries[0].ttl if before and before.entries else "5m"
    return ("1h" if usage.write_1h else "5m") if usage.write else longest


def request_time(step: TranscriptStep, before: ChainState | None) -> TimeRange | None:
    """When the request began: no earlier than the record before it, no later than the first of its answer."""
    if step.answered is None:
        return None
    earliest = step.after if step.after is not None else before.step.ended if before else None
    return TimeRange(float("-inf") if earliest is None else min(earliest, step.answered), step.answered)


def in_loop(step: TranscriptStep) -> bool:
    """Whether only the answer before and the results of its tools lie between, and perhaps an API error."""
    return step.before is not None and set(step.between) <= {"error"}
