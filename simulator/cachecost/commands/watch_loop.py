"""The loop of `watch`: looks for changes, and shows them on a terminal or line by line."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from typing import IO, Protocol

from cachecost.analysis.next_message.watching import REWRITE, WatchAlarm, WatchedSession, find_alarms, watched_moment
from cachecost.base.formatting import inert
from cachecost.commands.diagnostics import print_diagnostic
from cachecost.commands.next_message import local_time
from cachecost.commands.workloads import pressed_keys, read_key
from cachecost.views.streams import inert_console, report_console
from cachecost.views.tables.table import PIPE_WIDTH
from cachecost.views.watch import (
    ScreenSize,
    alarm_words,
    call_line,
    header_words,
    join,
    next_words,
    screen_lines,
    screen_text,
)

REDRAW_S = 0.5
"""Between two pictures: a countdown goes on, and a resized terminal is filled."""
LONGEST_SHARE = 5
"""So many times as long as the last look took is waited before the next, so that a large log does not keep a core."""
SHOWN_S = 120.0
"""An alarm of a rewrite stays on the screen for so long."""


class Follower(Protocol):
    """Reads what is watched."""

    def poll(self, now: float) -> WatchedSession | None:
        """What is known now; None where nothing changed."""

    def close(self) -> None:
        """Free what was kept."""


@dataclass(slots=True)
class WatchProgress:
    """What is watched, how often in seconds and with which alarms, and which of them were said already."""

    follower: Follower
    alarm_usd: Decimal
    alarm_s: float
    every_s: float
    watched: WatchedSession = WatchedSession("")
    next_look: float = 0.0
    said: deque[tuple[str, int, float]] = field(default_factory=lambda: deque(maxlen=1000))
    alarmed_at: dict[tuple[str, int, float], float] = field(default_factory=dict)

    def look(self) -> bool:
        """Look for changes if it is time to; whether there are any."""
        began = time.monotonic()
        if began < self.next_look:
            return False
        found = self.follower.poll(time.time())
        ended = time.monotonic()
        self.next_look = ended + max(self.every_s, LONGEST_SHARE * (ended - began))
        self.watched = found or self.watched
        return found is not None

    def alarms(self, now: float) -> list[WatchAlarm]:
        return find_alarms(self.watched, now, self.alarm_usd, self.alarm_s)

    def new_alarms(self, now: float) -> list[WatchAlarm]:
        """Alarms that were not said yet; they are now."""
        found = [one for one in self.alarms(now) if one.key not in self.said]
        self.said.extend(one.key for one in found)
        return found

    def recent_alarms(self, now: float) -> list[WatchAlarm]:
        """Alarms to be seen on the screen: an expiry until it is over, a rewrite for two minutes."""
        self.alarmed_at |= {one.key: now for one in self.new_alarms(now)}
        self.alarmed_at = {key: at for key, at in self.alarmed_at.items() if now - at < SHOWN_S}
        return [one for one in self.alarms(now) if one.kind != REWRITE or one.key in self.alarmed_at]


def print_once(progress: WatchProgress, stream: IO[str]) -> bool:
    """Print the present state; whether there is a call."""
    progress.look()
    console, now = report_console(stream, PIPE_WIDTH), time.time()
    size = ScreenSize(console.width)
    lines = screen_lines(progress.watched, progress.alarms(now), now, local_time, size)
    console.print(screen_text(lines, console.width))
    return bool(progress.watched.totals.calls)


def follow(progress: WatchProgress) -> None:
    if not sys.stdout.isatty():
        log, wait = WatchLog(), min(REDRAW_S, progress.every_s)
        while True:
            if progress.look():
                if log.begins(progress.watched):
                    progress.said.extend(one.key for one in progress.alarms(time.time()) if one.kind == REWRITE)
                log.print_new(progress.watched, time.time())
            now = time.time()
            for alarm in progress.new_alarms(now):
                print_diagnostic(inert(alarm_words(alarm, now, local_time)))
            time.sleep(wait)
    from rich.live import Live

    console = inert_console(sys.stdout, highlight=False)
    progress.look()
    with pressed_keys(), Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False) as live:
        while True:
            now = time.time()
            size = ScreenSize(console.width, console.height)
            lines = screen_lines(progress.watched, progress.recent_alarms(now), now, local_time, size)
            live.update(screen_text(lines, size.width), refresh=True)
            if read_key(REDRAW_S) in ("q", "Q"):
                return
            progress.look()


@dataclass(slots=True)
class WatchLog:
    """Prints what is new: `last` is the number of the latest call that was printed (None: nothing was)."""

    last: int | None = None
    notes: tuple[str, ...] = ()

    def begins(self, watched: WatchedSession) -> bool:
        """Whether nothing was printed yet, or the file is another one with fewer calls."""
        return self.last is None or _last_number(watched) < self.last

    def print_new(self, watched: WatchedSession, now: float) -> None:
        """Print the calls after the last one, then the cache and the next message."""
        is_first = self.begins(watched)
        new = [] if is_first else [one for one in watched.calls if one.number > (self.last or 0)]
        if is_first:
            _print(header_words(watched))
        for one in new:
            _print(call_line(one, local_time))
        words = list(next_words(watched, watched_moment(watched, now), now, local_time))
        if words and (new or is_first):
            _print(join(words[:2]))
        for note in watched.notes if watched.notes != self.notes else ():
            print_diagnostic(inert(note))
        self.last, self.notes = _last_number(watched), watched.notes


def _last_number(watched: WatchedSession) -> int:
    return watched.calls[-1].number if watched.calls else 0


def _print(text: str) -> None:
    sys.stdout.write(inert(text) + "\n")
    sys.stdout.flush()
