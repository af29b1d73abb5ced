"""The screen of `watch`: a state and a size in cells → what rich shows. Nothing here knows a clock or a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cachecost.account.causes import causes
from cachecost.analysis.bill.timeline import TimelineCall
from cachecost.analysis.next_message.watching import REWRITE, WatchAlarm, WatchedMoment, WatchedSession, watched_moment
from cachecost.base.formatting import (
    count_text,
    dollar_column,
    dollars,
    duration,
    inert,
    percent,
    short_session,
    token_column,
    tokens,
)
from cachecost.views.bill.text import agent_name, wrap_line, wrap_parts
from cachecost.views.bill.words import short_cause
from cachecost.views.next.words import ClockText, cache_words, keep_alive_words, price_words

if TYPE_CHECKING:
    from rich.text import Text


COUNTED_S = 60, 3600
"""So many seconds are counted down as minutes and seconds."""
READ, WRITTEN, AGAIN, UNCACHED = "=", "+", "!", "."
"""Signs of every encoding."""
NAMES = {READ: "read", WRITTEN: "written", AGAIN: "written again", UNCACHED: "uncached"}
STYLES = {READ: "cyan", WRITTEN: "yellow", AGAIN: "bold red", UNCACHED: "magenta"}
WIDEST_BAR = 40
NARROWEST_BAR = 12
HEADERS = ("call", "time", "read", "written", "uncached", "cost")
LEGEND = "  ".join(f"{sign} {name}" for sign, name in NAMES.items())


def header_words(watched: WatchedSession) -> str:
    """Session, model, and what it has cost: "1e0816ef · claude-sonnet-4-5 · 12 calls · $0.31 · cache hit rate 94%"."""
    state = watched.state
    named = [short_session(state.session), state.model] if state else []
    totals, figures = watched.totals, ["no calls yet"]
    if totals.calls:
        calls = count_text(totals.calls, "call")
        figures = [calls, dollars(totals.cost), f"cache hit rate {percent(totals.hit_rate)}"]
    return join([*(named or [watched.source]), *figures])


def call_line(one: TimelineCall, clock: ClockText) -> str:
    """A call in one line: "12 14:27 read 118k · written 349 · uncached 8 · $0.06"."""
    usage, at = one.call, one.call.start
    parts = [
        f"read {tokens(usage.read)}",
        f"written {tokens(usage.written)}",
        f"uncached {tokens(usage.tokens[0])}",
        dollars(one.cost),
        cause_words(one),
    ]
    return " ".join(filter(None, [f"{one.number:,}", clock(at) if at is not None else ""])) + " " + join(parts)


def cause_words(one: TimelineCall) -> str:
    """Why a call did not read all that was cached, with what that cost; which sub-agent made it."""
    agent = agent_name(one) if one.agent_number else ""
    if one.rewrite is None:
        row = causes()[one.cause]
        return join([agent, "first call" if row.begins else "" if row.reads_all else row.name_in_column])
    again = f"{tokens(one.rewrite.tokens)} written again, {dollars(one.rewrite.cost)}"
    return join([agent, f"{again}: {short_cause(one.cause)}"])


def next_words(watched: WatchedSession, moment: WatchedMoment | None, now: float, clock: ClockText) -> Iterator[str]:
    state = watched.state
    if state is None or moment is None:
        return
    until = state.warm_until
    left = 0 if until is None else int(until - now)
    if until is not None and state.cached_tokens and COUNTED_S[0] <= left < COUNTED_S[1]:
        warm = f"{tokens(state.cached_tokens)} tokens are warm until {clock(until)}"
        yield f"{warm} ({left // 60} min {left % 60:02} s)"
    else:
        yield cache_words(state, now, clock)
    yield f"next message {price_words(moment.message)}"
    if words := keep_alive_words(moment.keep_alive, clock):
        yield words


def alarm_words(alarm: WatchAlarm, now: float, clock: ClockText) -> str:
    if alarm.kind == REWRITE:
        return f"call {alarm.number:,} wrote {tokens(alarm.tokens)} tokens again: {dollars(alarm.usd)}"
    left = duration(alarm.at - now)
    lost = f"after that the next message costs {dollars(alarm.usd)} more"
    return f"{tokens(alarm.tokens)} tokens expire at {clock(alarm.at)} (in {left}); {lost}"


def join(parts: list[str]) -> str:
    return " · ".join(filter(None, parts))


def timeline_bars(calls: Sequence[TimelineCall], width: int) -> list[str]:
    """A bar a call: what was read, written again, written and uncached; the longest prompt has `width` characters."""
    prompts = []
    for one in calls:
        call, again = one.call, min(one.rewrite.tokens, one.call.written) if one.rewrite else 0
        prompts.append((call.read, again, call.written - again, call.tokens[0]))
    longest = max(map(sum, prompts), default=0)
    bars = []
    for prompt in prompts:
        bar, end = "", 0
        for part, sign in zip(prompt, (READ, AGAIN, WRITTEN, UNCACHED), strict=True):
            end += part  # where it ends in the prompt, rounded: a part of less than half a character is not seen
            bar += sign * ((2 * end * width + longest) // (2 * longest) - len(bar) if longest else 0)
        bars.append(bar)
    return bars


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
    head = [ScreenLine(line, "bold") for line in wrap_parts(inert(header_words(watched)), size.width)]
    styled = [(note, "dim") for note in watched.notes]
    styled += [(text, "") for text in next_words(watched, watched_moment(watched, now), now, clock)]
    styled += [(alarm_words(one, now, clock), "bold red") for one in alarms]
    rest = [
        ScreenLine(line, style) for text, style in styled for line in wrap_line(inert(text), size.width, hanging="  ")
    ]
    room = None if size.height is None else size.height - len(head) - len(rest) - 2
    calls = watched.calls if room is None else watched.calls[-max(room, 3) :]
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
    rows = ["  ".join(row) for row in zip(*padded, strict=True)]
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
