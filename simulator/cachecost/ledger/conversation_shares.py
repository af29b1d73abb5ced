"""How much of the conversation a strategy sends, against another one that makes the same calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cachecost.ledger.rows import CallRow

LESS = 0.9
"""Below this part of the compared strategy's conversation, a strategy sees less (set on 2026-11-23).

The same text never differs by that much: all strategies are counted by the scenario's tokenizer, and answers, schemas
and reminders that strategies add weigh a few percent. Cuts to a window, summaries and cleared results take more."""
SMALL = 1_000
"""Tokens of conversation below which a call sees next to nothing but the static prefix."""
QUESTIONS, CALLS = "question", "call of the main thread"


class CallSize(NamedTuple):
    """Tokens of a call as sent, by the tokenizer of the scenario's model, without hidden tokens."""

    messages: int
    static: int
    """Tools and system prompt."""


@dataclass(frozen=True, slots=True)
class LessInput:
    """What a strategy leaves out of the conversation.

    Of the `calls` that the compared strategy makes too (`what` they are), it sends a mean of `tokens` where that sends
    `compared_tokens`; `small` of them have next to no conversation. `unasked` are questions that only the compared
    strategy asks. `words` are those of the scenario.
    """

    what: str = CALLS
    calls: int = 0
    tokens: int = 0
    compared_tokens: int = 0
    small: int = 0
    unasked: int = 0
    words: str = ""


class CallKey(NamedTuple):
    """What a call is for: the n-th call of a turn, or the first attempt at a question, of a session."""

    session: str
    what: str
    number: int
    place: int


def less_input(
    rows: Sequence[CallRow], sizes: Sequence[CallSize], compared: Mapping[CallKey, CallSize]
) -> LessInput | None:
    """What a strategy leaves out of the calls that the compared one (`sizes_by_call`) makes too; None: nothing."""
    own = sizes_by_call(rows, sizes)
    for what in (QUESTIONS, CALLS):
        asked = [key for key in compared if key.what == what]
        shared = [key for key in asked if key in own]
        found = _shared_calls(what, [own[key] for key in shared], [compared[key] for key in shared])
        if what == QUESTIONS and len(shared) < len(asked):
            return LessInput(what, len(asked), unasked=len(asked) - len(shared))
        if found is not None:
            return found
    return None


def sizes_by_call(rows: Sequence[CallRow], sizes: Sequence[CallSize]) -> dict[CallKey, CallSize]:
    """The size of each call by what it is for; pings, summaries and further attempts are left out."""
    places: Counter[tuple[str, str, int]] = Counter()
    found: dict[CallKey, CallSize] = {}
    for row, size in zip(rows, sizes, strict=True):
        if row.purpose not in ("main", "inquiry"):
            continue
        kind = (row.session, CALLS, row.turn) if row.inquiry is None else (row.session, QUESTIONS, row.inquiry)
        places[kind] += 1
        found[CallKey(*kind, places[kind])] = size
    return found


def _shared_calls(what: str, own: Sequence[CallSize], compared: Sequence[CallSize]) -> LessInput | None:
    whole = sum(size.messages for size in compared)
    sent = sum(_conversation(size, other) for size, other in zip(own, compared, strict=True))
    if not whole or sent >= LESS * whole:
        return None
    count = len(own)
    small = sum(size.messages < SMALL <= other.messages for size, other in zip(own, compared, strict=True))
    return LessInput(what, count, round(sent / count), round(whole / count), small)


def _conversation(size: CallSize, compared: CallSize) -> int:
    """The messages, and what a strategy sends with its tools and system prompt that the compared one has in them."""
    return size.messages + max(0, size.static - compared.static)
