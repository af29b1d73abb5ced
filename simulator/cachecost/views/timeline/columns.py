"""The calls of a strategy as columns of a picture: thinned where there are more than a picture can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import ZERO, CallRow, Ledger
from cachecost.ledger.timelines import EMPTY_TIMELINE, CallTimeline

MOST = 400
"""Columns that a picture shows at most."""
ALL_TOGETHER = 6_000
"""Columns that the pictures of the other strategies share."""
FEWEST = 60
TOLD_TOGETHER, FEWEST_TOLD = 600, 12
"""The same of the places that can be pointed at, and of the rows of the tables behind the pictures."""


@dataclass(frozen=True, slots=True)
class CallColumn:
    """A call, and how many calls it stands for: it is the one of them that paid most for what was not read."""

    row: CallRow
    timeline: CallTimeline = EMPTY_TIMELINE
    stands_for: int = 1
    rewritten: Decimal = ZERO
    """USD that it paid to write again what had been cached."""
    place: str = ""
    """When and by whom it was sent, for its tooltip."""
    words: str = ""
    """What happened, for its tooltip and its table; "" where that is its cause."""

    @property
    def tops(self) -> tuple[int, int, int, int]:
        """Tokens up to the end of what was read, written for an hour, written for five minutes, uncached."""
        usage = self.row.usage
        hour = usage.read + usage.write_1h
        five = hour + usage.write_5m
        return usage.read, hour, five, five + usage.input_tokens


NOTHING_REWRITTEN: Mapping[int, Decimal] = {}


def columns_of(
    ledger: Ledger, most: int = MOST, rewritten: Mapping[int, Decimal] = NOTHING_REWRITTEN
) -> list[CallColumn]:
    """At most `most` columns of a ledger; `rewritten` are USD by the number of the call."""
    timelines = ledger.timelines or [EMPTY_TIMELINE] * len(ledger.rows)
    pairs = zip(ledger.rows, timelines, strict=True)
    return thin([CallColumn(row, timeline, rewritten=rewritten.get(row.call, ZERO)) for row, timeline in pairs], most)


def thin(columns: Sequence[CallColumn], most: int = MOST) -> list[CallColumn]:
    """At most `most` columns, from neighbouring calls as many each as it takes."""
    step = -(-len(columns) // most) if columns else 1
    return [_most_expensive(group) for group in in_groups(columns, step)]


def rewritten_by_call(explanation: Explanation) -> dict[int, Decimal]:
    """USD above the price of a read that calls paid for what had been cached, by the number of the call."""
    found: dict[int, Decimal] = {}
    for one in (*explanation.findings, *explanation.not_explained, *explanation.notes):
        found[one.call] = found.get(one.call, ZERO) + one.paid_again
    return found


def in_groups(columns: Sequence[CallColumn], step: int) -> Iterator[Sequence[CallColumn]]:
    """Neighbours, `step` at a time."""
    for start in range(0, len(columns), step):
        yield columns[start : start + step]


def most_columns(others: int) -> int:
    """Columns for each of so many pictures: together they must not make the page heavy."""
    return max(FEWEST, min(MOST, ALL_TOGETHER // max(others, 1)))


def most_spots(others: int) -> int:
    """Places to point at in each of so many pictures."""
    return max(FEWEST_TOLD, min(MOST, TOLD_TOGETHER // max(others, 1)))


def _most_expensive(group: Sequence[CallColumn]) -> CallColumn:
    highest = max(group, key=lambda column: (column.rewritten, _unread(column.row), -column.row.call))
    return replace(highest, stands_for=len(group))


def _unread(row: CallRow) -> Decimal:
    return row.cost.write_5m + row.cost.write_1h + row.cost.input
