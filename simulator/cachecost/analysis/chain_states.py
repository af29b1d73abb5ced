"""What the bills of a chain tell: after each step, what is cached, for how long and since when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cachecost.conversations.steps import Step
from cachecost.providers.usage import Usage

TOLERANCE = 2
"""Tokens that a read may be off and still be exact (docs/output-formats.md, validate)."""
CHANGES = ("compaction", "edit", "model", "client", "fork")
"""What between two steps changes the prefix, or may have touched it (`steps.BETWEEN`)."""
BUCKETS = (10, 60, 300, 330, 360, 3600, 3700)
"""Upper edges of the ages, in seconds, that `ages` counts by."""


class Span(NamedTuple):
    """The earliest and the latest second at which a request can have begun."""

    earliest: float
    latest: float


@dataclass(frozen=True, slots=True)
class Entry:
    """The longest cached prefix of a lifetime, as a bill tells it."""

    tokens: int
    ttl: str
    touched: Span | None


@dataclass(frozen=True, slots=True)
class State:
    """What is known after a step: entries, longest first; whether thinking came since a person spoke; its growth."""

    step: Step
    entries: tuple[Entry, ...]
    thought: bool
    grown: int


def states_of(steps: Iterable[Step]) -> dict[int, State]:
    """The state after each step, by its number."""
    states: dict[int, State] = {}
    for step in steps:
        states[step.number] = _state(step, states[step.before] if step.before else None)
    return states


def _state(step: Step, before: State | None) -> State:
    thought = bool(before and before.thought and "human" not in step.between)
    cached = step.usage.read + step.usage.write
    earlier = before.step.usage.read + before.step.usage.write if before else cached
    return State(step, _entries(step, before), thought or step.thinking, max(0, cached - earlier))


def _entries(step: Step, before: State | None) -> tuple[Entry, ...]:
    """What the bill says is cached now, by lifetime: what was read is touched, what was written begins."""
    if step.summed:
        return ()
    usage, now = step.usage, span_of(step, before)
    ends = {entry.ttl: entry.tokens for entry in (before.entries if before else ()) if entry.tokens <= usage.read}
    if usage.read:
        ends[_lifetime_read(usage, before)] = usage.read
    if usage.write_1h:
        ends["1h"] = usage.read + usage.write_1h
    if usage.write_5m:
        ends["5m"] = usage.read + usage.write
    entries = (Entry(tokens, ttl, now) for ttl, tokens in ends.items())
    return tuple(sorted(entries, key=lambda entry: (-entry.tokens, entry.ttl)))


def _lifetime_read(usage: Usage, before: State | None) -> str:
    """The lifetime of what was read: of the shortest entry that reaches so far, else of what is written."""
    reaching = [entry for entry in (before.entries if before else ()) if entry.tokens >= usage.read - TOLERANCE]
    if reaching:
        return reaching[-1].ttl
    longest = before.entries[0].ttl if before and before.entries else "5m"
    return ("1h" if usage.write_1h else "5m") if usage.write else longest


def span_of(step: Step, before: State | None) -> Span | None:
    """When the request began: no earlier than the record before it, no later than the first of its answer."""
    if step.answered is None:
        return None
    earliest = step.after if step.after is not None else before.step.ended if before else None
    return Span(float("-inf") if earliest is None else min(earliest, step.answered), step.answered)


def in_loop(step: Step) -> bool:
    """Whether only the answer before and the results of its tools lie between, and perhaps an API error."""
    return step.before is not None and set(step.between) <= {"error"}


@dataclass(frozen=True, slots=True)
class AgeCount:
    """Steps of one lifetime and age, by what they read of the whole prefix before them.

    The age is from the last record of the answer before to the first of this one's, at most `most` seconds (None: more
    than all edges).
    """

    ttl: str
    most: int | None
    in_loop: bool
    whole: int = 0
    more: int = 0
    less: int = 0
    nothing: int = 0


def ages(steps: Sequence[Step]) -> list[AgeCount]:
    """How often the whole prefix was read, by lifetime, age and whether a person spoke between; empty rows left out.

    No rule is asked: only steps with a compaction, an edit, a fork, or another model or client between are left out.
    """
    states = states_of(steps)
    counts: dict[tuple[str, int, bool], dict[str, int]] = {}
    for step in steps:
        before = states[step.before] if step.before else None
        if before and before.entries and step.answered and before.step.ended and not set(step.between) & set(CHANGES):
            age = step.answered - before.step.ended
            place = next((number for number, edge in enumerate(BUCKETS) if age <= edge), len(BUCKETS))
            row = counts.setdefault((before.entries[0].ttl, place, in_loop(step)), {})
            word = _share(step.usage.read, before.entries[0].tokens)
            row[word] = row.get(word, 0) + 1
    edges = (*BUCKETS, None)
    return [AgeCount(ttl, edges[place], loop, **row) for (ttl, place, loop), row in sorted(counts.items())]


def _share(read: int, whole: int) -> str:
    if abs(read - whole) <= TOLERANCE:
        return "whole"
    return "more" if read > whole else "less" if read else "nothing"
