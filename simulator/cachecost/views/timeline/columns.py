"""The calls of a strategy as columns of a picture, thinned where they are too many, and their paths in an SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from cachecost.base.structs import replace
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import EMPTY_TIMELINE, CallTimeline, Ledger
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO

MOST = 400
"""Columns that a picture shows at most."""
ALL_TOGETHER = 6_000
"""Columns that the pictures of the other strategies share."""
FEWEST = 60
TOLD_TOGETHER, FEWEST_TOLD = 600, 12
"""The same of the places that can be pointed at, and of the rows of the tables behind the pictures."""
NOTHING_REWRITTEN: Mapping[int, Decimal] = {}
HEIGHT = 200
"""Units of the longest prompt."""
BAND_TOP, BAND_HEIGHT = 206, 9
LANE_END, LANE_HEIGHT = -6, 54
"""Above the prompts the rewritten dollars have a lane: where it ends, and units of the highest ones."""
STATES = ("read", "write_1h", "write_5m", "input")
FEWEST_UNITS = 12
"""Units that a picture is wide at least, so that a few columns are no walls."""


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


def ledger_columns(
    ledger: Ledger, most: int = MOST, rewritten: Mapping[int, Decimal] = NOTHING_REWRITTEN
) -> list[CallColumn]:
    """At most `most` columns of a ledger; `rewritten` are USD by the number of the call."""
    timelines = ledger.timelines or [EMPTY_TIMELINE] * len(ledger.rows)
    pairs = zip(ledger.rows, timelines, strict=True)
    return thin([CallColumn(row, timeline, rewritten=rewritten.get(row.call, ZERO)) for row, timeline in pairs], most)


def thin(columns: Sequence[CallColumn], most: int = MOST) -> list[CallColumn]:
    """At most `most` columns, from neighbouring calls as many each as it takes."""
    step = -(-len(columns) // most) if columns else 1

    def expense(column: CallColumn) -> tuple[Decimal, Decimal, int]:
        cost = column.row.cost
        return column.rewritten, cost.write_5m + cost.write_1h + cost.input, -column.row.call

    return [replace(max(group, key=expense), stands_for=len(group)) for group in in_groups(columns, step)]


def rewritten_by_call(explanation: Explanation) -> dict[int, Decimal]:
    """USD above the price of a read that calls paid for what had been cached, by the number of the call."""
    found: dict[int, Decimal] = {}
    for one in (*explanation.findings, *explanation.not_explained, *explanation.notes):
        found[one.call] = found.get(one.call, ZERO) + one.paid_again
    return found


def in_groups(columns: Sequence[CallColumn], step: int) -> Iterator[Sequence[CallColumn]]:
    for start in range(0, len(columns), step):
        yield columns[start : start + step]


def limit_columns(others: int) -> int:
    """Columns for each of so many pictures: together they must not make the page heavy."""
    return max(FEWEST, min(MOST, ALL_TOGETHER // max(others, 1)))


def limit_spots(others: int) -> int:
    """Places to point at in each of so many pictures."""
    return max(FEWEST_TOLD, min(MOST, TOLD_TOGETHER // max(others, 1)))


@dataclass(frozen=True, slots=True)
class Paths:
    """What the picture is made of, each a path's `d`; empty where there is nothing."""

    width: int
    states: list[tuple[str, str]]
    """Token class and path, in the order they are painted."""
    layers: str
    breakpoints: str
    gaps: str
    loops: str
    questions: str
    turns: str
    refused: str
    rewritten: str
    most_rewritten: Decimal
    """USD of the highest column of the lane; 0: there is no lane."""

    @property
    def top(self) -> int:
        return LANE_END - LANE_HEIGHT if self.rewritten else 0

    @property
    def bottom(self) -> int:
        return BAND_TOP + BAND_HEIGHT + 3 if self.loops or self.questions or self.turns else HEIGHT


def draw_paths(columns: Sequence[CallColumn], longest: int) -> Paths:
    """The picture of the columns, on the scale of a prompt of `longest` tokens."""
    tops = [[_height(top, longest) for top in column.tops] for column in columns]
    most = max((column.rewritten for column in columns), default=ZERO)
    states = [  # those that can be seen, what is uncached first
        (STATES[number], step_path([each[number] for each in tops]))
        for number in reversed(range(len(STATES)))
        if any(each[number] > (each[number - 1] if number else 0) for each in tops)
    ]
    tools = [_layer_tokens(column, Layer.TOOLS) for column in columns]
    system = [end + _layer_tokens(column, Layer.SYSTEM) for end, column in zip(tools, columns, strict=True)]
    asked = [column.row.inquiry is not None for column in columns]
    human = [column.row.turn for column in columns]
    turns = [  # as planned, or where a recorded call answers a person
        at
        for at, (turn, column) in enumerate(zip(human, columns, strict=True))
        if (column.timeline.is_human if not turn else at == 0 or turn != human[at - 1])
    ]
    return Paths(
        max(len(columns), FEWEST_UNITS),
        states,
        "".join(
            f"M{start} {HEIGHT - value}H{end}"
            for ends in (tools, system)
            for start, end, value in _runs([_height(end, longest) for end in ends])
            if value
        ),
        _breakpoint_path(columns, longest),
        gap_path(len(columns)),
        _band([at for at, is_asked in enumerate(asked) if not is_asked]) if any(asked) else "",
        _band([at for at, is_asked in enumerate(asked) if is_asked]),
        "".join(f"M{at} {BAND_TOP}v{BAND_HEIGHT + 3}" for at in turns),
        "".join(f"M{at} {HEIGHT}h1v-12h-1z" for at, column in enumerate(columns) if column.row.error is not None),
        "".join(  # what was paid is at least a unit high
            f"M{at} {LANE_END}v-{max(1, round(column.rewritten * LANE_HEIGHT / most))}h1V{LANE_END}z"
            for at, column in enumerate(columns)
            if column.rewritten > 0
        ),
        most,
    )


def step_path(heights: Sequence[int]) -> str:
    """A closed step line from the ground up, a unit a height."""
    return f"M0 {HEIGHT}" + "".join(f"V{HEIGHT - value}H{end}" for _, end, value in _runs(heights)) + f"V{HEIGHT}z"


def gap_path(count: int) -> str:
    """Lines between so many columns or bars; "" where they are too narrow for a gap."""
    # columns that are wide enough for a gap between them
    return "".join(f"M{at} 0V{HEIGHT}" for at in range(1, count)) if count <= 140 else ""


def _height(tokens: int, longest: int) -> int:
    return round(tokens * HEIGHT / longest) if longest else 0


def _runs(values: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal values: start, end, value."""
    at = 0
    for value, run in groupby(values):
        end = at + len(list(run))
        yield at, end, value
        at = end


def _layer_tokens(column: CallColumn, layer: Layer) -> int:
    found = column.row.by_layer.get(layer)
    return found.read + found.write_5m + found.write_1h + found.input if found else 0


def _breakpoint_path(columns: Sequence[CallColumn], longest: int) -> str:
    """A tick where a breakpoint stands; breakpoints that stay make one line."""
    places: dict[int, list[int]] = {}
    for at, column in enumerate(columns):
        for height in dict.fromkeys(_height(breakpoint.tokens, longest) for breakpoint in column.timeline.breakpoints):
            places.setdefault(height, []).append(at)
    return "".join(
        f"M{start} {HEIGHT - height}H{end}" for height in sorted(places) for start, end in _stretches(places[height])
    )


def _stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of successive numbers as start and end."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield found[0], found[-1] + 1


def _band(numbers: Sequence[int]) -> str:
    return "".join(f"M{start} {BAND_TOP}H{end}v{BAND_HEIGHT}H{start}z" for start, end in _stretches(numbers))
