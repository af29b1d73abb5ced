"""Checks the breakpoints of one request: are their prefixes long enough, and are they in useful places?

Where the log has the bill of the call, the bill decides whether anything was cached, and says how much was not.
"""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.analysis.lint.bills import CONFIRMED, UNCONFIRMED, CallBill, beside_cache, without_cache
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint
from cachecost.analysis.lint.sizing import length_state
from cachecost.base.formatting import count_text
from cachecost.prompts.blocks import Layer


def check_lengths(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """No breakpoint; breakpoints that are too short or too close to call; all breakpoints in the static prefix."""
    if loaded.bill is not None and not loaded.bill.is_cached and loaded.breakpoints:
        yield _billed_uncached(loaded, loaded.bill, loaded.breakpoints[-1])
    elif not loaded.sized:
        return
    elif not loaded.breakpoints:
        yield from _check_unmarked(loaded)
    else:
        yield from _check_short(loaded)
        yield from _check_head_only(loaded)


def _check_unmarked(loaded: LoadedRequest) -> Iterator[LintFinding]:
    if loaded.sent_breakpoints.breakpoints or (loaded.bill is not None and loaded.bill.is_cached):
        return
    minimum, total = loaded.rules.minimum_tokens, _longest(loaded)
    if length_state(total, loaded.error(total), minimum) == "enough":
        words = f"{_about(loaded, total)} tokens and no breakpoint: nothing is cached (the minimum is {minimum:,})"
        billed = f"; {without_cache(loaded.bill)}" if loaded.bill else ""
        yield LintFinding("CC520", "cache_control", words + billed, total, bill=CONFIRMED if billed else UNCONFIRMED)


def _longest(loaded: LoadedRequest) -> int:
    """Tokens of the prompt; never more than were billed, whatever the count says."""
    return min(loaded.total, loaded.bill.usage.total_input) if loaded.bill else loaded.total


def _check_short(loaded: LoadedRequest) -> Iterator[LintFinding]:
    first = next((breakpoint for breakpoint in loaded.breakpoints if breakpoint.state == "enough"), None)
    if first is not None:
        yield from _check_shallow(loaded, first)
    elif loaded.bill is None:
        yield from _check_uncertain(loaded)


def _check_shallow(loaded: LoadedRequest, first: SizedBreakpoint) -> Iterator[LintFinding]:
    """Breakpoints that do nothing, or perhaps nothing, beside `first`, which surely counts."""
    counts = f"; the first breakpoint that counts is {first.path} ({first.tokens:,} tokens)"
    for breakpoint in loaded.breakpoints:
        if breakpoint.state == "near":
            words = f"{_about(loaded, breakpoint.tokens)} tokens, where {_minimum(loaded)}: too close to tell"
            yield LintFinding("CC513", breakpoint.path, words + counts, abs(_missing(loaded, breakpoint)))
        elif breakpoint.state == "short":
            words = f"{_short_by(loaded, breakpoint)}: {_about(loaded, breakpoint.tokens)}, where {_minimum(loaded)}"
            yield LintFinding("CC512", breakpoint.path, words + counts, _missing(loaded, breakpoint))


def _check_uncertain(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """Without a bill: no breakpoint is long enough, or none surely is. Reported at the last one."""
    last = loaded.breakpoints[-1]
    about = f"{_about(loaded, last.tokens)} up to the last breakpoint, where {_minimum(loaded)}"
    if last.state == "near":
        words = f"{about}: whether anything is cached is too close to tell{_letters(loaded, last)}"
        yield LintFinding("CC511", last.path, words, abs(_missing(loaded, last)))
        return
    rest = loaded.total - last.tokens
    deeper = length_state(loaded.total, loaded.error(loaded.total), loaded.rules.minimum_tokens) == "enough"
    after = f"; with the {rest:,} after it the request is long enough" if deeper else ""
    yield LintFinding("CC510", last.path, f"{_short_by(loaded, last)}: {about}{after}", _missing(loaded, last))


def _letters(loaded: LoadedRequest, last: SizedBreakpoint) -> str:
    """Why a length that is far from the minimum is too close to tell."""
    is_far = last.tokens + loaded.error(last.tokens) < loaded.rules.minimum_tokens
    return ", as counters disagree on long runs of one letter" if is_far else ""


def _billed_uncached(loaded: LoadedRequest, bill: CallBill, last: SizedBreakpoint) -> LintFinding:
    """The bill shows that nothing was cached, whatever the count says."""
    words = without_cache(bill)
    if loaded.sized:
        about = f"{_about(loaded, last.tokens)} up to the last breakpoint, where {_minimum(loaded)}"
        words += f"; {about}" if _missing(loaded, last) > 0 else f", although the prefix seems long enough: {about}"
    return LintFinding("CC510", last.path, words, bill.usage.total_input, bill=CONFIRMED)


def _short_by(loaded: LoadedRequest, breakpoint: SizedBreakpoint) -> str:
    return f"{count_text(_missing(loaded, breakpoint), 'token')} short"


def _missing(loaded: LoadedRequest, breakpoint: SizedBreakpoint) -> int:
    return loaded.rules.minimum_tokens - breakpoint.tokens


def _minimum(loaded: LoadedRequest) -> str:
    return f"{loaded.rules.model} needs {loaded.rules.minimum_tokens:,}"


def _about(loaded: LoadedRequest, tokens: int) -> str:
    """A length with its error margin, in tokens and in percent; a billed one has none."""
    error = loaded.error(tokens)
    return f"{tokens:,} (±{error:,.0f}, {error / tokens:.1%})" if error >= 1 else f"{tokens:,}"


def _check_head_only(loaded: LoadedRequest) -> Iterator[LintFinding]:
    """All breakpoints spent on tools and system, in a request that has an answer in it: a conversation."""
    in_head = [breakpoint for breakpoint in loaded.breakpoints if breakpoint.breakpoint.layer is not Layer.MESSAGES]
    goes_on = any(node.message and node.message.role == "assistant" for node in loaded.request.thread.back())
    if len(in_head) < loaded.rules.maximum_breakpoints or len(in_head) < len(loaded.breakpoints) or not goes_on:
        return
    if loaded.is_cached_after(in_head[-1]):
        return
    tokens = loaded.total - in_head[-1].tokens
    words = f"all {len(in_head)} breakpoints are in tools and system: the {tokens:,} tokens after them are never cached"
    billed = beside_cache(loaded.bill)
    yield LintFinding("CC522", in_head[-1].path, words + billed, tokens, bill=loaded.confirmation)
