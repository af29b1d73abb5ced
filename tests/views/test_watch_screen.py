"""The screen of `watch` as a function of a state, a time and a size."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bill_sessions import BEGIN, SessionWriter

from cachecost.analysis.next_message.watching import (
    EXPIRY,
    MOST_CALLS,
    REWRITE,
    WatchedSession,
    find_alarms,
    watched_moment,
)
from cachecost.live.watching.server import FileFollower
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.views.watch import ScreenSize, alarm_words, call_line, screen_lines, screen_text, timeline_bars
from conversations.session_stores import write_lines

ID = "1e0816ef-0000-4000-8000-000000000001"
START = BEGIN.timestamp()
CENT = Decimal("0.01")
BIG = 10**6


def session(calls: int, pause_s: float = 5) -> SessionWriter:
    """A session whose calls read all that was cached, but the last, after ten minutes, writes all of it again."""
    writer, cached = SessionWriter(ID, "/work/\x1b[31mshop"), 0
    for number in range(calls):
        is_late = number == calls - 1
        writer.write_message("Next \x1b[31m.", 600 if is_late else pause_s)
        writer.answer(0 if is_late else cached, cached + 20_000 if is_late else 20_000)
        cached += 20_000
    return writer


def watched(path: Path, writer: SessionWriter) -> WatchedSession:
    write_lines(path, writer.lines)
    follower = FileFollower(path, ReplaySetup(RuleBook(), PriceBook()))
    found = follower.poll(0)
    follower.close()
    assert found is not None
    return found


def clock(at: float) -> str:
    return f"{at - START:.0f}"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> WatchedSession:
    return watched(tmp_path_factory.mktemp("watch") / f"{ID}.jsonl", session(4))


def test_the_screen_says_header_calls_cache_price_and_alarms(example: WatchedSession) -> None:
    assert example.state is not None and example.state.warm_until is not None
    now = example.state.warm_until - 50
    alarms = find_alarms(example, now, CENT, 60)
    assert [one.kind for one in alarms] == [REWRITE, EXPIRY]
    lines = screen_lines(example, alarms, now, clock, ScreenSize(120, 40))
    text = [line.text for line in lines]
    assert text[0].startswith("1e0816ef · claude-opus-4-5-20251101 · 4 calls · $0.9")
    assert text[1].split()[:6] == ["call", "time", "read", "written", "uncached", "cost"]
    assert [line.split()[0] for line in text[2:6]] == ["1", "2", "3", "4"]
    assert "60k written again" in text[5] and "!!!" in text[5] and lines[5].style == "bold"
    assert text[6].startswith("80k tokens are warm until") and text[7].startswith("next message $0.")
    assert text[-2].startswith("call 4 wrote 60k tokens again: $0.")
    assert "expire at" in text[-1] and lines[-1].style == "bold red"


def test_minutes_and_seconds_are_counted_down(example: WatchedSession) -> None:
    assert example.state is not None and example.state.warm_until is not None
    lines = screen_lines(example, [], example.state.warm_until - 250, clock, ScreenSize(120))
    assert any("(4 min 10 s)" in line.text for line in lines)


def test_no_alarm_below_the_threshold_or_after_the_end(example: WatchedSession) -> None:
    assert example.state is not None and example.state.warm_until is not None
    until = example.state.warm_until
    assert not find_alarms(example, until - 50, Decimal(100), 60)
    assert [one.kind for one in find_alarms(example, until, CENT, 60)] == [REWRITE]
    assert [one.kind for one in find_alarms(example, until - 61, CENT, 60)] == [REWRITE]
    moment = watched_moment(example, until - 50)
    assert moment is not None and moment.message.is_warm


@given(width=st.integers(10, 200), height=st.integers(1, 60), after_s=st.floats(-1000, 10_000))
def test_every_size_is_filled_and_never_exceeded(
    example: WatchedSession, width: int, height: int, after_s: float
) -> None:
    assert example.state is not None and example.state.last_used is not None
    now = example.state.last_used + after_s
    lines = screen_lines(example, find_alarms(example, now, CENT, 60), now, clock, ScreenSize(width, height))
    assert 0 < len(lines) <= height
    text = screen_text(lines, width).plain
    assert all(len(line) <= width for line in text.split("\n"))


def test_foreign_text_is_inert(tmp_path: Path) -> None:
    writer = SessionWriter("\x1b[31mred\x07", "/work")
    writer.write_message("hi")
    writer.answer(0, 5000, model="claude-\x1b[2Jopus")
    found = watched(tmp_path / "s.jsonl", writer)
    lines = screen_lines(found, [], START, clock, ScreenSize(120))
    assert "\x1b" not in screen_text(lines, 120).plain and "\x07" not in screen_text(lines, 120).plain


def test_many_calls_keep_the_latest_and_the_sums(tmp_path: Path) -> None:
    found = watched(tmp_path / "s.jsonl", session(MOST_CALLS + 30, 1))
    assert len(found.calls) == MOST_CALLS and found.totals.calls == MOST_CALLS + 30
    assert (found.calls[0].number, found.calls[-1].number) == (31, MOST_CALLS + 30)
    lines = screen_lines(found, [], START, clock, ScreenSize(100, 20))
    assert any(line.text.split()[0] == str(MOST_CALLS + 30) for line in lines) and len(lines) <= 20


def test_bars_end_where_the_prompt_ends(example: WatchedSession) -> None:
    bars = timeline_bars(example.calls, 40)
    assert bars == ["+" * 10, "=" * 10 + "+" * 10, "=" * 20 + "+" * 10, "!" * 30 + "+" * 10]


def test_a_line_of_a_log_and_of_an_alarm(example: WatchedSession) -> None:
    assert call_line(example.calls[1], clock).startswith("2 ")
    assert "read 20k · written 20k · uncached 3 · $0.1" in call_line(example.calls[1], clock)
    (alarm,) = find_alarms(example, START + BIG, CENT, 60)
    assert alarm_words(alarm, START, clock).startswith("call 4 wrote 60k tokens again")
