"""Lines of `watch`: the header, a call, the cache, the next message, alarms."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.bill.timeline import READ_ALL, TimelineCall
from cachecost.analysis.next_message.state import SessionState
from cachecost.analysis.next_message.watching import REWRITE, WatchAlarm, WatchedMoment, WatchedSession, WatchedTotals
from cachecost.base.formatting import count_text, dollars, percent, short_session, tokens
from cachecost.views.bill.session import agent_name
from cachecost.views.bill.words import short_cause
from cachecost.views.next.words import ClockText, cache_words, keep_alive_words, price_words

NO_CALLS = "no calls yet"
COUNTED_S = 60, 3600
"""So many seconds are counted down as minutes and seconds."""
CAUSES = {"cold_start": "first call", "warm_start": "first call", "hit": "", "new_content": ""}


def header_words(watched: WatchedSession) -> str:
    """Session, model, and what it has cost: "1e0816ef · claude-sonnet-4-5 · 12 calls · $0.31 · cache hit rate 94%"."""
    state = watched.state
    named = [short_session(state.session), state.model] if state else []
    return " · ".join(filter(None, [*(named or [watched.source]), totals_words(watched.totals)]))


def totals_words(totals: WatchedTotals) -> str:
    if not totals.calls:
        return NO_CALLS
    return " · ".join(
        [count_text(totals.calls, "call"), dollars(totals.cost), f"cache hit rate {percent(totals.hit_rate)}"]
    )


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
        return join([agent, CAUSES.get(one.cause, "" if one.cause in READ_ALL else short_cause(one.cause))])
    again = f"{tokens(one.rewrite.tokens)} written again, {dollars(one.rewrite.cost)}"
    return join([agent, f"{again}: {short_cause(one.cause)}"])


def next_words(watched: WatchedSession, moment: WatchedMoment | None, now: float, clock: ClockText) -> Iterator[str]:
    """The cache, the next message, and the advice on keep-alives."""
    state = watched.state
    if state is None or moment is None:
        return
    yield warm_words(state, now, clock)
    yield f"next message {price_words(moment.message)}"
    if words := keep_alive_words(moment.keep_alive, clock):
        yield words


def alarm_words(alarm: WatchAlarm, now: float, clock: ClockText) -> str:
    """An alarm in one sentence."""
    if alarm.kind == REWRITE:
        return f"call {alarm.number:,} wrote {tokens(alarm.tokens)} tokens again: {dollars(alarm.usd)}"
    left = f"{max(0.0, alarm.at - now):.0f} s"
    lost = f"after that the next message costs {dollars(alarm.usd)} more"
    return f"{tokens(alarm.tokens)} tokens expire at {clock(alarm.at)} (in {left}); {lost}"


def join(parts: list[str]) -> str:
    return " · ".join(filter(None, parts))


def warm_words(state: SessionState, now: float, clock: ClockText) -> str:
    """What is cached and until when, with a countdown: "127k tokens are warm until 14:32 (4 min 10 s)"."""
    until = state.warm_until
    left = 0 if until is None else int(until - now)
    if until is None or not state.cached_tokens or not COUNTED_S[0] <= left < COUNTED_S[1]:
        return cache_words(state, now, clock)
    return f"{tokens(state.cached_tokens)} tokens are warm until {clock(until)} ({left // 60} min {left % 60:02} s)"
