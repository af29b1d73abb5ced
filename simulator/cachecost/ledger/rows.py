"""The row of a call, and how much of the conversation a strategy sends, against another one that makes the same calls.

The module imports fast: a replay with `--json` needs nothing else of the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import add
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import astuple

from cachecost.base.formatting import count_text
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import COST_CLASSES as COST_CLASSES
from cachecost.providers.usage import TOKEN_CLASSES as TOKEN_CLASSES
from cachecost.providers.usage import ZERO as ZERO
from cachecost.providers.usage import Usage

WARM_START: Literal["warm_start"] = "warm_start"
REFUSED = "invalid_request_error"
"""The error type of a call that the API refuses."""
NOT_EVALUATED = "not_evaluated"
"""That of a call whose model, rule or price is not known."""


class Cost(msgspec.Struct, frozen=True):
    """Dollars of a call, by class. Exact: nothing is rounded before printing."""

    read: Decimal = ZERO
    write_5m: Decimal = ZERO
    write_1h: Decimal = ZERO
    input: Decimal = ZERO
    output: Decimal = ZERO
    fees: Decimal = ZERO
    """Of server tools."""

    @property
    def total(self) -> Decimal:
        return self.read + self.write_5m + self.write_1h + self.input + self.output + self.fees

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(add, astuple(self), astuple(other)))

    def by_class(self) -> dict[str, Decimal]:
        return {name: getattr(self, name) for name in COST_CLASSES}


class LayerTokens(msgspec.Struct, frozen=True):
    """Input tokens of one layer in one call, by token class."""

    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    input: int = 0

    def __add__(self, other: LayerTokens) -> LayerTokens:
        return LayerTokens(*map(add, astuple(self), astuple(other)))


class CallRow(msgspec.Struct, frozen=True):
    """One call of a replay. `error` says why it has no usage (then usage and cost are zero, cause is None).

    `error_type` is REFUSED or NOT_EVALUATED.

    `start` is seconds since the epoch; `purpose` is "main", "inquiry", "retry" …;
    `inquiry` numbers the question the call serves (from 1), `turn` the human turn (from 1).
    """

    call: int
    start: float
    timestamp: str | None
    strategy: str
    model: str
    usage: Usage
    cost: Cost
    cause: str | None
    by_layer: Mapping[Layer, LayerTokens]
    cost_by_layer: Mapping[Layer, Decimal]
    purpose: str = "main"
    turn: int = 0
    inquiry: int | None = None
    error: str | None = None
    output_is_recorded: bool = True
    error_type: str | None = None
    cost_if_missed: Decimal | None = None
    """Where hits are not certain (calls in batches, hosts with a range): dollars with the least read. `cost` is then
    the minimum."""
    is_priced: bool = True
    """False: the price of its tokens is unknown, so `cost` must not be shown (a self-hosted server)."""
    estimated_usd: Decimal | None = None
    """USD that rest on token counts where bills determine the rest (`margin.py`); None: all but recorded output."""
    error_margin: float | None = None
    """The relative error of its token counts, by the content kinds of its prompt; None: that of the counter."""
    session: str = ""
    project: str = ""
    agent: str = ""
    file: str = ""
    line: int = 0
    """The last five are as those of a recorded call; a planned call has no file and no line (0)."""


def has_unevaluated(rows: Iterable[CallRow]) -> bool:
    """Whether any call could not be evaluated."""
    return any(row.error_type == NOT_EVALUATED for row in rows)


class WarmReads(NamedTuple):
    """The number of calls that read what was written before the recording began, and their tokens."""

    calls: int = 0
    tokens: int = 0

    @property
    def sentence(self) -> str:
        """A sentence about them; "" if there are none."""
        if not self.calls:
            return ""
        return (
            f"Warm start: {count_text(self.calls, 'call', 'read')} {self.tokens:,} tokens "
            "cached before the recording began (--rule warm_start=cold counts them as written)."
        )


def warm_reads(rows: Iterable[CallRow]) -> WarmReads:
    """The warm starts among the rows of a replay."""
    read = [row.usage.read for row in rows if row.cause == WARM_START]
    return WarmReads(len(read), sum(read))


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
        shared = [(own[key], compared[key]) for key in asked if key in own]
        if what == QUESTIONS and len(shared) < len(asked):
            return LessInput(what, len(asked), unasked=len(asked) - len(shared))
        count, whole = len(shared), sum(other.messages for _, other in shared)
        # what it sends with its tools and system prompt, and the compared one in its messages, counts as well
        sent = sum(size.messages + max(0, size.static - other.static) for size, other in shared)
        if whole and sent < LESS * whole:
            small = sum(size.messages < SMALL <= other.messages for size, other in shared)
            return LessInput(what, count, round(sent / count), round(whole / count), small)
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
