"""The screen of `watch`: a state and a size in cells → what rich shows. Nothing here knows a clock or a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.analysis.next_message.watching import REWRITE, WatchAlarm, WatchedSession, watched_moment
from cachecost.base.formatting import dollar_column, token_column
from cachecost.base.inert import inert
from cachecost.views.bill.lines import wrap_line, wrap_parts
from cachecost.views.next.words import ClockText
from cachecost.views.watch.timeline import NAMES, STYLES, timeline_bars
from cachecost.views.watch.words import alarm_words, cause_words, header_words, next_words

if TYPE_CHECKING:
    from rich.text import Text

WIDEST_BAR = 40
NARROWEST_BAR = 12
FEWEST_CALLS = 3
HEADERS = ("call", "time", "read", "written", "uncached", "cost")
LEGEND = "  ".join(f"{sign} {name}" for sign, name in NAMES.items())


@dataclass(frozen=True, slots=True)
class ScreenSize:
    """Cells; `height` None: all lines are shown."""

    width: int
    height: int | None = None


class ScreenLine(NamedTuple):
    """A line in one style; its bar stands from column `bar` to `bar_end`."""

    text: str
    style: str = ""
    bar: int = 0
    bar_end: int = 0


def screen_lines(
    watched: WatchedSession, alarms: Sequence[WatchAlarm], now: float, clock: ClockText, size: ScreenSize
) -> list[ScreenLine]:
    """The screen, top to bottom: header, calls with the newest last, the cache and the next message, alarms."""
    head = _styled(wrap_parts(inert(header_words(watched)), size.width), "bold")
    below = [
        line for text in next_words(watched, watched_moment(watched, now), now, clock) for line in _wrap(text, size)
    ]
    notes = [line for note in watched.notes for line in _wrap(note, size)]
    loud = [line for one in alarms for line in _wrap(alarm_words(one, now, clock), size)]
    rest = [*_styled(notes, "dim"), *_styled(below, ""), *_styled(loud, "bold red")]
    room = None if size.height is None else size.height - len(head) - len(rest) - 2
    calls = watched.calls if room is None else watched.calls[-max(room, FEWEST_CALLS) :]
    marked = {one.number for one in alarms if one.kind == REWRITE}
    lines = [*head, *_call_lines(calls, marked, clock, size.width), *rest]
    return lines if size.height is None else lines[: size.height]


def screen_text(lines: Sequence[ScreenLine], width: int) -> Text:
    """The lines as one text that does not wrap; the signs of bars have their colours."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        begin = len(text)
        text.append(line.text[:width], style=line.style)
        for at, sign in enumerate(line.text[line.bar : line.bar_end], begin + line.bar):
            text.stylize(STYLES.get(sign, ""), at, at + 1)
    return text


def _call_lines(
    calls: Sequence[TimelineCall], marked: Collection[int], clock: ClockText, width: int
) -> list[ScreenLine]:
    """A line a call, below their headers; the bar where there is room for it."""
    if not calls:
        return []
    rows = _aligned_rows(calls, clock)
    left = width - len(rows[0]) - 2
    space = min(WIDEST_BAR, left // 2)
    bars = timeline_bars(calls, space) if space >= NARROWEST_BAR else [""] * len(calls)
    legend = LEGEND if space >= NARROWEST_BAR else ""
    lines = [ScreenLine(f"{rows[0]}  {legend}"[:width].rstrip(), "dim")]
    for one, row, bar in zip(calls, rows[1:], bars, strict=True):
        shown = f"{bar:<{space}}  " if legend else ""
        text = f"{row}  {shown}{inert(cause_words(one))}"[:width].rstrip()
        begin = len(row) + 2
        lines.append(ScreenLine(text, "bold" if one.number in marked else "", begin, begin + len(bar)))
    return lines


def _aligned_rows(calls: Sequence[TimelineCall], clock: ClockText) -> list[str]:
    """The headers and the figures of each call, in columns."""
    columns = [
        [f"{one.number:,}" for one in calls],
        ["" if one.call.start is None else clock(one.call.start) for one in calls],
        token_column([one.call.read for one in calls]),
        token_column([one.call.written for one in calls]),
        token_column([one.call.tokens[0] for one in calls]),
        dollar_column([one.cost for one in calls]),
    ]
    padded = []
    for header, cells in zip(HEADERS, columns, strict=True):
        widest = max(map(len, (header, *cells)))
        padded.append([cell.rjust(widest) for cell in (header, *cells)])
    return ["  ".join(row) for row in zip(*padded, strict=True)]


def _wrap(text: str, size: ScreenSize) -> list[str]:
    return wrap_line(inert(text), size.width, hanging="  ")


def _styled(lines: Sequence[str], style: str) -> list[ScreenLine]:
    return [ScreenLine(line, style) for line in lines]
