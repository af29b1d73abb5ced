"""Checks a request and the next one: does the last breakpoint move, and is it within the lookback?"""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.lint.bills import beside_cache
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint, message_blocks, message_place
from cachecost.analysis.lint.sizing import length_state
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.lookback import lookback_steps


def check_last_breakpoint(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """The last breakpoint of `b` stands no later than that of `a`, and before the end of `a`, which `b` goes on
    from.
    """
    before, after = a.request.thread, b.request.thread
    grew = after.length > before.length > 0 and after.up_to(before.length) is before
    if not grew or not b.live or not _is_long_enough(a):
        return
    end = message_place(before, len(message_blocks(before)) - 1)
    last = b.live[-1]
    if last.place < end and not b.is_cached_after(last) and (not a.live or last.place <= a.live[-1].place):
        yield _stuck_finding(a, b, last)


def _is_long_enough(a: LoadedRequest) -> bool:
    return length_state(a.total, a.error(a.total), a.rules.minimum_tokens) == "enough"


def _stuck_finding(a: LoadedRequest, b: LoadedRequest, last: SizedBreakpoint) -> LintFinding:
    more = b.request.thread.length - a.request.thread.length
    tokens = b.total - last.tokens
    how_long = f"the {tokens:,} tokens after it are" if b.sized else "what comes after it is"
    words = f"the last breakpoint stays here while the conversation grew by {more} messages: {how_long} not cached"
    words += beside_cache(b.bill)
    return LintFinding("CC521", last.path, words, tokens if b.sized else None, bill=b.confirmation)


def check_lookback(a: LoadedRequest, b: LoadedRequest, margin: int) -> Iterator[LintFinding]:
    """How many more positions would put the last breakpoint of `a` out of reach of every breakpoint of `b`: fewer
    than `margin`?
    """
    if not a.live or a.live[-1].state != "enough":
        return
    entry = a.live[-1].prefix
    if not _is_within(entry, b.prompt.end):
        return
    breakpoints = [breakpoint for breakpoint in b.live if breakpoint.prefix.depth >= entry.depth]
    if not breakpoints:
        return
    nearest = min(breakpoints, key=lambda breakpoint: _steps(breakpoint, entry, b))
    left = b.rules.lookback_positions - _steps(nearest, entry, b)
    if left < 1:
        yield _exceeded_finding(a, b, nearest, left)
    elif left < margin:
        yield _close_finding(a, b, nearest, left)


def _steps(breakpoint: SizedBreakpoint, entry: Prefix, b: LoadedRequest) -> int:
    return lookback_steps(breakpoint.prefix, entry, b.rules)


def _is_within(entry: Prefix, end: Prefix) -> bool:
    node: Prefix | None = end
    while node is not None and (node.depth > entry.depth or node.block is None):
        node = node.parent
    return node is entry


def _close_finding(a: LoadedRequest, b: LoadedRequest, breakpoint: SizedBreakpoint, left: int) -> LintFinding:
    more = "one more block puts" if left == 1 else f"{left} more blocks put"
    words = (
        f"{_steps(breakpoint, a.live[-1].prefix, b)} positions back to the last breakpoint of the previous request "
        f"({a.live[-1].path}); the lookback covers {b.rules.lookback_positions - 1}: {more} it out of reach"
    )
    return LintFinding("CC523", breakpoint.path, words, a.live[-1].tokens if a.sized else None)


def _exceeded_finding(a: LoadedRequest, b: LoadedRequest, breakpoint: SizedBreakpoint, left: int) -> LintFinding:
    """What is lost is what lies between the entry that is out of reach and the best of the others."""
    reached = [one.tokens for one in a.live[:-1] if _reaches(b, one.prefix)]
    lost = a.live[-1].tokens - max(reached, default=0)
    words = (
        f"{_steps(breakpoint, a.live[-1].prefix, b)} positions back to the last breakpoint of the previous request "
        f"({a.live[-1].path}), {1 - left} too many: it is missed"
    )
    return LintFinding("CC524", breakpoint.path, words, lost if a.sized else None)


def _reaches(b: LoadedRequest, entry: Prefix) -> bool:
    return any(
        breakpoint.prefix.depth >= entry.depth and _steps(breakpoint, entry, b) < b.rules.lookback_positions
        for breakpoint in b.live
    )
